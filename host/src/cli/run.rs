//! `steadfast run`: from the command line and a job's file to a validated specification.

use std::io::ErrorKind;
use std::path::Path;

use clap::Args;

use crate::checkpoint::volume::may_pass;
use crate::job::ExitCode;
use crate::job::spec::{JobFile, JobSpec, LogFormat, Named, PluginSource};
use crate::platform::{Engine, Environment, StopRequests, process_environment};

use super::failure::Failure;
use super::options::RunOptions;
use super::values::{Place, Source};

/// Run a job, going on from its newest checkpoint
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(super) struct RunCommand {
    /// The component, in a file or a registry (oci://HOST/REPOSITORY:TAG or @sha256:…), or a job's file: the same options, without
    /// dashes, as TOML
    #[arg(value_name = "PLUGIN.wasm|oci://…|JOB.toml")]
    pub(super) target: Source,

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

  steadfast run oci://registry.example/team/digits:2 --volume /mnt/bucket
      The plugin comes from a registry. The tag is looked up once: later attempts go on with what it came to.

  steadfast run job.toml --dry-run
      Shows who this attempt would be, where it would go on, and what ten seconds can save.

  steadfast run heat.wasm --profile
      Tells at the end how long each kernel took, and how it ran: as vector lanes, thread by thread, or on the GPU.

  steadfast run job.toml --config new.json --accept-changed config
      Goes on with a changed configuration. Without the second option it is refused.

A job's file:
  plugin = \"digits.wasm\"        # relative to this file; or a reference, oci://…
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
        let given = self.given(environment)?;
        let taken = given.merged()?;
        let job_file = given.job_file(&taken);
        Ok(JobSpec { job_file, ..specification(taken.options, taken.plugin)? })
    }

    /// The plugin, and all options that are given anywhere.
    pub(super) fn merged(self, environment: Environment<'_>) -> Result<Merged, Failure> {
        self.given(environment)?.merged()
    }

    fn given(self, environment: Environment<'_>) -> Result<Given, Failure> {
        let Self { target: Source(target), mut options } = self;
        if options.volume.is_none() {
            let given = environment("STEADFAST_VOLUME").filter(|path| !path.is_empty());
            options.volume = given
                .map(|path| path.parse())
                .transpose()
                .map_err(|reason| Failure::usage(format!("the variable STEADFAST_VOLUME is no path: {reason}")))?;
        }
        Ok(Given { target, options })
    }
}

/// What the command line and the environment say.
#[derive(Clone)]
struct Given {
    /// A plugin, or a job's file.
    target: PluginSource,
    options: RunOptions,
}

/// The same with what the job's file says.
pub(super) struct Merged {
    /// Where the plugin is.
    pub(super) plugin: PluginSource,
    /// All options.
    pub(super) options: RunOptions,
}

impl Given {
    fn file(&self) -> Option<&Path> {
        match &self.target {
            PluginSource::File(file) => Some(file.as_path()).filter(|file| is_job_file(file)),
            PluginSource::Registry(_) => None,
        }
    }

    fn merged(&self) -> Result<Merged, Failure> {
        let Self { target, options } = self.clone();
        let Some(file) = self.file() else { return Ok(Merged { plugin: target, options }) };
        let mut options = options.or(super::job_file::read(file)?);
        let plugin = options.plugin.take().map_or(target, |Source(source)| source);
        Ok(Merged { plugin, options })
    }

    /// The job's file, to be read again under the same command line: what it names by now, and what else has changed in it.
    fn job_file(&self, taken: &Merged) -> Option<JobFile> {
        self.file()?;
        let (given, taken) = (self.clone(), taken.options.clone());
        Some(JobFile::new(move || {
            let Merged { plugin, options } = given.merged().map_err(|failure| failure.message)?;
            Ok(Named {
                plugin,
                not_taken: options.differing(&taken),
                plugin_digest: options.plugin_digest.map(|digest| digest.to_string()),
            })
        }))
    }
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

fn specification(options: RunOptions, plugin: PluginSource) -> Result<JobSpec, Failure> {
    let mut spec = JobSpec::new(plugin);
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
    spec.profile = options.profile;
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
