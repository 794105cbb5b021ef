//! A folder with a volume, scratch space and the logs of the attempts that ran there.

use std::fs;
use std::path::{Path, PathBuf};

use steadfast::checkpoint::browse::{self, Task};
use steadfast::checkpoint::format::Reader;
use steadfast::checkpoint::metadata::Metadata;
use steadfast::checkpoint::names::{FileName, TaskFolder};
use steadfast::checkpoint::store::AttemptRecord;
use steadfast::checkpoint::volume::{Disk, Volume};
use tempfile::TempDir;

use super::{Finished, Run, component};

/// Enough for all tests at once, and then some.
const ROOM: u64 = 1 << 30;

/// A place of its own for every test.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    /// In memory where there is some: an attempt waits for the disk dozens of times, which is not what is tested here.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let free = rustix::fs::statvfs(memory).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        let in_memory = (free > ROOM).then(|| tempfile::tempdir_in(memory).ok()).flatten();
        let folder = in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("volume")).unwrap();
        Self { folder }
    }

    /// Another place with a copy of this one's volume.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        copy_tree(&self.volume(), &copy.volume());
        copy
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn volume(&self) -> PathBuf {
        self.path().join("volume")
    }

    /// An attempt at a job that is called like its guest.
    pub(crate) fn run(&self, guest: &str) -> Run {
        let scratch = self.path().join("scratch");
        Run::new(self.path())
            .arg("run")
            .arg(component(guest))
            .arg("--volume")
            .arg(self.volume())
            .arg("--scratch")
            .arg(scratch)
    }

    /// Another command of the program.
    pub(crate) fn command(&self, arguments: &[&str]) -> Run {
        arguments.iter().fold(Run::new(self.path()), |run, argument| run.arg(argument))
    }

    pub(crate) fn task(&self, job: &str) -> PathBuf {
        self.volume().join(job).join(TaskFolder { index: 0, count: 1 }.to_string())
    }

    /// Names in the task's folder, sorted.
    pub(crate) fn names(&self, job: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.task(job)) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Names in the task's folder that end like this.
    pub(crate) fn names_with(&self, job: &str, ending: &str) -> Vec<String> {
        self.names(job).into_iter().filter(|name| name.ends_with(ending)).collect()
    }

    /// The checkpoints, in the order in which they count, oldest first.
    pub(crate) fn checkpoints(&self, job: &str) -> Vec<PathBuf> {
        let mut found: Vec<_> = self.names(job).iter().filter_map(|name| FileName::parse(name)).collect();
        found.retain(|name| matches!(name, FileName::Checkpoint(..)));
        found.sort();
        found.iter().map(|name| self.task(job).join(name.to_string())).collect()
    }

    pub(crate) fn newest(&self, job: &str) -> PathBuf {
        self.checkpoints(job).pop().unwrap()
    }

    /// The next steps of the checkpoints that prove themselves, oldest first.
    pub(crate) fn usable(&self, job: &str) -> Vec<u64> {
        let whole = self.checkpoints(job).into_iter().filter(|path| browse::verify(path).is_ok());
        whole.map(|path| metadata_of(&path).next_step).collect()
    }

    pub(crate) fn look(&self, job: &str) -> Task {
        browse::tasks(&self.task(job)).unwrap().remove(0)
    }

    /// The record of the newest attempt.
    pub(crate) fn record(&self, job: &str) -> AttemptRecord {
        self.look(job).attempts.pop().unwrap()
    }

    /// What the job came to.
    pub(crate) fn finished(&self, job: &str) -> Finished {
        Finished::read(&self.task(job))
    }
}

/// What a checkpoint says about itself.
pub(crate) fn metadata_of(checkpoint: &Path) -> Metadata {
    browse::show(checkpoint).unwrap().metadata
}

/// The state in a checkpoint: sections by name, in order.
pub(crate) fn state_of(checkpoint: &Path) -> Vec<(String, Vec<u8>)> {
    let file = Disk::new(checkpoint.parent().unwrap()).open(Path::new(checkpoint.file_name().unwrap())).unwrap();
    let reader = Reader::open(&*file).unwrap();
    let sections = reader.sections().iter().enumerate();
    sections.map(|(index, section)| (section.name.clone(), reader.read_section(index).unwrap())).collect()
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
