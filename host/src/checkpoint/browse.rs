//! Looking at what lies on a volume, from outside of any attempt. Writes nothing.
//!
//! A path may be that of a volume, a job's folder, a task's folder or one checkpoint: what it is shows by the names in it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FormatError, ReadAt, Reader, SectionKind};
use super::metadata::Metadata;
use super::names::{FileName, TaskFolder, Tenure};
use super::outputs::{self, FileRanges, RebuildError, Segments};
use super::store::{AttemptRecord, DoneRecord, PLUGINS, SET_ASIDE, Section, Store, StoreError, parse, read};
use super::volume::{Disk, Volume};
use crate::job::spec::{BadJobName, JobName};

/// One task on a volume.
pub struct Task {
    /// The job's folder name.
    pub job: String,
    /// Which task.
    pub task: TaskFolder,
    /// The newest lineage.
    pub lineage: Option<Tenure>,
    /// All checkpoints, newest first: those of the newest lineage, then of older ones, then those set aside.
    pub checkpoints: Vec<Listed>,
    /// The attempts of the newest lineage, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// The done record of the newest lineage.
    pub done: Option<DoneRecord>,
    store: Store,
}

/// A checkpoint file, by its name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The file's name.
    pub name: String,
    /// Who wrote it.
    pub tenure: Tenure,
    /// The next step to run.
    pub next_step: u64,
    /// The file.
    pub path: PathBuf,
    /// Of an older lineage.
    pub older_lineage: bool,
    /// Set aside as damaged.
    pub set_aside: bool,
}

/// A checkpoint's facts.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What it says about itself.
    pub metadata: Metadata,
    /// Its sections: kind, name, bytes, bytes as stored.
    pub sections: Vec<(SectionKind, String, u64, u64)>,
    /// The file's size.
    pub file_bytes: u64,
}

/// All that a checkpoint holds.
#[derive(Debug)]
pub struct Content {
    /// What it says about itself.
    pub metadata: Metadata,
    /// The state.
    pub sections: Vec<Section>,
    /// The task's folder, with the segments that its outputs stand on.
    pub folder: PathBuf,
}

impl Content {
    /// Fills the empty folder `output` as the guest's was then, and `metrics` if there were any.
    pub fn rebuild(&self, output: &Path, metrics: &Path) -> Result<(), RebuildError> {
        let volume = Disk::new(&self.folder);
        outputs::rebuild(&self.metadata.outputs, &mut Segments::new(&volume, PathBuf::new()), output, metrics)
    }

    /// Where the component that wrote the state is kept, unless somebody removed it.
    #[must_use]
    pub fn plugin(&self) -> PathBuf {
        let name = format!("{}.wasm", self.metadata.plugin.digest.replace(':', "-"));
        self.folder.parent().unwrap_or(Path::new("")).join(PLUGINS).join(name)
    }
}

/// What cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum BrowseError {
    /// Nothing of ours there.
    #[error("`{}` is no volume, job, task or checkpoint of Steadfast", .0.display())]
    Nothing(PathBuf),
    /// The folder's name is no job's.
    #[error(transparent)]
    Name(#[from] BadJobName),
    /// The volume cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The path cannot be read.
    #[error("cannot read `{}`: {cause}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The file does not prove itself.
    #[error("`{}`: {cause}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: FormatError,
    },
    /// The task has neither a usable checkpoint nor finished outputs.
    #[error("task {index} of job `{job}` has no outputs yet: no usable checkpoint was found")]
    NoOutputs {
        /// The job.
        job: String,
        /// The task.
        index: u32,
    },
    /// No output of that name.
    #[error("there is no output `{name}`; there are: {}", there.join(", "))]
    NoSuchOutput {
        /// The name asked for.
        name: String,
        /// The names there are.
        there: Vec<String>,
    },
}

/// The tasks at `path`.
pub fn tasks(path: &Path) -> Result<Vec<Task>, BrowseError> {
    let failed = |cause| BrowseError::Read { path: path.to_owned(), cause };
    let path = std::path::absolute(path).map_err(failed)?;
    std::fs::metadata(&path).map_err(failed)?;
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = Vec::new();
    if let Some(task) = TaskFolder::parse(&name(&path)) {
        let job = path.parent().ok_or_else(|| BrowseError::Nothing(path.clone()))?;
        let volume = job.parent().ok_or_else(|| BrowseError::Nothing(path.clone()))?;
        found.push(Task::look(volume, &name(job), task)?);
    } else if let jobs @ [_, ..] = &task_folders(&path)?[..] {
        let volume = path.parent().ok_or_else(|| BrowseError::Nothing(path.clone()))?;
        for task in jobs {
            found.push(Task::look(volume, &name(&path), *task)?);
        }
    } else {
        let entries = Disk::new(&path).list(Path::new("")).map_err(failed)?.unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.is_dir()) {
            for task in task_folders(&path.join(&entry.name))? {
                found.push(Task::look(&path, &entry.name, task)?);
            }
        }
    }
    if found.is_empty() { Err(BrowseError::Nothing(path)) } else { Ok(found) }
}

fn task_folders(job: &Path) -> Result<Vec<TaskFolder>, BrowseError> {
    let entries = Disk::new(job).list(Path::new(""));
    let entries = entries.map_err(|cause| BrowseError::Read { path: job.to_owned(), cause })?.unwrap_or_default();
    Ok(entries.iter().filter(|entry| entry.is_dir()).filter_map(|entry| TaskFolder::parse(&entry.name)).collect())
}

impl Task {
    fn look(volume: &Path, job: &str, task: TaskFolder) -> Result<Self, BrowseError> {
        let store = Store::new(Arc::new(Disk::new(volume)), &JobName::new(job)?, task);
        let survey = store.survey()?;
        let lineage = survey.lineage();
        let (attempts, done) = match lineage {
            Some(lineage) => (store.history(&survey, lineage).records().to_vec(), store.done(&survey, lineage)?),
            None => Default::default(),
        };
        let folder = volume.join(store.folder());
        let listed = |name: &FileName, set_aside: bool| match *name {
            FileName::Checkpoint(tenure, next_step) => {
                let path = if set_aside { folder.join(SET_ASIDE) } else { folder.clone() };
                let older_lineage = !lineage.is_some_and(|lineage| survey.may_belong(tenure, lineage));
                let name = name.to_string();
                Some(Listed { path: path.join(&name), name, tenure, next_step, older_lineage, set_aside })
            }
            _ => None,
        };
        let mut checkpoints: Vec<Listed> = survey.names.iter().filter_map(|name| listed(name, false)).collect();
        checkpoints.extend(survey.set_aside.iter().filter_map(|name| listed(name, true)));
        checkpoints.sort_by(|a, b| {
            (a.set_aside, a.older_lineage)
                .cmp(&(b.set_aside, b.older_lineage))
                .then((b.tenure, b.next_step).cmp(&(a.tenure, a.next_step)))
        });
        Ok(Self { job: job.into(), task, lineage, checkpoints, attempts, done, store })
    }

    /// The task's folder.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.store.volume().root().join(self.store.folder())
    }

    /// The outputs as they are now: the finished ones, else those of the newest usable checkpoint.
    pub fn outputs(&self) -> Result<Outputs<'_>, BrowseError> {
        if let Some(done) = &self.done {
            return Ok(Outputs { task: self, source: Source::Done(done), as_of: done.steps });
        }
        for listed in self.checkpoints.iter().filter(|listed| !listed.set_aside && !listed.older_lineage) {
            if let Ok(shown) = show(&listed.path)
                && shown.metadata.outputs.check().is_ok()
            {
                let as_of = shown.metadata.next_step;
                return Ok(Outputs { task: self, source: Source::Checkpoint(Box::new(shown.metadata)), as_of });
            }
        }
        Err(BrowseError::NoOutputs { job: self.job.clone(), index: self.task.index })
    }
}

/// A task's outputs at one moment.
pub struct Outputs<'a> {
    task: &'a Task,
    source: Source<'a>,
    /// The next step at that moment.
    pub as_of: u64,
}

enum Source<'a> {
    Done(&'a DoneRecord),
    Checkpoint(Box<Metadata>),
}

impl Outputs<'_> {
    /// Whether these are the finished outputs.
    #[must_use]
    pub fn finished(&self) -> bool {
        matches!(self.source, Source::Done(_))
    }

    /// The files, by path, with their lengths.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        match &self.source {
            Source::Done(done) => done.outputs.files.iter().map(|file| (file.path.clone(), file.bytes)).collect(),
            Source::Checkpoint(metadata) => {
                metadata.outputs.files.iter().map(|(path, file)| (path.clone(), file.bytes)).collect()
            }
        }
    }

    /// Copies a file's bytes, each checked against its hash.
    pub fn copy(&self, name: &str, out: &mut dyn io::Write) -> Result<(), BrowseError> {
        let no_such = || BrowseError::NoSuchOutput {
            name: name.to_owned(),
            there: self.files().into_iter().map(|(path, _)| path).collect(),
        };
        match &self.source {
            Source::Done(done) => {
                let file = done.outputs.files.iter().find(|file| file.path == name).ok_or_else(no_such)?;
                let path = Path::new(&done.folder).join(&file.path);
                let failed = |cause| BrowseError::Read { path: self.task.folder().join(&path), cause };
                outputs::copy_assembled(&**self.task.store.volume(), &self.task.store.folder().join(&path), file, out)
                    .map_err(failed)
            }
            Source::Checkpoint(metadata) => {
                self.copy_ranges(metadata.outputs.files.get(name).ok_or_else(no_such)?, out)
            }
        }
    }

    fn copy_ranges(&self, file: &FileRanges, out: &mut dyn io::Write) -> Result<(), BrowseError> {
        let store = &self.task.store;
        let mut segments = Segments::new(&**store.volume(), store.folder());
        outputs::copy_ranges(file, &mut segments, out)
            .map_err(|cause| BrowseError::Format { path: self.task.folder(), cause })
    }
}

/// What a checkpoint says about itself. The metadata's hash is checked, the state's are not.
pub fn show(path: &Path) -> Result<Shown, BrowseError> {
    on_file(path, |reader, file_bytes| {
        let metadata = parse(reader.metadata())?;
        let sections =
            reader.sections().iter().map(|info| (info.kind, info.name.clone(), info.bytes, info.stored_bytes));
        Ok(Shown { metadata, sections: sections.collect(), file_bytes })
    })
}

/// Checks every byte of a checkpoint, and of the output segments that it counts.
pub fn verify(path: &Path) -> Result<(), BrowseError> {
    on_file(path, |reader, _| {
        reader.verify()?;
        verify_outputs(&parse(reader.metadata())?, task_folder_of(path))
    })
}

/// Reads a whole checkpoint, and checks every byte, also of the output segments that it counts.
pub fn load(path: &Path) -> Result<Content, BrowseError> {
    let path = std::path::absolute(path).map_err(|cause| BrowseError::Read { path: path.to_owned(), cause })?;
    let folder = task_folder_of(&path);
    let (metadata, sections) = on_bytes(&path, |file| {
        let (metadata, sections) = read(file)?;
        verify_outputs(&metadata, folder).map(|()| (metadata, sections))
    })?;
    Ok(Content { metadata, sections, folder: folder.to_owned() })
}

/// The task's folder: a checkpoint that was set aside lies one folder below its segments.
fn task_folder_of(checkpoint: &Path) -> &Path {
    let folder = checkpoint.parent().unwrap_or(Path::new(""));
    if folder.ends_with(SET_ASIDE) { folder.parent().unwrap_or(folder) } else { folder }
}

fn verify_outputs(metadata: &Metadata, folder: &Path) -> Result<(), FormatError> {
    metadata.outputs.check().map_err(|what| FormatError::Damaged { what, offset: 0 })?;
    let volume = Disk::new(folder);
    outputs::verify(&metadata.outputs, &mut Segments::new(&volume, PathBuf::new()))
}

fn on_file<T>(path: &Path, look: impl FnOnce(&Reader<'_>, u64) -> Result<T, FormatError>) -> Result<T, BrowseError> {
    on_bytes(path, |file| {
        let bytes = file.len().map_err(FormatError::Io)?;
        look(&Reader::open(file)?, bytes)
    })
}

fn on_bytes<T>(path: &Path, look: impl FnOnce(&dyn ReadAt) -> Result<T, FormatError>) -> Result<T, BrowseError> {
    let failed = |cause| BrowseError::Read { path: path.to_owned(), cause };
    let name = path.file_name().ok_or_else(|| BrowseError::Nothing(path.to_owned()))?;
    let volume = Disk::new(path.parent().unwrap_or(Path::new("")));
    let file = volume.open(Path::new(name)).map_err(failed)?;
    look(&*file).map_err(|cause| BrowseError::Format { path: path.to_owned(), cause })
}
