//! Failures of more than one attempt: at once, again and again, or in another week.

use crate::support::{Phase, Place, undisturbed};

const STEPS: &str = r#"{"steps": 12}"#;

#[test]
fn two_pods_run_the_same_index_and_one_destroys_the_others_work() {
    let whole = undisturbed("stochastic", STEPS);
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).args("--every 1steps");
    let mut older = run.start();
    older.until(Phase::Step, 4);
    let mut newer = run.start();
    newer.until(Phase::Step, 6);
    let before = place.usable("stochastic");
    // The older one wakes up, finds out at its next save, and takes nothing away.
    let ended = older.end().expect_code(76);
    ended.says("a newer attempt of this task is at work");
    let after = place.usable("stochastic");
    assert!(after.last() >= before.last(), "{before:?} {after:?}");
    newer.end().expect_code(0);
    place.finished("stochastic").assert_equals(&whole, "the newer attempt");
    run.done().says("Already done");
}

#[test]
fn two_pods_run_the_same_index_and_neither_sees_the_other_when_it_begins() {
    let whole = undisturbed("stochastic", STEPS);
    for _ in 0..4 {
        let place = Place::new();
        let run = place.run("stochastic").config(STEPS).args("--every 1steps");
        let (mut one, mut other) = (run.start(), run.start());
        // They have looked around, and not yet claimed the task.
        one.until(Phase::Compilation, 0);
        other.until(Phase::Compilation, 0);
        one.until(Phase::Step, 3);
        let mut codes = [other.end().code, one.end().code];
        codes.sort();
        assert_eq!(codes, [Some(0), Some(76)]);
        place.finished("stochastic").assert_equals(&whole, "the one that stays");
        run.done().says("Already done");
    }
}

#[test]
fn two_pods_run_the_same_index_and_the_older_one_finishes_last() {
    let whole = undisturbed("stochastic", STEPS);
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).args("--every 1000steps");
    let mut older = run.start();
    older.until(Phase::Step, 11);
    let newer = run.done();
    assert!(newer.came_to(Phase::FinalWrite));
    older.end().expect_code(76);
    assert_eq!(place.names_with("stochastic", ".done.json").len(), 1);
    place.finished("stochastic").assert_equals(&whole, "the newer attempt");
}

#[test]
fn the_weekly_job_finds_last_weeks_finished_state() {
    let place = Place::new();
    let week = |number: u32, attempt| {
        place.run("stochastic").config(STEPS).on_cloud_run("stochastic", &format!("week-{number}"), attempt)
    };
    week(1, 0).done();
    // Nothing is done by surprise, and it is said.
    let ended = week(2, 0).args("--log human").done().says("Already done: 12 steps");
    assert!(!ended.came_to(Phase::Compilation));
    week(2, 0).args("--log human --if-done fail").exits(70).says("the task is already done");
    // Starting over is asked for, once an execution: its retries go on.
    week(3, 0).args("--log human --if-done restart").term_at(Phase::Step, 5).expect_code(143);
    let ended = week(3, 1).args("--log human --if-done restart").done();
    assert_eq!(ended.resumed_from(), Some(5));
    week(3, 2).args("--log human --if-done restart").done().says("Already done");
    let ended = week(4, 0).args("--log human --if-done restart").done();
    assert_eq!(ended.resumed_from(), None);
}

#[test]
fn a_bug_at_step_8000_uses_up_all_retries_each_running_hours_to_get_there() {
    let config = r#"{"in": "step", "at": 8, "steps": 12}"#;
    let place = Place::new();
    let run = place.run("traps").config(config).args("--every 5steps");
    run.exits(75).says("the guest failed in `step` at step 8").says("this guest was told to panic");
    // From another starting point at the same step: nobody has to try again.
    let ended = run.exits(65).says("step 8 fails from two different starting points");
    assert!(ended.resumed_from().is_some());
    let ended = run.exits(65).says("step 8 fails from two different starting points");
    assert!(!ended.came_to(Phase::Restore), "later attempts end at once");
    // Until something changes that it may depend on.
    let mended =
        place.run("traps").config(r#"{"in": "step", "at": 1000, "steps": 12}"#).args("--accept-changed config");
    mended.done();
    assert_eq!(place.finished("traps").steps, 12);
}

#[test]
fn attempts_without_progress_are_counted_with_preemptions() {
    let config = r#"{"in": "step", "at": 5, "steps": 12, "kind": "retryable"}"#;
    let place = Place::new();
    let run = place.run("refuses").config(config).args("--every 1000steps --max-stalled 3");
    run.term_at(Phase::Step, 4).expect_code(143);
    let refused = || run.exits(75).says("this guest was told to refuse");
    refused();
    for _ in 0..4 {
        // Preemptions, even with nothing new to save, say nothing about the plugin.
        run.term_at(Phase::Restore, 0).expect_code(143);
        run.kill_at(Phase::Restore, 0);
    }
    refused();
    run.exits(65).says("3 attempts in a row made no progress");
    let ended = run.exits(65);
    assert!(!ended.came_to(Phase::Restore));
    assert_eq!(place.usable("refuses").last(), Some(&4), "what was done stays");
}
