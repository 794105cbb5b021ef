//! The guest's output files across attempts.
//!
//! While a guest runs, its `/output` is a folder on scratch space that dies with the attempt. With each checkpoint the byte
//! ranges that changed are published on the volume as a *segment*, and the checkpoint's [`Manifest`] says which ranges of which
//! segments make up each file. An attempt that goes on from the checkpoint rebuilds the folder from the manifest; so appended
//! lines are there exactly once, and overwritten, renamed and deleted files are right too. The host's own record of metrics
//! goes the same way.
//!
//! ```text
//! scratch folder ──freeze──► changed ranges + manifest ──publish──► e0002-….seg   (then the checkpoint that counts them)
//! scratch folder ◄─rebuild── manifest + segments
//! scratch folder ──assemble─► output-e0002-…/                                    (then the done record that names it)
//! ```
//!
//! Symbolic links and special files are not kept: [`Tracker::freeze`] names them, once, so that the log can warn of them.

mod assemble;
mod below;
mod freeze;
mod rebuild;
mod scratch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use assemble::{Assembled, AssembledFile, ExportError, assemble, export};
pub(crate) use assemble::{copy_assembled, copy_to_volume};
pub use freeze::{Frozen, LONGEST_PATH, Tracker};
pub use rebuild::{RebuildError, Segments, copy_ranges, rebuild, verify, verify_segment};
pub use scratch::{Scratch, may_write};

use super::names::FileName;

/// Which ranges of which segments make up the output files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Folders below `/output`, also empty ones, parents first. Paths use `/`.
    pub folders: Vec<String>,
    /// Files below `/output`, by path.
    pub files: BTreeMap<String, FileRanges>,
    /// The host's record of metrics; none before the first metric.
    pub metrics: Option<FileRanges>,
}

/// A file as ranges of segments, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRanges {
    /// The file's length in bytes: the ranges' lengths together.
    pub bytes: u64,
    /// Where the bytes are.
    pub ranges: Vec<Range>,
}

/// Bytes of one segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The segment's file name.
    pub segment: String,
    /// Where in the segment the bytes begin.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Their BLAKE3 hash in hexadecimal.
    pub hash: String,
}

impl Range {
    /// Forgets what the bytes are, since their segment was not saved: no bytes have this hash.
    pub(super) fn distrust(&mut self) {
        self.hash.clear();
    }

    pub(super) fn is_distrusted(&self) -> bool {
        self.hash.is_empty()
    }
}

/// Whether a path that was read stays below the folder that it is of.
pub(super) fn stays_below(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

impl Manifest {
    /// All files of the manifest, that of metrics last.
    pub fn all(&self) -> impl Iterator<Item = &FileRanges> {
        self.files.values().chain(&self.metrics)
    }

    /// The names of the segments that the files stand on.
    #[must_use]
    pub fn segments(&self) -> std::collections::BTreeSet<&str> {
        self.all().flat_map(|file| &file.ranges).map(|range| range.segment.as_str()).collect()
    }

    /// What is wrong with a manifest that was read: paths that leave the folder, names that are no segments', lengths that
    /// don't add up. A checkpoint with such a manifest counts as damaged.
    pub fn check(&self) -> Result<(), String> {
        if let Some(path) = self.folders.iter().chain(self.files.keys()).find(|path| !stays_below(path)) {
            return Err(format!("output path `{}` leaves the folder", path.escape_debug()));
        }
        for file in self.all() {
            let total = file.ranges.iter().try_fold(0u64, |total, range| total.checked_add(range.bytes));
            if total != Some(file.bytes) {
                return Err("an output file's ranges don't add up to its length".into());
            }
            for range in &file.ranges {
                if !matches!(FileName::parse(&range.segment), Some(FileName::Segment(..))) {
                    return Err(format!("`{}` is no segment's name", range.segment.escape_debug()));
                }
                if range.bytes > freeze::RANGE_BYTES || range.offset.checked_add(range.bytes).is_none() {
                    return Err("an output range is too long".into());
                }
            }
        }
        Ok(())
    }
}
