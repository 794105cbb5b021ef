//! The volume must be the volume: a missing or wrong mount is refused, never started over on. What is said of it, and what only
//! real mounts show, stands in `refusals::volumes`.

use std::fs;

use crate::support::{Phase, Place, undisturbed};

const STEPS: &str = r#"{"steps": 6}"#;

#[test]
fn a_retry_that_finds_no_trace_of_its_job_refuses() {
    let place = Place::new();
    let run = |attempt| place.run("stochastic").config(STEPS).on_cloud_run("job", "x", attempt).args("--log human");
    let ended = run(1).exits(70).says("this is attempt 1 of the task, but the volume");
    ended.says("--volume-is-ephemeral");
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is written");
    // An attempt that was killed before it saw its volume leaves nothing either; its retry needs the word, or the first
    // attempt's number.
    let ended = run(1).arg("--volume-is-ephemeral").term_at(Phase::Step, 3).expect_code(143);
    assert_eq!(ended.resumed_from(), None);
    assert_eq!(run(2).done().resumed_from(), Some(3));
}

#[test]
fn a_retry_of_an_attempt_that_was_stopped_at_once_is_not_refused() {
    let place = Place::new();
    let run = |attempt| place.run("stochastic").config(STEPS).on_cloud_run("job", "x", attempt);
    run(0).term_at(Phase::StartUp, 0).expect_code(143);
    run(1).done();
}

/// What takes long (a digest of the input, a download, a compilation) comes after the trace, and so does what is refused: each
/// attempt says the same.
#[test]
fn the_first_attempt_leaves_its_trace_before_anything_else() {
    let place = Place::new();
    let file = place.path().join("plugin.wasm");
    fs::write(&file, "not a plugin").unwrap();
    let run = |attempt| place.run(file.to_str().unwrap()).args("--name job").on_cloud_run("job", "x", attempt);
    for attempt in 0..3 {
        run(attempt).exits(65).says("is not a plugin");
    }
}

/// An attempt that was killed between making its job's folder and its task's.
#[test]
fn the_folder_of_the_job_is_trace_enough() {
    let place = Place::new();
    fs::create_dir_all(place.volume().join("job")).unwrap();
    place.run("stochastic").config(STEPS).on_cloud_run("job", "x", 1).done();
}

#[test]
fn permission_denied_on_a_read_only_volume_hours_in() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    let (_, trace) = Place::new().run("stochastic").config(STEPS).trace();
    let claim = trace.iter().position(|(_, path)| path.ends_with(".claim")).unwrap() + 1;
    // Whatever of the claim is refused: its folder, creating, writing, closing it.
    for number in claim - 1..claim + 4 {
        let ended = run.clone().faults(&format!("{number}:eacces")).exits(75).says("hint:");
        assert!(
            !ended.came_to(Phase::Start) && !ended.came_to(Phase::Step),
            "write access is tested before the first step"
        );
    }
}

#[test]
fn the_mount_goes_away_while_the_job_runs() {
    let whole = undisturbed("stochastic", STEPS);
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).args("--every 1steps");
    run.term_at(Phase::Step, 2).expect_code(143);
    let aside = place.path().join("aside");
    let mut attempt = run.start();
    attempt.until(Phase::Step, 4);
    attempt.until_any("its saver at rest", |(phase, _)| phase == Phase::Idle || phase == Phase::FinalWrite);
    fs::rename(place.volume(), &aside).unwrap();
    let ended = attempt.end();
    assert!(matches!(ended.code, Some(75)), "{:?}\n{}", ended.code, ended.stderr);
    assert!(!place.volume().exists(), "it is not made again");
    fs::rename(&aside, place.volume()).unwrap();
    assert!(place.usable("stochastic").last() >= Some(&2));
    run.done();
    place.finished("stochastic").assert_equals(&whole, "after the mount came back");
}

#[test]
fn strange_things_on_the_volume_are_left_alone() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS);
    run.term_at(Phase::Step, 3).expect_code(143);
    let task = place.task("stochastic");
    fs::write(task.join("README"), "hello").unwrap();
    fs::create_dir(task.join("e9999-00000000-000000009999.ckpt")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", task.join("e9998-00000000-000000009998.ckpt")).unwrap();
    std::os::unix::fs::symlink("/no/such", task.join("e9997-00000000.claim")).unwrap();
    fs::write(task.join("e0001-00000000.claim"), "half a cla").unwrap();
    assert_eq!(run.done().resumed_from(), Some(3));
    assert_eq!(fs::read_to_string(task.join("README")).unwrap(), "hello");
    assert!(task.join("e9999-00000000-000000009999.ckpt").is_dir());
}
