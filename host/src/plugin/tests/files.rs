//! Loading: files that are no plugins, and the cache.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::*;
use super::build::{self, Guest as Text};
use super::{Recorder, job, settings};

fn refusal(bytes: &[u8]) -> String {
    Runtime::new(None).unwrap().load_bytes(Path::new("x.wasm"), bytes).err().unwrap().to_string()
}

fn refused_import(imports: &'static str) -> String {
    refusal(&Text { imports, ..Text::default() }.build())
}

#[test]
fn files_that_are_no_components_are_named() {
    insta::assert_snapshot!(refusal(&wat::parse_str("(module)").unwrap()), @r#"
    `x.wasm` is not a plugin: a core WebAssembly module, not a component
    hint: build it as a component: `cargo build --release --target wasm32-wasip2`; a core module of another language becomes one with `wasm-tools component new`
    "#);
    insta::assert_snapshot!(refusal(b"  ;; a comment\n (component)"), @r#"
    `x.wasm` is not a plugin: WebAssembly text, not a binary
    hint: turn it into its binary form: `wasm-tools parse plugin.wat -o plugin.wasm`
    "#);
    insta::assert_snapshot!(refusal(b""), @r#"
    `x.wasm` is not a plugin: an empty file
    hint: copy or build the file again
    "#);
    insta::assert_snapshot!(refusal(b"#!/bin/sh\n"), @r#"
    `x.wasm` is not a plugin: not WebAssembly
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    "#);
    insta::assert_snapshot!(refusal(b"PK\x03\x04...."), @r#"
    `x.wasm` is not a plugin: a compressed file
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    "#);
    insta::assert_snapshot!(refusal(b"\0asm\x0d\0\x01\0\xff\xff"), @r#"
    `x.wasm` is not a plugin: a WebAssembly component that is not valid: malformed section id (at byte 8)
    hint: build it again with current tools; `wasm-tools validate` says more
    "#);
}

#[test]
fn a_component_need_not_say_which_state_it_reads() {
    let plugin = Runtime::new(None).unwrap().load_bytes(Path::new("x.wasm"), &Text::default().build()).unwrap();
    assert_eq!((plugin.state_versions(), &plugin.facts().state_versions_unclear), (None, &None));
}

#[test]
fn the_device_is_seen_among_the_imports_of_whatever_bytes() {
    let with = wat::parse_str(
        r#"(component (core module (func)) (import "wasi:cli/exit@0.2.6" (instance)) (import "steadfast:job/device@0.1.0" (instance)))"#,
    )
    .unwrap();
    assert!(imports_device(&with));
    assert!(!imports_device(&Text::default().build()));
    // Before its imports there is nothing to see, wherever it ends.
    let seen: Vec<bool> = (0..with.len()).map(|end| imports_device(&with[..end])).collect();
    assert!(!seen[..with.len() / 2].contains(&true));
    assert!(!imports_device(b"\0asm\x01\0\0\0") && !imports_device(b"\xff"));
}

#[test]
fn paths_that_are_no_files_are_named() {
    let runtime = Runtime::new(None).unwrap();
    let refusal = |path: &Path| runtime.load(path, &|_| {}).err().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path()).contains("is not a plugin: a folder\nhint: name the .wasm file in it"));
    assert!(refusal(Path::new("/dev/zero")).contains("neither a file nor a folder"));
    let missing = refusal(&folder.path().join("no.wasm"));
    assert!(missing.contains("cannot read the plugin") && missing.contains("hint: build it"), "{missing}");
}

#[test]
fn no_truncated_file_is_a_plugin() {
    let whole = Text::default().build();
    let exports = inspect(&whole).exports;
    for end in 0..whole.len() {
        let inspection = inspect(&whole[..end]);
        // Without a last custom section it is the same plugin; anything shorter has a problem.
        assert!(!inspection.problems.is_empty() || inspection.exports == exports, "the first {end} bytes pass");
    }
    assert_eq!(inspect(&whole[..whole.len() / 2]).kind, FileKind::Truncated);
    insta::assert_snapshot!(refusal(&whole[..whole.len() / 2]), @r#"
    `x.wasm` is not a plugin: a truncated WebAssembly component
    hint: copy or build the file again
    "#);
}

#[test]
fn flipped_bytes_never_panic() {
    let runtime = Runtime::new(None).unwrap();
    let whole = Text::default().build();
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let _ = runtime.load_bytes(Path::new("x.wasm"), &bytes);
    }
}

#[test]
fn components_that_do_not_fit_the_world_say_what_to_do() {
    insta::assert_snapshot!(refusal(&build::component("nothing", "(module)")), @r#"
    the component `x.wasm` is not a Steadfast plugin:
      - it does not export `steadfast:job/workload@0.1.0` (start, step, snapshot, restore)
        hint: implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another language, generate bindings from wit/steadfast.wit for the world `plugin`
    "#);
    let program = r#"(module (func (export "wasi:cli/run@0.2.3#run") (result i32) (i32.const 0)))"#;
    insta::assert_snapshot!(refusal(&build::component("program", program)), @r#"
    the component `x.wasm` is not a Steadfast plugin:
      - it does not export `steadfast:job/workload@0.1.0` (start, step, snapshot, restore)
        hint: this is a program with a `main`: make it a library with `crate-type = ["cdylib"]` and no `main`, and implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another language, generate bindings from wit/steadfast.wit for the world `plugin`
    "#);
    insta::assert_snapshot!(
        refused_import(r#"(import "wasi:http/outgoing-handler@0.2.3" "handle" (func $handle))"#), @r#"
        the component `x.wasm` is not a Steadfast plugin:
          - it imports `wasi:http/outgoing-handler@0.2.3`, which Steadfast does not have
            hint: plugins have no network: fetch the data before the job and pass it with --input. JavaScript: build with `--disable http` or the QuickJS back end
        "#);
    insta::assert_snapshot!(refused_import(r#"(import "acme:tools/magic" "wave" (func $wave))"#), @r#"
    the component `x.wasm` is not a Steadfast plugin:
      - it imports `acme:tools/magic`, which Steadfast does not have
        hint: remove the import, or link the component that provides it into this one with `wac plug`
    "#);
    insta::assert_snapshot!(refused_import(r#"(import "wasi:cli/exit@0.3.0" "exit" (func $exit (param i32)))"#), @r#"
    the component `x.wasm` is not a Steadfast plugin:
      - it imports `wasi:cli/exit@0.3.0`, which Steadfast does not have
        hint: only WASI 0.2 is here: build for wasm32-wasip2 (or with tools for WASI 0.2)
    "#);
}

#[test]
fn another_version_of_the_world_is_named() {
    let wit = include_str!("../../../../wit/steadfast.wit").replace("job@0.1.0", "job@0.2.0");
    let text = Text::default().text().replace("@0.1.0", "@0.2.0");
    // The world `guest` includes 0.1.0, so this one stands alone.
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("steadfast.wit", &wit).unwrap();
    let world = resolve.select_world(&[package], Some("plugin")).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
    let bytes = wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap();
    insta::assert_snapshot!(refusal(&bytes), @r#"
    the component `x.wasm` is not a Steadfast plugin:
      - it was built for `steadfast:job/workload@0.2.0`, and this host speaks version 0.1.0
        hint: build it with steadfast-guest 0.1, or run it with the Steadfast whose version matches
    "#);
}

#[test]
fn an_inspection_lists_what_is_there() {
    let bytes = Text { memory: "2 10", ..Text::default() }.build();
    let inspection = inspect(&bytes);
    assert_eq!(inspection.kind, FileKind::Component);
    assert_eq!(inspection.problems, []);
    assert_eq!(inspection.bytes, bytes.len() as u64);
    assert!(inspection.digest.starts_with("sha256:") && inspection.digest.len() == 71);
    let names: Vec<_> = inspection.exports.iter().map(|export| export.name.as_str()).collect();
    assert_eq!(names, ["steadfast:job/workload@0.1.0"]);
    assert_eq!(inspection.exports[0].functions, ["start", "step", "snapshot", "restore"]);
    let state = inspection.imports.iter().find(|import| import.name == "steadfast:job/state@0.1.0").unwrap();
    assert!(state.functions.contains(&"[method]writer.write".to_owned()));
    let memory = MemoryFact { initial: 131_072, maximum: Some(655_360) };
    assert!(inspection.memories.contains(&memory), "{:?}", inspection.memories);
}

#[test]
fn folders_of_the_guest_must_be_there() {
    let plugin = super::plugin(&Text::default());
    let gone = GuestSettings { output: "/no/such/folder".into(), ..settings(Recorder::new()) };
    let error = plugin.instantiate(gone).err().unwrap().to_string();
    assert!(error.starts_with("cannot open `/no/such/folder` as the guest's /output: No such file"), "{error}");
}

fn load(cache: &Path) -> Plugin {
    let runtime = Runtime::new(Some(cache.to_owned())).unwrap();
    runtime.load_bytes(Path::new("x.wasm"), &Text::default().build()).unwrap()
}

fn works(plugin: &Plugin) {
    let mut guest = plugin.instantiate(settings(Recorder::new())).unwrap();
    guest.start(&job(9), "{}").unwrap();
    assert_eq!(guest.step().unwrap(), Step::Done("finished".to_owned()));
}

fn entries(cache: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_second_load_finds_the_compiled_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("new/folders");
    assert!(!load(&cache).from_cache());
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let second = load(&cache);
    assert!(second.from_cache());
    works(&second);
    assert_eq!(second.facts().problems, []);
    assert_eq!(entries(&cache).len(), 1);
    let other = Runtime::new(Some(cache)).unwrap();
    let other = other.load_bytes(Path::new("x.wasm"), &Text { memory: "2", ..Text::default() }.build()).unwrap();
    assert!(!other.from_cache());
}

#[test]
fn damaged_entries_are_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(&cache);
    let [entry] = &entries(&cache)[..] else { panic!("one entry") };
    let whole = fs::read(entry).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        Vec::new(),
        whole[..7].to_vec(),
        whole[..40].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        flipped(0),
        flipped(9),
        flipped(40),
        flipped(whole.len() / 2),
        flipped(whole.len() - 1),
    ];
    for bytes in damaged {
        fs::write(entry, bytes).unwrap();
        let plugin = load(&cache);
        assert!(!plugin.from_cache());
        works(&plugin);
        assert!(load(&cache).from_cache());
    }
}

#[test]
fn an_entry_under_another_name_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(&cache);
    let [own] = &entries(&cache)[..] else { panic!("one entry") };
    let other = Text { memory: "2", ..Text::default() }.build();
    let runtime = Runtime::new(Some(cache.clone())).unwrap();
    runtime.load_bytes(Path::new("y.wasm"), &other).unwrap();
    let foreign = entries(&cache).into_iter().find(|entry| entry != own).unwrap();
    fs::copy(foreign, own).unwrap();
    assert!(!load(&cache).from_cache());
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path());
    assert!(load(folder.path()).from_cache());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let plugin = load(folder.path());
    assert!(!plugin.from_cache());
    works(&plugin);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    works(&load(Path::new("/dev/null/cache")));
    works(&load(Path::new("/proc/cache")));
}

#[test]
fn attempts_may_share_a_cache_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| works(&load(&cache)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(entries(&cache).len(), 1);
    assert!(load(&cache).from_cache());
}
