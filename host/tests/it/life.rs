//! The life of a run: begun, gone on with, done, begun anew.

use std::fs;

use crate::support::{Phase, Place, component, undisturbed};

const STEPS: &str = r#"{"steps": 12}"#;

#[test]
fn every_exit_code_of_a_run_has_its_occasion() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    run.clone().args("--every nonsense").exits(2);
    run.clone().args("--name ../elsewhere").exits(2);
    run.clone().args("--every 5steps").term_at(Phase::Step, 5).expect_code(143);
    place.run("stochastic").config(r#"{"steps": 13}"#).exits(70);
    run.faults("3:eio").exits(75);
    place.run("stochastic").config(r#"{"steps": "many"}"#).arg("--fresh").exits(65);
    // 0, 76 and 130 stand with what causes them: done, two attempts at once, the keyboard.
}

#[test]
fn a_run_that_is_done_is_done() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    let first = run.done().says("No checkpoint found, starting at step 0").says("Done: 12 steps");
    assert!(first.came_to(Phase::FinalWrite));
    let names = place.names("stochastic");
    let again = run.done().says("Already done: 12 steps");
    assert!(!again.came_to(Phase::Compilation), "before the plugin is even loaded");
    run.args("--if-done fail").exits(70).says("say --if-done restart or --fresh to run it again");
    assert_eq!(place.names("stochastic"), names, "nothing is written");
}

#[test]
fn fresh_begins_anew_each_time_on_a_plain_machine_and_what_was_done_stays() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    run.done();
    let ended = run.clone().arg("--fresh").term_at(Phase::Step, 6).expect_code(143);
    assert_eq!(ended.resumed_from(), None);
    assert_eq!(run.done().resumed_from(), Some(6), "without the flag the new one goes on");
    assert_eq!(place.names_with("stochastic", ".done.json").len(), 2);
    assert_eq!(run.arg("--fresh").done().resumed_from(), None);
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "begun anew");
}

#[test]
fn fresh_begins_anew_once_an_execution() {
    let place = Place::new();
    let attempt = |execution: &str, number| {
        let run = place.run("stochastic").config(STEPS).args("--fresh --log human --every 1000steps");
        run.on_cloud_run("stochastic", execution, number)
    };
    attempt("x", 0).term_at(Phase::Step, 6).expect_code(143);
    // A retry carries the same flag, and goes on; also one whose predecessor died before its first checkpoint.
    assert_eq!(attempt("x", 1).term_at(Phase::Step, 7).expect_code(143).resumed_from(), Some(6));
    attempt("y", 0).kill_at(Phase::Start, 0);
    let retry = attempt("y", 1).term_at(Phase::Step, 3).expect_code(143);
    assert_eq!(retry.resumed_from(), None, "it goes on in the lineage that the flag began");
    assert_eq!(attempt("y", 2).done().resumed_from(), Some(3));
    attempt("y", 3).done().says("Already done");
}

#[test]
fn from_a_step_goes_on_from_there() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).args("--every 1000steps --keep 3");
    run.term_at(Phase::Step, 4).expect_code(143);
    run.term_at(Phase::Step, 7).expect_code(143);
    run.clone().args("--from 5").exits(2).says("there is no checkpoint of step 5; there are those of steps [0, 4, 7]");
    let ended = run.clone().args("--from 4").term_at(Phase::Restore, 0).expect_code(143);
    assert!(!ended.came_to(Phase::Step));
    // It died before its first checkpoint, and still it is known what it was begun from.
    assert_eq!(run.done().resumed_from(), Some(4));
    assert!(place.usable("stochastic").contains(&7), "the lineage before stays");
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "from step 4");
}

#[test]
fn a_run_id_keeps_runs_of_one_job_apart() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    run.done();
    let ended = run.args("--run-id again").done();
    assert_eq!(ended.resumed_from(), None);
    assert_eq!(place.finished("again").steps, 12);
}

#[test]
fn without_an_engine_attempts_are_counted_by_their_claims() {
    let place = Place::new();
    let config = r#"{"in": "step", "at": 2, "kind": "retryable", "only_before_attempt": 2}"#;
    let run = place.run("refuses").config(config);
    for attempt in ["attempt 0", "attempt 1"] {
        run.exits(75).says(attempt);
    }
    run.done().says("attempt 2");
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_would_be() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    let dry = run.clone().arg("--dry-run");
    dry.done().says("start     no checkpoint found, starting at step 0").says("Dry run: nothing was written");
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0);
    run.term_at(Phase::Step, 5).expect_code(143);
    let names = place.names("stochastic");
    let ended = dry.done().says("at step 5");
    assert!(!ended.came_to(Phase::Start) && !ended.came_to(Phase::Step));
    place.run("stochastic").config(r#"{"steps": 13}"#).arg("--dry-run").exits(70).says("config.steps was 12");
    assert_eq!(place.names("stochastic"), names);
    run.done();
    dry.done().says("Already done");

    // Not even the folder of a volume that is not there yet.
    let elsewhere = place.path().join("not/yet");
    place.command(&["run", "--dry-run", "--volume"]).arg(&elsewhere).arg(component("stochastic")).done();
    assert!(!elsewhere.exists());
}

#[test]
fn a_damaged_done_record_is_written_again() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    run.done();
    let whole = place.finished("stochastic");
    let done = place.task("stochastic").join(place.names_with("stochastic", ".done.json").remove(0));
    let text = fs::read_to_string(&done).unwrap();
    for damaged in [String::new(), text[..text.len() / 2].to_owned(), text.replace("12 steps", "13 steps")] {
        fs::write(&done, damaged).unwrap();
        let ended = run.done();
        assert_eq!(ended.resumed_from(), Some(12), "it is not believed, and not taken for the start");
        assert!(ended.came_to(Phase::FinalWrite) && !ended.came_to(Phase::Step));
        place.finished("stochastic").assert_equals(&whole, "written again");
        for name in place.names_with("stochastic", ".done.json") {
            let path = place.task("stochastic").join(name);
            if path != done {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn tasks_of_one_job_do_not_disturb_each_other() {
    let place = Place::new();
    let task = |index: u32| {
        let run = place.run("stochastic").config(STEPS).on_cloud_run("stochastic", "x", 0).args("--log human");
        run.env("CLOUD_RUN_TASK_INDEX", index.to_string()).env("CLOUD_RUN_TASK_COUNT", "3")
    };
    let mut tasks: Vec<_> = (0..3).map(|index| task(index).start()).collect();
    for (attempt, step) in tasks.iter_mut().zip([3, 5, 7]) {
        attempt.until(Phase::Step, step);
    }
    for mut attempt in tasks {
        attempt.term();
        attempt.end().expect_code(143);
    }
    let outputs: Vec<_> = (0..3)
        .map(|index| {
            assert_eq!(task(index).done().resumed_from(), Some(3 + 2 * u64::from(index)));
            let folder = place.volume().join(format!("stochastic/task-{index:05}-of-00003"));
            crate::support::Finished::read(&folder).outputs
        })
        .collect();
    assert!(outputs[0] != outputs[1] && outputs[1] != outputs[2], "each has a seed of its own");
}

#[test]
fn a_job_of_no_steps_and_without_outputs_is_done() {
    let place = Place::new();
    let run = place.run("countdown").config(r#"{"steps": 0}"#);
    run.done().says("Done: lift-off");
    run.done().says("Already done: lift-off");
    assert!(place.finished("countdown").outputs.is_empty());
}

#[test]
fn nobody_listens_and_the_exit_code_is_the_same() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).deaf();
    run.term_at(Phase::Step, 5).expect_code(143);
    run.clone().args("--if-done nonsense").exits(2);
    place.run("stochastic").config(r#"{"steps": 13}"#).deaf().exits(70);
    run.done();
    assert_eq!(place.finished("stochastic").steps, 12);
}

#[test]
fn on_a_plain_machine_the_volume_is_beside_us() {
    let place = Place::new();
    let run = place.command(&["run"]).arg(component("stochastic")).config(STEPS);
    run.term_at(Phase::Step, 4).expect_code(143).says("./checkpoints");
    assert!(place.path().join("checkpoints/stochastic").is_dir());
    assert_eq!(run.done().resumed_from(), Some(4));
}

#[test]
fn a_job_file_is_the_same_as_options() {
    let place = Place::new();
    let file = place.path().join("job.toml");
    let text = format!(
        "plugin = {:?}\nvolume = \"volume\"\nevery = \"5steps\"\n[config]\nsteps = 12\n",
        component("stochastic")
    );
    fs::write(&file, text).unwrap();
    let run = place.command(&["run"]).arg(&file);
    run.term_at(Phase::Step, 7).expect_code(143);
    assert_eq!(place.run("stochastic").config(STEPS).done().resumed_from(), Some(7));
    run.done().says("Already done");
}
