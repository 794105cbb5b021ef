//! What may differ between attempts, and what is refused with its name until it is said to be meant.

use std::fs;

use crate::support::{Phase, Place, Run};

const STEPS: &str = r#"{"steps": 12}"#;

fn stopped() -> Place {
    let place = Place::new();
    place.run("stochastic").config(STEPS).term_at(Phase::Step, 4).expect_code(143);
    place
}

/// Refused with 70 and the field's name, also in another attempt; accepted by that name, and then not asked for again.
#[track_caller]
fn refused_until_accepted(place: &Place, changed: &Run, said: &str, kind: &str) {
    let before = place.usable("stochastic");
    for _ in 0..2 {
        changed.exits(70).says(said).says(&format!("--accept-changed {kind}"));
    }
    let other = if kind == "input" { "config" } else { "input" };
    changed.clone().arg("--accept-changed").arg(other).exits(70).says(said);
    assert_eq!(place.usable("stochastic"), before);
    let ended = changed.clone().arg("--accept-changed").arg(kind).term_at(Phase::Step, 6).expect_code(143);
    assert_eq!(ended.resumed_from(), Some(4));
    assert_eq!(changed.done().resumed_from(), Some(6), "what was accepted is what is compared with from now on");
}

#[test]
fn a_changed_configuration() {
    let place = stopped();
    let changed = place.run("stochastic").config(r#"{"steps": 13}"#);
    refused_until_accepted(&place, &changed, "config.steps was 12, now it is 13", "config");
}

#[test]
fn the_same_configuration_in_other_words_is_no_change() {
    let place = stopped();
    let file = place.path().join("config.toml");
    fs::write(&file, "# in another order, in another format\nsteps = 12\n").unwrap();
    place.run("stochastic").arg("--config").arg(&file).done();
}

#[test]
fn an_input_that_was_not_there() {
    let place = stopped();
    let input = place.path().join("input");
    fs::create_dir(&input).unwrap();
    let changed = place.run("stochastic").config(STEPS).arg("--input").arg(&input);
    refused_until_accepted(&place, &changed, "there was no input, now there is one", "input");
}

#[test]
fn a_changed_plugin() {
    let place = stopped();
    let mut bytes = fs::read(crate::support::component("stochastic")).unwrap();
    // A custom section changes the file and nothing else.
    bytes.extend([0, 3, 1, b'x', b'y']);
    let run = |name: &str| {
        let other = place.path().join(name);
        fs::write(&other, &bytes).unwrap();
        place.command(&["run"]).arg(&other).args("--name stochastic --volume").arg(place.volume()).config(STEPS)
    };
    // A new version of the same plugin takes over if it reads the state (`swaps`); one of another name does not by itself.
    refused_until_accepted(&place, &run("walk.wasm"), "the plugin was sha256:", "plugin");
}

#[test]
fn a_changed_seed() {
    let place = stopped();
    let changed = place.run("stochastic").config(STEPS).args("--seed 7");
    refused_until_accepted(&place, &changed, "now it is 7", "config");
}

#[test]
fn a_changed_task_count() {
    let place = Place::new();
    let of = |count: u32| {
        let run = place.run("stochastic").config(STEPS).args("--log human --every 1000steps");
        run.on_cloud_run("stochastic", "x", 0).env("CLOUD_RUN_TASK_COUNT", count.to_string())
    };
    of(1).term_at(Phase::Step, 4).expect_code(143);
    for _ in 0..2 {
        let ended = of(3).exits(70).says("the volume holds checkpoints of this task as `task-00000-of-00001`");
        ended.says("--accept-changed task-count");
    }
    let accepted = || of(3).args("--accept-changed task-count");
    // Accepted, and dead before its first checkpoint: the work of before must not be lost for those who come without the word.
    let mut attempt = accepted().start();
    attempt.until(Phase::Step, 4);
    assert_eq!(attempt.kill().resumed_from(), Some(4));
    let ended = of(3).end();
    assert!(!ended.stderr.contains("No checkpoint found"), "the work is lost:\n{}", ended.stderr);
    ended.expect_code(70);
    assert_eq!(accepted().term_at(Phase::Step, 6).expect_code(143).resumed_from(), Some(4));
    assert_eq!(of(3).done().resumed_from(), Some(6));
}

#[test]
fn a_mistyped_command_does_not_end_the_attempt_that_is_at_work() {
    let place = Place::new();
    // So many that some are left however long the first save takes.
    let run = place.run("stochastic").config(r#"{"steps": 1000}"#).args("--every 1steps");
    let mut at_work = run.start();
    at_work.until(Phase::Idle, 0);
    at_work.until_any("a step", |(phase, step)| phase == Phase::Step && step > 1);
    place.run("stochastic").config(r#"{"steps": 1001}"#).exits(70);
    run.clone().args("--dry-run").done();
    run.clone().args("--from 77").exits(2);
    run.clone().args("--attempt-deadline 1s").exits(2);
    let all_of_one = place.names("stochastic").iter().all(|name| name.starts_with("e0001-"));
    assert!(all_of_one, "what is refused has written: {:?}", place.names("stochastic"));
    at_work.end().expect_code(0);
}

#[test]
fn another_job_is_another_folder_and_another_seed() {
    let place = stopped();
    let ended = place.run("stochastic").config(STEPS).args("--name other").done();
    assert_eq!(ended.resumed_from(), None);
    assert!(place.finished("other").outputs != crate::support::undisturbed("stochastic", STEPS).outputs);
}
