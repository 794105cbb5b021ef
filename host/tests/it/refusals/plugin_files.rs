//! Files that are no plugins. What each of them is, and what makes a plugin of it, is said before anything is written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::support::{Phase, Place, component, stable};

/// A file that a user hands to the program.
fn file(place: &Place, name: &str, bytes: &[u8]) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// What `run` says of it. The exit code is that of a plugin which can never work, nothing is written, and whoever inspects the
/// file is told the same.
#[track_caller]
fn refused(place: &Place, plugin: &Path) -> String {
    let run = place.command(&["run", "--volume"]).arg(place.volume()).arg(plugin);
    let ended = run.exits(65);
    assert!(!ended.came_to(Phase::Start));
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is written for what is no plugin");
    let refusal = ended.refusal(place);
    let inspected = place.command(&["plugin", "inspect"]).arg(plugin).exits(1);
    let inspected = inspected.stdout + &inspected.stderr;
    for hint in refusal.lines().filter(|line| line.trim_start().starts_with("hint: ")) {
        assert!(inspected.contains(hint.trim()), "inspecting it says something else than {hint}:\n{inspected}");
    }
    refusal
}

#[test]
fn a_core_module() {
    let place = Place::new();
    let path = file(&place, "plugin.wasm", &wat::parse_str("(module)").unwrap());
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: a core WebAssembly module, not a component
    hint: build it as a component: `cargo build --release --target wasm32-wasip2`; a core module of another language becomes one with `wasm-tools component new`
    "#);
}

#[test]
fn text() {
    let place = Place::new();
    let path = file(&place, "plugin.wat", b"(component)");
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wat` is not a plugin: WebAssembly text, not a binary
    hint: turn it into its binary form: `wasm-tools parse plugin.wat -o plugin.wasm`
    "#);
    let path = file(&place, "run.sh", b"#!/bin/sh\nexec steadfast run\n");
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/run.sh` is not a plugin: not WebAssembly
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    "#);
}

#[test]
fn a_truncated_component() {
    let place = Place::new();
    let whole = fs::read(component("stochastic")).unwrap();
    let path = file(&place, "plugin.wasm", &whole[..whole.len() / 2]);
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: a truncated WebAssembly component
    hint: copy or build the file again
    "#);
}

#[test]
fn a_component_with_a_flipped_bit() {
    let place = Place::new();
    let mut bytes = fs::read(component("stochastic")).unwrap();
    // In the type of the first section.
    bytes[8] ^= 0x40;
    let path = file(&place, "plugin.wasm", &bytes);
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: a WebAssembly component that is not valid: malformed section id: 71 (at byte 10)
    hint: build it again with current tools; `wasm-tools validate` says more
    "#);
}

#[test]
fn an_empty_file() {
    let place = Place::new();
    let path = file(&place, "plugin.wasm", b"");
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: an empty file
    hint: copy or build the file again
    "#);
}

#[test]
fn two_gigabytes_of_zeros() {
    let place = Place::new();
    let path = place.path().join("plugin.wasm");
    File::create(&path).unwrap().set_len(2 << 30).unwrap();
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: a file of 2.0 GiB, and no plugin is larger than 1.0 GiB
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    "#);
}

#[test]
fn a_device() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, Path::new("/dev/zero")), @r#"
    steadfast: `/dev/zero` is not a plugin: neither a file nor a folder
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    "#);
}

#[test]
fn a_folder() {
    let place = Place::new();
    let path = place.path().join("plugin.wasm");
    fs::create_dir(&path).unwrap();
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: `[place]/plugin.wasm` is not a plugin: a folder
    hint: name the .wasm file in it, for example target/wasm32-wasip2/release/NAME.wasm
    "#);
}

#[test]
fn nothing_there() {
    let place = Place::new();
    let ended = place.command(&["run", "plugin.wasm", "--volume"]).arg(place.volume()).exits(2);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot read the plugin `plugin.wasm`: No such file or directory (os error 2)
    hint: build it with `cargo build --release --target wasm32-wasip2`
    "#);
    let ended = place.command(&["plugin", "inspect", "plugin.wasm"]).exits(2);
    insta::assert_snapshot!(stable(&place, &ended.stderr), @r#"
    steadfast: cannot read the plugin `plugin.wasm`: No such file or directory (os error 2)
    hint: build it with `cargo build --release --target wasm32-wasip2`
    "#);
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0);
}

#[test]
fn a_program() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, &component("command")), @r#"
    steadfast: the component `[guests]/command.wasm` is not a Steadfast plugin:
      - it does not export `steadfast:job/workload@0.1.0` (start, step, snapshot, restore)
        hint: this is a program with a `main`: make it a library with `crate-type = ["cdylib"]` and no `main`, and implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another language, generate bindings from wit/steadfast.wit for the world `plugin`
    "#);
}

#[test]
fn a_component_without_exports() {
    let place = Place::new();
    let path = file(&place, "plugin.wasm", &wat::parse_str("(component)").unwrap());
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: the component `[place]/plugin.wasm` is not a Steadfast plugin:
      - it does not export `steadfast:job/workload@0.1.0` (start, step, snapshot, restore)
        hint: implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another language, generate bindings from wit/steadfast.wit for the world `plugin`
    "#);
}

#[test]
fn an_import_that_nobody_offers() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, &component("wants_more")), @r#"
    steadfast: the component `[guests]/wants_more.wasm` is not a Steadfast plugin:
      - it imports `acme:weather/forecast@1.0.0`, which Steadfast does not have
        hint: remove the import, or link the component that provides it into this one with `wac plug`
    "#);
}

#[test]
fn a_plugin_of_a_world_to_come() {
    let place = Place::new();
    // The names carry the version, and a newer one is as long.
    let mut bytes = fs::read(component("stochastic")).unwrap();
    let (ours, newer) = (b"@0.1.0", b"@0.2.0");
    for at in 0..bytes.len() - ours.len() {
        let package = b"steadfast:job/";
        let name = bytes[..at].iter().rposition(|byte| !(byte.is_ascii_graphic())).map_or(0, |before| before + 1);
        if bytes[at..].starts_with(ours) && bytes[name..at].windows(package.len()).any(|text| text == package) {
            bytes[at..at + newer.len()].copy_from_slice(newer);
        }
    }
    let path = file(&place, "plugin.wasm", &bytes);
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: the component `[place]/plugin.wasm` is not a Steadfast plugin:
      - it was built for `steadfast:job/workload@0.2.0`, and this host speaks version 0.1.0
        hint: build it with steadfast-guest 0.1, or run it with the Steadfast whose version matches
    "#);
}

/// A component that exports these calls, each of a type that none of them has.
fn with_calls(names: &[&str]) -> Vec<u8> {
    let calls: String = names.iter().map(|name| format!(r#"(export "{name}" (func $f)) "#)).collect();
    let text = format!(
        r#"(component
        (core module $m
          (func (export "start") (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "start")))
        (instance $workload {calls})
        (export "steadfast:job/workload@0.1.0" (instance $workload)))"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_plugin_that_lacks_a_call() {
    let place = Place::new();
    let path = file(&place, "plugin.wasm", &with_calls(&["start", "step"]));
    insta::assert_snapshot!(refused(&place, &path), @r#"
    steadfast: the component `[place]/plugin.wasm` is not a Steadfast plugin:
      - `steadfast:job/workload@0.1.0` lacks snapshot, restore
        hint: implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another language, generate bindings from wit/steadfast.wit for the world `plugin`
    "#);
}

#[test]
fn a_plugin_whose_calls_have_other_types() {
    let place = Place::new();
    let path = file(&place, "plugin.wasm", &with_calls(&["start", "step", "snapshot", "restore"]));
    let ended = place.command(&["run", "--volume"]).arg(place.volume()).arg(path).exits(65);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: the component `[place]/plugin.wasm` is not a Steadfast plugin:
      - its types do not fit: failed to convert function to given type: type mismatch with parameters: expected 2-tuple, found 0-tuple
        hint: build it against the WIT of steadfast:job@0.1.0, unchanged
    "#);
}
