//! Rehearsals find nothing in plugins and a host that are right, and do find what is wrong: a plugin that loses state, and a
//! host without any one of its durability rules. So the check itself is checked.
//!
//! The long matrix is `cargo xtask rack torture` and `rack sabotage`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::component;

/// A rehearsal of a small job, and what it says.
fn rehearse(host: &Path, guest: &str, arguments: &str, broken_rule: Option<&str>) -> (Option<i32>, String) {
    let work = tempfile::tempdir().unwrap();
    let mut command = Command::new(host);
    command.arg("rehearse").arg(component(guest)).args(arguments.split_whitespace());
    command.arg("--work").arg(work.path()).env("STEADFAST_CACHE", work.path().join("cache"));
    let output = command.env("STEADFAST_SABOTAGE", broken_rule.unwrap_or_default()).output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
    )
}

#[track_caller]
fn finds_nothing(guest: &str, arguments: &str) {
    let (code, text) = rehearse(Path::new(env!("CARGO_BIN_EXE_steadfast")), guest, arguments, None);
    assert!(code == Some(0) && text.contains("\nsame: "), "{guest} {arguments}: {code:?}\n{text}");
}

#[track_caller]
fn finds_a_difference(guest: &str) {
    let host = Path::new(env!("CARGO_BIN_EXE_steadfast"));
    let (code, text) = rehearse(host, guest, "--every 3steps --preempt every-step", None);
    assert!(code == Some(1) && text.contains("\ndifferent: "), "{guest}: {code:?}\n{text}");
}

/// The host whose rules can be switched off, which `cargo xtask test` builds.
fn sabotaged() -> Option<PathBuf> {
    let host = std::env::var_os("STEADFAST_SABOTAGED_HOST").map(PathBuf::from);
    if host.is_none() {
        eprintln!(
            "SKIPPED: STEADFAST_SABOTAGED_HOST names no host built with `--features sabotage`; `cargo xtask test` does"
        );
    }
    host
}

/// Without a rule switched off the sabotaged host must pass, else a difference would prove nothing: see
/// `with_all_rules_nothing_differs`.
#[track_caller]
fn is_needed(rule: &str, guest: &str, arguments: &str) {
    let Some(host) = sabotaged() else { return };
    let (code, text) = rehearse(&host, guest, arguments, Some(rule));
    assert!(code == Some(1) && text.contains("\ndifferent: "), "without {rule}: {code:?}\n{text}");
}

/// Every volume operation fails in turn, or is the last; small, so that these are some hundred runs of milliseconds.
const FAULTS: &str =
    r#"--config {"steps":3,"bytes":64} --every 2steps --keep 1 --max-retries 20 --faults every-operation"#;

/// The newest checkpoint is damaged before each resume. A small state is one compressed chunk, which no flipped bit survives
/// unnoticed, so this is for a larger one.
fn damage() -> String {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data");
    format!(r#"--input {data} --config {{"epochs":1}} --keep 2 --every 1steps --preempt every-step --damage newest"#)
}

#[test]
fn preempted_after_every_step_nothing_differs() {
    finds_nothing("outputs", "--every 3steps --keep 1 --preempt every-step");
    finds_nothing("stochastic", "--every 3steps --keep 2 --preempt every-step --kill");
}

/// Each attempt runs kernels on another number of threads than the one before.
#[test]
fn trained_on_the_device_and_preempted_after_every_step_nothing_differs() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data");
    let turns = "--every 7steps --preempt every-step --threads-in-turn 1,3,2";
    finds_nothing("digits", &format!(r#"--input {data} --config {{"epochs":1}} {turns}"#));
    finds_nothing("heat", &format!(r#"--config {{"cells":[20,18,16],"steps":12,"picture_every":5}} {turns} --kill"#));
}

#[test]
fn a_transformer_preempted_after_each_of_50_steps_comes_to_the_same_bits() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/gpt/data");
    let told = r#""sample_every":7,"sample_length":9,"validate_every":11,"weights_every":20"#;
    for precision in ["float32", "bfloat16"] {
        let config = format!(r#"{{"preset":"tiny","steps":50,"precision":"{precision}",{told}}}"#);
        let turns = "--every 7steps --preempt every-step --threads-in-turn 1,3,2";
        finds_nothing("gpt", &format!("--input {data} --config {config} {turns}"));
    }
}

#[test]
fn preempted_at_random_instants_nothing_differs() {
    finds_nothing("stochastic", "--every 2steps --preempt times:14 --chaos-seed 7");
    finds_nothing("outputs", "--every 2steps --preempt times:14 --kill --damage newest --chaos-seed 8");
}

#[test]
fn with_every_volume_operation_failing_nothing_differs() {
    finds_nothing(
        "countdown",
        r#"--config {"steps":3} --every 2steps --keep 2 --max-retries 20 --faults every-operation"#,
    );
}

#[test]
fn a_plugin_that_forgets_its_generator_is_caught() {
    finds_a_difference("forgets_generator");
}

#[test]
fn a_plugin_that_applies_a_batch_twice_is_caught() {
    finds_a_difference("applies_twice");
}

#[test]
fn a_plugin_whose_snapshot_leaves_out_its_cursor_is_caught() {
    finds_a_difference("forgets_cursor");
}

#[test]
fn a_plugin_that_is_not_repeatable_is_told_apart() {
    let host = Path::new(env!("CARGO_BIN_EXE_steadfast"));
    let (code, text) = rehearse(host, "unrepeatable", "--preempt at:3", None);
    assert!(code == Some(1) && !text.contains("\ndifferent: ") && text.contains("repeatable"), "{code:?}\n{text}");
}

#[test]
fn with_all_rules_nothing_differs() {
    let Some(host) = sabotaged() else { return };
    for (guest, arguments) in [("outputs", FAULTS.to_owned()), ("digits", damage())] {
        let (code, text) = rehearse(&host, guest, &arguments, None);
        assert!(code == Some(0) && text.contains("\nsame: "), "{guest}: {code:?}\n{text}");
    }
}

#[test]
fn closing_must_be_checked() {
    is_needed("close-unchecked", "outputs", FAULTS);
}

#[test]
fn pruning_must_wait_for_the_verification() {
    is_needed("prune-before-verify", "outputs", FAULTS);
}

#[test]
fn renaming_must_wait_for_the_close() {
    is_needed("rename-before-close", "outputs", FAULTS);
}

#[test]
fn outputs_must_be_durable_first() {
    is_needed("outputs-late", "outputs", FAULTS);
}

#[test]
fn loading_must_compare_hashes() {
    is_needed("load-without-hashes", "digits", &damage());
}
