//! Which bytes of the output files changed since the last checkpoint, copied before the guest runs on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::SpooledTempFile;

use super::below::{is_swapped, list_below, open_below};
use super::{FileRanges, Manifest, Range};
use crate::checkpoint::names::{FileName, Tenure};

/// The longest range; longer changes become several, so that rebuilding needs little memory.
pub(super) const RANGE_BYTES: u64 = 1 << 20;

/// Changed bytes beyond this wait for their save in a file on scratch space instead of memory.
const SPOOL_BYTES: usize = 64 << 20;

/// A file in more ranges than this, and short ones, is published anew as a whole: a log to which every checkpoint adds a line
/// would otherwise need a range for each.
const MOST_SHORT_RANGES: usize = 256;

/// A file written this shortly before it was looked at is compared by content next time, whatever its times say: file systems
/// count time in ticks, and a second write within one leaves size and time as they were.
const RACY: Duration = Duration::from_secs(2);

/// Remembers what the files looked like at the last checkpoint.
#[derive(Debug)]
pub struct Tracker {
    output: PathBuf,
    metrics: PathBuf,
    tenure: Tenure,
    last_segment: u32,
    seen: BTreeMap<String, Seen>,
    metrics_seen: Option<Seen>,
    /// Names of entries that are not kept, so that each is told once.
    told: std::collections::BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Seen {
    inode: u64,
    bytes: u64,
    /// When the inode changed last: unlike the time of modification, no guest can set it.
    changed: SystemTime,
    trusted: bool,
    ranges: FileRanges,
}

/// What one checkpoint publishes of the outputs.
#[derive(Debug)]
pub struct Frozen {
    /// The manifest for the checkpoint's metadata.
    pub manifest: Manifest,
    /// The segment that the manifest's new ranges are in; none if nothing changed.
    pub segment: Option<(FileName, SpooledTempFile)>,
    /// Entries that cannot be kept (links, special files, names that are not UTF-8) and were not told before.
    pub not_kept: Vec<String>,
}

impl Tracker {
    /// Follows the folder `output` and the file `metrics`, which were rebuilt from `manifest` (empty at step 0).
    #[must_use]
    pub fn new(output: PathBuf, metrics: PathBuf, tenure: Tenure, manifest: &Manifest) -> Self {
        // Inode 0 and no trust: everything is compared by content at the first checkpoint.
        let seen = |ranges: &FileRanges| Seen {
            inode: 0,
            bytes: ranges.bytes,
            changed: UNIX_EPOCH,
            trusted: false,
            ranges: ranges.clone(),
        };
        Self {
            output,
            metrics,
            tenure,
            last_segment: 0,
            seen: manifest.files.iter().map(|(path, ranges)| (path.clone(), seen(ranges))).collect(),
            metrics_seen: manifest.metrics.as_ref().map(seen),
            told: Default::default(),
        }
    }

    /// Names segments after this one, which the same attempt named last.
    #[must_use]
    pub fn after(mut self, segment: u32) -> Self {
        self.last_segment = segment;
        self
    }

    /// The number of the segment that was named last.
    #[must_use]
    pub fn last_segment(&self) -> u32 {
        self.last_segment
    }

    /// Copies what changed. The guest must not run meanwhile.
    pub fn freeze(&mut self) -> io::Result<Frozen> {
        let name = FileName::Segment(self.tenure, self.last_segment + 1);
        // Beside the folder, on the same scratch space: the system's temporary folder may be memory.
        let spool = SpooledTempFile::new_in(SPOOL_BYTES, self.output.parent().unwrap_or(&self.output));
        let mut fresh = Fresh { segment: name.to_string(), spool, bytes: 0 };
        let mut found = walk(&self.output)?;
        let by_inode: BTreeMap<u64, &Seen> = self.seen.values().map(|seen| (seen.inode, seen)).collect();

        let mut now = BTreeMap::new();
        for path in found.files {
            let looked = SystemTime::now();
            let file = match open_below(&self.output, Path::new(&path)) {
                Ok(file) => file,
                // Not the guest's doing, which rests.
                Err(error) if is_swapped(&error) => {
                    found.not_kept.push(path);
                    continue;
                }
                Err(error) => return Err(error),
            };
            // A renamed file keeps its inode, and most of its bytes.
            let inode = file.metadata()?.ino();
            let before = self.seen.get(&path).or_else(|| by_inode.get(&inode).copied());
            now.insert(path, look(&file, looked, before, Written::Anywhere, &mut fresh)?);
        }
        let metrics = match File::open(&self.metrics) {
            Ok(file) => {
                let before = self.metrics_seen.as_ref();
                Some(look(&file, SystemTime::now(), before, Written::AtItsEnd, &mut fresh)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };

        let manifest = Manifest {
            folders: found.folders,
            files: now.iter().map(|(path, seen)| (path.clone(), seen.ranges.clone())).collect(),
            metrics: metrics.as_ref().map(|seen| seen.ranges.clone()),
        };
        self.seen = now;
        self.metrics_seen = metrics;
        let segment = if fresh.bytes == 0 {
            None
        } else {
            // Counted even if publishing fails later: a final name is never used again.
            self.last_segment += 1;
            fresh.spool.seek(SeekFrom::Start(0))?;
            Some((name, fresh.spool))
        };
        let not_kept = found.not_kept.into_iter().filter(|name| self.told.insert(name.clone())).collect();
        Ok(Frozen { manifest, segment, not_kept })
    }

    /// Forgets what is in a segment whose save failed, so that the next checkpoint publishes those bytes anew, and only those:
    /// on a volume that is nearly full, whole files would not fit.
    pub fn distrust(&mut self, segment: &FileName) {
        let name = segment.to_string();
        for seen in self.seen.values_mut().chain(&mut self.metrics_seen) {
            for range in seen.ranges.ranges.iter_mut().filter(|range| range.segment == name) {
                range.distrust();
                seen.trusted = false;
            }
        }
    }
}

/// The segment being filled.
struct Fresh {
    segment: String,
    spool: SpooledTempFile,
    bytes: u64,
}

impl Fresh {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Range> {
        self.spool.write_all(bytes)?;
        let range = Range {
            segment: self.segment.clone(),
            offset: self.bytes,
            bytes: bytes.len() as u64,
            hash: blake3::hash(bytes).to_hex().to_string(),
        };
        self.bytes += range.bytes;
        Ok(range)
    }
}

/// How a file is written.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    /// By a guest, which may do with it what it likes.
    Anywhere,
    /// By the host alone, which only adds to it: what was seen is not read again, however long the file has become.
    AtItsEnd,
}

/// Brings one file up to date: ranges whose bytes are as they were stay, the rest goes into the fresh segment.
fn look(
    file: &File,
    looked: SystemTime,
    before: Option<&Seen>,
    written: Written,
    fresh: &mut Fresh,
) -> io::Result<Seen> {
    let facts = file.metadata()?;
    let changed = UNIX_EPOCH
        + Duration::new(u64::try_from(facts.ctime()).unwrap_or(0), u32::try_from(facts.ctime_nsec()).unwrap_or(0));
    if let Some(before) = before
        && before.trusted
        && (before.inode, before.bytes, before.changed) == (facts.ino(), facts.len(), changed)
    {
        return Ok(before.clone());
    }

    let old: &[Range] = match before {
        Some(before) if !is_shredded(&before.ranges) => &before.ranges.ranges,
        _ => &[],
    };
    let mut ranges = Vec::with_capacity(old.len() + 1);
    let mut buffer = Vec::new();
    let mut at = 0;
    for range in old {
        if at + range.bytes > facts.len() {
            break;
        }
        if written == Written::AtItsEnd && !range.is_distrusted() {
            ranges.push(range.clone());
        } else {
            read_range(file, at, range.bytes, &mut buffer)?;
            let same = blake3::hash(&buffer).to_hex().as_str() == range.hash;
            ranges.push(if same { range.clone() } else { fresh.take(&buffer)? });
        }
        at += range.bytes;
    }
    while at < facts.len() {
        read_range(file, at, RANGE_BYTES.min(facts.len() - at), &mut buffer)?;
        ranges.push(fresh.take(&buffer)?);
        at += buffer.len() as u64;
    }
    let trusted = looked.duration_since(changed).is_ok_and(|age| age > RACY);
    Ok(Seen { inode: facts.ino(), bytes: at, changed, trusted, ranges: FileRanges { bytes: at, ranges } })
}

fn is_shredded(file: &FileRanges) -> bool {
    file.ranges.len() > MOST_SHORT_RANGES && file.bytes / (file.ranges.len() as u64) < RANGE_BYTES / 4
}

fn read_range(file: &File, at: u64, bytes: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.resize(usize::try_from(bytes).map_err(io::Error::other)?, 0);
    file.read_exact_at(buffer, at)
}

/// A guest can make folders so deep that the system knows no path for them, neither here nor on the volume, where the path
/// above is another one: 4096 bytes is all that it takes.
pub const LONGEST_PATH: usize = 3 << 10;

#[derive(Default)]
struct Found {
    folders: Vec<String>,
    files: Vec<String>,
    not_kept: Vec<String>,
}

/// Everything below a folder, sorted, links not followed.
fn walk(root: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let mut pending = vec![String::new()];
    while let Some(folder) = pending.pop() {
        let entries = match list_below(root, Path::new(&folder)) {
            Ok(entries) => entries,
            Err(error) if is_swapped(&error) && !folder.is_empty() => {
                found.folders.retain(|path| *path != folder);
                found.not_kept.push(folder);
                continue;
            }
            Err(error) => return Err(error),
        };
        for (name, kind) in entries {
            let below = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let name = match name.into_string() {
                Ok(name) => name,
                Err(name) => {
                    found.not_kept.push(below(&name.to_string_lossy()));
                    continue;
                }
            };
            let path = below(&name);
            if path.len() > LONGEST_PATH {
                found.not_kept.push(path);
            } else if kind.is_dir() {
                found.folders.push(path.clone());
                pending.push(path);
            } else if kind.is_file() {
                found.files.push(path);
            } else {
                found.not_kept.push(path);
            }
        }
    }
    found.folders.sort();
    found.files.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use std::fs::{self, FileTimes};
    use std::io::Read;

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        tracker: Tracker,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (output, metrics) = (folder.path().join("output"), folder.path().join("metrics.jsonl"));
            fs::create_dir(&output).unwrap();
            let tracker = Tracker::new(output, metrics, Tenure { epoch: 1, nonce: 1 }, &Manifest::default());
            Self { folder, tracker }
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("output/file")
        }

        /// What a checkpoint would publish.
        fn published(&mut self) -> (Option<FileName>, Vec<u8>) {
            let mut bytes = Vec::new();
            let name = self.tracker.freeze().unwrap().segment.map(|(name, mut segment)| {
                segment.read_to_end(&mut bytes).unwrap();
                name
            });
            (name, bytes)
        }
    }

    #[test]
    fn a_failed_save_costs_its_own_bytes_again_and_no_others() {
        let mut place = Place::new();
        fs::write(place.file(), "first ").unwrap();
        assert_eq!(place.published().1, b"first ");
        fs::write(place.file(), "first second").unwrap();
        let (name, bytes) = place.published();
        assert_eq!(bytes, b"second");
        place.tracker.distrust(&name.unwrap());
        assert_eq!(place.published().1, b"second");
        assert_eq!(place.published().0, None, "nothing changed");
    }

    #[test]
    fn of_the_record_of_metrics_only_what_is_new_is_read() {
        let mut place = Place::new();
        let file = place.tracker.metrics.clone();
        fs::write(&file, "first ").unwrap();
        assert_eq!(place.published().1, b"first ");
        // Nobody writes at its beginning: that this one goes unseen shows that it is not read.
        fs::write(&file, "FIRST second ").unwrap();
        let (name, bytes) = place.published();
        assert_eq!(bytes, b"second ");
        place.tracker.distrust(&name.unwrap());
        fs::write(&file, "FIRST second third").unwrap();
        assert_eq!(place.published().1, b"second third");
    }

    #[test]
    fn a_change_does_not_hide_behind_a_time_that_was_set_back() {
        let mut place = Place::new();
        fs::write(place.file(), "one").unwrap();
        let before = fs::metadata(place.file()).unwrap();
        place.published();
        // As if the file had been written a while before it was looked at.
        place.tracker.seen.values_mut().for_each(|seen| seen.trusted = true);
        assert_eq!(place.published().0, None);
        // The clock of a file system counts in ticks.
        while {
            let file = File::create(place.file()).unwrap();
            (&file).write_all(b"two").unwrap();
            file.set_times(FileTimes::new().set_modified(before.modified().unwrap())).unwrap();
            let now = file.metadata().unwrap();
            (now.ctime(), now.ctime_nsec()) == (before.ctime(), before.ctime_nsec())
        } {}
        assert_eq!(fs::metadata(place.file()).unwrap().modified().unwrap(), before.modified().unwrap());
        assert_eq!(place.published().1, b"two");
    }
}
