//! Errors of the volume: what was tried, on which file, what came of it, and what a person can do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use rustix::io::Errno;

use super::Volume;

/// What is done to a volume: what an error names and what a fault plan counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Making folders.
    MakeDirs,
    /// Creating a file.
    Create,
    /// Writing to it.
    Write,
    /// Making its data durable.
    Sync,
    /// Closing it.
    Close,
    /// Giving it another name.
    Rename,
    /// Making a folder's names durable.
    SyncDir,
    /// Listing a folder.
    List,
    /// Looking whether a name is there.
    Look,
    /// Opening a file.
    Open,
    /// Reading from it.
    Read,
    /// Removing a file or an empty folder.
    Remove,
}

impl Operation {
    /// The word in a trace.
    pub fn word(self) -> &'static str {
        match self {
            Self::MakeDirs => "make-dirs",
            Self::Create => "create",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Close => "close",
            Self::Rename => "rename",
            Self::SyncDir => "sync-dir",
            Self::List => "list",
            Self::Look => "look",
            Self::Open => "open",
            Self::Read => "read",
            Self::Remove => "remove",
        }
    }
}

impl fmt::Display for Operation {
    /// As it reads after "cannot".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MakeDirs => "make the folder",
            Self::Create => "create",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Close => "close",
            Self::Rename => "give its final name to",
            Self::SyncDir => "sync the folder",
            Self::List => "list",
            Self::Look => "look for",
            Self::Open => "open",
            Self::Read => "read",
            Self::Remove => "remove",
        })
    }
}

/// An operation on the volume that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} `{}`: {cause}", path.display())]
pub struct VolumeError {
    /// What was tried.
    pub operation: Operation,
    /// On what; with the volume's root in front.
    pub path: PathBuf,
    /// What came of it.
    pub cause: io::Error,
    /// Bytes that the file needs, where the caller said so.
    pub needed: Option<u64>,
    /// Bytes that were free just after the failure, where that matters and is known.
    pub free: Option<u64>,
}

impl VolumeError {
    /// What came of an operation on a path of this volume.
    pub fn new(volume: &dyn Volume, operation: Operation, path: &Path, cause: io::Error) -> Self {
        let free = if is_no_space(&cause) { volume.free_bytes() } else { None };
        Self { operation, path: volume.root().join(path), cause, needed: None, free }
    }

    /// The same, naming the space that the file needs.
    #[must_use]
    pub fn with_needed(mut self, bytes: u64) -> Self {
        self.needed = Some(bytes);
        self
    }

    /// Whether the volume, or the quota on it, is full.
    pub fn is_no_space(&self) -> bool {
        is_no_space(&self.cause)
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        if self.is_no_space() {
            return Some(self.space_hint());
        }
        // What a file is made in was there when the attempt began.
        let makes = [Operation::MakeDirs, Operation::Create, Operation::Rename, Operation::SyncDir];
        if makes.contains(&self.operation) && self.cause.kind() == io::ErrorKind::NotFound {
            return Some(GONE.to_owned());
        }
        hint_for(&self.cause).map(str::to_owned)
    }

    fn space_hint(&self) -> String {
        let size = |bytes| ByteSize::b(bytes).display().iec();
        let mut hint = match (self.needed, self.free) {
            (Some(needed), Some(free)) => format!("up to {} are needed and {} are free", size(needed), size(free)),
            (Some(needed), None) => format!("up to {} are needed", size(needed)),
            (None, Some(free)) => format!("{} are free", size(free)),
            (None, None) => "the volume is full".to_owned(),
        };
        hint.push_str("; make room, or keep fewer checkpoints (--keep)");
        hint
    }
}

const GONE: &str =
    "the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint";

/// What a person can do about an error of the volume, whatever was tried.
#[must_use]
pub fn hint_for(cause: &io::Error) -> Option<&'static str> {
    let Some(errno) = Errno::from_io_error(cause) else {
        // Without a number it is an error of ours: that a folder is missing is one only if the volume itself is.
        return (cause.kind() == io::ErrorKind::NotFound).then_some(GONE);
    };
    Some(match errno {
        Errno::ROFS => "the volume is mounted read-only; mount it so that it can be written to",
        Errno::ACCESS | Errno::PERM => "the volume does not let this user do that; look at its owner and mode",
        Errno::STALE | Errno::NOTCONN | Errno::TIMEDOUT | Errno::HOSTDOWN => GONE,
        Errno::NAMETOOLONG => "the filesystem does not take names this long; give a shorter --name or --run-id",
        Errno::MFILE | Errno::NFILE => "too many files are open; raise the limit (ulimit -n)",
        Errno::IO => "the disk, or the server behind the mount, failed; another attempt may not meet this",
        Errno::FBIG => "the filesystem, or a limit (ulimit -f), does not allow files this large",
        Errno::LOOP => "it is a symbolic link, and Steadfast follows none on the volume",
        _ => return None,
    })
}

/// Whether an error may be gone the next time: what a network file system or a failing disk says now and then, and not what a
/// wrong path says.
#[must_use]
pub fn may_pass(cause: &io::Error) -> bool {
    use io::ErrorKind::{
        HostUnreachable, NetworkDown, NetworkUnreachable, NotConnected, StaleNetworkFileHandle, TimedOut,
    };
    let of_the_network =
        [HostUnreachable, NetworkDown, NetworkUnreachable, NotConnected, StaleNetworkFileHandle, TimedOut];
    of_the_network.contains(&cause.kind()) || matches!(Errno::from_io_error(cause), Some(Errno::IO | Errno::HOSTDOWN))
}

fn is_no_space(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::NOSPC | Errno::DQUOT))
}
