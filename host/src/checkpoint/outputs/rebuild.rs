//! The output folder as a checkpoint's manifest says it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FileRanges, Manifest, Range};
use crate::checkpoint::format::{FormatError, ReadAt};
use crate::checkpoint::volume::{Volume, is_no_file};

/// A long job has more segments than a process may have open files.
const MOST_OPEN: usize = 16;

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
            _ if is_no_file(&error) => damaged(format!("segment {}: {error}", range.segment)),
            _ => FormatError::Io(error),
        };
        if !self.open.contains_key(&range.segment) {
            if self.open.len() >= MOST_OPEN {
                // The oldest: files are read from front to back, and grow at their ends.
                self.open.pop_first();
            }
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

/// Why the output folder could not be made as it was.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A segment cannot be read, or does not prove itself.
    #[error(transparent)]
    Segment(#[from] FormatError),
    /// Scratch space cannot be written.
    #[error("cannot write `{}`: {cause}", path.display())]
    Scratch {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl RebuildError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |cause| Self::Scratch { path: path.to_owned(), cause }
    }
}

/// Fills the empty folder `output`, and `metrics` if the manifest has any.
pub fn rebuild(
    manifest: &Manifest,
    segments: &mut Segments<'_>,
    output: &Path,
    metrics: &Path,
) -> Result<(), RebuildError> {
    for folder in &manifest.folders {
        let folder = output.join(folder);
        fs::create_dir_all(&folder).map_err(RebuildError::at(&folder))?;
    }
    for (path, ranges) in &manifest.files {
        let path = output.join(path);
        // Folders are listed, but a manifest that lacks one must not make a file impossible.
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(RebuildError::at(folder))?;
        }
        fill(&path, ranges, segments)?;
    }
    manifest.metrics.as_ref().map_or(Ok(()), |ranges| fill(metrics, ranges, segments))
}

fn fill(path: &Path, file: &FileRanges, segments: &mut Segments<'_>) -> Result<(), RebuildError> {
    let mut out = File::create_new(path).map_err(RebuildError::at(path))?;
    let mut buffer = Vec::new();
    for range in &file.ranges {
        segments.read(range, &mut buffer)?;
        out.write_all(&buffer).map_err(RebuildError::at(path))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use super::*;
    use crate::checkpoint::volume::Disk;

    #[test]
    fn scratch_space_that_fails_is_told_apart_from_a_volume_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let (output, metrics) = (folder.path().join("output"), folder.path().join("metrics"));
        fs::create_dir(&output).unwrap();
        let range = Range { segment: "e0001-00000001-0001.seg".into(), offset: 0, bytes: 1, hash: String::new() };
        let file = FileRanges { bytes: 1, ranges: vec![range] };
        let manifest = Manifest { files: [("file".to_owned(), file)].into(), ..Manifest::default() };
        let volume = Disk::new(folder.path());
        let again = || rebuild(&manifest, &mut Segments::new(&volume, PathBuf::new()), &output, &metrics);
        assert!(matches!(again(), Err(RebuildError::Segment(_))));
        assert!(
            matches!(again(), Err(RebuildError::Scratch { path, .. }) if path == output.join("file")),
            "it is there"
        );
    }

    #[test]
    fn a_thousand_segments_are_not_open_all_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (output, metrics) = (folder.path().join("output"), folder.path().join("metrics"));
        fs::create_dir(&output).unwrap();
        let range = |number: u32| {
            let (segment, byte) = (format!("e0001-00000001-{number:04}.seg"), [number as u8]);
            fs::write(folder.path().join(&segment), byte).unwrap();
            Range { segment, offset: 0, bytes: 1, hash: blake3::hash(&byte).to_hex().to_string() }
        };
        let file = FileRanges { bytes: 1000, ranges: (0..1000).map(range).collect() };
        let manifest = Manifest { files: [("file".to_owned(), file)].into(), ..Manifest::default() };
        let volume = Disk::new(folder.path());
        let mut segments = Segments::new(&volume, PathBuf::new());
        rebuild(&manifest, &mut segments, &output, &metrics).unwrap();
        assert_eq!(fs::read(output.join("file")).unwrap(), (0..1000).map(|number| number as u8).collect::<Vec<_>>());
        assert!(segments.open.len() <= MOST_OPEN);
    }
}
