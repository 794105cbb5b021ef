//! Slurm's commands.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::rack::wait::{Patience, until};
use crate::step;

/// What jobs do: minutes, on a machine that has other work too.
pub(super) const JOBS: Patience = Patience { limit: Duration::from_secs(600), every: Duration::from_millis(100) };

/// Slurm's commands, for one cluster.
pub(super) struct Client {
    config: PathBuf,
}

/// What the controller says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobState {
    /// `PENDING`, `RUNNING`, `COMPLETED`, `FAILED`, `CANCELLED`, …
    pub(super) state: String,
    /// The exit code of the last attempt that ended by itself.
    pub(super) exit: u8,
    /// How often it was put back into the queue.
    pub(super) restarts: u32,
}

impl Client {
    pub(super) fn new(config: PathBuf) -> Self {
        Self { config }
    }

    /// One of Slurm's commands.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", &self.config);
        command
    }

    /// What a command says, if it exits 0.
    pub(super) fn output(&self, program: &str, arguments: &[&str]) -> Result<String> {
        output(&mut self.command(program, arguments))
    }

    /// The job's state.
    pub(super) fn job(&self, id: &str) -> Result<JobState> {
        let text = self.output("scontrol", &["--oneliner", "show", "job", id])?;
        JobState::read(&text).with_context(|| format!("`scontrol show job {id}` is not understood: {text}"))
    }

    /// Ends every job, and waits until none is left: on the node too, not only in the queue.
    pub(super) fn cancel_all(&self, patience: Patience) -> Result<()> {
        let left = || self.output("squeue", &["--noheader", "--format=%A"]);
        for id in left()?.lines() {
            self.output("scancel", &[id])?;
        }
        until("cancelled jobs are left in the queue", patience, || Ok(left()?.is_empty().then_some(())))
    }
}

/// What a command says, if it exits 0.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", step::text(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ends with {}: {}", step::text(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl JobState {
    /// Of a line `JobId=3 … JobState=PENDING … Restarts=1 … ExitCode=143:0 …`.
    fn read(line: &str) -> Option<Self> {
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            state: field("JobState")?.to_owned(),
            exit: field("ExitCode")?.split(':').next()?.parse().ok()?,
            restarts: field("Restarts")?.parse().ok()?,
        })
    }

    /// Whether nothing more will become of it.
    pub(super) fn has_ended(&self) -> bool {
        !["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED"].contains(&self.state.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_state_is_read() {
        let line =
            "JobId=2 ArrayJobId=1 JobName=a JobState=FAILED Reason=NonZeroExitCode Requeue=1 Restarts=3 ExitCode=65:0";
        assert_eq!(JobState::read(line), Some(JobState { state: "FAILED".into(), exit: 65, restarts: 3 }));
        assert!(JobState::read(line).is_some_and(|job| job.has_ended()));
        assert!(JobState::read(&line.replace("FAILED", "PENDING")).is_some_and(|job| !job.has_ended()));
        assert_eq!(JobState::read("slurm_load_jobs error: Invalid job id specified"), None);
    }
}
