//! Jobs that can never work, or always fail: they must end, FAILED and with an exit code that says why, instead of being
//! requeued for ever. And one that is only unlucky, which must not be given up.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::client::{JOBS, JobState};
use super::jobs::{EPOCHS, Job, prepare};
use super::{Rack, Scenario};
use crate::plugins;
use crate::rack::wait::until;

pub(super) const SCENARIOS: [Scenario; 10] = [
    Scenario { name: "a configuration that cannot work", play: bad_configuration },
    Scenario { name: "a volume in memory", play: |rack| wrong_volume(rack, "/dev/shm", "it lies in memory") },
    Scenario { name: "a volume below $TMPDIR", play: temporary_volume },
    Scenario { name: "a volume that is not there", play: |rack| wrong_volume(rack, "nowhere", "it is not there") },
    Scenario { name: "a plugin that is not there", play: no_plugin },
    Scenario { name: "a plugin that always traps", play: traps },
    Scenario { name: "an attempt deadline that no step meets", play: |rack| deadline(rack, "endless", "at = 0\n") },
    Scenario {
        name: "the same, its step waiting in a call of the host",
        play: |rack| deadline(rack, "sleeps", "milliseconds = 60000\n"),
    },
    Scenario { name: "a volume that always fails, and the script's limit", play: broken_volume },
    Scenario { name: "preempted again and again before the first step ends", play: unlucky },
];

/// More than any of these jobs needs; beyond it one would be requeued without end.
const MOST_RESTARTS: u32 = 5;

/// How a job has to fail.
struct Failure {
    exit: u8,
    most_restarts: u32,
    /// What its log has to say.
    says: &'static str,
}

/// The guest says that its configuration is invalid.
fn bad_configuration(rack: &Rack) -> Result<String> {
    let folder = edited(rack, "bad-configuration", &[(EPOCHS, "epochs = 0\n")])?;
    fails(rack, &folder, &rack.scripts.exec, &Failure { exit: 65, most_restarts: 0, says: "must be at least 1" })
}

/// The volume would not outlive the attempt, or is none.
fn wrong_volume(rack: &Rack, volume: &str, says: &'static str) -> Result<String> {
    let name = format!("volume-{}", volume.replace('/', ""));
    let folder = edited(rack, &name, &[("\"checkpoints\"", &format!("\"{volume}\""))])?;
    fails(rack, &folder, &rack.scripts.exec, &Failure { exit: 2, most_restarts: 0, says })
}

/// `$TMPDIR` as sites set it for each job, on the node's own disk.
fn temporary_volume(rack: &Rack) -> Result<String> {
    let folder = prepare(&rack.cluster, "volume-temporary")?;
    let script = before_exec(rack, &format!("export TMPDIR='{}'\n", folder.display()));
    fails(rack, &folder, &script, &Failure { exit: 2, most_restarts: 0, says: "it lies below the node's $TMPDIR" })
}

fn no_plugin(rack: &Rack) -> Result<String> {
    let folder = edited(rack, "no-plugin", &[("digits.wasm", "digit.wasm")])?;
    fails(rack, &folder, &rack.scripts.exec, &Failure { exit: 2, most_restarts: 0, says: "No such file" })
}

/// A trap may be the machine's fault, so it is tried again; but not for ever.
fn traps(rack: &Rack) -> Result<String> {
    let folder = with_guest(rack, "traps", "traps", "in = \"step\"\nat = 7\n", &[])?;
    let failure = Failure { exit: 65, most_restarts: 3, says: "another attempt is of no use" };
    fails(rack, &folder, &rack.scripts.exec, &failure)
}

/// Each attempt ends by itself with 143 before its first step does. The engine would go on requeueing it.
fn deadline(rack: &Rack, guest: &str, config: &str) -> Result<String> {
    // Of the grace time a twentieth is left for the last word, which a busy machine may need.
    let limits = [("every = \"1s\"", "every = \"1s\"\ngrace = \"5s\"\nattempt-deadline = \"7s\"")];
    let folder = with_guest(rack, &format!("deadline-{guest}"), guest, config, &limits)?;
    let failure = Failure { exit: 65, most_restarts: 3, says: "attempts in a row made no progress" };
    fails(rack, &folder, &rack.scripts.exec, &failure)
}

/// Failures of a volume are nobody's fault, and tried again for as long as they last. What bounds them is the script.
fn broken_volume(rack: &Rack) -> Result<String> {
    let folder = prepare(&rack.cluster, "broken-volume")?;
    // More operations than an attempt comes to that fails; some alone are only worth a warning.
    let faults: Vec<String> = (1..=64).map(|operation| format!("{operation}:eio")).collect();
    let script = before_exec(rack, &format!("export STEADFAST_FAULTS={}\n", faults.join(",")));
    let limited = script.replace("-lt 1000 ]", "-lt 2 ]");
    if limited == script {
        bail!("the script in README.md has no limit `-lt 1000 ]`");
    }
    let failure = Failure { exit: 1, most_restarts: 2, says: "Input/output error" };
    let text = fails(rack, &folder, &limited, &failure)?;
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
    let JobState { state, exit, restarts } = job.ended(&id, TIMES)?;
    match (state.as_str(), exit, restarts) {
        ("COMPLETED", 0, TIMES) => Ok(format!("requeued {TIMES} times, and done")),
        _ => bail!("the job is {state} with exit code {exit} after {restarts} restarts"),
    }
}

/// Submits one task, and expects it to fail for good.
fn fails(rack: &Rack, folder: &Path, script: &str, failure: &Failure) -> Result<String> {
    let job = Job::submit(&rack.cluster, folder, script, &["--array=0"])?;
    let JobState { state, exit, restarts } = job.ended(&job.task(0), MOST_RESTARTS)?;
    if (state.as_str(), exit) != ("FAILED", failure.exit) || restarts > failure.most_restarts {
        let Failure { exit: due, most_restarts, .. } = failure;
        bail!(
            "the job is {state} with exit code {exit} after {restarts} restarts; it should be FAILED with {due} after at most {most_restarts}"
        );
    }
    if !job.log(0).contains(failure.says) {
        bail!("the job fails as it should, and its log does not say `{}`", failure.says);
    }
    Ok(format!("FAILED with exit code {exit} after {restarts} restarts"))
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
    let mut all = vec![("digits.wasm", plugin), (EPOCHS, config)];
    all.extend(changes);
    edited(rack, name, &all)
}

/// The README's script with lines before its last one.
fn before_exec(rack: &Rack, lines: &str) -> String {
    rack.scripts.exec.replace("\nexec ", &format!("\n{lines}exec "))
}
