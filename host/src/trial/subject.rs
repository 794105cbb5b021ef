//! Which checkpoint a plugin is tried on: the one that a run would go on from, as long as steps are left.

use std::path::{Path, PathBuf};

use super::{Facts, TrialError, TrialSpec};
use crate::checkpoint::browse::{self, BrowseError, Content, Task};
use crate::checkpoint::format::FormatError;
use crate::checkpoint::input::{self, Covers};
use crate::checkpoint::names::TaskFolder;
use crate::job::{RunError, state};
use crate::plugin::{JobInfo, Snapshot};

/// A checkpoint that a plugin is tried on.
#[derive(Debug)]
pub struct Subject {
    /// What it holds.
    pub content: Content,
    /// The file.
    pub checkpoint: PathBuf,
    /// See [`Facts::notes`].
    pub notes: Vec<String>,
}

/// A place to look for a checkpoint.
pub(super) enum Place {
    Task(Box<Task>),
    File(Box<Subject>, TaskFolder),
}

/// What was found there.
pub(super) enum Found {
    Subject(Box<Subject>),
    Nothing(String),
}

/// One place for a checkpoint that is named, else one for each task.
pub(super) fn places(path: &Path) -> Result<Vec<Place>, BrowseError> {
    if path.is_file() {
        let content = browse::load(path)?;
        let task = TaskFolder { index: content.metadata.task_index, count: content.metadata.task_count };
        let subject = Subject { content, checkpoint: path.to_owned(), notes: Vec::new() };
        return Ok(vec![Place::File(Box::new(subject), task)]);
    }
    Ok(browse::tasks(path)?.into_iter().map(|task| Place::Task(Box::new(task))).collect())
}

impl Place {
    pub(super) fn job(&self) -> &str {
        match self {
            Self::Task(task) => &task.job,
            Self::File(subject, _) => &subject.content.metadata.job,
        }
    }

    pub(super) fn task(&self) -> TaskFolder {
        match self {
            Self::Task(task) => task.task,
            Self::File(_, task) => *task,
        }
    }

    /// The newest checkpoint that proves itself and has steps left.
    pub(super) fn find(self) -> Result<Found, BrowseError> {
        let task = match self {
            Self::File(subject, _) if subject.content.metadata.finished.is_some() => {
                return Ok(Found::Nothing("all steps are done in that checkpoint".to_owned()));
            }
            Self::File(subject, _) => return Ok(Found::Subject(subject)),
            Self::Task(task) => task,
        };
        let mut notes = Vec::new();
        for listed in task.checkpoints.iter().filter(|listed| !listed.set_aside && !listed.older_lineage) {
            match browse::load(&listed.path) {
                Ok(content) if content.metadata.finished.is_some() => {
                    notes.push("the task is done: tried on a checkpoint from before its end".to_owned());
                }
                Ok(content) => {
                    let checkpoint = listed.path.clone();
                    return Ok(Found::Subject(Box::new(Subject { content, checkpoint, notes })));
                }
                Err(BrowseError::Format { cause: cause @ FormatError::Damaged { .. }, .. }) => {
                    notes.push(format!("checkpoint {} is passed over: {cause}", listed.name));
                }
                // A job may be at work, and prunes.
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let why = if notes.is_empty() { "it has no checkpoint yet".to_owned() } else { notes.join("; ") };
        Ok(Found::Nothing(why))
    }
}

fn is_gone(error: &BrowseError) -> bool {
    matches!(error, BrowseError::Read { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound)
}

impl Subject {
    /// What there is to say about it.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let metadata = &self.content.metadata;
        Facts {
            checkpoint: self.checkpoint.clone(),
            step: metadata.next_step,
            state_version: metadata.plugin.state_version,
            notes: self.notes.clone(),
        }
    }

    /// Who the guest is told that it is: the next attempt at this task.
    #[must_use]
    pub fn job(&self) -> JobInfo {
        let metadata = &self.content.metadata;
        JobInfo {
            name: metadata.job.clone(),
            task_index: metadata.task_index,
            task_count: metadata.task_count,
            attempt: metadata.tenure.epoch,
            seed: metadata.seed,
        }
    }

    /// The state, as `restore` takes it. The content has none any more.
    pub(super) fn take_state(&mut self) -> Snapshot {
        let sections = std::mem::take(&mut self.content.sections);
        state::from_sections(self.content.metadata.plugin.state_version, sections)
    }

    /// Notes what differs from when the checkpoint was made, for whoever wonders about differences.
    pub(super) fn look_at_changes(&mut self, spec: &TrialSpec) -> Result<(), TrialError> {
        let metadata = &self.content.metadata;
        if spec.config.as_ref().is_some_and(|config| *config != metadata.config) {
            self.notes.push("the new plugin is given another configuration than that of the checkpoint".to_owned());
        }
        match (&metadata.input, &spec.input) {
            (None, None) => {}
            (Some(facts), None) => return Err(TrialError::NoInput(facts.clone())),
            (None, Some(_)) => self.notes.push("the job has no input, and this has one".to_owned()),
            (Some(facts), Some(folder)) => {
                let covers = if facts.covers == "contents" { Covers::Contents } else { Covers::Names };
                if input::digest(folder, covers).map_err(RunError::from)?.digest != facts.digest {
                    self.notes.push("the input is not that of the checkpoint".to_owned());
                }
            }
        }
        Ok(())
    }
}
