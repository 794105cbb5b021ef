//! What a plugin says of itself, making one, and trying one before it is swapped in.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Place, component};

fn inspected(place: &Place, plugin: &Path) -> (String, Value) {
    let inspect = place.command(&["plugin", "inspect"]).arg(plugin);
    let people = inspect.exits(0).stdout;
    let row = people.lines().find_map(|line| line.strip_prefix("  state")).unwrap_or_else(|| panic!("{people}"));
    (row.trim().to_owned(), serde_json::from_str(&inspect.arg("--json").exits(0).stdout).unwrap())
}

/// The component with one more custom section at its end.
fn with_section(place: &Place, guest: &str, content: &[u8]) -> PathBuf {
    let name = "steadfast:state-versions";
    let mut bytes = fs::read(component(guest)).unwrap();
    bytes.extend([0, u8::try_from(1 + name.len() + content.len()).unwrap(), u8::try_from(name.len()).unwrap()]);
    bytes.extend(name.as_bytes().iter().chain(content));
    let file = place.path().join("with-section.wasm");
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn inspect_tells_which_state_a_plugin_writes_and_reads() {
    let place = Place::new();
    let (row, json) = inspected(&place, &component("digits"));
    assert_eq!(row, "writes version 2, reads 1 and 2");
    assert_eq!(json["state_versions"], serde_json::json!({"writes": 2, "reads": [1, 2]}));
    assert_eq!(inspected(&place, &component("writes_version")).0, "writes version 1, reads 1");
    assert_eq!(inspected(&place, &component("swap_good_b")).0, "writes version 2, reads 1, 2 and 3");
}

#[test]
fn a_plugin_that_makes_no_sense_about_its_state_is_a_plugin_all_the_same() {
    let place = Place::new();
    for (content, said) in [
        (&b"\x02\0\0\0\x02\0\0\0"[..], "two sections contradict each other"),
        (b"", "it is empty"),
        (b"\x01\0\0\0\x01\0", "6 bytes are not a number of u32s"),
    ] {
        let (row, json) = inspected(&place, &with_section(&place, "writes_version", content));
        assert_eq!(row, format!("says nothing that can be understood: {said}"));
        assert_eq!((&json["state_versions"], &json["is_plugin"]), (&Value::Null, &true.into()));
    }
}
