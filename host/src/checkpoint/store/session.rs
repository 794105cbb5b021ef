//! One attempt's hold on its task: claim, look around, save.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io::{self, Seek, SeekFrom, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::SpooledTempFile;

use super::survey::{named, seen};
use super::{Begun, Choice, Claim, DoneRecord, Origin, PLUGINS, Store, StoreError, Survey, Wish, sealed};
use crate::checkpoint::format::{self, Compression, FormatError, Reader, SectionSource};
use crate::checkpoint::metadata::Metadata;
use crate::checkpoint::names::{FileName, TaskFolder, Tenure};
use crate::checkpoint::outputs::{self, Segments};
use crate::checkpoint::sabotage::{self, Rule};
use crate::checkpoint::volume::{Operation, VolumeError, publish, publish_new, replace};

/// What an attempt says when it claims its task.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// What the command asks for.
    pub wish: Wish,
    /// The engine's id of the execution.
    pub execution: Option<String>,
    /// The engine's name.
    pub engine: String,
    /// The machine's name.
    pub machine: String,
    /// Go on from the folder of another task count, where this one has no checkpoint.
    pub adopt: Option<TaskFolder>,
    /// How many checkpoints to keep.
    pub keep: NonZeroU32,
}

/// One attempt's hold on its task.
pub struct Session {
    store: Store,
    survey: Survey,
    claim: Claim,
    adopted: Vec<Origin>,
    keep: NonZeroU32,
    /// Checkpoints that cannot be gone on from: `--keep` does not count them.
    passed_over: BTreeSet<String>,
    /// What the newest checkpoint was found to say, once that was asked.
    peeked: OnceCell<Option<(String, Metadata)>>,
}

/// Whether the attempt may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No newer attempt is known.
    Alone,
    /// A newer attempt is at work: this one must end.
    Fenced(Tenure),
    /// An older attempt had a higher claim, which this one's listing had not shown; it now holds a claim above that one.
    Reclaimed(Tenure),
}

/// A checkpoint to be saved.
pub struct Draft<S> {
    /// What it says about itself; lineage and tenure are filled in.
    pub metadata: Metadata,
    /// The state.
    pub sections: Vec<S>,
    /// Output bytes that the metadata's manifest counts and the volume does not have yet.
    pub segment: Option<(FileName, SpooledTempFile)>,
}

/// Where a save is, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavePhase {
    /// Writing, and reading back.
    Save,
    /// Removing what is no longer needed.
    Prune,
}

/// A checkpoint that was saved, read back and found whole.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Its file's name.
    pub name: String,
    /// The next step to run from it.
    pub next_step: u64,
    /// The file's size.
    pub file_bytes: u64,
    /// The state's size before compression.
    pub raw_bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// What could not be removed afterwards: a warning, not a failure.
    pub warnings: Vec<String>,
}

/// Why a checkpoint could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// A newer attempt is at work.
    #[error("a newer attempt of this task is at work ({0})")]
    Fenced(Tenure),
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The volume could not be looked at.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state did not come.
    #[error("the state could not be had: {0}")]
    State(String),
    /// What was read back is not what was written.
    #[error("checkpoint `{name}` was written, but what was read back is not whole: {cause}")]
    ReadBack {
        /// The file's name.
        name: String,
        /// What is wrong.
        #[source]
        cause: FormatError,
    },
}

impl Store {
    /// Which lineage an attempt belongs to, and whether that is done.
    pub fn choose(
        &self,
        survey: &Survey,
        wish: Wish,
        execution: Option<&str>,
    ) -> Result<(Choice, Option<DoneRecord>), StoreError> {
        let done = match survey.lineage() {
            Some(lineage) => self.done(survey, lineage)?,
            None => None,
        };
        let by_this_execution = |done: &DoneRecord| match survey.claims.get(&done.tenure) {
            Some(Some(claim)) => execution.is_some() && claim.execution.as_deref() == execution,
            _ => false,
        };
        let done_before = done.as_ref().is_some_and(|done| !by_this_execution(done));
        let choice = super::claim::choose(survey.newest(), done_before, wish, execution);
        let done = done.filter(|_| choice != Choice::Begin);
        Ok((choice, done))
    }

    /// The hold that an attempt would have on its task. Nothing is written before [`Session::begin`].
    pub fn prepare(&self, survey: Survey, choice: Choice, request: &ClaimRequest) -> Result<Session, ClaimError> {
        let (lineage, begun, begun_in) = match (choice, request.wish) {
            (Choice::GoOn(newest), _) => (Some(newest.lineage), newest.begun, newest.begun_in),
            (Choice::Begin, Wish::Fresh) => (None, Begun::Fresh, request.execution.clone()),
            (Choice::Begin, Wish::From(step)) => {
                let checkpoint = self.at_step(&survey, step)?;
                (None, Begun::From { step, checkpoint }, request.execution.clone())
            }
            // All claims are lost, but there are checkpoints: they are the lineage.
            (Choice::Begin, _) if survey.newest().is_none() => {
                (survey.lineage(), Begun::First, request.execution.clone())
            }
            (Choice::Begin, _) => (None, Begun::Restart, request.execution.clone()),
        };
        let adopted = match (request.adopt, &begun) {
            (Some(other), Begun::First) => self.newest_of(other)?,
            _ => Vec::new(),
        };
        let epoch = match survey.last() {
            None => 1,
            Some(last) => {
                let next = last.tenure().epoch.checked_add(1);
                next.ok_or_else(|| ClaimError::NoEpochLeft { folder: self.folder(), name: last.to_string() })?
            }
        };
        let tenure =
            Tenure::begin(epoch).map_err(StoreError::at(&*self.volume, "begin an epoch in", &self.folder()))?;
        let claim = Claim {
            tenure,
            lineage: lineage.unwrap_or(tenure),
            begun,
            begun_in,
            execution: request.execution.clone(),
            engine: request.engine.clone(),
            machine: request.machine.clone(),
            process: std::process::id(),
            since_us: now_us(),
            host_version: env!("CARGO_PKG_VERSION").into(),
        };
        Ok(Session {
            store: self.clone(),
            survey,
            claim,
            adopted,
            keep: request.keep,
            passed_over: BTreeSet::new(),
            peeked: OnceCell::new(),
        })
    }

    fn write_claim(&self, claim: &Claim) -> Result<(), VolumeError> {
        let path = self.path(&FileName::Claim(claim.tenure));
        let bytes =
            sealed::seal(claim).map_err(|cause| VolumeError::new(&*self.volume, Operation::Write, &path, cause))?;
        publish_new(&*self.volume, &path, |out| out.write_all(&bytes))
    }

    fn at_step(&self, survey: &Survey, step: u64) -> Result<String, ClaimError> {
        let lineage = survey.lineage();
        let mut there: Vec<(Tenure, u64)> = survey
            .checkpoints()
            .filter(|(tenure, _)| lineage.is_some_and(|lineage| survey.may_belong(*tenure, lineage)))
            .collect();
        there.sort_unstable();
        match there.iter().rev().find(|(_, at)| *at == step) {
            Some((tenure, at)) => Ok(FileName::Checkpoint(*tenure, *at).to_string()),
            None => {
                let mut steps: Vec<u64> = there.iter().map(|(_, step)| *step).collect();
                steps.sort_unstable();
                steps.dedup();
                Err(ClaimError::NoSuchStep { step, steps })
            }
        }
    }

    /// The checkpoints of the newest lineage of another count's folder, newest first.
    fn newest_of(&self, other: TaskFolder) -> Result<Vec<Origin>, StoreError> {
        let other = Store { task: other, ..self.clone() };
        let survey = other.survey()?;
        let Some(lineage) = survey.lineage() else { return Ok(Vec::new()) };
        let mut there: Vec<_> =
            survey.checkpoints().filter(|(tenure, _)| survey.may_belong(*tenure, lineage)).collect();
        there.sort_unstable();
        let named =
            |(tenure, step)| Origin { folder: other.folder(), name: FileName::Checkpoint(tenure, step).to_string() };
        Ok(there.into_iter().rev().map(named).collect())
    }
}

/// Why a task could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// `--from` names a step that no checkpoint has.
    #[error("there is no checkpoint of step {step}; {}", if steps.is_empty() { "there are none at all".to_owned() } else { format!("there are those of steps {steps:?}") })]
    NoSuchStep {
        /// The step asked for.
        step: u64,
        /// The steps there are.
        steps: Vec<u64>,
    },
    /// Something carries the last epoch number that there is.
    #[error("`{}` has the last epoch number that there is, so no attempt can come after it", folder.join(name).display())]
    NoEpochLeft {
        /// The task's folder.
        folder: PathBuf,
        /// What has that number.
        name: String,
    },
    /// The volume could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The claim could not be written.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl Session {
    /// Claims the task. Until it is decided what to load, the claim is all that is written.
    pub fn begin(&self) -> Result<(), ClaimError> {
        self.store.leave_trace()?;
        match self.store.write_claim(&self.claim) {
            // Killed attempts may have filled the disk with what they were saving. Were it to stay until the claim is written,
            // no attempt would ever come so far. Should one of them live, its save fails, which it will not miss: it is fenced.
            Err(error) if error.cause.kind() == io::ErrorKind::StorageFull && self.remove_old_stages().removed > 0 => {
                Ok(self.store.write_claim(&self.claim)?)
            }
            written => Ok(written?),
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What the attempt saw when it claimed the task, with the claims that it saw since.
    #[must_use]
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The attempt's claim.
    #[must_use]
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Under which the attempt writes.
    #[must_use]
    pub fn tenure(&self) -> Tenure {
        self.claim.tenure
    }

    /// The lineage it goes on in.
    #[must_use]
    pub fn lineage(&self) -> Tenure {
        self.claim.lineage
    }

    pub(super) fn peeked(&self) -> &OnceCell<Option<(String, Metadata)>> {
        &self.peeked
    }

    pub(super) fn adopted(&self) -> &[Origin] {
        &self.adopted
    }

    pub(super) fn pass_over(&mut self, names: &[String]) {
        self.passed_over = names.iter().cloned().collect();
    }

    pub(super) fn is_passed_over(&self, name: &str) -> bool {
        self.passed_over.contains(name)
    }

    pub(super) fn keep(&self) -> usize {
        usize::try_from(self.keep.get()).unwrap_or(usize::MAX)
    }

    /// Looks for claims that others made since. This only ends a zombie early: what it publishes unseen is never chosen over
    /// a higher epoch.
    pub fn look(&mut self) -> Result<Standing, StoreError> {
        let entries = self.store.list(&self.store.folder())?.unwrap_or_default();
        let own = self.tenure();
        let known = |tenure: &Tenure| matches!(self.survey.claims.get(tenure), Some(Some(_)));
        let claims = entries.iter().filter_map(|(name, kind)| match named(name, *kind) {
            Some(FileName::Claim(tenure)) => Some(tenure),
            _ => None,
        });
        let new: Vec<Tenure> = claims.filter(|tenure| *tenure > own && !known(tenure)).collect();
        let mut overtaken = false;
        for tenure in new {
            let Some(other) = self.store.read_claim(tenure)? else { continue };
            // An older claim that is higher than ours was hidden from us by a stale listing. In another lineage it was begun
            // on purpose, and ours has to give way.
            if other.since_us > self.claim.since_us || other.lineage != self.claim.lineage {
                return Ok(Standing::Fenced(tenure));
            }
            self.survey.claims.insert(tenure, Some(other));
            overtaken = true;
        }
        if !overtaken {
            return Ok(Standing::Alone);
        }
        self.claim_above()
    }

    /// Lists the task's folder anew. Claims stay as they were seen first: those that came since are for [`look`](Self::look).
    pub fn look_again(&mut self) -> Result<(), StoreError> {
        let entries = self.store.list(&self.store.folder())?.unwrap_or_default();
        self.peeked = OnceCell::new();
        self.survey.names = entries.iter().filter_map(|(name, kind)| seen(name, *kind)).collect();
        Ok(())
    }

    fn claim_above(&mut self) -> Result<Standing, StoreError> {
        let folder = self.store.folder();
        let highest = self.survey.claims.keys().map(|tenure| tenure.epoch).max().unwrap_or(self.tenure().epoch);
        let volume = Arc::clone(&self.store.volume);
        let failed = |cause| StoreError::at(&*volume, "claim", &folder)(cause);
        let tenure = Tenure::begin(highest.saturating_add(1)).map_err(failed)?;
        let claim = Claim { tenure, since_us: now_us(), ..self.claim.clone() };
        self.store.write_claim(&claim).map_err(|error| failed(error.cause))?;
        self.survey.claims.insert(self.claim.tenure, Some(self.claim.clone()));
        self.claim = claim;
        Ok(Standing::Reclaimed(tenure))
    }

    fn must_stand(&mut self) -> Result<(), SaveError> {
        match self.look()? {
            Standing::Fenced(by) => Err(SaveError::Fenced(by)),
            Standing::Alone | Standing::Reclaimed(_) => Ok(()),
        }
    }

    /// Publishes a checkpoint: the outputs that it counts, then the checkpoint, then both are read back, and only then is
    /// anything older removed. `phase` hears where it is.
    pub fn save<S: SectionSource>(&mut self, draft: Draft<S>, phase: &dyn Fn(SavePhase)) -> Result<Saved, SaveError> {
        let began = Instant::now();
        phase(SavePhase::Save);
        self.must_stand()?;
        let Draft { mut metadata, sections, segment } = draft;
        metadata.tenure = self.tenure();
        metadata.lineage = self.lineage();

        // The rule: outputs are durable before the checkpoint that counts them.
        let segment_name = segment.as_ref().map(|(name, _)| name.to_string());
        let late = if sabotage::is_off(Rule::OutputsFirst) {
            segment
        } else {
            self.publish_segment(segment).inspect_err(|_| self.drop_segment(&metadata, segment_name.as_deref()))?
        };
        let (name, written) = self
            .publish_checkpoint(&metadata, &sections)
            .inspect_err(|_| self.drop_segment(&metadata, segment_name.as_deref()))?;

        // The rule: nothing older is removed before the new file was read back.
        let mut warnings = Vec::new();
        if sabotage::is_off(Rule::VerifyBeforePrune) {
            warnings.extend(self.prune());
        }
        if late.is_none() {
            self.read_back(&name, &metadata, segment_name.as_deref())
                .inspect_err(|_| self.drop_segment(&metadata, segment_name.as_deref()))?;
        }
        phase(SavePhase::Prune);
        warnings.extend(self.prune());
        self.publish_segment(late)?;
        Ok(Saved {
            name: name.to_string(),
            next_step: metadata.next_step,
            file_bytes: written.file_bytes,
            raw_bytes: written.raw_bytes,
            took: began.elapsed(),
            warnings,
        })
    }

    /// Answers what it was not given to publish: always none.
    fn publish_segment(
        &self,
        segment: Option<(FileName, SpooledTempFile)>,
    ) -> Result<Option<(FileName, SpooledTempFile)>, VolumeError> {
        if let Some((name, mut bytes)) = segment {
            let (stage, path) = (self.store.path(&name.stage()), self.store.path(&name));
            let volume = &*self.store.volume;
            let needed =
                length(&mut bytes).map_err(|cause| VolumeError::new(volume, Operation::Write, &path, cause))?;
            publish(volume, &stage, &path, |out| io::copy(&mut bytes, out))
                .map_err(|error| error.with_needed(needed))?;
        }
        Ok(None)
    }

    /// Removes the segment of a save that failed: its bytes are published anew with the next one, and on a volume that is nearly
    /// full, tries that leave something behind would take the room that they need. What a checkpoint counts stays.
    fn drop_segment(&self, metadata: &Metadata, segment: Option<&str>) {
        let checkpoint = self.store.path(&FileName::Checkpoint(metadata.tenure, metadata.next_step));
        if let (Some(segment), Ok(None)) = (segment, self.store.volume.look(&checkpoint)) {
            let _ = self.store.volume.remove_file(&self.store.folder().join(segment));
        }
    }

    fn publish_checkpoint<S: SectionSource>(
        &self,
        metadata: &Metadata,
        sections: &[S],
    ) -> Result<(FileName, format::Written), VolumeError> {
        let name = FileName::Checkpoint(metadata.tenure, metadata.next_step);
        let (stage, path) = (self.store.path(&name.stage()), self.store.path(&name));
        let text = serde_json::to_vec(metadata)
            .map_err(|error| VolumeError::new(&*self.store.volume, Operation::Write, &path, error.into()))?;
        let needed = sections.iter().map(S::bytes).sum::<u64>() + text.len() as u64;
        let published = publish(&*self.store.volume, &stage, &path, |out| {
            format::encode(out, sections, &text, Compression::default())
        });
        match published {
            Ok(written) => Ok((name, written)),
            Err(error) => {
                if error.operation == Operation::SyncDir {
                    // It has its final name, which the next try at this very step needs.
                    let _ = self.store.volume.remove_file(&path);
                }
                Err(error.with_needed(needed))
            }
        }
    }

    fn read_back(&self, name: &FileName, metadata: &Metadata, segment: Option<&str>) -> Result<(), SaveError> {
        let path = self.store.path(name);
        let check = || -> Result<(), FormatError> {
            let file = self.store.volume.open(&path).map_err(FormatError::Io)?;
            Reader::open(&*file)?.verify()?;
            let mut segments = Segments::new(&*self.store.volume, self.store.folder());
            segment.map_or(Ok(()), |segment| outputs::verify_segment(&metadata.outputs, segment, &mut segments))
        };
        check().map_err(|cause| {
            // It has a final name and is no good: whoever came next would have to find that out again.
            let _ = self.store.volume.remove_file(&path);
            SaveError::ReadBack { name: name.to_string(), cause }
        })
    }

    /// Keeps the component on the volume, by its digest, so that a later attempt can always go on with it.
    pub fn keep_plugin(&self, digest: &str, component: &[u8]) -> Result<(), VolumeError> {
        let folder = self.store.job.join(PLUGINS);
        let name = plugin_file(digest);
        let volume = &*self.store.volume;
        let there = volume
            .list(&folder)
            .map_err(|cause| VolumeError::new(volume, Operation::List, &folder, cause))?
            .unwrap_or_default();
        if there.iter().any(|entry| entry.name == name && entry.len == component.len() as u64) {
            return Ok(());
        }
        volume.make_dirs(&folder).map_err(|cause| VolumeError::new(volume, Operation::MakeDirs, &folder, cause))?;
        // In the task's folder, where stage files of dead attempts are looked for.
        let stage = self.store.path(&FileName::Stage(self.tenure(), "plugin".into()));
        let path = folder.join(&name);
        replace(volume, &stage, &path, |out: &mut dyn Write| out.write_all(component))
    }

    /// The component that was kept under this digest, which has yet to be compared with it; none if there is none.
    pub fn kept_plugin(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.store.job.join(PLUGINS).join(plugin_file(digest));
        match sealed::read_whole(&*self.store.volume, &path, LARGEST_PLUGIN) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::at(&*self.store.volume, "read", &path)(error)),
        }
    }

    /// The volume, for those who read segments.
    #[must_use]
    pub fn volume(&self) -> Arc<dyn crate::checkpoint::volume::Volume> {
        Arc::clone(&self.store.volume)
    }
}

/// No component is larger.
const LARGEST_PLUGIN: u64 = 1 << 30;

fn plugin_file(digest: &str) -> String {
    format!("{}.wasm", digest.replace(':', "-"))
}

/// How many bytes the file has, which is at its beginning before and after.
fn length(file: &mut SpooledTempFile) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok(end)
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
