//! What `plugin push` puts into a registry, and what it refuses.

use std::fs;

use super::server::Registry;
use super::{command, push};
use crate::support::{Place, component, stable};

#[test]
fn the_same_component_comes_to_the_same_digest() {
    let Some(registry) = Registry::start("the_same_component_comes_to_the_same_digest") else { return };
    let place = Place::new();
    let first = push(&place, &component("stochastic"), &registry.reference("a/stochastic:1"));
    let again = push(&place, &component("stochastic"), &registry.reference("a/stochastic:2"));
    assert_eq!(first, again);
    let other = push(&place, &component("countdown"), &registry.reference("a/stochastic:2"));
    assert!(other != first);
    command(&place, &["plugin", "inspect", &first]).exits(0);
}

#[test]
fn only_a_plugin_goes_and_only_under_a_tag() {
    let place = Place::new();
    let refused = |file: &str, to: &str, code| {
        let ended = command(&place, &["plugin", "push", file, to]).exits(code);
        stable(&place, &ended.stderr)
    };
    let text = place.path().join("notes.wasm");
    fs::write(&text, "notes").unwrap();
    let plugin = component("stochastic");
    let plugin = plugin.to_str().unwrap();
    let digest = "0".repeat(64);
    let all = [
        refused(text.to_str().unwrap(), "oci://127.0.0.1:1/a:1", 1),
        refused("nowhere.wasm", "oci://127.0.0.1:1/a:1", 2),
        refused(plugin, &format!("oci://127.0.0.1:1/a@sha256:{digest}"), 2),
        refused(plugin, "a.wasm", 2),
        refused(plugin, "oci://127.0.0.1:1/a", 2),
    ];
    insta::assert_snapshot!(all.join(""), @r"
    steadfast: `[place]/notes.wasm` is not a plugin
    hint: `steadfast plugin inspect` says what is missing
    steadfast: cannot read the plugin `nowhere.wasm`: No such file or directory (os error 2)
    hint: build it with `cargo build --release --target wasm32-wasip2`
    steadfast: `oci://127.0.0.1:1/a@sha256:[hash]` names a digest
    hint: say under which tag to put it: oci://HOST/REPOSITORY:TAG; its digest is printed
    steadfast: `a.wasm` is no reference
    hint: say where to put it: oci://HOST/REPOSITORY:TAG
    error: invalid value 'oci://127.0.0.1:1/a' for '<oci://HOST/REPOSITORY:TAG>': it names neither a tag nor a digest: say oci://HOST/REPOSITORY:TAG, or oci://HOST/REPOSITORY@sha256:… and 64 hexadecimal digits

    For more information, try '--help'.
    ");
}
