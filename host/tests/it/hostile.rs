//! What others do to the folders that an attempt works in, by accident or on purpose.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Phase, Place};

const STEPS: &str = r#"{"steps": 6}"#;

#[test]
fn checkpoints_moved_elsewhere_and_linked_back_are_not_started_over() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).args("--every 1steps --keep 2");
    run.term_at(Phase::Step, 3).expect_code(143);
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let checkpoints = place.checkpoints("stochastic");
    for checkpoint in &checkpoints {
        let moved = elsewhere.join(checkpoint.file_name().unwrap());
        fs::rename(checkpoint, &moved).unwrap();
        symlink(&moved, checkpoint).unwrap();
    }
    for _ in 0..2 {
        let ended = run.exits(70).says("it is not a regular file");
        assert!(!ended.came_to(Phase::Start));
    }
    for checkpoint in &checkpoints {
        fs::rename(elsewhere.join(checkpoint.file_name().unwrap()), checkpoint).unwrap();
    }
    assert_eq!(run.done().resumed_from(), Some(3));
}

#[test]
fn a_place_for_the_outputs_that_cannot_be_written_to_is_refused_before_the_first_step() {
    let place = Place::new();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for wrong in [file.clone(), file.join("below")] {
        let ended = place.run("stochastic").config(STEPS).arg("--output").arg(wrong).exits(2);
        assert!(!ended.says("cannot be written to").came_to(Phase::Start));
    }
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is written");
}
