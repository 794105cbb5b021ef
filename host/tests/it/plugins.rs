//! What a plugin says of itself, making one, and trying one before it is swapped in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

#[test]
fn what_new_makes_builds_and_runs() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let new = place.command(&["plugin", "new", "my-walk", "--lang", "rust", "--sdk"]).arg(root.join("guest-sdk"));
    assert!(new.exits(0).stdout.contains("cargo build --release --target wasm32-wasip2"));
    let folder = place.path().join("my-walk");
    // The versions that are there already, so that nothing is asked of a registry.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-plugin");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--release", "--offline", "--target", "wasm32-wasip2"]).current_dir(&folder);
    let built = build.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let plugin = target.join("wasm32-wasip2/release/my_walk.wasm");
    assert_eq!(inspected(&place, &plugin).0, "writes version 1, reads 1");
    let run = place.command(&["run"]).arg(&plugin).arg("--volume").arg(place.volume());
    run.config(r#"{"steps": 20}"#).exits(0).says("Done: ");
}

#[test]
fn new_refuses_what_would_not_become_a_crate_and_what_is_there() {
    let place = Place::new();
    let new = |name: &str| place.command(&["plugin", "new", name]);
    for name in ["2x", "a/b", "..", "fn", "test", ""] {
        new(name).exits(2);
    }
    fs::create_dir(place.path().join("there")).unwrap();
    let there = new("there").exits(2);
    insta::assert_snapshot!(there.stderr, @r"
    steadfast: there is something called `there` already
    hint: give another name, or move it away; nothing was changed
    ");
    assert_eq!(fs::read_dir(place.path().join("there")).unwrap().count(), 0);
    new("walk").args("--sdk .").exits(2).says("`.` is not the crate steadfast-guest");
    assert!(!place.path().join("walk").exists());
    assert!(new("walk").exits(0).stdout.contains("let steadfast-guest point to the folder guest-sdk"));
}
