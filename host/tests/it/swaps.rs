//! Another plugin in the place of the one that runs.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{Phase, Place, Run, component, metadata_of, undisturbed};

const STEPS: &str = r#"{"steps": 12}"#;

/// The same plugin under another digest: a component may end in sections that mean nothing.
fn variant(name: &str, mark: u8) -> Vec<u8> {
    let mut bytes = fs::read(component(name)).unwrap();
    bytes.extend([0, 3, 1, b'v', mark]);
    bytes
}

/// A job whose plugin file may be changed.
struct Job {
    place: Place,
    file: PathBuf,
}

impl Job {
    fn new(first: &[u8]) -> Self {
        let place = Place::new();
        let file = place.path().join("stochastic.wasm");
        fs::write(&file, first).unwrap();
        Self { place, file }
    }

    fn run(&self, options: &str) -> Run {
        let run = self.place.command(&["run"]).arg(&self.file).arg("--volume").arg(self.place.volume());
        run.arg("--scratch").arg(self.place.path().join("scratch")).config(STEPS).args(options)
    }

    fn change(&self, plugin: &[u8]) {
        let new = self.file.with_extension("new");
        fs::write(&new, plugin).unwrap();
        fs::rename(new, &self.file).unwrap();
    }

    fn plugin_of(&self, checkpoint: &Path) -> String {
        metadata_of(checkpoint).plugin.digest
    }
}

fn digest(plugin: &[u8]) -> String {
    steadfast::plugin::digest(plugin)
}

#[test]
fn a_changed_file_takes_over_between_two_steps_and_nothing_is_lost() {
    let whole = undisturbed("stochastic", STEPS);
    let (first, second) = (variant("stochastic", 1), variant("stochastic", 2));
    let job = Job::new(&first);
    let mut attempt = job.run("--watch --every 1000steps").start();
    attempt.until(Phase::Step, 5);
    job.change(&second);
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0);
    ended.says("Changing the plugin at step 6, from sha256:").says("has run step 6, and the job goes on under it");
    assert!(job.place.finished("stochastic") == whole);
    let record = job.place.record("stochastic");
    assert_eq!((record.plugin, record.other_plugins), (digest(&second), vec![digest(&first)]));
    let checkpoints = job.place.checkpoints("stochastic");
    let plugins: Vec<_> = checkpoints.iter().map(|checkpoint| job.plugin_of(checkpoint)).collect();
    assert!(plugins.contains(&digest(&second)), "{plugins:?}");
}

#[test]
fn without_watch_a_signal_makes_it_look() {
    let job = Job::new(&variant("stochastic", 1));
    let mut attempt = job.run("--every 1000steps").start();
    attempt.until(Phase::Step, 5);
    job.change(&variant("stochastic", 2));
    attempt.signal(Signal::HUP);
    attempt.until_said("which is tried at the next step");
    attempt.end().expect_code(0).says("has run step 6, and the job goes on under it");
}

#[test]
fn what_is_no_plugin_is_told_once_and_changes_nothing() {
    let whole = undisturbed("stochastic", STEPS);
    let good = variant("stochastic", 1);
    let truncated = good[..good.len() / 2].to_vec();
    for (bad, said) in [(truncated, "is not"), (fs::read(component("command")).unwrap(), "is not a Steadfast plugin")] {
        let job = Job::new(&good);
        let mut attempt = job.run("--watch --every 1000steps").start();
        attempt.until(Phase::Step, 5);
        job.change(&bad);
        attempt.until_said("The changed plugin file is not used");
        let ended = attempt.end().expect_code(0).says(said).never_says("Changing the plugin");
        assert_eq!(ended.stderr.matches("is not used").count(), 1, "{}", ended.stderr);
        assert!(job.place.finished("stochastic") == whole);
    }
}

#[test]
fn a_plugin_that_cannot_read_the_state_gives_way_to_the_old_one_in_the_same_process() {
    let whole = undisturbed("stochastic", STEPS);
    let job = Job::new(&variant("stochastic", 1));
    let mut attempt = job.run("--watch --every 1000steps").start();
    attempt.until(Phase::Step, 5);
    job.change(&fs::read(component("countdown")).unwrap());
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0);
    let ended = ended.says("is not used: it fails in `restore`: ").says("Resuming from checkpointed step 6");
    assert!(job.place.finished("stochastic") == whole);
    // And is not tried again by the next attempt of the process's own making.
    assert_eq!(ended.stderr.matches("Changing the plugin").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_pinned_digest_is_the_only_one() {
    let (first, second) = (variant("stochastic", 1), variant("stochastic", 2));
    let job = Job::new(&first);
    let pinned = format!("--plugin-digest {}", digest(&second));
    job.run(&pinned).exits(2).says("and --plugin-digest asks for").never_says("panicked");
    assert_eq!(fs::read_dir(job.place.volume()).unwrap().count(), 0, "nothing is written");
    job.change(&second);
    let mut attempt = job.run(&format!("{pinned} --watch")).start();
    attempt.until(Phase::Step, 5);
    job.change(&first);
    attempt.until_said("The changed plugin file is not used");
    attempt.end().expect_code(0).says("--plugin-digest asks for").never_says("Changing the plugin");
    job.run("--plugin-digest sha256:12").exits(2).says("64 hexadecimal digits");
}
