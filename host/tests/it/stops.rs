//! Being stopped, from outside and by limits of its own.

use std::fs;

use rustix::process::Signal;

use crate::support::{Phase, Place, undisturbed};

/// Guests that are in trouble at one step, where one save at the step before is all that there is to go on from.
fn before_trouble(guest: &str, config: &str, step: u64) -> Place {
    let place = Place::new();
    place.run(guest).config(config).args("--every 1000steps").term_at(Phase::Step, step).expect_code(143);
    assert_eq!(place.usable(guest).last(), Some(&step));
    place
}

#[test]
fn a_keyboard_interrupt_saves_and_exits_130() {
    let config = r#"{"steps": 9}"#;
    let place = Place::new();
    let run = place.run("stochastic").config(config);
    let mut attempt = run.start();
    attempt.until(Phase::Step, 4);
    attempt.signal(Signal::INT);
    attempt.stopping();
    let ended = attempt.end().expect_code(130).says("Received SIGINT");
    ended.says("Saving checkpoint at step 4").says("4 steps are safe; the same command goes on from there");
    assert_eq!(run.done().resumed_from(), Some(4));
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", config), "after an interrupt");
}

#[test]
fn a_second_keyboard_interrupt_exits_at_once() {
    let place = before_trouble("endless", r#"{"at": 3}"#, 3);
    let mut attempt = place.run("endless").config(r#"{"at": 3}"#).args("--grace 1000s").start();
    attempt.until(Phase::Step, 3);
    attempt.go();
    // The first is waited out, for as long as the grace time is; the second is not.
    attempt.signal(Signal::INT);
    attempt.until_said("Received SIGINT");
    attempt.signal(Signal::INT);
    attempt.end().expect_code(130);
    assert_eq!(place.usable("endless").last(), Some(&3));
}

#[test]
fn an_engine_that_stops_with_sigint_is_no_keyboard() {
    let place = Place::new();
    let nomad = |run: crate::support::Run| {
        run.env("NOMAD_JOB_NAME", "stochastic").env("NOMAD_ALLOC_INDEX", "0").env("STEADFAST_REHEARSAL", "1")
    };
    let mut attempt = nomad(place.run("stochastic").config(r#"{"steps": 9}"#)).start();
    attempt.until(Phase::Step, 4);
    attempt.signal(Signal::INT);
    attempt.signal(Signal::INT);
    attempt.stopping();
    attempt.end().expect_code(143);
    assert_eq!(place.usable("stochastic").last(), Some(&4));
}

#[test]
fn a_checkpoint_on_request_stops_nothing() {
    let place = Place::new();
    let mut attempt =
        place.run("sleeps").config(r#"{"steps": 2000, "milliseconds": 1}"#).args("--every 1000000steps").start();
    attempt.until(Phase::Step, 3);
    attempt.signal(Signal::USR1);
    let (_, step) = attempt.until_any("the end of a save", |(phase, step)| phase == Phase::Idle && step > 0);
    assert_eq!(place.usable("sleeps").last(), Some(&step));
    attempt.kill();
}

#[test]
fn an_endless_step_is_broken_off_at_the_end_of_the_grace_time() {
    let place = before_trouble("endless", r#"{"at": 3}"#, 3);
    let run = place.run("endless").config(r#"{"at": 3}"#);
    let mut attempt = run.start();
    attempt.until(Phase::Step, 3);
    attempt.go();
    attempt.until_said("going round for ever");
    attempt.signal(Signal::TERM);
    let ended = attempt.end().expect_code(143);
    ended.says("Step 3 did not end within the grace time; the last checkpoint stands").says("3 steps are safe");
    assert_eq!(place.usable("endless"), [0, 3]);
    let record = place.record("endless");
    assert_eq!((record.failure, record.ended.unwrap().exit), (None, 143), "a stop is no failure of the guest");
}

#[test]
fn a_step_that_waits_in_the_host_is_left_behind_at_the_end_of_the_grace_time() {
    let config = r#"{"steps": 20, "milliseconds": 0}"#;
    let place = before_trouble("sleeps", config, 3);
    let slow = place.run("sleeps").config(r#"{"steps": 20, "milliseconds": 1000000}"#).args("--accept-changed config");
    // The configuration is part of the state of this guest: it begins anew to be slow.
    let mut attempt = slow.args("--fresh --grace 4s").start();
    attempt.until(Phase::Idle, 0);
    attempt.go_on_until_said("step 0 begins");
    attempt.signal(Signal::TERM);
    attempt.end().expect_code(143).says("the last verified checkpoint stands");
    assert_eq!(place.usable("sleeps"), [0, 3, 0]);
}

#[test]
fn a_save_that_fails_while_stopping_is_tried_again() {
    let config = r#"{"steps": 9}"#;
    let base = Place::new();
    base.run("stochastic").config(config).args("--every 1000steps").term_at(Phase::Step, 3).expect_code(143);
    let run = |place: &Place| place.run("stochastic").config(config).args("--every 1000steps");
    let (_, trace) = run(&base.copy()).trace();
    let first = trace.iter().position(|(_, path)| path.contains(".stage-0001.seg")).unwrap() + 1;
    for number in first..first + 16 {
        let place = base.copy();
        run(&place).faults(&format!("{number}:eio")).term_at(Phase::Step, 6).expect_code(143);
        assert_eq!(place.usable("stochastic").last(), Some(&6), "EIO at operation {number}");
        run(&place).done();
    }
}

#[test]
fn an_endless_call_of_any_kind_is_broken_off_when_stopped() {
    for (call, from) in [("start", None), ("restore", Some(2)), ("snapshot", Some(2))] {
        let place = Place::new();
        let config = format!(r#"{{"in": "{call}", "only_before_attempt": 2}}"#);
        let run = place.run("endless").config(&config).args("--every 1steps --volume-is-ephemeral --log human");
        if from.is_some() {
            // An attempt that may go on this far, by its number.
            let free = run.clone().on_cloud_run("endless", "x", 5);
            free.term_at(Phase::Step, 2).expect_code(143);
        }
        let mut attempt = run.clone().on_cloud_run("endless", "x", 1).start();
        attempt.go_on_until_said("going round for ever");
        attempt.signal(Signal::TERM);
        let ended = attempt.end().expect_code(143);
        let ended = ended.says("Received SIGTERM");
        assert_eq!(ended.resumed_from(), from, "in {call}");
        assert_eq!(place.usable("endless").last().copied(), from, "in {call}");
        let record = place.record("endless");
        assert_eq!(record.failure, None, "in {call}: a stop is no failure of the guest");
        run.on_cloud_run("endless", "x", 3).done();
    }
}

#[test]
fn the_attempts_own_deadline_saves_and_exits_143() {
    let config = r#"{"steps": 100000, "milliseconds": 1}"#;
    let place = Place::new();
    // Asked for so early that the grace time is over by then: here, some seconds after the start.
    let run = place.run("sleeps").config(config).args("--attempt-deadline 104s --grace 100s --every 1000000steps");
    let ended = run.exits(143).says("steps are safe");
    let safe = *place.usable("sleeps").last().unwrap();
    assert!(ended.stderr.contains(&format!("Stopped: {safe} steps are safe; ")), "{}", ended.stderr);
    assert!(safe > 0, "some steps were run before the deadline");
    let ended = place.record("sleeps").ended.unwrap();
    assert_eq!(ended.message, "the attempt's deadline");
}

/// The watch ends such a process, and has no time to write down why: the attempts would look like kills, and go on for ever.
#[test]
fn attempts_that_meet_their_deadline_in_a_call_of_the_host_are_counted() {
    let place = Place::new();
    let run = place.run("sleeps").config(r#"{"milliseconds": 1000000}"#);
    let run = run.args("--attempt-deadline 3s --grace 2s --max-stalled 2");
    run.exits(143);
    assert_eq!(place.record("sleeps").ended.unwrap().message, "the attempt's deadline");
    run.exits(143);
    run.exits(65).says("2 attempts in a row made no progress");
}

#[test]
fn a_deadline_that_leaves_no_time_for_any_step_is_a_mistake() {
    let place = Place::new();
    let run = place.run("stochastic").args("--attempt-deadline 5s");
    run.clone().exits(2).says("leaves no time for any step").says("hint: give a longer --attempt-deadline");
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0);
    run.args("--grace 1s").done();
}
