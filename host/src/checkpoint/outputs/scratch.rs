//! The attempt's own folder on scratch space: the guest's `/output`, and the host's record of metrics.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, Mode, OFlags, access, flock};
use tempfile::TempDir;

const PREFIX: &str = "steadfast-scratch-";
const LOCK: &str = "in-use";

/// Removed when the attempt ends. One that was killed leaves it behind; the next attempt on the machine removes it.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Held as long as the folder is in use; only tells other attempts not to remove it.
    _lock: File,
    metrics: Option<BufWriter<File>>,
}

impl Scratch {
    /// Makes the folder below `parent`, and removes those that dead attempts left there.
    pub fn make(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        sweep(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // Locked before it has its name, so that no other attempt ever finds it free.
        let unnamed = folder.path().join("new");
        let lock = File::create_new(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        let scratch = Self { folder, _lock: lock, metrics: None };
        fs::create_dir(scratch.output())?;
        Ok(scratch)
    }

    /// What the guest sees as `/output`.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    /// The host's record of metrics, one JSON object a line.
    #[must_use]
    pub fn metrics(&self) -> PathBuf {
        self.folder.path().join("metrics.jsonl")
    }

    /// Adds a value to the record of metrics.
    pub fn add_metric(&mut self, step: u64, name: &str, value: f64) -> io::Result<()> {
        if self.metrics.is_none() {
            let file = OpenOptions::new().append(true).create(true).open(self.metrics())?;
            self.metrics = Some(BufWriter::new(file));
        }
        let Some(out) = &mut self.metrics else { return Ok(()) };
        // JSON has no infinities: they, and NaN, are written as text.
        let value = if value.is_finite() { value.into() } else { serde_json::Value::from(value.to_string()) };
        let line = serde_json::json!({ "step": step, "name": name, "value": value });
        writeln!(out, "{line}")
    }

    /// Makes the file hold all that was added.
    pub fn flush_metrics(&mut self) -> io::Result<()> {
        self.metrics.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

/// Whether files can be made in a folder, which itself may still have to be made. Makes nothing.
pub fn may_write(folder: &Path) -> io::Result<()> {
    let mut there = Path::new(".");
    for above in folder.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        match above.symlink_metadata() {
            Ok(_) => {
                there = above;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Something is there, even if it is a mount that does not answer: what lies above it says nothing about it.
            Err(error) => return Err(error),
        }
    }
    if !fs::metadata(there)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(there, Access::WRITE_OK | Access::EXEC_OK)?)
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // A folder that has no lock yet is just being made: it is left alone.
        let Some(lock) = open_to_lock(&entry.path().join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Opens a file that may be anybody's, in a folder that everybody may write to: a link is not followed, and a pipe, which would
/// wait for its other end, is none.
pub(super) fn open_to_lock(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_folder_that_is_there_or_can_be_made_is_fine_and_all_else_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let at = |path: &str| parent.path().join(path);
        fs::write(at("file"), "").unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        assert!(may_write(parent.path()).is_ok());
        assert!(may_write(&at("new/and/deeper")).is_ok());
        assert!(!at("new").exists());
        assert!(may_write(Path::new("relative/and/new")).is_ok());
        for wrong in ["file", "file/below", "dangling", "dangling/below"] {
            assert!(may_write(&at(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_dead_attempts_left_goes_and_strange_things_hold_nobody_up() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = parent.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&path).unwrap();
            path
        };
        let living = Scratch::make(parent.path()).unwrap();
        let (dead, pipe, link, new) = (folder("dead"), folder("pipe"), folder("link"), folder("new"));
        fs::write(dead.join(LOCK), "").unwrap();
        mknodat(CWD, pipe.join(LOCK), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink("/dev/zero", link.join(LOCK)).unwrap();
        drop(Scratch::make(parent.path()).unwrap());
        assert!(!dead.exists());
        assert!(living.output().is_dir() && pipe.exists() && link.exists() && new.exists());
    }
}
