//! Jobs that can never work, or always fail: they must end, FAILED and with an exit code that says why, instead of being
//! requeued for ever. And one that is only unlucky, which must not be given up.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::client::{JOBS, until};
use super::jobs::{Job, prepare};
use super::{Rack, Scenario};
use crate::plugins;

pub(super) const SCENARIOS: [Scenario; 9] = [
    Scenario { name: "a configuration that cannot work", play: bad_configuration },
    Scenario { name: "a volume in memory", play: |rack| wrong_volume(rack, "in-memory", "/dev/shm/steadfast-rack", 0) },
    Scenario { name: "a volume below $TMPDIR", play: temporary_volume },
    Scenario { name: "a volume that is not there", play: |rack| wrong_volume(rack, "not-there", "no-such-folder", 0) },
    Scenario { name: "a plugin that is not there", play: no_plugin },
    Scenario { name: "a plugin that always traps", play: traps },
    Scenario { name: "an attempt deadline that no step meets", play: deadline },
    Scenario { name: "a volume that always fails, and the script's limit", play: broken_volume },
    Scenario { name: "preempted again and again before the first step ends", play: unlucky },
];

/// More than any of these jobs needs; beyond it one would be requeued without end.
const MOST_RESTARTS: u32 = 5;

/// The guest says that its configuration is invalid.
fn bad_configuration(rack: &Rack) -> Result<String> {
    let folder = edited(rack, "bad-configuration", &[("epochs = 200", "epochs = 0")])?;
    fails(rack, folder, &rack.scripts.exec, 65, 0)
}

/// The volume would not outlive the attempt, or is none.
fn wrong_volume(rack: &Rack, name: &str, volume: &str, restarts: u32) -> Result<String> {
    let folder = edited(rack, name, &[("\"checkpoints\"", &format!("\"{volume}\""))])?;
    fails(rack, folder, &rack.scripts.exec, 2, restarts)
}

/// `$TMPDIR` as sites set it for each job, on the node's own disk.
fn temporary_volume(rack: &Rack) -> Result<String> {
    let folder = prepare(&rack.cluster, "temporary")?;
    let script = before_exec(rack, &format!("export TMPDIR={}\n", folder.display()));
    fails(rack, folder, &script, 2, 0)
}

fn no_plugin(rack: &Rack) -> Result<String> {
    let folder = edited(rack, "no-plugin", &[("digits.wasm", "digit.wasm")])?;
    fails(rack, folder, &rack.scripts.exec, 2, 0)
}

/// A trap may be the machine's fault, so it is tried again; but not for ever.
fn traps(rack: &Rack) -> Result<String> {
    let folder = with_guest(rack, "traps", "traps", "in = \"step\"\nat = 7\n", &[])?;
    fails(rack, folder, &rack.scripts.exec, 65, 3)
}

/// Each attempt ends by itself with 143 before its first step does. The engine would go on requeueing it.
fn deadline(rack: &Rack) -> Result<String> {
    let limits = [("every = \"1s\"", "every = \"1s\"\ngrace = \"1s\"\nattempt-deadline = \"3s\"")];
    let folder = with_guest(rack, "deadline", "sleeps", "milliseconds = 60000\n", &limits)?;
    fails(rack, folder, &rack.scripts.exec, 65, 3)
}

/// Failures of a volume are nobody's fault, and tried again for as long as they last. What bounds them is the script.
fn broken_volume(rack: &Rack) -> Result<String> {
    let folder = prepare(&rack.cluster, "broken-volume")?;
    let script = before_exec(rack, "export STEADFAST_FAULTS=1:eio\n");
    let limited = script.replace("-lt 1000 ]", "-lt 2 ]");
    if limited == script {
        bail!("the script in README.md has no limit `-lt 1000 ]`");
    }
    let text = fails(rack, folder.clone(), &limited, 1, 2)?;
    let log = fs::read_to_string(folder.join("digits-0.log"))?;
    match log.matches("\"exit_code\":75").count() {
        2 => Ok(text + ", after 2 attempts with 75"),
        attempts => bail!("{attempts} attempts failed with 75, and 2 should have"),
    }
}

/// More preemptions in a row than attempts may stall: they are not the plugin's fault, and it gets there in the end.
fn unlucky(rack: &Rack) -> Result<String> {
    const TIMES: u32 = 4;
    let limits = [("every = \"1s\"", "every = \"1s\"\ngrace = \"1s\"\nmax-stalled = 3")];
    let folder = with_guest(rack, "unlucky", "sleeps", "milliseconds = 5000\nsteps = 2\n", &limits)?;
    let job = Job::submit(&rack.cluster, &folder, &rack.scripts.exec, &["--array=0"])?;
    let id = job.task(0);
    for time in 1..=TIMES {
        until("the first step does not begin", JOBS, || {
            let begun = job.log(0).matches("step 0 begins").count();
            Ok((begun >= time as usize).then_some(()))
        })?;
        rack.cluster.client.output("scancel", &["--batch", "--signal=TERM", &id])?;
        job.restarted(&id, time)?;
    }
    let state = job.ended(&id, TIMES)?;
    match (state.state.as_str(), state.exit, state.restarts) {
        ("COMPLETED", 0, TIMES) => Ok(format!("requeued {TIMES} times, and done")),
        (state, exit, restarts) => bail!("the job is {state} with exit code {exit} after {restarts} restarts"),
    }
}

/// Submits one task, and expects it to fail for good with this code.
fn fails(rack: &Rack, folder: PathBuf, script: &str, exit: u8, restarts: u32) -> Result<String> {
    let job = Job::submit(&rack.cluster, &folder, script, &["--array=0"])?;
    let state = job.ended(&job.task(0), MOST_RESTARTS)?;
    if (state.state.as_str(), state.exit) != ("FAILED", exit) || state.restarts > restarts {
        bail!(
            "the job is {} with exit code {} after {} restarts; it should be FAILED with {exit} after at most {restarts}",
            state.state,
            state.exit,
            state.restarts
        );
    }
    Ok(format!("FAILED with exit code {exit} after {} restarts", state.restarts))
}

/// The folder of a job with something changed in its job file.
fn edited(rack: &Rack, name: &str, changes: &[(&str, &str)]) -> Result<PathBuf> {
    let folder = prepare(&rack.cluster, name)?;
    let file = folder.join("job.toml");
    let mut text = fs::read_to_string(&file)?;
    for (from, to) in changes {
        if !text.contains(from) {
            bail!("the job file has no `{from}` to change");
        }
        text = text.replace(from, to);
    }
    fs::write(&file, text)?;
    Ok(folder)
}

/// The folder of a job whose plugin is one of the test guests.
fn with_guest(rack: &Rack, name: &str, guest: &str, config: &str, changes: &[(&str, &str)]) -> Result<PathBuf> {
    let plugin = plugins::guest(guest);
    let plugin = plugin.to_str().context("the repository's path is not UTF-8")?;
    let mut all = vec![("digits.wasm", plugin), ("epochs = 200\n", config)];
    all.extend(changes);
    edited(rack, name, &all)
}

/// The README's script with lines before its last one.
fn before_exec(rack: &Rack, lines: &str) -> String {
    rack.scripts.exec.replace("\nexec ", &format!("\n{lines}exec "))
}
