//! Arrays that are interrupted in every way that Slurm knows, and must end with the outputs of an undisturbed run.

use std::fs;

use anyhow::{Context, Result, bail};

use super::client;
use super::cluster::Cluster;
use super::jobs::{Job, Outputs, Scripts, TASKS, prepare};
use super::{Rack, Scenario};

/// On a site that requeues by exit code.
pub(super) const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "sbatch takes both scripts", play: test_only },
    Scenario { name: "scancel -b -s TERM, requeued by its exit code", play: by_signal },
    Scenario { name: "scontrol requeue", play: by_requeue },
    Scenario { name: "preempted, no GraceTime", play: |rack| preempted(rack, &rack.scripts.exec, "low") },
    Scenario {
        name: "preempted, GraceTime, --signal=B:TERM",
        play: |rack| preempted(rack, &rack.scripts.exec, "graced"),
    },
    Scenario { name: "scancel, then submitted again", play: |rack| cancelled(rack, &rack.scripts.exec) },
    Scenario { name: "done, then submitted again", play: done_already },
];

/// On one that does not, where the script has to.
pub(super) const WITHOUT_REQUEUE_EXIT: [Scenario; 3] = [
    Scenario { name: "no RequeueExit: scancel -s TERM", play: by_itself },
    Scenario {
        name: "no RequeueExit: preempted, GraceTime",
        play: |rack| preempted(rack, &rack.scripts.stays, "graced"),
    },
    Scenario {
        name: "no RequeueExit: scancel, then submitted again",
        play: |rack| cancelled(rack, &rack.scripts.stays),
    },
];

/// Runs the array in peace. Its tasks have to differ, else it would not be seen if two were one.
pub(super) fn undisturbed(cluster: &Cluster, scripts: &Scripts) -> Result<Vec<Outputs>> {
    let folder = prepare(cluster, UNDISTURBED)?;
    let job = Job::submit(cluster, &folder, &scripts.exec, &[])?;
    for (task, state) in (0..).zip(job.completed()?) {
        if state.restarts > 0 || !job.resumes(task).is_empty() {
            bail!("task {task} was interrupted, and nobody was to do that");
        }
    }
    let outputs: Vec<Outputs> = (0..TASKS).map(|task| job.outputs(task)).collect::<Result<_>>()?;
    let same = |one: usize| outputs.iter().skip(one + 1).any(|other| outputs.get(one) == Some(other));
    if (0..outputs.len()).any(same) {
        bail!("two tasks have the same outputs, so they are not tasks of their own");
    }
    Ok(outputs)
}

const UNDISTURBED: &str = "undisturbed";

/// What sbatch refuses it refuses before anything is queued.
fn test_only(rack: &Rack) -> Result<String> {
    let folder = prepare(&rack.cluster, "test-only")?;
    for script in [&rack.scripts.exec, &rack.scripts.stays] {
        fs::write(folder.join("job.sh"), script)?;
        let mut sbatch = rack.cluster.client.command("sbatch", &["--test-only", "job.sh"]);
        client::output(sbatch.current_dir(&folder))?;
    }
    Ok("as they stand in README.md".to_owned())
}

/// SIGTERM to the batch process alone, which is the host: it saves, exits 143, and RequeueExit does the rest.
fn by_signal(rack: &Rack) -> Result<String> {
    each_task(rack, "by-signal", &rack.scripts.exec, "scancel", &["--batch", "--signal=TERM"])
}

/// What an administrator does who wants the node.
fn by_requeue(rack: &Rack) -> Result<String> {
    each_task(rack, "by-requeue", &rack.scripts.exec, "scontrol", &["requeue"])
}

/// SIGTERM to the step; the shell sees the exit code and requeues.
fn by_itself(rack: &Rack) -> Result<String> {
    each_task(rack, "by-itself", &rack.scripts.stays, "scancel", &["--signal=TERM"])
}

/// Interrupts each task once, by a command that takes it as its last argument, when it has saved something; and compares.
fn each_task(rack: &Rack, name: &str, script: &str, program: &str, arguments: &[&str]) -> Result<String> {
    let folder = prepare(&rack.cluster, name)?;
    let job = Job::submit(&rack.cluster, &folder, script, &[])?;
    for task in 0..TASKS {
        job.saved(task)?;
        let id = job.task(task);
        rack.cluster.client.output(program, &[arguments, &[id.as_str()]].concat())?;
        job.restarted(&id, 1)?;
    }
    compare(rack, &job, TASKS)
}

/// Tells the folders of both scripts apart.
fn kind(rack: &Rack, script: &str) -> &'static str {
    if script == rack.scripts.exec { "exec" } else { "stays" }
}

/// A job of a partition with a higher priority takes the whole node, as soon as two tasks have saved something.
fn preempted(rack: &Rack, script: &str, partition: &str) -> Result<String> {
    let folder = prepare(&rack.cluster, &format!("preempted-{partition}-{}", kind(rack, script)))?;
    let job = Job::submit(&rack.cluster, &folder, script, &[&format!("--partition={partition}")])?;
    for task in [0, 1] {
        job.saved(task)?;
    }
    let urgent = ["--partition=high", "--exclusive", "--array=0", "--output=urgent.log", "--job-name=urgent"];
    let urgent = Job::submit(&rack.cluster, &folder, "#!/bin/sh\ntrue\n", &urgent)?;
    let state = urgent.ended(&urgent.task(0), 0)?;
    if state.state != "COMPLETED" {
        bail!("the job of the higher priority is {}", state.state);
    }
    for task in [0, 1] {
        job.restarted(&job.task(task), 1)?;
    }
    compare(rack, &job, 2)
}

/// A job that its owner cancels stays cancelled, whatever it exits with; the same script goes on from there.
fn cancelled(rack: &Rack, script: &str) -> Result<String> {
    let folder = prepare(&rack.cluster, &format!("cancelled-{}", kind(rack, script)))?;
    let job = Job::submit(&rack.cluster, &folder, script, &[])?;
    for task in [0, 1] {
        job.saved(task)?;
    }
    rack.cluster.client.output("scancel", &[&job.id])?;
    for task in 0..TASKS {
        let state = job.ended(&job.task(task), 0)?;
        if state.state != "CANCELLED" {
            bail!("task {task} is {} and was to be cancelled", state.state);
        }
    }
    let again = Job::submit(&rack.cluster, &folder, script, &[])?;
    compare(rack, &again, 2)
}

/// Submitted again after its end, an array says so and changes nothing.
fn done_already(rack: &Rack) -> Result<String> {
    let folder = rack.cluster.work(UNDISTURBED);
    let job = Job::submit(&rack.cluster, &folder, &rack.scripts.exec, &[])?;
    job.completed()?;
    for task in 0..TASKS {
        if !job.log(task).contains("Already done") {
            bail!("task {task} does not say that it was done before");
        }
    }
    compare(rack, &job, 0)
}

/// Waits for the end, and compares with the undisturbed run: the same bytes, each task finished once, and not by luck.
fn compare(rack: &Rack, job: &Job<'_>, least_resumed: u32) -> Result<String> {
    job.completed()?;
    let mut resumed = 0;
    let mut from = Vec::new();
    for task in 0..TASKS {
        let reference = rack.reference.get(task as usize).context("there is no undisturbed run to compare with")?;
        let outputs = job.outputs(task)?;
        if let Some(name) =
            reference.keys().chain(outputs.keys()).find(|name| reference.get(*name) != outputs.get(*name))
        {
            bail!("task {task}: `{}` differs from that of the undisturbed run", name.to_string_lossy());
        }
        let steps = job.resumes(task);
        resumed += u32::from(!steps.is_empty());
        from.extend(steps.iter().map(u64::to_string));
    }
    if resumed < least_resumed {
        bail!("{resumed} tasks were resumed beyond step 0, and {least_resumed} should have been");
    }
    let resumes = if from.is_empty() { "no resume".to_owned() } else { format!("resumed at step {}", from.join(", ")) };
    Ok(format!("{TASKS} tasks as undisturbed, {resumes}"))
}
