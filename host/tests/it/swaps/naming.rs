//! A job's file that names another plugin, or another digest, while the job runs.

use std::fs;

use rustix::process::Signal;

use super::{Job, STEPS, digest, variant};
use crate::support::undisturbed;

/// A job that is run by its file.
fn by_file(first: &[u8], text: &str) -> Job {
    let job = Job::new(first);
    let target = job.place.path().join("job.toml");
    fs::write(&target, text).unwrap();
    Job { target, ..job }
}

fn pinned(plugin: &str, to: &[u8]) -> String {
    format!("plugin = \"{plugin}\"\nplugin-digest = \"{}\"\n", digest(to))
}

#[test]
fn naming_a_new_digest_lets_the_new_plugin_take_over() {
    let whole = undisturbed("stochastic", STEPS);
    let (first, second) = (variant("stochastic", 1), variant("stochastic", 2));
    let job = by_file(&first, &pinned("stochastic.wasm", &first));
    let mut attempt = job.held_at_5("");
    job.change(&second);
    attempt.signal(Signal::HUP);
    attempt.until_said("The changed plugin file is not used");
    fs::write(&job.target, pinned("stochastic.wasm", &second) + "keep = 7\nwatch = true\n").unwrap();
    attempt.signal(Signal::HUP);
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0).says("--plugin-digest asks for");
    ended.says("not taken until the next attempt: keep, watch").says("has run step 6, and the job goes on under it");
    assert!(job.place.finished("stochastic") == whole);
    assert_eq!(job.place.record("stochastic").plugin, digest(&second));
}

#[test]
fn naming_another_file_does_too_and_a_file_with_mistakes_is_passed_over() {
    let whole = undisturbed("stochastic", STEPS);
    let (first, second) = (variant("stochastic", 1), variant("stochastic", 2));
    let job = by_file(&first, "plugin = \"stochastic.wasm\"\n");
    let mut attempt = job.held_at_5("");
    fs::write(&job.target, "plugin = \"stochastic.wasm\"\nplugin-digset = 1\n").unwrap();
    attempt.signal(Signal::HUP);
    attempt.until_said("The job's file is passed over");
    fs::write(job.place.path().join("second.wasm"), &second).unwrap();
    fs::write(&job.target, pinned("second.wasm", &second)).unwrap();
    attempt.signal(Signal::HUP);
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0);
    ended.says("line 2: `plugin-digset` is unknown").says("has run step 6, and the job goes on under it");
    assert!(job.place.finished("stochastic") == whole);
}
