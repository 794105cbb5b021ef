//! Trying a plugin on a job's checkpoints before it is swapped in: does it go on from there, and what comes out?
//!
//! ```text
//!  TrialSpec ─► subject: the newest usable checkpoint of each task ─┬─► play: the new plugin, N steps, a snapshot
//!                                                                   └─► play: the old plugin, the same
//!                                                       compare ◄────────┘
//! ```
//!
//! Whatever is read on the volume is only read: there is no claim, and the guests write to a folder of their own on scratch space, which
//! vanishes. So a job may be at work all the while. What is deliberately not done: to judge what the plugin computes. Another result
//! may be what the new plugin is for, so differences are told and decide nothing; that it breaks off, or does not read the state,
//! decides.

mod compare;
mod events;
mod play;
mod subject;

use std::path::PathBuf;
use std::time::Duration;

pub use compare::{Aspect, Comparison};
pub use play::Played;
pub use subject::Subject;

use crate::checkpoint::browse::BrowseError;
use crate::checkpoint::metadata::InputFacts;
use crate::checkpoint::names::TaskFolder;
use crate::job::spec::PluginSource;
use crate::job::{DevicePlan, ExitCode, RunError};
use crate::plugin::{Plugin, Runtime};
use subject::Found;

/// What to try, and on what.
#[derive(Clone, Debug)]
pub struct TrialSpec {
    /// The new component.
    pub plugin: PluginSource,
    /// A volume, a job, a task, or a checkpoint.
    pub against: PathBuf,
    /// How many steps to run; fewer if the task is done before.
    pub steps: u32,
    /// What the guest sees as `/input`.
    pub input: Option<PathBuf>,
    /// The configuration, as JSON; that of the checkpoint where none is given.
    pub config: Option<String>,
    /// Where the scratch folder is made.
    pub scratch: PathBuf,
    /// Bytes that the guest's memories and tables may have together.
    pub memory_limit: u64,
    /// Bytes that a snapshot may have.
    pub state_limit: u64,
    /// What runs its kernels.
    pub device: DevicePlan,
    /// Bytes that buffers of the device may have together.
    pub device_memory: u64,
    /// How long one call of the guest may take.
    pub step_timeout: Duration,
}

/// What became of it on one task.
#[derive(Debug)]
pub struct Trial {
    /// The job.
    pub job: String,
    /// The task.
    pub task: TaskFolder,
    /// How it went.
    pub verdict: Verdict,
}

/// How it went on one task.
#[derive(Debug)]
pub enum Verdict {
    /// The new plugin goes on from there.
    Fits(Box<Report>),
    /// It does not, and a run would say this.
    Misfit {
        /// From where it was to go on.
        subject: Facts,
        /// In the words of a run.
        why: RunError,
    },
    /// There is nothing to go on from.
    Nothing(String),
}

/// From where a plugin was to go on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The file.
    pub checkpoint: PathBuf,
    /// The next step to run.
    pub step: u64,
    /// The state's version.
    pub state_version: u32,
    /// What should be known about how it was chosen, and about what differs from when it was made.
    pub notes: Vec<String>,
}

/// What the new plugin did, beside the old one.
#[derive(Debug)]
pub struct Report {
    /// From where.
    pub subject: Facts,
    /// What the new one did.
    pub new: Played,
    /// How that compares with what the old one does, or why there is nothing to compare with.
    pub compared: Result<Comparison, String>,
}

/// Why nothing could be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// There is nothing usable at the path.
    #[error(transparent)]
    Browse(#[from] BrowseError),
    /// No task has a checkpoint to go on from.
    #[error("there is nothing to try it on: {0}")]
    NoSubject(String),
    /// The job reads an input, and none was given.
    #[error("the job has an input of {} files, and this plugin is to be tried without", .0.files)]
    NoInput(InputFacts),
    /// As a run would say it; not the plugin's fault.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Tries the plugin on every task at `spec.against`. `progress` hears of each call before it begins: calls done, calls in all, what
/// comes next.
pub fn run(
    spec: &TrialSpec,
    runtime: &Runtime,
    progress: &dyn Fn(u64, u64, &str),
) -> Result<(Plugin, Vec<Trial>), TrialError> {
    let places = subject::places(&spec.against)?;
    progress(0, 1, "compiling the new plugin");
    let new = spec.plugin.load(runtime)?;
    let each = 2 * play::calls(spec.steps);
    let calls = places.len() as u64 * each;
    let mut trials = Vec::new();
    for (index, place) in places.into_iter().enumerate() {
        let first = index as u64 * each;
        let progress = |done: u64, what: &str| progress(first + done, calls, what);
        let (job, task) = (place.job().to_owned(), place.task());
        let verdict = match place.find()? {
            Found::Subject(subject) => judge(spec, runtime, &new, *subject, &progress)?,
            Found::Nothing(why) => Verdict::Nothing(why),
        };
        trials.push(Trial { job, task, verdict });
    }
    let nothing: Option<Vec<_>> = trials
        .iter()
        .map(|trial| match &trial.verdict {
            Verdict::Nothing(why) => Some(format!("{}: {why}", trial.task)),
            _ => None,
        })
        .collect();
    match nothing {
        Some(all) => Err(TrialError::NoSubject(all.join("; "))),
        None => Ok((new, trials)),
    }
}

fn judge(
    spec: &TrialSpec,
    runtime: &Runtime,
    new: &Plugin,
    mut subject: Subject,
    progress: &dyn Fn(u64, &str),
) -> Result<Verdict, TrialError> {
    subject.look_at_changes(spec)?;
    let state = subject.take_state();
    let mine = spec.config.as_ref().unwrap_or(&subject.content.metadata.config);
    let (played, state) = match play::play(spec, new, &subject, mine, state, progress) {
        Ok(played) => played,
        Err(why) if is_misfit(&why) => return Ok(Verdict::Misfit { subject: subject.facts(), why }),
        Err(why) => return Err(why.into()),
    };
    let beyond = play::calls(spec.steps);
    let old = runtime.load(&subject.content.plugin(), &|_| {});
    let compared = match old {
        Err(error) => Err(format!("the old plugin cannot be had, so there is nothing to compare with: {error}")),
        Ok(old) if old.digest() != subject.content.metadata.plugin.digest => {
            Err("what the volume keeps as the old plugin is another file, so there is nothing to compare with"
                .to_owned())
        }
        Ok(old) => {
            let config = subject.content.metadata.config.clone();
            let again = play::play(spec, &old, &subject, &config, state, &|done, what| progress(beyond + done, what));
            match again {
                Ok((before, _)) => Ok(compare::compare(&played, &before).map_err(scratch_failed(spec))?),
                Err(why) => Err(format!("the old plugin does not go on from there itself: {why}")),
            }
        }
    };
    Ok(Verdict::Fits(Box::new(Report { subject: subject.facts(), new: played, compared })))
}

/// Whether it is the plugin that does not fit, and not the machine that fails.
#[must_use]
pub fn is_misfit(why: &RunError) -> bool {
    match why {
        RunError::Guest { .. } => true,
        RunError::Plugin(_) | RunError::Registry(_) => why.exit_code() == ExitCode::Hopeless,
        _ => false,
    }
}

fn scratch_failed(spec: &TrialSpec) -> impl Fn(std::io::Error) -> RunError + '_ {
    |cause| RunError::Scratch { path: spec.scratch.clone(), cause }
}
