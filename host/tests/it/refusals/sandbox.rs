//! `/input` and `/output` cannot be left, whatever is tried and however often.

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Phase, Place};

const SECRET: &str = "the secret of somebody else";

/// An input with a file in it, and beside it what must not be reached: links in the input lead there.
fn input_and_outside(place: &Place) -> (PathBuf, PathBuf) {
    let (input, outside) = (place.path().join("input"), place.path().join("outside"));
    for folder in [&input, &outside] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), if folder == &outside { SECRET } else { "input" }).unwrap();
    }
    fs::write(outside.join("secret"), SECRET).unwrap();
    fs::write(outside.join("victim"), SECRET).unwrap();
    symlink("../outside/secret", input.join("link-out")).unwrap();
    symlink(&outside, input.join("folder-out")).unwrap();
    (input, outside)
}

#[track_caller]
fn assert_untouched(outside: &Path) {
    let mut names: Vec<_> =
        fs::read_dir(outside).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["file", "secret", "victim"]);
    for name in names {
        assert_eq!(fs::read_to_string(outside.join(name)).unwrap(), SECRET);
    }
}

#[test]
fn all_doors_are_held() {
    let place = Place::new();
    let (input, outside) = input_and_outside(&place);
    let ended = place.run("escapes").arg("--input").arg(&input).done();
    assert_untouched(&outside);
    assert_eq!(fs::read_to_string(input.join("file")).unwrap(), "input");
    assert!(!input.join("made-link").exists() && !input.join("written").exists());
    let outputs = place.finished("escapes").outputs;
    assert!(outputs.values().flatten().all(|bytes| !String::from_utf8_lossy(bytes).contains("secret")));
    insta::assert_snapshot!(ended.lines(&place, &["will not be kept", "Done"]), @r#"
    warning: `/output/link-27` is no ordinary file and will not be kept
    Done: held
    "#);
}

/// Swaps a folder for a link to the outside and back, as fast as it goes; at last it is a folder.
fn swap(door: &Path, link: &Path, stop: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) || swaps % 2 == 1 {
        renameat_with(CWD, door, CWD, link, RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
    }
    swaps
}

#[test]
fn doors_that_turn_into_links_while_somebody_goes_through() {
    let place = Place::new();
    let (input, outside) = input_and_outside(&place);
    fs::create_dir(input.join("door")).unwrap();
    fs::write(input.join("door/file"), "inside").unwrap();
    symlink(&outside, input.join("turned")).unwrap();
    let mut attempt = place.run("races").arg("--input").arg(&input).args("--every 5steps").start();
    attempt.until(Phase::Step, 0);
    let scratch = fs::read_dir(place.path().join("scratch")).unwrap().map(|entry| entry.unwrap().path());
    let output = scratch.map(|folder| folder.join("output")).find(|folder| folder.is_dir()).unwrap();
    // Beside the folder that the guest sees, so that it cannot take it away.
    let turned = output.parent().unwrap().join("turned");
    symlink(&outside, &turned).unwrap();
    let stop = AtomicBool::new(false);
    let came = std::thread::scope(|scope| {
        let swapping = [
            scope.spawn(|| swap(&input.join("door"), &input.join("turned"), &stop)),
            scope.spawn(|| swap(&output.join("door"), &turned, &stop)),
        ];
        // Up to its last save; what is saved then is copied, and would be missed. The threads have to stop also if it fails.
        let until = AssertUnwindSafe(|| attempt.until_any("its end", |(phase, _)| phase == Phase::FinalWrite));
        let came = catch_unwind(until);
        stop.store(true, Ordering::Relaxed);
        for thread in swapping {
            assert!(thread.join().unwrap() > 1000, "it was hardly ever swapped");
        }
        came
    });
    came.unwrap_or_else(|panic| resume_unwind(panic));
    let ended = attempt.end().expect_code(0);
    assert_untouched(&outside);
    // Nor was it the host that followed a link, when it saved what is in the folder.
    let finished = place.finished("races");
    for (path, bytes) in &finished.outputs {
        let bytes = bytes.as_deref().unwrap_or_default();
        assert!(!String::from_utf8_lossy(bytes).contains(SECRET), "{path} holds the secret");
        assert!(!path.contains("victim") && !path.contains("secret"), "{path} is the name of a secret");
    }
    let done = ended.stderr.lines().rev().find(|line| line.starts_with("Done: through ")).unwrap();
    let numbers: Vec<u64> = done.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.iter().all(|number| *number > 100), "both kinds of doors were met: {done}");
}
