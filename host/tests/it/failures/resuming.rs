//! Failures of going on: what was lost, done twice, or mixed up.

use std::fs;

use crate::support::{Phase, Place, component, metadata_of, state_of, undisturbed};

/// Stopped before every single step, by SIGTERM or by SIGKILL, and then let run.
fn interrupted_at_every_step(guest: &str, config: &str, steps: u64, kill: bool) -> Place {
    let place = Place::new();
    let run = place.run(guest).config(config).args("--every 1steps");
    for step in 0..steps {
        let mut attempt = run.start();
        // After a kill the next attempt may have to run some steps again, and come to this one all the same.
        attempt.until(Phase::Step, step);
        let ended = if kill {
            attempt.kill()
        } else {
            attempt.term();
            attempt.end().expect_code(143)
        };
        assert!(!ended.came_to(Phase::FinalWrite));
        if !kill {
            assert_eq!(place.usable(guest).last(), Some(&step), "all that was done is safe");
        }
    }
    run.done();
    place
}

#[test]
fn resume_is_off_by_one_and_a_batch_is_applied_twice_or_skipped() {
    let config = r#"{"steps": 11, "bytes": 1000}"#;
    let whole = undisturbed("every_byte", config);
    for kill in [false, true] {
        let place = interrupted_at_every_step("every_byte", config, 11, kill);
        let how = if kill { "after SIGKILL at every step" } else { "after SIGTERM at every step" };
        place.finished("every_byte").assert_equals(&whole, how);
    }
}

#[test]
fn the_random_generator_restarts_at_its_seed_after_resume() {
    let config = r#"{"steps": 11}"#;
    let whole = undisturbed("stochastic", config);
    let place = interrupted_at_every_step("stochastic", config, 11, false);
    place.finished("stochastic").assert_equals(&whole, "a stochastic plugin, stopped at every step");

    // The check notices: a plugin that forgets its own generator differs.
    let forgetful = undisturbed("forgets_generator", config);
    let place = interrupted_at_every_step("forgets_generator", config, 11, false);
    assert!(place.finished("forgets_generator").outputs != forgetful.outputs);
}

#[test]
fn the_counter_says_step_8000_but_the_weights_are_from_5000() {
    let config = r#"{"steps": 40, "bytes": 2000}"#;
    let place = Place::new();
    let run = place.run("every_byte").config(config).args("--every 3steps --keep 100");
    for step in [5, 11, 17] {
        run.term_at(Phase::Step, step).expect_code(143);
    }
    run.kill_at(Phase::Step, 31);
    let found = place.checkpoints("every_byte");
    assert!(found.len() > 3);
    for path in found {
        let step = metadata_of(&path).next_step;
        let state = state_of(&path);
        // The counter within the state, as postcard writes a small number; and every byte of the state itself.
        assert_eq!(u64::from(state[0].1[0]), step);
        assert!(state[1].1.iter().all(|byte| u64::from(*byte) == step));
    }
    assert_eq!(run.done().stderr.matches("Resuming from").count(), 1);
}

#[test]
fn the_data_position_was_not_saved_and_part_of_the_input_is_read_twice() {
    let place = Place::new();
    let input = place.path().join("input");
    fs::create_dir(&input).unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data/digits.csv.gz");
    fs::copy(data, input.join("digits.csv.gz")).unwrap();
    let config = r#"{"epochs": 2, "hidden_units": 8}"#;
    let run = |place: &Place| place.run("digits").config(config).arg("--input").arg(&input).args("--every 1000steps");
    let whole = Place::new();
    run(&whole).done();
    // In the middle of the first epoch, at its end and in the middle of the second.
    for step in [20, 45, 46, 70] {
        run(&place).term_at(Phase::Step, step).expect_code(143);
    }
    run(&place).done();
    place.finished("digits").assert_equals(&whole.finished("digits"), "an example whose cursor is part of its state");

    // The check notices: a plugin that forgets its place in the data differs.
    let config = r#"{"steps": 11}"#;
    let forgetful = undisturbed("forgets_cursor", config);
    let place = interrupted_at_every_step("forgets_cursor", config, 11, false);
    assert!(place.finished("forgets_cursor").outputs != forgetful.outputs);
}

#[test]
fn output_files_contain_lines_twice_after_a_resume() {
    let config = r#"{"in": "step", "at": 1000, "steps": 14}"#;
    let place = Place::new();
    let run = place.run("traps").config(config).args("--every 4steps");
    // Killed steps after a checkpoint: their lines were written, and are written again.
    for step in [3, 7, 6, 11, 13] {
        run.kill_at(Phase::Step, step);
    }
    run.done();
    let finished = place.finished("traps");
    let wanted: Vec<_> = (0..14).map(|step| format!("step {step}")).collect();
    assert_eq!(finished.text("steps.log").lines().collect::<Vec<_>>(), wanted);
    let steps: Vec<u64> = finished.metrics.lines().map(step_of_metric).collect();
    assert_eq!(steps, (0..14).collect::<Vec<_>>(), "and so are its metrics");
}

fn step_of_metric(line: &str) -> u64 {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["step"].as_u64().unwrap()
}

#[test]
fn the_input_file_changed_between_attempts_and_nobody_noticed() {
    let place = Place::new();
    let input = place.path().join("input");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("rows"), "one\ntwo\n").unwrap();
    let config = r#"{"steps": 9}"#;
    let run = place.run("stochastic").config(config).arg("--input").arg(&input);
    run.term_at(Phase::Step, 4).expect_code(143);
    let before = place.checkpoints("stochastic");

    fs::write(input.join("rows"), "one\ntwo\nthree\n").unwrap();
    run.exits(70)
        .says("the input was 1 files of 8 bytes, now it is 1 files of 14 bytes")
        .says("--accept-changed input");
    assert_eq!(place.checkpoints("stochastic"), before);
    // Contents of the same length are noticed by those who ask for it, from the first attempt on.
    let whole = place.copy();
    let run_whole = |place: &Place| {
        let run = place.run("stochastic").config(config).arg("--input").arg(&input);
        run.args("--input-digest contents --fresh")
    };
    run_whole(&whole).term_at(Phase::Step, 4).expect_code(143);
    fs::write(input.join("rows"), "one\ntwo\nTHREE\n").unwrap();
    let going_on = whole.run("stochastic").config(config).arg("--input").arg(&input).args("--input-digest contents");
    going_on.exits(70).says("the input was");
    assert_eq!(run.args("--accept-changed input").done().resumed_from(), Some(4));
    assert!(component("stochastic").is_file());
}
