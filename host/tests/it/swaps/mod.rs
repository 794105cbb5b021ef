//! Another plugin in the place of the one that runs. In `naming` it is the job's file that names it; in `saves` the volume fails.

mod naming;
mod saves;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{Attempt, Ended, Finished, Phase, Place, Run, component, metadata_of, undisturbed};

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
    /// The component.
    file: PathBuf,
    /// What is run: the component, or a job's file that names it.
    target: PathBuf,
    config: &'static str,
}

impl Job {
    fn new(first: &[u8]) -> Self {
        Self::with(first, STEPS)
    }

    fn with(first: &[u8], config: &'static str) -> Self {
        let place = Place::new();
        let file = place.path().join("stochastic.wasm");
        fs::write(&file, first).unwrap();
        Self { place, target: file.clone(), file, config }
    }

    fn run(&self, options: &str) -> Run {
        let run = self.place.command(&["run"]).arg(&self.target).arg("--volume").arg(self.place.volume());
        run.arg("--scratch").arg(self.place.path().join("scratch")).config(self.config).args(options)
    }

    /// An attempt that is about to run step 5. It goes on from a checkpoint, so that none is being saved: a change waits for a
    /// save that is under way.
    fn held_at_5(&self, options: &str) -> Attempt {
        self.run("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
        let mut attempt = self.run(&format!("--every 1000steps {options}")).start();
        attempt.until(Phase::Step, 5);
        attempt
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
    let mut attempt = job.held_at_5("--watch");
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
fn what_the_device_holds_goes_over_to_the_new_plugin_and_back_to_the_old() {
    const ON_THE_DEVICE: &str = r#"{"steps": 12, "kernels": false}"#;
    // Alone under the same name, of which the seed is made.
    let alone = Job::with(&variant("keeps_buffers", 1), ON_THE_DEVICE);
    alone.run("").done();
    let whole = alone.place.finished("stochastic");
    // One that goes on, and one that cannot read the state and does not even use a device.
    for (next, said) in [
        (variant("keeps_buffers", 2), "has run step 6, and the job goes on under it"),
        (fs::read(component("countdown")).unwrap(), "Resuming from checkpointed step 6"),
    ] {
        let job = Job::with(&variant("keeps_buffers", 1), ON_THE_DEVICE);
        let mut attempt = job.held_at_5("--watch");
        job.change(&next);
        attempt.until_said("which is tried at the next step");
        attempt.end().expect_code(0).says(said);
        job.place.finished("stochastic").assert_equals(&whole, said);
    }
}

#[test]
fn without_watch_a_signal_makes_it_look() {
    let job = Job::new(&variant("stochastic", 1));
    let mut attempt = job.held_at_5("");
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
        let mut attempt = job.held_at_5("--watch");
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
    let mut attempt = job.held_at_5("--watch");
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
    let mut attempt = job.held_at_5(&format!("{pinned} --watch"));
    job.change(&first);
    attempt.until_said("The changed plugin file is not used");
    attempt.end().expect_code(0).says("--plugin-digest asks for").never_says("Changing the plugin");
    job.run("--plugin-digest sha256:12").exits(2).says("64 hexadecimal digits");
}

/// A job of the releases of one plugin (`test_guests::swapping`), whose results tell which release ran which step.
struct Releases(Job);

const SIXTEEN: &str = r#"{"steps": 16}"#;

impl Releases {
    fn new(first: &str) -> Self {
        Self(Job::with(&release(first), SIXTEEN))
    }

    fn run(&self, options: &str) -> Run {
        self.0.run(options)
    }

    /// Runs it from the start and changes to another release while step 5 is held.
    fn changed_at_5(&self, to: &str, options: &str) -> Ended {
        let mut attempt = self.0.held_at_5(&format!("--watch {options}"));
        self.0.change(&release(to));
        attempt.until_said("which is tried at the next step");
        attempt.end()
    }

    /// What the job came to.
    fn finished(&self) -> Finished {
        self.0.place.finished("stochastic")
    }
}

fn release(name: &str) -> Vec<u8> {
    fs::read(component(name)).unwrap()
}

/// What comes of the first release alone.
fn first_release_alone() -> Finished {
    let releases = Releases::new("swap_good_a");
    releases.run("").done();
    releases.finished()
}

#[test]
fn a_good_release_goes_on_from_the_state_of_another() {
    let releases = Releases::new("swap_good_a");
    releases.changed_at_5("swap_good_b", "").expect_code(0).says("has run step 6, and the job goes on under it");
    let swapped = releases.finished();
    assert!(swapped != first_release_alone(), "other code ran from step 6 on");
    // As two attempts, one for each release.
    let apart = Releases::new("swap_good_a");
    apart.run("--every 1000steps").term_at(Phase::Step, 6).expect_code(143);
    apart.0.change(&release("swap_good_b"));
    apart.run("--accept-changed plugin").done();
    assert!(apart.finished() == swapped);
}

#[test]
fn bad_releases_give_way_and_what_they_did_is_gone() {
    let alone = first_release_alone();
    let bad = [
        ("swap_traps_in_restore", "it fails in `restore`"),
        ("swap_traps_in_step", "it fails in `step`"),
        ("swap_refuses", "it fails in `restore`"),
        ("swap_hungry", "it fails in `restore`"),
        ("swap_scribbles", "it fails in `step`"),
        ("swap_endless", "it fails in `step`"),
    ];
    for (name, said) in bad {
        let releases = Releases::new("swap_good_a");
        let ended = releases.changed_at_5(name, "--memory-limit 256MiB --step-timeout 2s").expect_code(0);
        let ended = ended.says(&format!("is not used: {said}")).says("Resuming from checkpointed step 6");
        assert_eq!(ended.stderr.matches("Going back to").count(), 1, "{name}: {}", ended.stderr);
        assert!(releases.finished() == alone, "{name}");
    }
}

#[test]
fn a_change_does_not_depend_on_the_old_code() {
    let releases = Releases::new("swap_snapshot_fails");
    let run = |options: &str| {
        let run =
            releases.0.place.command(&["run"]).arg(&releases.0.file).arg("--volume").arg(releases.0.place.volume());
        let run = run.arg("--scratch").arg(releases.0.place.path().join("scratch")).args(options);
        run.config(r#"{"snapshot_fails_from": 5, "steps": 16}"#)
    };
    run("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    let mut attempt = run("--watch --every 1000steps").start();
    attempt.until(Phase::Step, 7);
    releases.0.change(&release("swap_good_b"));
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0).says("The old plugin cannot save its state");
    ended.says("the new one goes on from the checkpoint of step 4, and 4 steps are run again").says("Done: ");
}

#[test]
fn an_attempt_on_an_old_image_goes_on_under_the_plugin_that_the_job_has_now() {
    let releases = Releases::new("swap_good_a");
    let mut attempt = releases.0.held_at_5("--watch");
    releases.0.change(&release("swap_good_b"));
    attempt.until_said("which is tried at the next step");
    attempt.until(Phase::Step, 9);
    attempt.term();
    attempt.end().expect_code(143);
    releases.0.change(&release("swap_good_a"));
    let copies = [releases.0.place.copy(), releases.0.place.copy()];
    let ended = releases.run("").done();
    ended.says("Going on under sha256:").says("since the job has left or tried the other before");
    let b = digest(&release("swap_good_b"));
    assert_eq!(releases.0.place.record("stochastic").plugin, b);
    // Unless the file is asked for.
    for (copy, options, plugin) in
        [(&copies[0], "--plugin-from file", digest(&release("swap_good_a"))), (&copies[1], "--plugin-from volume", b)]
    {
        let run = copy.command(&["run"]).arg(&releases.0.file).arg("--volume").arg(copy.volume());
        run.arg("--scratch").arg(copy.path().join("scratch")).config(SIXTEEN).args(options).done();
        assert_eq!(copy.record("stochastic").plugin, plugin, "{options}");
    }
}

#[test]
fn a_new_file_is_tried_once_at_the_start_of_an_attempt() {
    let alone = first_release_alone();
    for bad in ["swap_traps_in_step", "swap_refuses"] {
        let releases = Releases::new("swap_good_a");
        releases.run("--every 1000steps").term_at(Phase::Step, 5).expect_code(143);
        releases.0.change(&release(bad));
        let mut attempt = releases.run("--every 1000steps").start();
        attempt.until(Phase::Step, 9);
        attempt.term();
        let ended = attempt.end().expect_code(143);
        ended.says("is new to this job and reads state of version 1").says("is not used: it fails in");
        releases.run("").done().says("since the job has left or tried the other before").never_says("is not used");
        assert!(releases.finished() == alone, "{bad}");
    }
}

#[test]
fn a_record_names_the_plugin_that_runs_also_if_the_newest_checkpoint_is_damaged() {
    let releases = Releases::new("swap_good_c");
    releases.run("--every 1000steps").term_at(Phase::Step, 5).expect_code(143);
    releases.run("--every 1000steps").term_at(Phase::Step, 9).expect_code(143);
    let newest = releases.0.place.newest("stochastic");
    fs::write(newest, "no checkpoint").unwrap();
    // It does not read the state, and what the newest checkpoint says cannot be read.
    releases.0.change(&release("stochastic"));
    let ended = releases.run("").done().says("since the other does not say that it reads the state");
    assert_eq!(ended.resumed_from(), Some(5));
    assert_eq!(releases.0.place.record("stochastic").plugin, digest(&release("swap_good_c")));
}
