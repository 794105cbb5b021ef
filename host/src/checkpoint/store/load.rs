//! Decide first, move later: which checkpoint an attempt goes on from.
//!
//! | what is found | outcome |
//! |---|---|
//! | no candidate | start at step 0 |
//! | damaged candidates of step 0 alone | start at step 0: they hold no work, and are set aside afterwards |
//! | a candidate that proves itself | that one; newer ones that don't are set aside afterwards |
//! | a link, a folder or a pipe of a candidate's name | as if it were damaged, but unmoved: somebody may have moved the file |
//! | candidates, none of which proves itself | refused: the next attempt comes to the same answer |
//! | an intact file of a newer format | refused: it is never passed over as damaged |
//! | reading fails | try again later; a single file that failed so in three attempts is passed over, unmoved |
//! | a candidate that is gone when it is opened | look again: the attempt before may still be saving, and prune; then try again later |

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{Begun, History, Session, StoreError};
use crate::checkpoint::format::{FormatError, Reader, SectionKind};
use crate::checkpoint::metadata::Metadata;
use crate::checkpoint::names::{FileName, Tenure};
use crate::checkpoint::outputs::{self, Segments};
use crate::checkpoint::volume::is_no_file;

/// An attempt in which a file could not be read for the third time passes it over.
const READ_ATTEMPTS: usize = 3;

/// Reasons beyond these are counted: whoever reads them has seen what there is to see.
const MOST_REASONS: usize = 6;

/// A folder whose files vanish between listing and opening is looked at so often before the attempt gives up.
const LOOKS: u32 = 3;

/// A checkpoint that proved itself, with its content.
#[derive(Debug)]
pub struct Loaded {
    /// Its file.
    pub origin: Origin,
    /// What it says about itself.
    pub metadata: Metadata,
    /// The state.
    pub sections: Vec<Section>,
}

/// Where a checkpoint lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The task's folder, relative to the volume. Another count's, where that change was accepted.
    pub folder: PathBuf,
    /// The file's name.
    pub name: String,
}

/// One section of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it holds.
    pub kind: SectionKind,
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A checkpoint that does not prove itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The file's name.
    pub name: String,
    /// What is wrong with it.
    pub what: String,
}

/// Why it could not be decided which checkpoint to go on from, or why none may be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There are checkpoints, and none can be used.
    #[error("none of the {} checkpoints in `{}` can be used, and starting over would lose the work: {}", damaged.len() + passed_over.len() + set_aside, folder.display(), reasons(damaged, passed_over, *set_aside))]
    NoneUsable {
        /// The task's folder.
        folder: PathBuf,
        /// Those that don't prove themselves.
        damaged: Vec<Damaged>,
        /// Those that are whole, but trap whoever goes on from them.
        passed_over: Vec<String>,
        /// How many earlier attempts set aside.
        set_aside: usize,
    },
    /// A newer program wrote it.
    #[error(
        "checkpoint `{name}` has format {version}; this program reads up to format {}",
        crate::checkpoint::format::FORMAT_VERSION
    )]
    Newer {
        /// The file's name.
        name: String,
        /// Its format.
        version: u32,
    },
    /// It is whole, but belongs to other work.
    #[error("checkpoint `{name}` belongs to {found}, not to {wanted}")]
    Foreign {
        /// The file's name.
        name: String,
        /// Whose it is.
        found: String,
        /// Whose folder it lies in.
        wanted: String,
    },
    /// The volume failed.
    #[error("cannot read checkpoint `{name}`: {cause}")]
    Unreadable {
        /// The file's name.
        name: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// It was listed and is gone: whoever removed it has published a newer one, which the listing does not show yet.
    #[error("checkpoint `{name}` was removed before it could be read, and nothing newer is seen yet")]
    Vanished {
        /// The file's name.
        name: String,
    },
    /// The volume could not be looked at.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn reasons(damaged: &[Damaged], passed_over: &[String], set_aside: usize) -> String {
    let damaged = damaged.iter().map(|bad| format!("{} is damaged ({})", bad.name, bad.what));
    let killing = passed_over
        .iter()
        .map(|name| format!("{name} was passed over, since earlier attempts could not read it or go on from it"));
    let aside = (set_aside > 0).then(|| format!("{set_aside} were set aside as damaged by earlier attempts"));
    let mut all: Vec<_> = damaged.chain(killing).chain(aside).collect();
    let more = all.len().saturating_sub(MOST_REASONS);
    if more > 1 {
        all.truncate(MOST_REASONS);
        all.push(format!("and {more} more"));
    }
    all.join("; ")
}

/// What was found, and what was passed over on the way.
#[derive(Debug, Default)]
pub struct Decision {
    /// The checkpoint to go on from; none to start at step 0.
    pub loaded: Option<Loaded>,
    /// Newer ones that don't prove themselves, to be set aside.
    pub damaged: Vec<Damaged>,
    /// Newer ones that are no files, and stay where they are: a link may be all that tells where the file went.
    pub strange: Vec<Damaged>,
    /// Newer ones that were passed over and stay where they are.
    pub passed_over: Vec<String>,
}

enum Proof {
    Holds(Box<Loaded>),
    Damaged(String),
    NoFile(String),
    /// Of another lineage.
    NotOurs,
    /// Listed, and not there.
    Gone,
}

impl Session {
    /// Finds the newest checkpoint of the lineage that proves itself. Writes nothing.
    ///
    /// `unreadable` receives the names of files that could not be read, for the attempt's record.
    pub fn load(
        &mut self,
        history: &History,
        fingerprint: &str,
        unreadable: &mut BTreeSet<String>,
    ) -> Result<Decision, LoadError> {
        let mut gone = None;
        let mut looks = 0;
        loop {
            looks += 1;
            let mut gone_now = None;
            let decided = self.decide(history, fingerprint, unreadable, &mut gone_now);
            let settled = gone_now.is_none();
            gone = gone_now.or(gone);
            if settled || looks == LOOKS {
                return match (decided, gone) {
                    // There was something, so this is not "nothing there".
                    (Ok(Decision { loaded: None, .. }) | Err(LoadError::NoneUsable { .. }), Some(name)) => {
                        Err(LoadError::Vanished { name })
                    }
                    (decided, _) => {
                        self.pass_over(decided.as_ref().map_or(&[], |decision| &decision.passed_over));
                        decided
                    }
                };
            }
            self.look_again()?;
        }
    }

    /// Decides by one look. `gone` receives the name of a checkpoint that was listed and is not there.
    fn decide(
        &self,
        history: &History,
        fingerprint: &str,
        unreadable: &mut BTreeSet<String>,
        gone: &mut Option<String>,
    ) -> Result<Decision, LoadError> {
        let mut decision = Decision::default();
        for origin in self.candidates() {
            if history.kills(&origin.name, fingerprint) {
                decision.passed_over.push(origin.name);
                continue;
            }
            match self.prove(&origin) {
                Ok(Proof::Holds(loaded)) => {
                    decision.loaded = Some(*loaded);
                    return Ok(decision);
                }
                Ok(Proof::Damaged(what)) => decision.damaged.push(Damaged { name: origin.name, what }),
                Ok(Proof::NoFile(what)) => decision.strange.push(Damaged { name: origin.name, what }),
                Ok(Proof::NotOurs) => {}
                // Nobody prunes what a lineage was begun from, and nothing can be newer.
                Ok(Proof::Gone) if self.is_base(&origin.name) => {
                    decision.damaged.push(Damaged { name: origin.name, what: "it is not there any more".into() });
                }
                Ok(Proof::Gone) => *gone = Some(origin.name),
                Err(LoadError::Unreadable { name, .. }) if history.unreadable_before(&name) + 1 >= READ_ATTEMPTS => {
                    unreadable.insert(name.clone());
                    decision.passed_over.push(name);
                }
                Err(error) => {
                    if let LoadError::Unreadable { name, .. } = &error {
                        unreadable.insert(name.clone());
                    }
                    return Err(error);
                }
            }
        }
        let survey = self.survey();
        let lost = |name: &&FileName| survey.may_belong(name.tenure(), self.lineage()) && holds_work(&name.to_string());
        let set_aside = survey.set_aside.iter().filter(lost).count();
        let holds_work = decision.damaged.iter().chain(&decision.strange).any(|bad| holds_work(&bad.name));
        if !holds_work && decision.passed_over.is_empty() && set_aside == 0 {
            return Ok(decision);
        }
        let Decision { mut damaged, strange, passed_over, .. } = decision;
        damaged.extend(strange);
        let folder = self.store().volume().root().join(self.store().folder());
        Err(LoadError::NoneUsable { folder, damaged, passed_over, set_aside })
    }

    /// The newest checkpoint's name and what it says about itself, for a refusal that needs to know no more. Writes nothing,
    /// and decides nothing: what cannot be read is left to [`load`](Self::load).
    #[must_use]
    pub fn peek(&self) -> Option<&(String, Metadata)> {
        self.peeked().get_or_init(|| self.peek_now()).as_ref()
    }

    fn peek_now(&self) -> Option<(String, Metadata)> {
        let newest = self.candidates().into_iter().next()?;
        let file = self.store().volume().open(&newest.folder.join(&newest.name)).ok()?;
        let metadata = parse(Reader::open(&*file).ok()?.metadata()).ok()?;
        matches!(self.belongs(&newest, &metadata), Belongs::Yes).then_some((newest.name, metadata))
    }

    /// The checkpoints of the lineage, newest first; then what the lineage was begun from.
    fn candidates(&self) -> Vec<Origin> {
        let survey = self.survey();
        let mut own: Vec<(Tenure, u64)> =
            survey.checkpoints().filter(|(tenure, _)| survey.may_belong(*tenure, self.lineage())).collect();
        own.sort_unstable();
        let folder = self.store().folder();
        let named = |name: String| Origin { folder: folder.clone(), name };
        let own = own.into_iter().rev().map(|(tenure, step)| named(FileName::Checkpoint(tenure, step).to_string()));
        let base = match &self.claim().begun {
            Begun::From { checkpoint, .. } => Some(named(checkpoint.clone())),
            _ => None,
        };
        own.chain(base).chain(self.adopted().iter().cloned()).collect()
    }

    /// Whether this is what `--from` named.
    fn is_base(&self, name: &str) -> bool {
        matches!(&self.claim().begun, Begun::From { checkpoint, .. } if checkpoint == name)
    }

    fn prove(&self, origin: &Origin) -> Result<Proof, LoadError> {
        let path = origin.folder.join(&origin.name);
        let unreadable = |cause| LoadError::Unreadable { name: origin.name.clone(), cause };
        let judged = |error: FormatError| match error {
            FormatError::Damaged { what, offset } => Ok(Proof::Damaged(format!("{what}, at byte {offset}"))),
            FormatError::Newer { version } => Err(LoadError::Newer { name: origin.name.clone(), version }),
            FormatError::Io(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Proof::Damaged("it ends too early".into()))
            }
            FormatError::Io(cause) => Err(unreadable(cause)),
        };

        let file = match self.store().volume().open(&path) {
            Ok(file) => file,
            // A listing may be stale, and the attempt before may still prune.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Proof::Gone),
            Err(error) if is_no_file(&error) => return Ok(Proof::NoFile(error.to_string())),
            Err(error) => return Err(unreadable(error)),
        };
        let (metadata, sections) = match read(&*file) {
            Ok(read) => read,
            Err(error) => return judged(error),
        };
        match self.belongs(origin, &metadata) {
            Belongs::Yes => {}
            Belongs::OtherLineage => return Ok(Proof::NotOurs),
            Belongs::NameDiffers(what) => return Ok(Proof::Damaged(what)),
            Belongs::OtherWork { found, wanted } => {
                return Err(LoadError::Foreign { name: origin.name.clone(), found, wanted });
            }
        }
        if let Err(what) = metadata.outputs.check() {
            return Ok(Proof::Damaged(what));
        }
        let mut segments = Segments::new(&**self.store().volume(), origin.folder.clone());
        if let Err(error) = outputs::verify(&metadata.outputs, &mut segments) {
            return judged(error);
        }
        Ok(Proof::Holds(Box::new(Loaded { origin: origin.clone(), metadata, sections })))
    }

    fn belongs(&self, origin: &Origin, metadata: &Metadata) -> Belongs {
        let named = FileName::Checkpoint(metadata.tenure, metadata.next_step).to_string();
        if named != origin.name {
            return Belongs::NameDiffers(format!("it says that it is {named}"));
        }
        let own_folder = origin.folder == self.store().folder();
        let task = self.store().task();
        let job = self.store().job_folder();
        let same_job = Path::new(&metadata.job) == job && metadata.task_index == task.index;
        if !same_job || (own_folder && metadata.task_count != task.count) {
            let say = |job: &str, index, count| format!("job `{job}`, task {index} of {count}");
            return Belongs::OtherWork {
                found: say(&metadata.job, metadata.task_index, metadata.task_count),
                wanted: say(&job.to_string_lossy(), task.index, task.count),
            };
        }
        // The name of what a lineage was begun from, or of an adopted one, is of another lineage by intent; for the rest the
        // claim may be lost, and the file itself says where it belongs. Where all claims are lost, everything belongs.
        let survey = self.survey();
        let is_base = !survey.may_belong(metadata.tenure, self.lineage()) || !own_folder;
        if is_base || metadata.lineage == self.lineage() || survey.newest().is_none() {
            Belongs::Yes
        } else {
            Belongs::OtherLineage
        }
    }
}

/// Whether starting over would lose what a checkpoint of this name holds.
fn holds_work(name: &str) -> bool {
    !matches!(FileName::parse(name), Some(FileName::Checkpoint(_, 0)))
}

enum Belongs {
    Yes,
    OtherLineage,
    NameDiffers(String),
    OtherWork { found: String, wanted: String },
}

/// A checkpoint's metadata and all of its sections, every byte of them checked.
pub(crate) fn read(file: &dyn crate::checkpoint::format::ReadAt) -> Result<(Metadata, Vec<Section>), FormatError> {
    let reader = Reader::open(file)?;
    let metadata = parse(reader.metadata())?;
    let mut sections = Vec::with_capacity(reader.sections().len());
    for (index, info) in reader.sections().iter().enumerate() {
        sections.push(Section { kind: info.kind, name: info.name.clone(), bytes: reader.read_section(index)? });
    }
    Ok((metadata, sections))
}

/// Understands a checkpoint's metadata.
pub(crate) fn parse(metadata: &[u8]) -> Result<Metadata, FormatError> {
    serde_json::from_slice(metadata)
        .map_err(|error| FormatError::Damaged { what: format!("metadata: {error}"), offset: 0 })
}
