//! The volume: the only code that touches the checkpoint filesystem.
//!
//! Paths are relative to the volume's root and stay below it. The trait is what the store needs and no more, so that a fault
//! layer ([`crate::checkpoint::faults`]) can stand in the way of every operation; [`Disk`] is the real one.
//!
//! A file comes into being in one of three ways, each a function that leaves out no part of *write, sync, close and check,
//! sync the folder*: [`publish`] under a name that is final from then on, [`publish_new`] directly under its name, for
//! claims, and [`replace`] for the one record that may change (and a component, which is what its name says). Data is sure only after `close` succeeded: a bucket mount
//! uploads there.
//!
//! **What this deliberately does not do.** No locks, no modification times, no order of listings: none of them can be relied
//! on. It knows no name and no meaning of any file.

mod close_unsafe;
mod disk;
mod error;
mod publish;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

pub use super::format::ReadAt;
pub use disk::Disk;
pub use error::{Operation, VolumeError, hint_for, may_pass};
pub use publish::{publish, publish_new, replace};

/// A folder that outlives the attempt.
pub trait Volume: Send + Sync {
    /// Where it is mounted. Every other path is relative to this.
    fn root(&self) -> &Path;

    /// Makes a folder and those above it where they are missing, durably.
    fn make_dirs(&self, dir: &Path) -> io::Result<()>;

    /// Creates a file that must not exist, not even as a link.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>>;

    /// Renames a file; `AlreadyExists` if the new name is taken. Where the filesystem cannot promise that, the name is looked
    /// for just before, which is enough since no two attempts ever use one name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, in place of what has the new name.
    fn rename_over(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable, where the filesystem knows how.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// What is in a folder, sorted by name; nothing if there is no such folder. An entry that vanishes meanwhile, or whose
    /// name is not UTF-8, is left out. Links are listed and not followed.
    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>>;

    /// Opens a file for reading; links and whatever else is no file are refused.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>>;

    /// What has this name; nothing if nothing has it. Does not follow a link.
    fn look(&self, path: &Path) -> io::Result<Option<EntryKind>>;

    /// Removes a file, or a link itself.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;

    /// How much more can be written, where that is known.
    fn free_bytes(&self) -> Option<u64>;
}

/// A file being written. Dropping it closes it without looking at the result, so only after a failure.
pub trait VolumeFile: Write + Send {
    /// Makes what was written so far durable, as far as the filesystem can before `close`.
    fn sync(&mut self) -> io::Result<()>;

    /// Closes the file. Only if this succeeds is the data sure.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the folder's path.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// A file's length; 0 for all else.
    pub len: u64,
}

impl Entry {
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.kind == EntryKind::Dir
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link, whatever it points to, or something stranger. Steadfast makes none of these.
    Other,
}

/// Whether [`Volume::open`] refused what has the name because it is no file (a link, a pipe, a folder), or because no file can
/// have such a name: as opposed to one that cannot be read at the moment. Trying again changes nothing.
#[must_use]
pub fn is_no_file(error: &io::Error) -> bool {
    // What a filesystem itself calls invalid has a number, and says nothing about what is there.
    error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none()
}

/// Reads a whole small file, such as a record. Checkpoints are read in parts.
pub fn read_all(volume: &dyn Volume, path: &Path) -> Result<Vec<u8>, VolumeError> {
    let source = volume.open(path).map_err(|cause| VolumeError::new(volume, Operation::Open, path, cause))?;
    let read = || {
        let length = usize::try_from(source.len()?).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(length, 0);
        source.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|cause: io::Error| VolumeError::new(volume, Operation::Read, path, cause))
}
