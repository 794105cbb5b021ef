//! Changes of plugin while the volume fails.

use std::fs;

use super::{Job, Releases, first_release_alone, release, variant};
use crate::support::{Attempt, Ended, Phase, Run, undisturbed};

/// Stops a job at step 4, starts it again and changes its plugin while step 5 is held; `prepare` has a word about that attempt.
fn changed(releases: &Releases, to: &str, prepare: impl Fn(Run) -> Run) -> Ended {
    let job = &releases.0;
    job.run("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    let mut attempt = prepare(job.run("--watch --every 1000steps")).start();
    attempt.until(Phase::Step, 5);
    job.change(&release(to));
    attempt.until_said("which is tried at the next step");
    attempt.end()
}

/// The operations of the save that comes with a change, by their numbers.
fn operations_of_the_save() -> std::ops::RangeInclusive<usize> {
    let releases = Releases::new("swap_good_a");
    let file = releases.0.place.path().join("trace");
    changed(&releases, "swap_good_b", |run| run.env("STEADFAST_FAULT_TRACE", &file)).expect_code(0);
    let trace = fs::read_to_string(file).unwrap();
    let is_stage = |line: &str| line.contains(".stage-0");
    let first = trace.lines().position(is_stage).unwrap() + 1;
    let writes = trace.lines().skip(first - 1).take_while(|line| is_stage(line)).count();
    first..=first + writes
}

#[test]
fn a_change_whose_save_fails_loses_nothing() {
    let alone = first_release_alone();
    let releases = Releases::new("swap_good_a");
    changed(&releases, "swap_good_b", |run| run).expect_code(0);
    let swapped = releases.finished();

    let operations = operations_of_the_save();
    assert!(operations.clone().count() > 3, "{operations:?}");
    for (number, kind) in operations.zip(["enospc", "eio"].into_iter().cycle()) {
        let fault = format!("{number}:{kind}");
        // What fits goes on.
        let releases = Releases::new("swap_good_a");
        let ended = changed(&releases, "swap_good_b", |run| run.faults(&fault)).expect_code(0);
        let ended = ended.says("A save failed (1 in a row)").says("has run step 6, and the job goes on under it");
        assert_eq!(ended.stderr.matches("A save failed").count(), 1, "{fault}: {}", ended.stderr);
        assert!(releases.finished() == swapped, "{fault}");
        // For what does not, the last checkpoint stands.
        let releases = Releases::new("swap_good_a");
        let ended = changed(&releases, "swap_traps_in_step", |run| run.faults(&fault)).expect_code(0);
        let ended = ended.says("A save failed (1 in a row)").says("is not used: it fails in `step`");
        ended.says("could not be saved: 2 steps are run again").says("Resuming from checkpointed step 4");
        assert!(releases.finished() == alone, "{fault}");
    }
}

const MANY: &str = r#"{"steps": 400}"#;

/// Goes on until a save has failed and the loop has yet to hear of it.
fn first_save_fails(job: &Job) -> Attempt {
    let run = job.run("--watch --every 2steps");
    let copy = job.place.copy();
    let whole = copy.command(&["run"]).arg(&job.file).arg("--volume").arg(copy.volume()).config(MANY);
    let (_, trace) = whole.args("--every 2steps").trace();
    let first = trace.iter().position(|(_, path)| path.contains(".stage-0")).unwrap() + 1;
    let mut attempt = run.faults(&format!("{first}:enospc")).start();
    attempt.until(Phase::Idle, 6);
    attempt
}

#[test]
fn while_saves_fail_a_change_waits_and_the_old_plugin_goes_on() {
    let whole = undisturbed("stochastic", MANY);
    let job = Job::with(&variant("stochastic", 1), MANY);
    job.run("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    let mut attempt = first_save_fails(&job);
    job.change(&variant("stochastic", 2));
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0).says("A save failed (1 in a row)");
    let ended = ended.says("Another plugin waits for a save that succeeds").says("and the job goes on under it");
    assert_eq!(ended.stderr.matches("Another plugin waits").count(), 1, "{}", ended.stderr);
    let at = |words: &str| ended.stderr.find(words).unwrap();
    assert!(at("Another plugin waits") < at("Changing the plugin at step"));
    assert!(job.place.finished("stochastic") == whole);
}
