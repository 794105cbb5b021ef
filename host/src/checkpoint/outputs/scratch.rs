//! The attempt's own folder on scratch space: the guest's `/output`, and the host's record of metrics.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
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

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // A folder that has no lock yet is just being made: it is left alone.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use super::*;

    #[test]
    fn what_dead_attempts_left_goes_and_what_others_use_or_make_stays() {
        let parent = tempfile::tempdir().unwrap();
        let [dead, begun] = ["dead", "begun"].map(|name| parent.path().join(format!("{PREFIX}{name}")));
        for folder in [&dead, &begun] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(dead.join(LOCK), "").unwrap();
        let living = Scratch::make(parent.path()).unwrap();
        let another = Scratch::make(parent.path()).unwrap();
        assert!(!dead.exists() && begun.exists());
        assert!(living.output().is_dir() && another.output().is_dir());
    }
}
