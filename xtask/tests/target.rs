//! What `cargo xtask plugins` does on a machine without the wasm32-wasip2 target, with stand-ins for rustc, rustup and cargo.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// Says that the library lies in a folder which is empty until somebody adds the target.
const RUSTC: &str = "echo \"$BENCH/library\"";
const ADDS: &str = "echo \"rustup $*\"; : > \"$BENCH/library/libstd-0123.rlib\"";
const FAILS: &str = "echo 'could not download' >&2; exit 1";
const ADDS_ELSEWHERE: &str = "exit 0";

/// A program that was just written cannot be started while another thread's new child still has the file open.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn bench(name: &str, rustup: Option<&str>) -> PathBuf {
    let bench = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&bench);
    fs::create_dir_all(bench.join("library")).unwrap();
    program(&bench, "rustc", RUSTC);
    program(&bench, "cargo", "echo \"cargo $*\"");
    if let Some(rustup) = rustup {
        program(&bench, "rustup", rustup);
    }
    bench
}

fn program(bench: &Path, name: &str, script: &str) {
    let path = bench.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn plugins(bench: &Path) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("plugins").env("PATH", bench).env("BENCH", bench).env("CARGO", "cargo").env_remove("RUSTC");
    xtask.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_missing_target_is_added_once_and_the_plugins_are_built() {
    let _turn = ONE_AT_A_TIME.lock();
    let bench = bench("added", Some(ADDS));
    let first = plugins(&bench);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let said = text(&first.stdout);
    assert!(said.contains("rustup target add wasm32-wasip2"), "{said}");
    assert!(said.contains("cargo build --release --target wasm32-wasip2"), "{said}");
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")).unwrap();
    for package in folders.map(|folder| folder.unwrap().file_name()).chain(["test-guests".into()]) {
        assert!(said.contains(&format!(" -p {}", package.display())), "{package:?}: {said}");
    }

    let second = text(&plugins(&bench).stdout);
    assert!(!second.contains("rustup"), "the target was there already: {second}");
}

#[test]
fn without_rustup_or_network_the_error_says_what_to_run() {
    let _turn = ONE_AT_A_TIME.lock();
    for (name, rustup) in [("none", None), ("fails", Some(FAILS)), ("elsewhere", Some(ADDS_ELSEWHERE))] {
        let output = plugins(&bench(name, rustup));
        let error = text(&output.stderr);
        assert!(!output.status.success(), "{name}");
        assert!(error.contains("hint: `rustup target add wasm32-wasip2`"), "{name}: {error}");
        assert!(!text(&output.stdout).contains("cargo build"), "{name} built all the same");
    }
}
