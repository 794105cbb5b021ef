//! Which engine runs this attempt, who it says we are, how it will stop us, and whether the volume is one that lasts.
//!
//! | file | answers |
//! |---|---|
//! | `engine` | which engine is it, from its variables |
//! | `placement` | which job, task, attempt and execution, and where each is known from |
//! | `signals` | has a stop, or a checkpoint, been asked for |
//! | `mounts`, `volume` | what is mounted at the volume, and does it outlive the attempt |
//! | `memory` | how much memory may we use |
//!
//! The environment and the files under `/proc` are handed in, so that every engine is tested without one. No loops here,
//! and nothing is decided about checkpoints: that a wrong answer is refused with exit code 2 is all.

mod engine;
mod memory;
mod mounts;
mod placement;
mod signals;
mod volume;

pub use engine::{Engine, StopSignal};
pub use memory::{Allowed, Allower, memory_allowed};
pub use mounts::{Mount, Mounts};
pub use placement::{Grace, GraceSource, JobIdentity, NameSource, Placement, detect};
pub use signals::{StopReason, StopRequests, Woken};
pub use volume::{VolumePlace, check_volume};

use std::path::PathBuf;

/// Tells an attempt that an engine is being played on a plain machine.
pub const REHEARSAL_VARIABLE: &str = "STEADFAST_REHEARSAL";

/// The environment as this module asks for it.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of this process's environment, for [`Environment`]. One that isn't UTF-8 counts as unset: no engine writes
/// such a one.
#[must_use]
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The place that this attempt runs in is wrong or says something that makes no sense: exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// A variable that has to be a number isn't.
    #[error("the variable {name} is `{}`, which is no number from 0 to {}", value.escape_debug(), u32::MAX)]
    NotANumber {
        /// The variable.
        name: &'static str,
        /// What it says.
        value: String,
    },
    /// The index isn't below the count.
    #[error("task {index} of {count} makes no sense: the variable {index_name} is {index}, and {count_name}")]
    TaskOutOfRange {
        /// Index of the task.
        index: u32,
        /// The variable that it comes from.
        index_name: &'static str,
        /// Number of tasks.
        count: u32,
        /// Where that comes from.
        count_name: String,
        /// What to do.
        hint: Option<&'static str>,
    },
    /// A variable that the engine should have set isn't there.
    #[error("{engine} is detected, but the variable {name} is not set")]
    Missing {
        /// The engine.
        engine: Engine,
        /// The variable.
        name: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// An engine is detected that doesn't tell the job's name.
    #[error("{engine} is detected, but nothing says what the job is called")]
    Nameless {
        /// The engine.
        engine: Engine,
        /// What to do.
        hint: &'static str,
    },
    /// The name that was found can't be used.
    #[error("{origin}: {cause}")]
    BadName {
        /// Where the name comes from.
        origin: NameSource,
        /// What is wrong with it.
        cause: crate::job::spec::BadJobName,
    },
    /// No volume is given where one has to be.
    #[error(
        "{engine} is detected, but no volume is given, and checkpoints on this machine's own disk would be lost with it"
    )]
    NoVolume {
        /// The engine.
        engine: Engine,
    },
    /// The volume doesn't outlive the attempt.
    #[error("the volume `{}` would not outlive this attempt: {reason}", path.display())]
    VolumeDoesNotLast {
        /// The volume.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// The volume can't be looked at, or is no folder.
    #[error("the volume `{}` cannot be used: {reason}", path.display())]
    BadVolume {
        /// The volume.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// What is mounted there does not answer.
    #[error("the volume `{}` cannot be reached: {cause}", path.display())]
    VolumeUnreachable {
        /// The volume.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The kernel's table of mounts can't be read.
    #[error("cannot read the table of mounts, /proc/self/mountinfo: {0}")]
    NoMounts(String),
    /// Signals can't be listened to.
    #[error("cannot listen to signals: {0}")]
    Signals(std::io::Error),
}

impl PlatformError {
    /// What can be done about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::TaskOutOfRange { hint, .. } => *hint,
            Self::Missing { hint, .. } | Self::Nameless { hint, .. } => Some(hint),
            Self::BadName { .. } => Some("name the job with --name"),
            Self::NoVolume { .. } => Some(
                "mount a bucket or a disk and give its path with --volume or STEADFAST_VOLUME (or mount it at /checkpoints)",
            ),
            Self::VolumeDoesNotLast { .. } => {
                Some("mount a bucket or a disk there; where losing all progress is meant, say --volume-is-ephemeral")
            }
            Self::BadVolume { .. } => {
                Some("give a folder with --volume or STEADFAST_VOLUME; checkpoints are files in it")
            }
            Self::VolumeUnreachable { cause, .. } => crate::checkpoint::volume::hint_for(cause),
            Self::NotANumber { .. } | Self::NoMounts(_) | Self::Signals(_) => None,
        }
    }
}
