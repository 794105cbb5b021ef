//! Failures while a checkpoint is written.

use std::fs;

use steadfast::checkpoint::browse;
use steadfast::checkpoint::names::FileName;

use crate::support::{Phase, Place, metadata_of, state_of, undisturbed};

const STEPS: &str = r#"{"steps": 12}"#;

/// A job that was stopped at step 5 and again at step 7: with checkpoints of both, and perhaps of others.
fn stopped_twice(guest: &str, config: &str, keep: u32) -> Place {
    let place = Place::new();
    for step in [5, 7] {
        let run = place.run(guest).config(config).args("--every 1000steps").arg("--keep").arg(keep.to_string());
        run.term_at(Phase::Step, step).expect_code(143);
    }
    place
}

#[test]
fn killed_while_saving_and_the_last_file_is_empty_or_half_there() {
    let whole = undisturbed("stochastic", STEPS);
    let place = stopped_twice("stochastic", STEPS, 2);
    assert_eq!(place.usable("stochastic"), [5, 7]);
    let bytes = fs::read(place.newest("stochastic")).unwrap();
    for left in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let place = place.copy();
        fs::write(place.newest("stochastic"), &bytes[..left]).unwrap();
        let ended = place.run("stochastic").config(STEPS).done();
        assert_eq!(ended.resumed_from(), Some(5), "with {left} bytes of the newest left");
        place.finished("stochastic").assert_equals(&whole, "after a half file");
    }
}

#[test]
fn killed_while_saving_again_and_again_and_temporary_files_fill_the_disk() {
    let place = stopped_twice("stochastic", STEPS, 1);
    let run = place.run("stochastic").config(STEPS).args("--every 1steps --keep 1");
    let is_stage_of_checkpoint = |(operation, path): &(String, String)| {
        operation == "create" && path.contains(".stage-0") && path.ends_with(".ckpt")
    };
    // Each attempt adds a claim and a record for the next one to read: two operations each.
    let (_, trace) = place.copy().run("stochastic").config(STEPS).args("--every 1steps --keep 1").trace();
    let mut begins = trace.iter().position(is_stage_of_checkpoint).unwrap() + 1;
    let mut in_mid_save = 0;
    for attempt in 0..100 {
        // Where writing, syncing or closing would begin.
        let at = begins + 1 + attempt % 3;
        let (ended, trace) = run.clone().faults(&format!("{at}:kill")).trace();
        assert_eq!(ended.code, None, "killed\n{}", ended.stderr);
        assert_eq!(ended.resumed_from(), Some(7));
        begins = trace.iter().position(is_stage_of_checkpoint).map_or(begins, |position| position + 1) + 4;
        in_mid_save += u32::from(trace.last().unwrap().1.contains(".stage-0"));
    }
    assert!(in_mid_save >= 90, "only {in_mid_save} were killed in mid-save");

    let last = place.checkpoints("stochastic");
    assert_eq!(last.len(), 1, "the one that is retained");
    let newest_epoch =
        place.names("stochastic").iter().filter_map(|name| FileName::parse(name)).map(|name| name.tenure()).max();
    for name in place.names("stochastic") {
        let size = fs::metadata(place.task("stochastic").join(&name)).unwrap().len();
        match FileName::parse(&name) {
            Some(FileName::Claim(_) | FileName::Attempt(_)) => assert!(size < 4096, "{name} has {size} bytes"),
            Some(FileName::Checkpoint(..) | FileName::Segment(..)) => {}
            Some(FileName::Stage(tenure, _)) => assert_eq!(Some(tenure), newest_epoch, "{name} is of a dead attempt"),
            other => panic!("{name} is {other:?}"),
        }
    }
    run.done();
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "after 100 kills");
    assert_eq!(place.names("stochastic").iter().filter(|name| name.contains(".stage-")).count(), 0);
}

#[test]
fn keep_1_deletes_the_old_file_before_the_new_one_is_safe() {
    let whole = undisturbed("every_byte", r#"{"steps": 9, "bytes": 5000}"#);
    let config = r#"{"steps": 9, "bytes": 5000}"#;
    let place = stopped_twice("every_byte", config, 1);
    let run = |place: &Place| place.run("every_byte").config(config).args("--every 1steps --keep 1");
    let operations = run(&place.copy()).trace().1.len();
    for number in 1..=operations + 20 {
        let place = place.copy();
        let killed = run(&place).faults(&format!("{number}:kill")).end();
        let usable = place.usable("every_byte");
        assert!(usable.last() >= Some(&7), "nothing usable after a kill at operation {number}");
        if killed.code.is_some() {
            assert!(number > operations / 2, "operation {number} was never reached\n{}", killed.stderr);
            killed.expect_code(0);
            break;
        }
        // Going on is tried after every third one, since it is the checkpoints that this is about.
        if number % 3 == 0 {
            run(&place).done();
            place.finished("every_byte").assert_equals(&whole, "after a kill");
        }
    }
}

#[test]
fn disk_full_in_mid_save() {
    let whole = undisturbed("stochastic", STEPS);
    let place = stopped_twice("stochastic", STEPS, 1);
    let run = |place: &Place| place.run("stochastic").config(STEPS).args("--every 1steps --keep 1");
    let (_, trace) = run(&place.copy()).trace();
    let first = trace.iter().position(|(_, path)| path.contains(".stage-0")).unwrap() + 1;
    let mut warned = 0;
    for number in first..=trace.len() {
        let place = place.copy();
        let kind = if number % 2 == 0 { "enospc" } else { "short-write" };
        let ended = run(&place).faults(&format!("{number}:{kind}")).end();
        assert!(place.usable("stochastic").last() >= Some(&7), "operation {number}");
        // Listing and reading back are hit too, and need no space.
        let writing =
            ["create", "write", "sync", "close", "give its final name to"].map(|what| format!("row): cannot {what} `"));
        let full = ended.stderr.lines().filter(|line| line.contains("os error 28"));
        for line in full.filter(|line| writing.iter().any(|what| line.contains(what))) {
            assert!(line.contains("are needed"), "the space needed is not named:\n{}", ended.stderr);
            warned += 1;
        }
        if ended.code != Some(0) {
            // Only writing the finished outputs cannot be put off.
            assert!(ended.came_to(Phase::FinalWrite), "operation {number}\n{}", ended.stderr);
            ended.expect_code(75);
            run(&place).done();
        }
        place.finished("stochastic").assert_equals(&whole, "after a full disk");
    }
    assert!(warned > 4, "only {warned} attempts met a full disk while saving");
}

#[test]
fn the_asynchronous_save_fails_and_training_goes_on_for_hours_unprotected() {
    let config = r#"{"steps": 5000}"#;
    let first_save = |place: &Place| {
        let (_, trace) = place.run("stochastic").config(r#"{"steps": 3}"#).trace();
        trace.iter().position(|(_, path)| path.contains(".stage-0")).unwrap() as u64 + 1
    };
    let first = first_save(&Place::new());
    // One failure is no reason to give up.
    let place = Place::new();
    let run = |place: &Place| place.run("stochastic").config(config).args("--every 1steps");
    let mut attempt = run(&place).faults(&format!("{first}:eio")).start();
    attempt.until_any("a save after the failed one", |(phase, step)| phase == Phase::Idle && step > 0);
    attempt.until_any("the next step", |(phase, _)| phase == Phase::Step);
    attempt.term();
    attempt.end().expect_code(143).says("A save failed (1 in a row)").never_says("(2 in a row)");
    assert_eq!(place.record("stochastic").saves.failed, 1, "it is counted");

    // Past the limit the attempt ends.
    let place = Place::new();
    // Twice: the save, and the record that would count it.
    let plan: Vec<_> = (first..first + 4).map(|number| format!("{number}:eio")).collect();
    let ended = run(&place).args("--max-save-failures 2").faults(&plan.join(",")).exits(75);
    let ended = ended.says("A save failed (2 in a row)").says("2 saves failed in a row");
    assert!(!ended.came_to(Phase::FinalWrite), "it did not run on to the end");
    let record = place.record("stochastic");
    assert_eq!(record.saves.failed, 2);
    assert_eq!(record.ended.unwrap().exit, 75);
    run(&place).done();
}

#[test]
fn the_asynchronous_save_wrote_values_of_a_later_step() {
    let config = r#"{"steps": 240, "bytes": 3000000}"#;
    let whole = undisturbed("every_byte", config);
    let place = Place::new();
    let run = place.run("every_byte").config(config).args("--every 1steps");
    for _ in 0..4 {
        let mut attempt = run.start();
        let mut saving = None;
        // Steps go on beside the save.
        while let Some((phase, step)) = attempt.next() {
            match (phase, saving) {
                (Phase::Save, None) if step > 0 => saving = Some(step),
                (Phase::Idle, Some(saved)) if saved == step => break,
                _ => {}
            }
        }
        attempt.kill();
        for path in place.checkpoints("every_byte") {
            browse::verify(&path).unwrap();
            let step = metadata_of(&path).next_step;
            let state = state_of(&path);
            let bytes = &state.iter().find(|(name, _)| name == "bytes").unwrap().1;
            assert!(
                bytes.iter().all(|byte| u64::from(*byte) == step),
                "a checkpoint of step {step} holds another step"
            );
        }
    }
    run.done();
    place.finished("every_byte").assert_equals(&whole, "after kills beside saves");
}

#[test]
fn the_save_takes_longer_than_the_grace_period() {
    let config = r#"{"steps": 6, "mebibytes": 48, "random": false}"#;
    let place = Place::new();
    let run = |grace: &str| place.run("big_state").config(config).args("--every 1000steps --grace").arg(grace);
    run("100s").term_at(Phase::Step, 2).expect_code(143);
    // 48 MiB at the assumed 100 MB/s do not fit into half a second.
    let ended = run("500ms").term_at(Phase::Step, 4).expect_code(143);
    assert_eq!(ended.resumed_from(), Some(2));
    ended.says("Not saving step 4").says("2 steps are safe").never_says("Saving checkpoint");
    assert_eq!(place.usable("big_state").last(), Some(&2), "the old one stands");
    // Killed in mid-save all the same: the second save of this attempt is hit while its file is half written.
    let (_, trace) = { place.copy() }.run("big_state").config(config).args("--every 1000steps").trace();
    let written =
        trace.iter().position(|(what, path)| what == "write" && path.contains(".stage-0") && path.ends_with(".ckpt"));
    let mut attempt = run("100s").faults(&format!("{}:kill", written.unwrap() + 3)).start();
    attempt.until(Phase::Step, 4);
    attempt.term();
    assert_eq!(attempt.end().code, None, "killed while it was saving");
    assert_eq!(place.usable("big_state").last(), Some(&2), "the old one still stands");
    assert_eq!(run("100s").done().resumed_from(), Some(2));
    place.finished("big_state").assert_equals(&undisturbed("big_state", config), "after all that");
}

#[test]
fn truncating_a_zstd_stream_at_some_byte_gives_a_success_with_less_data() {
    let place = stopped_twice("stochastic", STEPS, 2);
    let newest = place.newest("stochastic");
    let bytes = fs::read(&newest).unwrap();
    for left in 0..bytes.len() {
        fs::write(&newest, &bytes[..left]).unwrap();
        assert!(browse::verify(&newest).is_err(), "{left} of {} bytes pass for a checkpoint", bytes.len());
    }
    place.command(&["checkpoint", "verify"]).arg(place.volume()).exits(1);
    fs::write(&newest, &bytes).unwrap();
    place.command(&["checkpoint", "verify"]).arg(place.volume()).exits(0);
    assert!(!state_of(&newest).is_empty());
}
