//! Which checkpoints of a task there are, which of them counts, and how a new one comes to count.
//!
//! An attempt goes through it in this order, and `job` is the only caller:
//!
//! ```text
//! Store::survey   one look at the task's folder: claims, checkpoints, records, done      (writes nothing)
//! Store::prepare  the lineage is chosen                                                  (writes nothing)
//! Session::peek   what the newest checkpoint says about itself, for an early refusal     (writes nothing)
//! Session::begin  the attempt's claim                                                    (writes the claim alone)
//! Session::load   the newest checkpoint of the lineage that proves itself                (writes nothing)
//! Session::settle damaged files set aside, stage files of dead attempts removed
//! Session::save   outputs' segment → checkpoint → read back → prune, as often as wanted
//! Session::finish outputs assembled → done record
//! ```
//!
//! No step depends on a lock, a listing's freshness, a modification time or a rename: every name has one writer for ever
//! (see [`names`](super::names)), and a file counts only when its hashes match.

mod claim;
mod finish;
mod load;
mod prune;
mod record;
pub mod sealed;
mod session;
mod survey;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use claim::{Begun, Choice, Claim, Wish};
pub use finish::{DoneRecord, FinishError};
pub use load::{Damaged, Decision, LoadError, Loaded, Origin, Section};
pub(crate) use load::{parse, read};
pub use record::{AttemptRecord, Call, Ended, Failure, History, Hopeless, ProfileFigures, SaveFigures, Why};
pub use session::{ClaimError, ClaimRequest, Draft, SaveError, SavePhase, Saved, Session, Standing};
pub use survey::Survey;

use super::names::TaskFolder;
use super::volume::{Operation, Volume, VolumeError, hint_for};
use crate::job::spec::JobName;

/// Where damaged checkpoints are moved to, below the task's folder.
pub const SET_ASIDE: &str = "set-aside";

/// Where components are kept, below the job's folder.
pub const PLUGINS: &str = "plugins";

/// The checkpoints of one task on a volume.
#[derive(Clone)]
pub struct Store {
    volume: Arc<dyn Volume>,
    job: PathBuf,
    task: TaskFolder,
}

/// The volume could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} `{}`: {cause}", path.display())]
pub struct StoreError {
    /// What was tried.
    pub operation: &'static str,
    /// On what; with the volume's root in front.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub cause: io::Error,
}

impl StoreError {
    fn at<'a>(volume: &'a dyn Volume, operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |cause| Self { operation, path: volume.root().join(path), cause }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        hint_for(&self.cause)
    }
}

impl Store {
    /// The task's folder on `volume`; nothing is touched yet.
    #[must_use]
    pub fn new(volume: Arc<dyn Volume>, job: &JobName, task: TaskFolder) -> Self {
        Self { volume, job: PathBuf::from(job.as_str()), task }
    }

    /// The job's folder, relative to the volume.
    #[must_use]
    pub fn job_folder(&self) -> &Path {
        &self.job
    }

    /// The task's folder, relative to the volume.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.job.join(self.task.to_string())
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    /// Which task.
    #[must_use]
    pub fn task(&self) -> TaskFolder {
        self.task
    }

    /// Makes the task's folder and no more: the volume has seen the job, as a retry of an attempt that was stopped before
    /// its claim has to know.
    pub fn leave_trace(&self) -> Result<(), VolumeError> {
        let folder = self.folder();
        let volume = &*self.volume;
        volume.make_dirs(&folder).map_err(|cause| VolumeError::new(volume, Operation::MakeDirs, &folder, cause))
    }

    fn path(&self, name: &super::names::FileName) -> PathBuf {
        self.folder().join(name.to_string())
    }
}
