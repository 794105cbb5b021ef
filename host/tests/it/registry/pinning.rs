//! A tag is looked up once in the life of a job. What it came to goes on, whatever becomes of the tag, and of the registry.

use std::fs;

use rustix::process::Signal;

use super::evil::{self, Evil, Reply};
use super::server::Registry;
use super::{command, push, run};
use crate::support::{Attempt, Finished, Phase, Place, Run, component, metadata_of};

/// A job under a tag whose first component is `swap_good_a`; `swap_good_b` reads its state and comes to another result.
struct Job {
    registry: Registry,
    place: Place,
    tag: String,
}

impl Job {
    fn new(test: &str) -> Option<Self> {
        let registry = Registry::start(test)?;
        let place = Place::new();
        let tag = registry.reference("team/walk:1");
        push(&place, &component("swap_good_a"), &tag);
        Some(Self { registry, place, tag })
    }

    fn run(&self, options: &str) -> Run {
        run(&self.place, &self.tag).args(options)
    }

    fn move_the_tag(&self) {
        push(&self.place, &component("swap_good_b"), &self.tag);
    }

    fn stopped_at_4(&self) {
        self.run("").term_at(Phase::Step, 4).expect_code(143);
    }

    fn finished(&self) -> Finished {
        self.place.finished("walk")
    }

    fn runs_now(&self) -> String {
        metadata_of(&self.place.newest("walk")).plugin.digest
    }
}

fn digest(name: &str) -> String {
    steadfast::plugin::digest(&fs::read(component(name)).unwrap())
}

/// What comes of the first component alone.
fn first_alone() -> Finished {
    let place = Place::new();
    let run = place.command(&["run"]).arg(component("swap_good_a")).args("--name walk --volume").arg(place.volume());
    run.config(super::STEPS).done();
    place.finished("walk")
}

#[test]
fn a_moved_tag_never_changes_the_code_of_a_retry() {
    let Some(job) = Job::new("a_moved_tag_never_changes_the_code_of_a_retry") else { return };
    job.stopped_at_4();
    job.move_the_tag();
    let ended = job.run("").term_at(Phase::Step, 7).expect_code(143);
    ended.says("is not looked up again").never_says("takes over");
    // That another plugin is accepted does not look for one.
    job.run("--accept-changed plugin").done();
    assert_eq!(job.runs_now(), digest("swap_good_a"));
    assert!(job.finished() == first_alone());
}

#[test]
fn nor_if_the_attempt_before_was_killed_before_its_first_checkpoint() {
    let test = "nor_if_the_attempt_before_was_killed_before_its_first_checkpoint";
    let Some(job) = Job::new(test) else { return };
    job.run("").kill_at(Phase::Start, 0);
    assert!(job.place.checkpoints("walk").is_empty());
    job.move_the_tag();
    job.run("").done().says("is not looked up again");
    assert!(job.finished() == first_alone());
}

#[test]
fn with_the_registry_down_a_job_goes_on() {
    let Some(mut job) = Job::new("with_the_registry_down_a_job_goes_on") else { return };
    job.stopped_at_4();
    job.registry.stop();
    // Not even what this machine has fetched is needed.
    fs::remove_dir_all(job.place.path().join("cache")).unwrap();
    job.run("").done().says("is not looked up again");
    assert!(job.finished() == first_alone());
}

#[test]
fn what_the_volume_has_lost_is_fetched_by_what_the_tag_was() {
    let Some(job) = Job::new("what_the_volume_has_lost_is_fetched_by_what_the_tag_was") else { return };
    job.stopped_at_4();
    job.move_the_tag();
    fs::remove_dir_all(job.place.volume().join("walk/plugins")).unwrap();
    fs::remove_dir_all(job.place.path().join("cache")).unwrap();
    job.run("").done().says("Downloading the plugin").never_says("takes over");
    assert_eq!(job.runs_now(), digest("swap_good_a"));
    assert!(job.finished() == first_alone());
}

#[test]
fn another_reference_is_looked_up_and_takes_over_on_probation() {
    let Some(job) = Job::new("another_reference_is_looked_up_and_takes_over_on_probation") else { return };
    job.stopped_at_4();
    let second = job.registry.reference("team/walk:2");
    push(&job.place, &component("swap_good_b"), &second);
    let ended = run(&job.place, &second).term_at(Phase::Step, 7).expect_code(143);
    ended.says("is new to this job and reads state of version 1").says("on probation");
    assert_eq!(job.runs_now(), digest("swap_good_b"));
    let artifact = metadata_of(&job.place.newest("walk")).plugin.artifact.unwrap();
    assert_eq!(artifact.reference, second, "from now on this one is what counts");
    // Under the old name the old one is known, and the job has left it.
    run(&job.place, &job.tag).done().says("since the job has left or tried the other before");
    assert_eq!(job.runs_now(), digest("swap_good_b"));
}

#[test]
fn asked_to_a_tag_is_looked_up_again() {
    let Some(job) = Job::new("asked_to_a_tag_is_looked_up_again") else { return };
    job.stopped_at_4();
    job.move_the_tag();
    job.run("--plugin-from file").done().says("reads state of version 1 and takes over");
    assert_eq!(job.runs_now(), digest("swap_good_b"));
}

#[test]
fn a_job_may_go_on_under_its_own_plugin_whatever_the_reference_is() {
    let Some(mut job) = Job::new("a_job_may_go_on_under_its_own_plugin_whatever_the_reference_is") else { return };
    job.stopped_at_4();
    job.registry.stop();
    let other = job.registry.reference("team/walk:2");
    run(&job.place, &other).args("--plugin-from volume").done().says("is not looked up again");
    assert!(job.finished() == first_alone());
}

/// An attempt that is about to run step 5.
fn held_at_5(job: &Job, options: &str) -> Attempt {
    job.stopped_at_4();
    let mut attempt = job.run(options).start();
    attempt.until(Phase::Step, 5);
    attempt
}

#[test]
fn a_signal_makes_a_running_job_look_a_moved_tag_up() {
    let Some(job) = Job::new("a_signal_makes_a_running_job_look_a_moved_tag_up") else { return };
    let mut attempt = held_at_5(&job, "--watch");
    attempt.signal(Signal::HUP);
    attempt.until_said("comes to the plugin that it came to before");
    job.move_the_tag();
    attempt.signal(Signal::HUP);
    attempt.until_said("which is tried at the next step");
    let ended = attempt.end().expect_code(0);
    ended.says("A registry is not asked from time to time").says("has run step 6, and the job goes on under it");
    assert_eq!(job.runs_now(), digest("swap_good_b"));
    let artifact = metadata_of(&job.place.newest("walk")).plugin.artifact.unwrap();
    assert!(artifact.reference == job.tag && job.place.record("walk").artifact == Some(artifact));
}

#[test]
fn a_registry_that_is_down_does_not_disturb_a_running_job() {
    let Some(mut job) = Job::new("a_registry_that_is_down_does_not_disturb_a_running_job") else { return };
    let mut attempt = held_at_5(&job, "");
    job.registry.stop();
    attempt.signal(Signal::HUP);
    attempt.until_said("was looked up, and the job goes on as before: cannot get the plugin");
    attempt.end().expect_code(0);
    assert!(job.finished() == first_alone());
}

#[test]
fn a_rehearsal_looks_a_tag_up_once() {
    // Whoever looks the tag up a second time gets another plugin.
    let components = ["swap_good_a", "swap_good_b"].map(|name| fs::read(component(name)).unwrap());
    let manifests = components.each_ref().map(|component| evil::manifest(component, component.len()));
    let evil = Evil::start(move |path, before| {
        let of = |bytes: &Vec<u8>| path.ends_with(&steadfast::plugin::digest(bytes));
        let found = components.iter().chain(&manifests).find(|bytes| of(bytes));
        let by_tag = &manifests[before.min(1) as usize];
        Reply::Whole(200, if path == "/v2/" { b"{}".to_vec() } else { found.unwrap_or(by_tag).clone() })
    });
    let place = Place::new();
    let file = place.path().join("job.toml");
    let tag = evil.reference("walk:1");
    fs::write(&file, format!("plugin = \"{tag}\"\nseed = 7\n[config]\nsteps = 12\n")).unwrap();
    let ended = command(&place, &["rehearse"]).arg(&file).args("--preempt at:3,7").exits(0);
    assert_eq!(evil.asked("/v2/walk/manifests/1"), 1, "{}", ended.stderr);
}

#[test]
fn an_attempt_that_could_not_reach_the_registry_is_followed_by_one_that_does() {
    let test = "an_attempt_that_could_not_reach_the_registry_is_followed_by_one_that_does";
    let Some(mut job) = Job::new(test) else { return };
    let attempt = |job: &Job, number| job.run("--log human").on_cloud_run("walk", "x", number);
    job.registry.stop();
    attempt(&job, 0).exits(75).says("trying again in");
    let Some(registry) = job.registry.again(test) else { return };
    job.registry = registry;
    attempt(&job, 1).done();
}
