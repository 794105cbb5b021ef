//! Failures of being told to stop.

use rustix::process::Signal;

use crate::support::{Phase, Place, undisturbed};

const STEPS: &str = r#"{"steps": 8}"#;

#[test]
fn the_save_inside_the_signal_handler_deadlocks_now_and_then() {
    let config = r#"{"steps": 200000, "milliseconds": 0}"#;
    let place = Place::new();
    let run = place.run("sleeps").config(config).args("--every 2steps");
    for round in 0..4_u64 {
        let mut attempt = run.start();
        // A storm at random instants of saving and stepping; the first of them is the one that counts.
        attempt.until_any("a step", |(phase, step)| phase == Phase::Step && step > round * 5);
        for signal in 0..400 {
            attempt.signal(Signal::TERM);
            std::thread::yield_now();
            if signal == 100 {
                attempt.go();
            }
        }
        let ended = attempt.end().expect_code(143);
        let first: Vec<_> = ended.stderr.lines().filter(|line| *line == "Received SIGTERM").collect();
        assert_eq!(first.len(), 1, "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("steps are safe").count(), 1);
        let safe = *place.usable("sleeps").last().unwrap();
        ended.says(&format!("Stopped: {safe} steps are safe; the same command goes on from there"));
    }
}

#[test]
fn sigterm_during_start_up_compilation_evaluation_or_the_final_write_is_lost() {
    let whole = undisturbed("stochastic", STEPS);
    let moments = [
        (Phase::StartUp, 0),
        (Phase::Compilation, 0),
        (Phase::Restore, 0),
        (Phase::Start, 0),
        (Phase::Step, 0),
        (Phase::Step, 3),
        (Phase::Save, 0),
        (Phase::Prune, 0),
        (Phase::Idle, 0),
        (Phase::Save, 8),
        (Phase::Prune, 8),
        (Phase::Idle, 8),
        (Phase::FinalWrite, 8),
        (Phase::End, 0),
    ];
    for (phase, step) in moments {
        let place = Place::new();
        // A cache of its own, so that there is something to compile.
        let cache = if phase == Phase::Compilation { place.path().join("cache") } else { "".into() };
        let run = place.run("stochastic").config(STEPS).args("--every 1steps");
        let stopped =
            if cache.as_os_str().is_empty() { run.clone() } else { run.clone().env("STEADFAST_CACHE", cache) };
        let ended = stopped.term_at(phase, step);
        let written = ended.came_to(Phase::FinalWrite);
        let wanted = if written { 0 } else { 143 };
        let ended = ended.expect_code(wanted);
        if phase != Phase::End {
            ended.says("Received SIGTERM");
        }
        assert_eq!(place.usable("stochastic").len(), place.checkpoints("stochastic").len(), "at {phase} {step}");
        run.done();
        place.finished("stochastic").assert_equals(&whole, &format!("after SIGTERM at {phase} {step}"));
    }
}

#[test]
fn stopped_or_killed_at_every_mark_of_its_life() {
    let config = r#"{"steps": 4}"#;
    let whole = undisturbed("stochastic", config);
    let marks = Place::new().run("stochastic").config(config).args("--every 1steps").done().marks.len();
    for (number, kill) in (1..=marks).flat_map(|number| [(number, false), (number, true)]) {
        let place = Place::new();
        let run = place.run("stochastic").config(config).args("--every 1steps --keep 1");
        let mut attempt = run.start();
        // Saves may be skipped, and then there are fewer marks: an attempt that is done already is done.
        let came = (0..number).take_while(|_| attempt.next().is_some()).count();
        if came < number {
            attempt.end().expect_code(0);
            continue;
        }
        let ended = if kill {
            attempt.kill()
        } else {
            attempt.term();
            attempt.end()
        };
        assert!(kill || matches!(ended.code, Some(0 | 143)), "at {:?}: {:?}", ended.marks.last(), ended.code);
        assert_eq!(
            place.usable("stochastic").len(),
            place.checkpoints("stochastic").len(),
            "at {:?}",
            ended.marks.last()
        );
        run.done();
        place.finished("stochastic").assert_equals(&whole, &format!("at {:?}, kill {kill}", ended.marks.last()));
    }
}

#[test]
fn sigterm_while_going_on_from_a_checkpoint_is_lost() {
    let whole = undisturbed("stochastic", STEPS);
    let base = Place::new();
    base.run("stochastic").config(STEPS).term_at(Phase::Step, 5).expect_code(143);
    for (phase, step) in [(Phase::StartUp, 0), (Phase::Compilation, 0), (Phase::Restore, 0), (Phase::Step, 5)] {
        let place = base.copy();
        let run = place.run("stochastic").config(STEPS);
        run.term_at(phase, step).expect_code(143);
        assert_eq!(place.usable("stochastic").last(), Some(&5), "at {phase}");
        assert_eq!(run.done().resumed_from(), Some(5), "at {phase}");
        place.finished("stochastic").assert_equals(&whole, &format!("after SIGTERM at {phase} {step}"));
    }
}

#[test]
fn a_preempted_step_exits_0_and_the_scheduler_marks_it_as_a_success() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).on_cloud_run("stochastic", "x-1", 0);
    run.term_at(Phase::Step, 3).expect_code(143);
    let record = place.record("stochastic");
    assert_eq!(record.ended.unwrap().exit, 143);
    assert!(place.names_with("stochastic", ".done.json").is_empty());
}
