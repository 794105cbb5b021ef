//! The output folder as a checkpoint's manifest says it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FileRanges, Manifest, Range};
use crate::checkpoint::format::{FormatError, ReadAt};
use crate::checkpoint::volume::Volume;

/// The segments of one task's folder, opened as they are needed.
pub struct Segments<'a> {
    volume: &'a dyn Volume,
    folder: PathBuf,
    open: BTreeMap<String, Box<dyn ReadAt>>,
}

impl<'a> Segments<'a> {
    /// Segments in `folder`.
    #[must_use]
    pub fn new(volume: &'a dyn Volume, folder: PathBuf) -> Self {
        Self { volume, folder, open: BTreeMap::new() }
    }

    /// Bytes of a range, checked against their hash. A segment that is not there, or too short, counts as damage.
    fn read(&mut self, range: &Range, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
        let damaged = |what: String| FormatError::Damaged { what, offset: range.offset };
        let gone = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => damaged(format!("segment {} is missing", range.segment)),
            io::ErrorKind::UnexpectedEof => damaged(format!("segment {} is too short", range.segment)),
            _ => FormatError::Io(error),
        };
        if !self.open.contains_key(&range.segment) {
            let file = self.volume.open(&self.folder.join(&range.segment)).map_err(gone)?;
            self.open.insert(range.segment.clone(), file);
        }
        let segment = &self.open[&range.segment];
        buffer.resize(usize::try_from(range.bytes).map_err(|_| damaged("range too long".into()))?, 0);
        segment.read_exact_at(buffer, range.offset).map_err(gone)?;
        if blake3::hash(buffer).to_hex().as_str() != range.hash {
            return Err(damaged(format!("segment {} does not match its hash", range.segment)));
        }
        Ok(())
    }
}

/// Checks every byte that the manifest names.
pub fn verify(manifest: &Manifest, segments: &mut Segments<'_>) -> Result<(), FormatError> {
    let mut buffer = Vec::new();
    manifest.all().flat_map(|file| &file.ranges).try_for_each(|range| segments.read(range, &mut buffer))
}

/// Checks every byte that the manifest names in one segment.
pub fn verify_segment(manifest: &Manifest, segment: &str, segments: &mut Segments<'_>) -> Result<(), FormatError> {
    let mut buffer = Vec::new();
    let ranges = manifest.all().flat_map(|file| &file.ranges).filter(|range| range.segment == segment);
    ranges.into_iter().try_for_each(|range| segments.read(range, &mut buffer))
}

/// Fills the empty folder `output`, and `metrics` if the manifest has any.
pub fn rebuild(
    manifest: &Manifest,
    segments: &mut Segments<'_>,
    output: &Path,
    metrics: &Path,
) -> Result<(), FormatError> {
    for folder in &manifest.folders {
        fs::create_dir_all(output.join(folder)).map_err(FormatError::Io)?;
    }
    for (path, ranges) in &manifest.files {
        let path = output.join(path);
        // Folders are listed, but a manifest that lacks one must not make a file impossible.
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FormatError::Io)?;
        }
        fill(&path, ranges, segments)?;
    }
    manifest.metrics.as_ref().map_or(Ok(()), |ranges| fill(metrics, ranges, segments))
}

fn fill(path: &Path, ranges: &FileRanges, segments: &mut Segments<'_>) -> Result<(), FormatError> {
    let mut file = File::create_new(path).map_err(FormatError::Io)?;
    copy_ranges(ranges, segments, &mut file)
}

/// Copies the bytes of one file, each range checked against its hash.
pub fn copy_ranges(file: &FileRanges, segments: &mut Segments<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
    let mut buffer = Vec::new();
    for range in &file.ranges {
        segments.read(range, &mut buffer)?;
        out.write_all(&buffer).map_err(FormatError::Io)?;
    }
    Ok(())
}
