//! `/output` and metrics across attempts, and the copy of what is finished.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{Finished, Phase, Place, undisturbed};

#[test]
fn whatever_a_guest_does_to_its_folder_is_there_again_after_a_resume() {
    let config = r#"{"steps": 14}"#;
    let whole = undisturbed("outputs", config);
    let place = Place::new();
    let run = place.run("outputs").config(config).args("--every 2steps");
    for step in 1..14 {
        if step % 3 == 0 {
            run.kill_at(Phase::Step, step);
        } else {
            run.term_at(Phase::Step, step).expect_code(143);
        }
    }
    run.done();
    place.finished("outputs").assert_equals(&whole, "after many resumes");
}

#[test]
fn metrics_are_there_exactly_once() {
    let config = r#"{"steps": 9}"#;
    let whole = undisturbed("stochastic", config);
    assert_eq!(whole.metrics.lines().count(), 18, "two a step");
    let place = Place::new();
    let run = place.run("stochastic").config(config).args("--every 2steps");
    for step in [1, 3, 4, 4, 8] {
        run.kill_at(Phase::Step, step);
    }
    run.done();
    assert_eq!(place.finished("stochastic").metrics, whole.metrics);
}

#[test]
fn metrics_of_saving_and_going_on_are_of_no_step_and_those_of_starting_are_kept() {
    let wanted: Vec<_> = ["start 0", "step 0", "step 1", "step 2", "step 3"].map(str::to_owned).to_vec();
    let place = Place::new();
    let run = place.run("reports").config(r#"{"steps": 4}"#).args("--every 1steps");
    // After the checkpoint of step 0, before the first step.
    run.term_at(Phase::Step, 0).expect_code(143);
    run.kill_at(Phase::Step, 2);
    run.term_at(Phase::Step, 3).expect_code(143);
    run.done();
    let metrics = place.finished("reports").metrics;
    let found: Vec<_> = metrics.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect();
    let found: Vec<_> = found.iter().map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["step"])).collect();
    assert_eq!(found, wanted);
}

#[test]
fn strange_metrics_and_a_flood_of_output_harm_nothing() {
    let place = Place::new();
    let config = r#"{"steps": 3, "lines": 3000, "metrics": 50, "strange": true}"#;
    let ended = place.run("floods").config(config).args("--log json").done();
    for line in ended.stderr.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    for line in place.finished("floods").metrics.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// Everything below a folder, by path; folders without bytes.
fn below(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), &format!("{path}/"), found);
            found.insert(path, None);
        } else {
            found.insert(path, Some(fs::read(entry.path()).unwrap()));
        }
    }
}

#[track_caller]
fn assert_copied(finished: &Finished, copy: &Path) {
    let mut found = BTreeMap::new();
    below(copy, "", &mut found);
    assert!(found == finished.outputs, "copied were {:?}, not {:?}", found.keys(), finished.outputs.keys());
}

#[test]
fn the_copy_of_the_outputs_is_complete_or_completed_by_a_later_attempt() {
    let config = r#"{"steps": 5}"#;
    let place = Place::new();
    let copy = place.path().join("copies/here");
    let run = place.run("outputs").config(config).arg("--output").arg(&copy);
    let (_, trace) = run.trace();
    let finished = place.finished("outputs");
    assert_copied(&finished, &copy);

    // Killed at each reading of the finished outputs for the copy, which comes after the done record.
    let done = trace.iter().position(|(what, path)| what == "rename" && path.ends_with(".done.json")).unwrap() + 1;
    let copying: Vec<_> = (done..trace.len()).filter(|number| trace[number - 1].1.contains("/output-")).collect();
    assert!(copying.len() > 5);
    for number in copying.iter().step_by(3) {
        let place = Place::new();
        let copy = place.path().join("copies/here");
        let run = place.run("outputs").config(config).arg("--output").arg(&copy);
        run.clone().faults(&format!("{number}:kill")).end();
        assert_eq!(place.names_with("outputs", ".done.json").len(), 1, "the task is done");
        run.done().says("Already done");
        assert_copied(&place.finished("outputs"), &copy);
    }

    // What is missing, or other than it was, is put right; what is not ours is left alone.
    fs::remove_file(copy.join("appended.log")).unwrap();
    fs::write(copy.join("large.bin"), "other").unwrap();
    fs::write(copy.join("of somebody else"), "stays").unwrap();
    run.done();
    assert_eq!(fs::read_to_string(copy.join("of somebody else")).unwrap(), "stays");
    fs::remove_file(copy.join("of somebody else")).unwrap();
    assert_copied(&finished, &copy);
}

#[test]
fn a_kill_in_the_final_write_leaves_no_half_finished_outputs() {
    let config = r#"{"steps": 5}"#;
    let whole = undisturbed("outputs", config);
    let base = Place::new();
    base.run("outputs").config(config).args("--every 1000steps").kill_at(Phase::FinalWrite, 5);
    let run = |place: &Place| place.run("outputs").config(config);
    let (ended, trace) = run(&base.copy()).trace();
    assert_eq!(ended.resumed_from(), Some(5));
    assert!(!ended.came_to(Phase::Step), "no step is run again");
    for number in (1..=trace.len()).step_by(5) {
        let place = base.copy();
        assert_eq!(run(&place).faults(&format!("{number}:kill")).end().code, None);
        run(&place).done();
        place.finished("outputs").assert_equals(&whole, "after a kill in the final write");
        let folders = place.names("outputs").into_iter().filter(|name| name.starts_with("output-"));
        assert_eq!(folders.count(), 1, "after a kill at operation {number}");
    }
}

#[test]
fn a_damaged_segment_makes_its_checkpoint_unusable_and_not_its_outputs_wrong() {
    let config = r#"{"steps": 9}"#;
    let place = Place::new();
    let run = place.run("outputs").config(config).args("--every 1000steps");
    run.term_at(Phase::Step, 3).expect_code(143);
    run.term_at(Phase::Step, 6).expect_code(143);
    let newest = place.names_with("outputs", ".seg").pop().unwrap();
    let path = place.task("outputs").join(newest);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ended = run.done();
    assert_eq!(ended.resumed_from(), Some(3));
    ended.says("does not match its hash");
    place.finished("outputs").assert_equals(&undisturbed("outputs", config), "after a damaged segment");
}
