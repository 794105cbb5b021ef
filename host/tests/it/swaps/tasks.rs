//! The tasks of an array job change their plugins by themselves.

use rustix::process::Signal;
use serde_json::Value;

use super::{Job, STEPS, digest, variant};
use crate::support::{Phase, Run};

fn task(job: &Job, index: u32) -> Run {
    let run = job.run("--every 1000steps --log human").on_cloud_run("stochastic", "x", 0);
    run.env("CLOUD_RUN_TASK_INDEX", index.to_string()).env("CLOUD_RUN_TASK_COUNT", "3")
}

/// What a command says about the newest checkpoint of each task.
fn newest(job: &Job, command: &str) -> Vec<Value> {
    let said = job.place.command(&["checkpoint", command, "--json"]).arg(job.place.volume()).exits(0).stdout;
    let mut all: Vec<Value> = serde_json::from_str(&said).unwrap();
    let index = |one: &Value| one.pointer("/metadata/task_index").or(one.get("task_index")).unwrap().as_u64();
    all.dedup_by(|later, first| index(later) == index(first));
    assert_eq!(all.iter().map(index).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    all
}

#[test]
fn one_task_of_three_changes_its_plugin_and_the_volume_tells_which() {
    let (first, second) = (variant("stochastic", 1), variant("stochastic", 2));
    let job = Job::with(&first, STEPS);
    for index in 0..3 {
        task(&job, index).term_at(Phase::Step, 4).expect_code(143);
    }
    let mut attempts: Vec<_> = (0..3).map(|index| task(&job, index).start()).collect();
    for attempt in &mut attempts {
        attempt.until(Phase::Step, 5);
    }
    job.change(&second);
    attempts[1].signal(Signal::HUP);
    attempts[1].until_said("which is tried at the next step");
    for (index, mut attempt) in attempts.into_iter().enumerate() {
        attempt.until(Phase::Step, 8);
        attempt.term();
        let ended = attempt.end().expect_code(143);
        assert_eq!(ended.stderr.contains("has run step 6, and the job goes on under it"), index == 1, "task {index}");
    }

    let plugins = [digest(&first), digest(&second), digest(&first)];
    let shown = newest(&job, "show").iter().map(|one| one["metadata"]["plugin"]["digest"].clone()).collect::<Vec<_>>();
    assert_eq!(shown, plugins);
    let listed = newest(&job, "list").iter().map(|one| one["plugin"].clone()).collect::<Vec<_>>();
    assert_eq!(listed, plugins);
    let people = job.place.command(&["checkpoint", "list"]).arg(job.place.volume()).exits(0).stdout;
    let short = steadfast::plugin::short(&plugins[1]);
    assert!(people.lines().any(|line| line.contains("1 of 3") && line.contains(short)), "{people}");

    // The others change with their next attempt.
    for index in 0..3 {
        task(&job, index).done();
    }
    let shown = newest(&job, "show").iter().map(|one| one["metadata"]["plugin"]["digest"].clone()).collect::<Vec<_>>();
    assert!(shown.iter().all(|plugin| *plugin == digest(&second)), "{shown:?}");
}
