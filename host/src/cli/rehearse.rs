//! `steadfast rehearse`: plays the platform against a job.

use std::ffi::OsString;
use std::num::NonZeroU32;

use clap::Args;

use crate::job::spec::{DeviceChoice, LogFormat, PluginSource};
use crate::platform::{Environment, process_environment};
use crate::supervise::{self, Faults, Preempt, Progress, RehearsalError, RehearsalSpec};

use super::failure::Failure;
use super::print;
use super::run::{Merged, RunCommand};
use super::values::{Place, Source};

/// Play the platform against a job: preempt, kill, damage; then compare with undisturbed runs
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(super) struct RehearseCommand {
    #[command(flatten)]
    job: RunCommand,

    /// When attempts are stopped: every-step, times:N (random instants), at:7,19 (before these steps), every:2s, never
    /// [default: every-step, or never with --faults]
    #[arg(long, value_name = "WHEN", help_heading = "Rehearsal")]
    preempt: Option<Preempt>,

    /// Stop with SIGKILL at once, instead of SIGTERM, the grace time, SIGKILL
    #[arg(long, help_heading = "Rehearsal")]
    kill: bool,

    /// Let operations on the volume fail, each in every way that makes sense: every-operation, or a number
    #[arg(long, value_name = "WHICH", help_heading = "Rehearsal")]
    faults: Option<Faults>,

    /// Damage a checkpoint before each resume, never the only usable one
    #[arg(long, value_name = "WHAT", help_heading = "Rehearsal")]
    damage: Option<Damage>,

    /// Run kernels on so many threads, in each attempt the next of these numbers: 1,4 for a machine that changes under the job
    #[arg(
        long,
        value_name = "COUNTS",
        value_delimiter = ',',
        conflicts_with = "device_threads",
        help_heading = "Rehearsal"
    )]
    threads_in_turn: Vec<NonZeroU32>,

    /// Run kernels on these devices, in each attempt the next of them: cpu,cuda for a job that moves between kinds of machines
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', conflicts_with = "device", help_heading = "Rehearsal")]
    devices: Vec<DeviceChoice>,

    /// How often an attempt that fails by itself is tried again; preemptions don't count
    #[arg(long, value_name = "COUNT", default_value_t = 10, help_heading = "Rehearsal")]
    max_retries: u32,

    /// Where all chance comes from: the same number gives the same schedule
    #[arg(long, value_name = "NUMBER", default_value_t = 0, help_heading = "Rehearsal")]
    chaos_seed: u64,

    /// Make the rehearsal's volumes here [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Rehearsal")]
    work: Option<Place>,

    /// Print the result as JSON
    #[arg(long, help_heading = "Rehearsal")]
    json: bool,
}

/// What is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Damage {
    /// The newest checkpoint.
    Newest,
}

const EXAMPLES: &str = "\
Examples:
  steadfast rehearse my.wasm --config my.json
      SIGTERM after every step in turn. What a run under a real platform meets once a day, all in a minute.

  steadfast rehearse my.wasm --preempt times:20 --kill
      SIGKILL at 20 random instants, spread over start-up, steps, saves and the rest.

  steadfast rehearse my.wasm --faults every-operation
      Each access to the volume fails once, in every way, or is the last thing that the process does.

Exit codes:
    0  outputs and final state are bit for bit those of an undisturbed run
    1  they differ (the last line repeats the first difference), or two undisturbed runs already do
  130  interrupted from the keyboard
    2, 70  the job cannot be rehearsed: see the message";

impl RehearseCommand {
    fn resolve(self) -> Result<RehearsalSpec, Failure> {
        let usual = if self.faults.is_some() { Preempt::Never } else { Preempt::EveryStep };
        // The rehearsal has volumes of its own; whatever the environment says about one is none of its business.
        let environment = |name: &str| process_environment(name).filter(|_| name != "STEADFAST_VOLUME");
        let job = pinned(self.job, &environment)?;
        let run_args = run_arguments(&job);
        Ok(RehearsalSpec {
            job: job.resolve(&environment)?,
            run_args,
            program: None,
            preempt: self.preempt.unwrap_or(usual),
            kill: self.kill,
            faults: self.faults,
            damage: self.damage.is_some(),
            max_retries: self.max_retries,
            device_threads: self.threads_in_turn,
            devices: self.devices,
            chaos_seed: self.chaos_seed,
            work: self.work.map(|place| place.0),
        })
    }
}

/// The same job with what a reference comes to now, for all of its attempts: a tag that moves meanwhile makes no difference.
fn pinned(job: RunCommand, environment: Environment<'_>) -> Result<RunCommand, Failure> {
    let Merged { plugin: source, options } = job.clone().merged(environment)?;
    let PluginSource::Registry(reference) = &source else { return Ok(job) };
    let artifact = source.read()?.artifact;
    let exact = artifact.map_or_else(|| reference.clone(), |artifact| reference.with_digest(&artifact.manifest));
    Ok(RunCommand { target: Source(PluginSource::Registry(exact)), options })
}

/// What follows `run` on the command line of each attempt.
fn run_arguments(job: &RunCommand) -> Vec<OsString> {
    let mut options = job.options.clone();
    (options.volume, options.output, options.scratch, options.dry_run) = (None, None, None, false);
    let mut arguments = vec![job.target.0.label().to_owned().into_os_string()];
    arguments.extend(options.as_arguments());
    arguments
}

pub(super) fn execute(command: RehearseCommand) -> Result<u8, Failure> {
    let json = command.json;
    let reporter = crate::report::init(LogFormat::Human);
    let spec = command.resolve()?;
    let shown = reporter.progress();
    let observer = |progress: &Progress| shown.update(progress.done, progress.total, &progress.stage);
    let result = supervise::rehearse(&spec, &observer);
    shown.finish();
    let report = result.map_err(|error| Failure::new(code_of(&error), error.to_string()))?;
    if json {
        let text = report.to_json().map_err(|error| Failure::new(70, format!("cannot write JSON: {error}")))?;
        print::text(&format!("{text}\n"))?;
    } else {
        print::text(&report.to_text())?;
    }
    Ok(report.exit_code())
}

fn code_of(error: &RehearsalError) -> u8 {
    match error {
        RehearsalError::Interrupted => 130,
        RehearsalError::Files { .. } | RehearsalError::Child(_) => 2,
        _ => 70,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: RehearseCommand,
    }

    fn resolved(words: &[&str]) -> RehearsalSpec {
        Line::try_parse_from([&["rehearse"], words].concat()).unwrap().command.resolve().unwrap()
    }

    #[test]
    fn attempts_get_the_options_of_the_run_but_those_that_the_rehearsal_gives() {
        let spec = resolved(&[
            "a.wasm",
            "--config",
            "{\"b\": 1}",
            "--volume",
            "v",
            "--output",
            "o",
            "--scratch",
            "s",
            "--keep",
            "1",
            "--preempt",
            "times:7",
            "--kill",
            "--damage",
            "newest",
            "--chaos-seed",
            "9",
        ]);
        assert_eq!(spec.run_args, ["a.wasm", "--config={\"b\": 1}", "--keep=1"]);
        assert_eq!((spec.preempt, spec.kill, spec.damage, spec.chaos_seed), (Preempt::Times(7), true, true, 9));
        assert_eq!(resolved(&["a.wasm", "--threads-in-turn", "1,3"]).device_threads.len(), 2);
        let devices = resolved(&["a.wasm", "--devices", "cpu,cuda:1"]).devices;
        assert_eq!(devices, [DeviceChoice::Cpu, DeviceChoice::Cuda(Some(1))]);
        assert!(spec.job.output.is_some(), "the rehearsal has to know that there is one");
    }

    #[test]
    fn without_a_word_every_step_is_preempted_unless_faults_are_asked_for() {
        assert_eq!(resolved(&["a.wasm"]).preempt, Preempt::EveryStep);
        assert_eq!(resolved(&["a.wasm", "--damage", "newest"]).preempt, Preempt::EveryStep);
        assert_eq!(resolved(&["a.wasm", "--faults", "every-operation"]).preempt, Preempt::Never);
        assert_eq!(resolved(&["a.wasm", "--faults", "3", "--preempt", "at:2"]).preempt, Preempt::At(vec![2]));
    }
}
