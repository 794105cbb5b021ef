//! What a job left on its volume, and how two of them differ.
//!
//! Compared are the finished outputs (every file, byte and folder), the final checkpoint's sections, its step and the
//! position of the random generators. Contents are held as hashes; where they differ, both are read again for the place.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::place::Place;
use crate::checkpoint::browse;
use crate::checkpoint::format::{FormatError, Reader, SectionKind};
use crate::checkpoint::metadata::Metadata;
use crate::checkpoint::volume::{Disk, Volume as _};

/// Differences beyond so many are only counted.
const SHOWN: usize = 8;

/// What a job that is done left behind.
#[derive(Debug)]
pub struct Outcome {
    output: PathBuf,
    tree: BTreeMap<String, Leaf>,
    metrics: Option<(Leaf, PathBuf)>,
    checkpoint: PathBuf,
    step: u64,
    random: Value,
    message: String,
    sections: Vec<Section>,
}

/// One thing in the output folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leaf {
    Folder,
    File { len: u64, hash: blake3::Hash },
    Other,
}

/// One section of the final checkpoint.
#[derive(Debug)]
struct Section {
    kind: SectionKind,
    name: String,
    len: u64,
    hash: blake3::Hash,
}

/// One way in which a disturbed run came out unlike the undisturbed one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Difference {
    /// An output is missing, or too much, or of another kind.
    Presence {
        /// Its path below the output folder.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// An output file has other bytes.
    File {
        /// Its path below the output folder.
        path: String,
        /// The first byte that differs.
        offset: u64,
        /// Bytes here.
        here: u64,
        /// Bytes in the undisturbed run.
        undisturbed: u64,
    },
    /// The final checkpoint is of another step.
    Step {
        /// The step here.
        here: u64,
        /// The step in the undisturbed run.
        undisturbed: u64,
    },
    /// The final checkpoint has other sections.
    Sections {
        /// Names here.
        here: Vec<String>,
        /// Names in the undisturbed run.
        undisturbed: Vec<String>,
    },
    /// A section of the final checkpoint has other bytes.
    Section {
        /// The section's name.
        name: String,
        /// The first byte that differs.
        offset: u64,
        /// Bytes here.
        here: u64,
        /// Bytes in the undisturbed run.
        undisturbed: u64,
    },
    /// The host's record of metrics differs.
    Metrics {
        /// The first byte that differs.
        offset: u64,
    },
    /// The guest said something else when it was done.
    Message {
        /// What it said here.
        here: String,
        /// What it said in the undisturbed run.
        undisturbed: String,
    },
    /// The host's random generators stand elsewhere.
    Random {
        /// Their position here.
        here: String,
        /// Their position in the undisturbed run.
        undisturbed: String,
    },
    /// The job never came to its end.
    GaveUp {
        /// How its last attempt ended.
        how: String,
    },
    /// The job says that it is done, and what it left cannot be read.
    Unreadable {
        /// What is wrong.
        what: String,
    },
    /// A checkpoint stood under its final name that does not prove itself.
    BrokenCheckpoint {
        /// The attempt after which it was seen.
        attempt: u32,
        /// Its name.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// An attempt that was told to stop ended as none should.
    WrongEnding {
        /// The attempt.
        attempt: u32,
        /// How it ended.
        how: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Presence { path, what } => write!(f, "output `{path}`: {what}"),
            Self::File { path, offset, here, undisturbed } => {
                write!(f, "output `{path}` differs from byte {offset} on ({here} bytes, undisturbed {undisturbed})")
            }
            Self::Step { here, undisturbed } => {
                write!(f, "the final checkpoint is of step {here}, undisturbed of step {undisturbed}")
            }
            Self::Sections { here, undisturbed } => write!(
                f,
                "the final state has the sections [{}], undisturbed [{}]",
                here.join(", "),
                undisturbed.join(", ")
            ),
            Self::Section { name, offset, here, undisturbed } => write!(
                f,
                "final state section `{name}` differs from byte {offset} on ({here} bytes, undisturbed {undisturbed})"
            ),
            Self::Metrics { offset } => write!(f, "the record of metrics differs from byte {offset} on"),
            Self::Message { here, undisturbed } => {
                write!(f, "the plugin ended with `{here}`, undisturbed with `{undisturbed}`")
            }
            Self::Random { here, undisturbed } => {
                write!(f, "the random generators stand at {here}, undisturbed at {undisturbed}")
            }
            Self::GaveUp { how } => write!(f, "the job did not come to its end: {how}"),
            Self::Unreadable { what } => write!(f, "the job is done, but what it left cannot be read: {what}"),
            Self::BrokenCheckpoint { attempt, file, what } => {
                write!(f, "after attempt {attempt}, `{file}` stood under its final name and is not usable: {what}")
            }
            Self::WrongEnding { attempt, how } => {
                write!(f, "attempt {attempt} was told to stop and ended with {how}, where 143 or 0 is right")
            }
        }
    }
}

impl Outcome {
    /// Reads what a job that is done left at `place`.
    pub fn read(place: &Place) -> Result<Self, String> {
        let task = browse::tasks(&place.task).map_err(|error| error.to_string())?.pop().ok_or("there is no task")?;
        let done = task.done.as_ref().ok_or("there is no done record")?;
        let output = place.task.join(&done.folder);
        let mut tree = BTreeMap::new();
        walk(&output, "", &mut tree).map_err(|error| format!("cannot read `{}`: {error}", output.display()))?;
        let metrics = done.metrics.as_ref().map(|metrics| place.task.join(&metrics.path));
        let metrics = match metrics {
            Some(path) => {
                Some((hash_file(&path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?, path))
            }
            None => None,
        };
        let newest = task.checkpoints.iter().find(|listed| !listed.set_aside && !listed.older_lineage);
        let path = newest.ok_or("there is no checkpoint")?.path.clone();
        let broken = |error: &dyn fmt::Display| format!("`{}`: {error}", path.display());
        let metadata = browse::show(&path).map_err(|error| broken(&error))?.metadata;
        let mut sections = Vec::new();
        on_checkpoint(&path, |reader| {
            for (index, info) in reader.sections().iter().enumerate() {
                let bytes = reader.read_section(index)?;
                let (len, hash) = (bytes.len() as u64, blake3::hash(&bytes));
                sections.push(Section { kind: info.kind, name: info.name.clone(), len, hash });
            }
            Ok(())
        })?;
        let Metadata { next_step, random, finished, .. } = metadata;
        let message = finished.unwrap_or_default();
        Ok(Self { output, tree, metrics, checkpoint: path, step: next_step, random, message, sections })
    }

    /// How this one differs from the undisturbed one; nothing means bit for bit the same.
    #[must_use]
    pub fn differences(&self, undisturbed: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        self.compare_state(undisturbed, &mut found);
        self.compare_outputs(undisturbed, &mut found);
        found.truncate(SHOWN);
        found
    }

    fn compare_state(&self, undisturbed: &Self, found: &mut Vec<Difference>) {
        if self.step != undisturbed.step {
            found.push(Difference::Step { here: self.step, undisturbed: undisturbed.step });
        }
        if self.random != undisturbed.random {
            let (here, undisturbed) = (self.random.to_string(), undisturbed.random.to_string());
            found.push(Difference::Random { here, undisturbed });
        }
        let names = |outcome: &Self| -> Vec<String> {
            outcome.sections.iter().map(|section| format!("{:?}:{}", section.kind, section.name)).collect()
        };
        if names(self) != names(undisturbed) {
            found.push(Difference::Sections { here: names(self), undisturbed: names(undisturbed) });
            return;
        }
        for (index, (here, there)) in self.sections.iter().zip(&undisturbed.sections).enumerate() {
            if here.hash != there.hash {
                found.push(Difference::Section {
                    name: here.name.clone(),
                    offset: self.section_offset(undisturbed, index),
                    here: here.len,
                    undisturbed: there.len,
                });
            }
        }
    }

    /// The first byte at which a section differs; both are read again.
    fn section_offset(&self, undisturbed: &Self, index: usize) -> u64 {
        let bytes = |outcome: &Self| on_checkpoint(&outcome.checkpoint, |reader| reader.read_section(index));
        let (here, there) = (bytes(self).unwrap_or_default(), bytes(undisturbed).unwrap_or_default());
        here.iter().zip(&there).take_while(|(here, there)| here == there).count() as u64
    }

    fn compare_outputs(&self, undisturbed: &Self, found: &mut Vec<Difference>) {
        match (&self.metrics, &undisturbed.metrics) {
            (Some((here, _)), Some((there, _))) if here == there => {}
            (None, None) => {}
            (Some((_, here)), Some((_, there))) => found.push(Difference::Metrics { offset: file_offset(here, there) }),
            _ => found.push(Difference::Metrics { offset: 0 }),
        }
        if self.message != undisturbed.message {
            let (here, undisturbed) = (self.message.clone(), undisturbed.message.clone());
            found.push(Difference::Message { here, undisturbed });
        }
        let paths: std::collections::BTreeSet<&String> = self.tree.keys().chain(undisturbed.tree.keys()).collect();
        for path in paths {
            let presence = |what: &str| Difference::Presence { path: path.clone(), what: what.to_owned() };
            match (self.tree.get(path), undisturbed.tree.get(path)) {
                (None, _) => found.push(presence("missing; the undisturbed run has it")),
                (_, None) => found.push(presence("the undisturbed run does not have it")),
                (Some(here), Some(there)) if here == there => {}
                (Some(Leaf::File { len, .. }), Some(Leaf::File { len: other, .. })) => {
                    let offset = file_offset(&self.output.join(path), &undisturbed.output.join(path));
                    found.push(Difference::File { path: path.clone(), offset, here: *len, undisturbed: *other });
                }
                _ => found.push(presence("of another kind than in the undisturbed run")),
            }
        }
    }
}

fn on_checkpoint<T>(path: &Path, look: impl FnOnce(&Reader<'_>) -> Result<T, FormatError>) -> Result<T, String> {
    let fault = |error: &dyn fmt::Display| format!("`{}`: {error}", path.display());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(fault(&"it is no file")) };
    let file = Disk::new(folder).open(Path::new(name)).map_err(|error| fault(&error))?;
    let reader = Reader::open(&*file).map_err(|error| fault(&error))?;
    look(&reader).map_err(|error| fault(&error))
}

fn hash_file(path: &Path) -> io::Result<Leaf> {
    let mut hasher = blake3::Hasher::new();
    let len = io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(Leaf::File { len, hash: hasher.finalize() })
}

fn walk(folder: &Path, below: &str, tree: &mut BTreeMap<String, Leaf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        let leaf = if kind.is_dir() {
            walk(&entry.path(), &path, tree)?;
            Leaf::Folder
        } else if kind.is_file() {
            hash_file(&entry.path())?
        } else {
            Leaf::Other
        };
        tree.insert(path, leaf);
    }
    Ok(())
}

/// The first byte at which two files differ, as far as both can be read.
fn file_offset(here: &Path, there: &Path) -> u64 {
    let (Ok(here), Ok(there)) = (File::open(here), File::open(there)) else { return 0 };
    let (here, there) = (io::BufReader::new(here), io::BufReader::new(there));
    let same = here.bytes().zip(there.bytes()).take_while(|pair| matches!(pair, (Ok(a), Ok(b)) if a == b));
    same.count() as u64
}
