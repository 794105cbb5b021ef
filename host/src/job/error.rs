//! Why an attempt could not be brought to an end, and the exit code that says so.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::ExitCode;
use super::changes::Change;
use super::memory::in_bytes;
use super::saver::SaverGone;
use super::spec::{Changeable, DeviceChoice};
use crate::checkpoint::faults::FaultPlanError;
use crate::checkpoint::input::InputError;
use crate::checkpoint::names::{TaskFolder, Tenure};
use crate::checkpoint::outputs::ExportError;
use crate::checkpoint::store::{Call, ClaimError, FinishError, Hopeless, LoadError, SaveError, StoreError, Why};
use crate::checkpoint::volume::{VolumeError, hint_for, may_pass};
use crate::device::cuda::Absence;
use crate::platform::PlatformError;
use crate::plugin::{CallError, GuestError, Interruption, PluginError};
use crate::registry::{self, RegistryError};

/// Why an attempt ended without being done and without being asked to stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The place it runs in is wrong.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// No step would ever be run.
    #[error("an attempt deadline of {} leaves no time for any step: it is not longer than the grace time, {}", in_words(*deadline), in_words(*grace))]
    ShortDeadline {
        /// As it was asked for.
        deadline: Duration,
        /// Subtracted from it.
        grace: Duration,
    },
    /// The container would be killed for memory, sooner or later.
    #[error("this container allows {} of memory, and this attempt may need {}: {parts}", in_bytes(*allowed), in_bytes(*needed))]
    Memory {
        /// The container's limit.
        allowed: u64,
        /// The sum.
        needed: u64,
        /// What it is made of.
        parts: String,
        /// Options with which it would fit.
        instead: Option<String>,
    },
    /// A device was asked for by name, and is not there.
    #[error("there is no device `{asked}` here: {why}")]
    NoDevice {
        /// As it was asked for.
        asked: DeviceChoice,
        /// What is missing.
        why: Absence,
    },
    /// The environment asks for faults in words that make no sense.
    #[error(transparent)]
    Faults(#[from] FaultPlanError),
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The plugin cannot be loaded.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The plugin cannot be had from its registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The volume cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The task cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// There is no usable checkpoint, and starting over would lose work.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The volume does not know the job, but the engine says that it was tried before.
    #[error("this is attempt {attempt} of the task, but the volume `{}` knows nothing of job `{job}`: it is not the volume that the attempts before wrote to", volume.display())]
    LostVolume {
        /// The volume.
        volume: PathBuf,
        /// The job's folder.
        job: String,
        /// Counted from 0.
        attempt: u32,
    },
    /// The task has checkpoints under another task count.
    #[error("the volume holds checkpoints of this task as `{other}`, and now there are {now} tasks")]
    OtherTaskCount {
        /// The other folder.
        other: TaskFolder,
        /// The count now.
        now: u32,
    },
    /// Something changed since the checkpoint that was not said to be meant.
    #[error("this is not the job that the checkpoint `{checkpoint}` is of: {}", list(changes))]
    Changed {
        /// The checkpoint.
        checkpoint: String,
        /// The differences.
        changes: Vec<Change>,
    },
    /// The checkpoint does not say, in words that this program knows, where the generator of random bytes was.
    #[error("checkpoint `{checkpoint}` does not say where its random numbers were: {cause}")]
    Random {
        /// The checkpoint.
        checkpoint: String,
        /// What is not understood.
        #[source]
        cause: serde_json::Error,
    },
    /// The task is done, and `--if-done fail` was given.
    #[error("the task is already done: {0}")]
    AlreadyDone(String),
    /// Another attempt is of no use.
    #[error("{}", hopeless(.0))]
    Hopeless(Hopeless),
    /// A folder beside the volume cannot be written to.
    #[error("{what}, `{}`, cannot be written to: {cause}", path.display())]
    Unwritable {
        /// What it is for.
        what: &'static str,
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// Scratch space failed.
    #[error("cannot use scratch space in `{}`: {cause}", path.display())]
    Scratch {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The guest failed.
    #[error("the guest failed in {} at step {step}: {cause}", call_name(*call))]
    Guest {
        /// In which call.
        call: Call,
        /// The next step at the time.
        step: u64,
        /// What it said.
        #[source]
        cause: CallError,
        /// Whether earlier attempts show that another is of no use.
        hopeless: Option<Hopeless>,
    },
    /// Too many saves failed in a row.
    #[error("{failures} saves failed in a row, and going on unprotected is no use; the last one: {cause}")]
    SavesFail {
        /// How many.
        failures: u32,
        /// The last one.
        #[source]
        cause: SaveError,
    },
    /// A newer attempt is at work.
    #[error("a newer attempt of this task is at work ({0}); this one ends so as not to waste a device")]
    Fenced(Tenure),
    /// The outputs could not be assembled.
    #[error(transparent)]
    Finish(#[from] FinishError),
    /// The outputs could not be copied to `--output`.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A fault of this program.
    #[error(transparent)]
    SaverGone(#[from] SaverGone),
}

impl RunError {
    /// The exit code that says it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Platform(PlatformError::VolumeUnreachable { .. }) => ExitCode::Retry,
            Self::Unwritable { cause, .. } if may_pass(cause) => ExitCode::Retry,
            Self::NoDevice { why, .. } if why.may_pass() => ExitCode::Retry,
            Self::Platform(_)
            | Self::ShortDeadline { .. }
            | Self::Memory { .. }
            | Self::NoDevice { .. }
            | Self::Faults(_)
            | Self::Unwritable { .. } => ExitCode::Usage,
            Self::Input(error) if error.is_not_there() => ExitCode::Usage,
            Self::Plugin(error) => plugin_code(error),
            Self::Registry(error) => registry_code(error),
            Self::Claim(ClaimError::NoSuchStep { .. }) => ExitCode::Usage,
            Self::Claim(ClaimError::NoEpochLeft { .. }) => ExitCode::Refused,
            Self::Claim(ClaimError::Volume(error)) if is_read_only(error) => ExitCode::Usage,
            Self::Load(LoadError::Unreadable { .. } | LoadError::Vanished { .. } | LoadError::Store(_)) => {
                ExitCode::Retry
            }
            Self::Load(_)
            | Self::LostVolume { .. }
            | Self::OtherTaskCount { .. }
            | Self::Changed { .. }
            | Self::Random { .. }
            | Self::AlreadyDone(_) => ExitCode::Refused,
            Self::Hopeless(_) | Self::Guest { hopeless: Some(_), .. } => ExitCode::Hopeless,
            Self::Guest { cause: CallError::Guest(GuestError::Invalid(_)), .. } => ExitCode::Hopeless,
            Self::Guest { cause: CallError::Guest(GuestError::IncompatibleState(_)), .. } => ExitCode::Refused,
            Self::Fenced(_) | Self::Finish(FinishError::Fenced(_) | FinishError::Save(SaveError::Fenced(_))) => {
                ExitCode::Fenced
            }
            Self::Input(_)
            | Self::Store(_)
            | Self::Claim(_)
            | Self::Scratch { .. }
            | Self::Thread(_)
            | Self::Guest { .. }
            | Self::SavesFail { .. }
            | Self::Finish(_)
            | Self::Export(_)
            | Self::SaverGone(_) => ExitCode::Retry,
        }
    }

    /// Why, as the attempt's record has it.
    #[must_use]
    pub fn why(&self) -> Why {
        match self.exit_code() {
            ExitCode::Fenced => Why::Fenced,
            ExitCode::Refused => Why::Refused,
            _ if matches!(self, Self::Guest { cause: CallError::Device(_), .. }) => Why::Host,
            _ if matches!(self, Self::Guest { .. }) => Why::Guest,
            ExitCode::Hopeless => Why::Refused,
            _ => Why::Host,
        }
    }

    /// What can be done about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Platform(error) => error.hint().map(Into::into),
            Self::Registry(error) => error.hint(),
            Self::ShortDeadline { .. } => Some("give a longer --attempt-deadline, or a shorter --grace".into()),
            Self::Memory { needed, instead, .. } => {
                let or = instead.as_ref().map(|options| format!("; or {options}")).unwrap_or_default();
                Some(format!("allow the container {} MiB{or}", needed.div_ceil(1 << 20)))
            }
            Self::NoDevice { why, .. } => {
                Some(format!("{}; or say --device cpu: the same kernels run on the CPU, more slowly", why.hint()))
            }
            Self::Store(error) | Self::Load(LoadError::Store(error)) | Self::Claim(ClaimError::Store(error)) => {
                error.hint().map(Into::into)
            }
            Self::Load(LoadError::Unreadable { cause, .. }) => hint_for(cause).map(Into::into),
            Self::SavesFail { cause: SaveError::Store(error), .. }
            | Self::Finish(FinishError::Save(SaveError::Store(error))) => error.hint().map(Into::into),
            Self::Unwritable { cause, .. } | Self::Scratch { cause, .. } if may_pass(cause) => {
                Some("what is mounted there does not answer; another attempt may find it again".into())
            }
            Self::Unwritable { .. } | Self::Scratch { .. } => {
                Some("give a folder that this user may write to, with room for what the plugin writes".into())
            }
            Self::Load(LoadError::Foreign { .. }) => Some(
                "somebody copied it here; move it away, or run the job that it belongs to (--name, --run-id)".into(),
            ),
            Self::Load(LoadError::NoneUsable { .. }) => Some(
                "repair or bring back a checkpoint file; to give the work up and begin at step 0, say --fresh".into(),
            ),
            Self::Load(LoadError::Newer { .. }) => Some("run it with the program that wrote it, or a newer one".into()),
            Self::LostVolume { .. } => {
                Some("mount the volume of the first attempt; where it is meant to be empty each time, say --volume-is-ephemeral".into())
            }
            Self::OtherTaskCount { .. } => {
                Some("run with the task count of before, or say --accept-changed task-count to go on from there".into())
            }
            Self::Changed { changes, .. } => {
                let mut kinds: Vec<String> = changes.iter().map(|change| change.kind.to_string()).collect();
                kinds.dedup();
                let plugin = changes.iter().any(|change| change.kind == Changeable::Plugin);
                let own = if plugin { "; to go on under the job's own plugin, --plugin-from volume" } else { "" };
                Some(format!("if that is meant, say --accept-changed {}{own}; to begin anew, --fresh", kinds.join(",")))
            }
            Self::AlreadyDone(_) => Some("say --if-done restart or --fresh to run it again".into()),
            Self::Hopeless(_) => {
                Some("attempts go on as soon as the plugin, its configuration, its input or its limits change".into())
            }
            Self::Guest { hopeless: Some(why), .. } => Some(hopeless(why)),
            Self::Guest { cause: CallError::Guest(GuestError::IncompatibleState(_)), .. } => Some(
                "run a plugin that reads this state: the one that wrote it is kept on the volume, in the job's folder \
                 `plugins`; to begin anew, say --fresh"
                    .into(),
            ),
            Self::Guest { cause: CallError::Interrupted(Interruption::StepTimeout), .. } => {
                Some("let it do less at a time, or give it more time with --step-timeout".into())
            }
            Self::SavesFail { cause: SaveError::Volume(error), .. } => error.hint(),
            Self::Claim(ClaimError::NoEpochLeft { .. }) => {
                Some("no four thousand million attempts were made: somebody put that file there; move it away".into())
            }
            Self::Claim(ClaimError::Volume(error)) => error.hint(),
            Self::Finish(FinishError::Save(SaveError::Volume(error))) => error.hint(),
            _ => None,
        }
    }
}

fn plugin_code(error: &PluginError) -> ExitCode {
    match error {
        PluginError::Read { source, .. } if may_pass(source) => ExitCode::Retry,
        PluginError::Read { .. } => ExitCode::Usage,
        PluginError::Pinned { .. } => ExitCode::Usage,
        PluginError::NotAComponent { .. }
        | PluginError::World { .. }
        | PluginError::Compile { .. }
        | PluginError::Instantiate { .. } => ExitCode::Hopeless,
        PluginError::Engine { .. } | PluginError::Folder { .. } | PluginError::Device { .. } => ExitCode::Retry,
    }
}

fn registry_code(error: &RegistryError) -> ExitCode {
    match error.why {
        registry::Why::NoPlugin { .. } | registry::Why::TooLarge { .. } => ExitCode::Hopeless,
        _ if error.may_pass() => ExitCode::Retry,
        _ => ExitCode::Usage,
    }
}

fn is_read_only(error: &VolumeError) -> bool {
    error.cause.kind() == io::ErrorKind::ReadOnlyFilesystem
}

fn list(changes: &[Change]) -> String {
    changes.iter().map(|change| change.text.as_str()).collect::<Vec<_>>().join("; ")
}

fn hopeless(why: &Hopeless) -> String {
    match why {
        Hopeless::TrapsAtStep { step, message } => {
            let first = message.lines().next().unwrap_or_default();
            format!("step {step} fails from two different starting points, so another attempt is of no use: {first}")
        }
        Hopeless::Stalled { attempts, message } => {
            let first = message.lines().next().unwrap_or_default();
            format!("{attempts} attempts in a row made no progress, so another is of no use; the last one: {first}")
        }
    }
}

/// The call's name, as the contract has it.
#[must_use]
pub(super) fn call_name(call: Call) -> &'static str {
    match call {
        Call::Start => "`start`",
        Call::Restore => "`restore`",
        Call::Step => "`step`",
        Call::Snapshot => "`snapshot`",
    }
}

/// A time as people say it.
#[must_use]
pub(super) fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => humantime::format_duration(Duration::from_secs(time.as_secs())).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_on_a_failing_file_system_is_tried_again_and_a_wrong_path_is_not() {
        use rustix::io::Errno;
        let code = |errno: Errno| {
            let source = io::Error::from_raw_os_error(errno.raw_os_error());
            RunError::Plugin(PluginError::Read { path: "p.wasm".into(), source }).exit_code()
        };
        for errno in [Errno::IO, Errno::STALE, Errno::TIMEDOUT, Errno::NOTCONN] {
            assert_eq!(code(errno), ExitCode::Retry, "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::ISDIR, Errno::NOTDIR] {
            assert_eq!(code(errno), ExitCode::Usage, "{errno}");
        }
    }
}
