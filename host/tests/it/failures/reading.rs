//! Failures of reading what is there, and of knowing what it is.

use std::fs;
use std::path::Path;

use steadfast::checkpoint::format;
use steadfast::checkpoint::names::FileName;
use steadfast::checkpoint::store::SET_ASIDE;

use crate::support::{Phase, Place, undisturbed};

const STEPS: &str = r#"{"steps": 12}"#;

fn stopped_at(guest: &str, config: &str, steps: &[u64]) -> Place {
    let place = Place::new();
    for step in steps {
        let run = place.run(guest).config(config).args("--every 1000000steps --keep 2");
        run.term_at(Phase::Step, *step).expect_code(143);
    }
    place
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_newest_file_is_corrupt_and_the_system_restarts_from_it_for_ever() {
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    let newest = place.newest("stochastic");
    let name = newest.file_name().unwrap().to_str().unwrap();
    flip_a_bit(&newest);
    let ended = place.run("stochastic").config(STEPS).done();
    assert_eq!(ended.resumed_from(), Some(4));
    let ended = ended.says(&format!("Checkpoint {name} is damaged"));
    assert!(ended.stderr.contains("it is set aside"));
    assert!(place.task("stochastic").join(SET_ASIDE).join(name).is_file());
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "after damage");
}

#[test]
fn none_of_the_files_is_usable_and_the_job_starts_over() {
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    for path in place.checkpoints("stochastic") {
        flip_a_bit(&path);
    }
    let before = place.checkpoints("stochastic");
    for _ in 0..2 {
        place.run("stochastic").config(STEPS).exits(70).says("can be used").never_says("No checkpoint found");
        assert_eq!(place.checkpoints("stochastic"), before, "nothing is moved");
    }
    // Giving the work up is possible, but has to be said.
    let ended = place.run("stochastic").config(STEPS).arg("--fresh").done();
    assert_eq!(ended.resumed_from(), None);
}

#[test]
fn the_newest_file_makes_whoever_restores_it_trap_for_ever() {
    let config = r#"{"in": "restore", "at": 8, "steps": 12}"#;
    let place = stopped_at("traps", config, &[5, 8]);
    let run = place.run("traps").config(config).args("--every 1000steps");
    for _ in 0..2 {
        let ended = run.exits(75);
        assert_eq!(ended.resumed_from(), Some(8));
        ended.says("this guest was told to panic");
    }
    let ended = run.done();
    assert_eq!(ended.resumed_from(), Some(5), "the one before is used");
    let ended = ended.says("is passed over");
    assert!(ended.came_to(Phase::FinalWrite));
    let lines: Vec<_> = (0..12).map(|step| format!("step {step}")).collect();
    assert_eq!(place.finished("traps").text("steps.log").lines().collect::<Vec<_>>(), lines);
}

#[test]
fn any_error_while_reading_counts_as_first_run() {
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    let run = |place: &Place| place.run("stochastic").config(STEPS);
    let (ended, trace) = run(&place.copy()).trace();
    assert_eq!(ended.resumed_from(), Some(7));
    // Up to the first file that is written once it was decided what to load.
    let decided = trace.iter().position(|(_, path)| path.ends_with(".stage-attempt.json")).unwrap();
    let kinds = ["eio", "eacces", "estale", "enotconn"];
    let mut harmless = 0;
    for number in 1..=decided {
        let place = place.copy();
        let before = place.names("stochastic");
        let kind = kinds[number % kinds.len()];
        let ended = run(&place).faults(&format!("{number}:{kind}")).end();
        assert!(!ended.stderr.contains("No checkpoint found"), "{kind} at {number}\n{}", ended.stderr);
        if ended.code == Some(0) {
            // It was a look that decides nothing.
            assert_eq!(ended.resumed_from(), Some(7), "{kind} at {number}");
            harmless += 1;
            continue;
        }
        assert!(matches!(ended.code, Some(75 | 70)), "{kind} at {number}: {:?}\n{}", ended.code, ended.stderr);
        let written: Vec<_> = place.names("stochastic").into_iter().filter(|name| !before.contains(name)).collect();
        let allowed = |name: &String| matches!(FileName::parse(name), Some(FileName::Claim(_) | FileName::Attempt(_)));
        assert!(written.iter().all(allowed), "{kind} at {number} left {written:?}");
        assert!(before.iter().all(|name| place.names("stochastic").contains(name)), "nothing is gone");
        assert_eq!(run(&place).done().resumed_from(), Some(7), "after {kind} at {number}");
    }
    assert!(harmless < decided / 3, "{harmless} of {decided}");
}

#[test]
fn a_single_file_that_cannot_be_read_stops_the_job_for_ever() {
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    let run = place.run("stochastic").config(STEPS);
    let newest = place.newest("stochastic");
    let name = newest.file_name().unwrap().to_str().unwrap().to_owned();
    // Where the newest checkpoint is opened depends on how many records there are by now.
    let opening = |place: &Place| {
        let (_, trace) = place.copy().run("stochastic").config(STEPS).trace();
        let is_opened = |(what, path): &(String, String)| what == "open" && path.ends_with(&name);
        // The first time only to see whether the job is the same.
        let opened = trace.iter().enumerate().filter(|(_, operation)| is_opened(operation)).nth(1);
        format!("{}:eio", opened.unwrap().0 + 1)
    };
    for _ in 0..2 {
        run.clone().faults(&opening(&place)).exits(75).says(&name);
    }
    let ended = run.faults(&opening(&place)).done();
    assert_eq!(ended.resumed_from(), Some(4), "passed over in the third attempt");
    ended.says("is passed over");
}

#[test]
fn the_pointer_file_is_missing_so_it_starts_at_0_and_overwrites() {
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    for name in place.names("stochastic") {
        let kept = matches!(FileName::parse(&name), Some(FileName::Checkpoint(..) | FileName::Segment(..)));
        if !kept {
            fs::remove_file(place.task("stochastic").join(name)).unwrap();
        }
    }
    let ended = place.run("stochastic").config(STEPS).done();
    assert_eq!(ended.resumed_from(), Some(7), "there is no pointer to miss");
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "without claims and records");
}

#[test]
fn checkpoint_10000_sorts_before_checkpoint_9000() {
    for (guest, steps, before, after) in [("stochastic", 12, 9, 10), ("forgets_cursor", 10_003, 9_999, 10_000)] {
        let place = Place::new();
        let config = format!(r#"{{"steps": {steps}}}"#);
        let run = place.run(guest).config(&config).args("--every 1000000steps --keep 1");
        run.term_at(Phase::Step, before).expect_code(143);
        let ended = run.term_at(Phase::Step, after).expect_code(143);
        assert_eq!(ended.resumed_from(), Some(before));
        assert_eq!(place.usable(guest), [after], "the newest is kept");
        assert_eq!(run.done().resumed_from(), Some(after));
    }
}

#[test]
fn a_new_release_reads_old_checkpoints_as_zeros_or_not_at_all() {
    // Files of released formats are read in the format's own tests. A file of a format to come is refused by name.
    let place = stopped_at("stochastic", STEPS, &[4, 7]);
    let newest = place.newest("stochastic");
    let mut bytes = fs::read(&newest).unwrap();
    let newer = format::header(format::FORMAT_VERSION + 1);
    bytes[..newer.len()].copy_from_slice(&newer);
    fs::write(&newest, bytes).unwrap();
    let refused = || place.run("stochastic").config(STEPS).exits(70).never_says("damaged").refusal(&place);
    insta::assert_snapshot!(refused(), @r#"
    steadfast: checkpoint `e0002-[hash]-000000000007.ckpt` has format 2; this program reads up to format 1
    hint: run it with the program that wrote it, or a newer one
    "#);
    assert_eq!(refused(), refused());
    assert!(newest.is_file(), "never passed over, never moved");
}

#[test]
fn a_new_release_of_a_plugin_reads_old_state_as_zeros_or_not_at_all() {
    let migrated = |guest: &str| {
        let place = stopped_at("writes_version", STEPS, &[7]);
        let run = place.run(guest).config(STEPS).args("--name writes_version");
        (place, run)
    };
    let (place, run) = migrated("reads_version");
    run.exits(70).says("the plugin was").says("--accept-changed plugin");
    assert_eq!(run.args("--accept-changed plugin").done().resumed_from(), Some(7));
    let sums = place.finished("writes_version").text("sums.csv").to_owned();
    assert_eq!(sums, undisturbed("writes_version", STEPS).text("sums.csv"));

    let (place, run) = migrated("refuses_version");
    run.args("--accept-changed plugin").exits(70);
    assert_eq!(place.usable("writes_version"), [0, 7], "and nothing is lost");
}
