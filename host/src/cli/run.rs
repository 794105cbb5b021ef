//! `steadfast run`: from the command line and a job's file to a validated specification.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::checkpoint::volume::may_pass;
use crate::job::ExitCode;
use crate::job::spec::{JobFile, JobSpec, LogFormat, Named};
use crate::platform::{Engine, Environment, StopRequests, process_environment};

use super::failure::Failure;
use super::options::RunOptions;
use super::values::Place;

/// Run a job, going on from its newest checkpoint
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(super) struct RunCommand {
    /// The component, or a job's file: the same options, without dashes, as TOML
    #[arg(value_name = "PLUGIN.wasm|JOB.toml")]
    pub(super) target: Place,

    #[command(flatten)]
    pub(super) options: RunOptions,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  steadfast run countdown.wasm --config '{\"steps\": 1000}'
      Runs on this machine, with checkpoints in ./checkpoints. Press ^C and say it again: it goes on.

  steadfast run digits.wasm --input data --every 5m --volume /mnt/bucket
      The same on a platform: name, task and attempt come from its environment.

  steadfast run job.toml --dry-run
      Shows who this attempt would be, where it would go on, and what ten seconds can save.

  steadfast run job.toml --config new.json --accept-changed config
      Goes on with a changed configuration. Without the second option it is refused.

A job's file:
  plugin = \"digits.wasm\"        # relative to this file
  input = \"data\"
  every = \"5m\"
  [config]
  epochs = 20

",
    super::exit_codes!()
);

impl RunCommand {
    /// The specification: options win over the environment, and that over the job's file.
    pub(super) fn resolve(self, environment: Environment<'_>) -> Result<JobSpec, Failure> {
        let Self { target, mut options } = self;
        if options.volume.is_none() {
            let given = environment("STEADFAST_VOLUME").filter(|path| !path.is_empty());
            options.volume = given
                .map(|path| path.parse())
                .transpose()
                .map_err(|reason| Failure::usage(format!("the variable STEADFAST_VOLUME is no path: {reason}")))?;
        }
        if !is_job_file(&target.0) {
            options.plugin = Some(target.clone());
            return specification(options, target);
        }
        let taken = options.clone().or(super::job_file::read(&target.0)?);
        let job_file = Some(job_file(target.0.clone(), options, taken.clone()));
        Ok(JobSpec { job_file, ..specification(taken, target)? })
    }
}

/// The job's file, to be read again under the same command line: what it names by now, and what else has changed in it.
fn job_file(path: PathBuf, given: RunOptions, taken: RunOptions) -> JobFile {
    JobFile::new(move || {
        let now = given.clone().or(super::job_file::read(&path).map_err(|failure| failure.message)?);
        Ok(Named {
            not_taken: now.differing(&taken),
            plugin: now.plugin.map_or_else(|| path.clone(), |place| place.0),
            plugin_digest: now.plugin_digest.map(|digest| digest.to_string()),
        })
    })
}

pub(super) fn execute(command: RunCommand, stops: &StopRequests) -> Result<u8, Failure> {
    let spec = command.resolve(&process_environment)?;
    let format = spec.log.resolved(Engine::detect(&process_environment) != Engine::None);
    let reporter = crate::report::init(format);
    let result = crate::job::run(&spec, stops, &reporter);
    reporter.finish();
    match result {
        Ok(code) => Ok(code.code()),
        // A collector of JSON lines would show plain text without its severity.
        Err(error) if format == LogFormat::Json => {
            tracing::error!(hint = error.hint(), exit_code = error.exit_code().code(), "{error}");
            Ok(error.exit_code().code())
        }
        Err(error) => Err(error.into()),
    }
}

fn input_is_there(input: &Path) -> Result<(), Failure> {
    let shown = input.display();
    match std::fs::metadata(input) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::usage(format!("the input `{shown}` is not a folder"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::usage(format!("the input `{shown}` does not exist")))
        }
        // What serves it may be back for the next attempt.
        Err(error) if may_pass(&error) => {
            Err(Failure::new(ExitCode::Retry.code(), format!("the input `{shown}` cannot be reached: {error}"))
                .hint("what is mounted there does not answer; another attempt may find it again"))
        }
        Err(error) => Err(Failure::usage(format!("the input `{shown}` cannot be read: {error}"))),
    }
}

fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

fn specification(options: RunOptions, target: Place) -> Result<JobSpec, Failure> {
    let mut spec = JobSpec::new(options.plugin.unwrap_or(target).0);
    if let Some(config) = options.config {
        spec.config = super::config::canonical(&config.load(Path::new(""))?);
    }
    if let Some(Place(input)) = &options.input {
        input_is_there(input)?;
    }
    spec.name = options.name;
    spec.run_id = options.run_id;
    spec.volume = options.volume.map(|place| place.0);
    spec.input = options.input.map(|place| place.0);
    spec.output = options.output.map(|place| place.0);
    spec.scratch = options.scratch.map(|place| place.0);
    spec.seed = options.seed;
    spec.every = options.every.unwrap_or(spec.every);
    spec.keep = options.keep.unwrap_or(spec.keep);
    spec.grace = options.grace.map(|time| time.0);
    spec.memory_limit = options.memory_limit.map(|size| size.0);
    spec.device = options.device.unwrap_or_default();
    spec.device_memory = options.device_memory.map(|size| size.0);
    spec.device_threads = options.device_threads;
    spec.state_limit = options.state_limit.map(|size| size.0);
    spec.plugin_digest = options.plugin_digest.map(|digest| digest.to_string());
    spec.plugin_from = options.plugin_from;
    spec.watch = options.watch;
    spec.canonical_nans = options.canonical_nans;
    spec.step_timeout = options.step_timeout.map(|time| time.0);
    spec.attempt_deadline = options.attempt_deadline.map(|time| time.0);
    spec.if_done = options.if_done.unwrap_or_default();
    spec.fresh = options.fresh;
    spec.from = options.from;
    spec.accept_changed = options.accept_changed.into_iter().collect();
    spec.volume_is_ephemeral = options.volume_is_ephemeral;
    spec.max_stalled = options.max_stalled.unwrap_or(spec.max_stalled);
    spec.max_save_failures = options.max_save_failures.unwrap_or(spec.max_save_failures);
    spec.input_digest = options.input_digest.unwrap_or_default();
    spec.log = options.log.unwrap_or_default();
    spec.dry_run = options.dry_run;
    Ok(spec)
}

#[cfg(test)]
mod tests;
