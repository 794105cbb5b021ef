//! How attempts went: the record that each attempt keeps of itself, and what later attempts conclude from them.
//!
//! Records carry no correctness: a missing or damaged one is only an attempt about which nothing is known. They decide when to
//! stop trying (a plugin that traps at the same step from two checkpoints, attempts without progress) and which checkpoint to
//! pass over (one that kills whoever loads it).

use std::collections::BTreeSet;
use std::io::Write;

use serde::{Deserialize, Serialize};

use super::{Store, sealed};
use crate::checkpoint::metadata::ArtifactFacts;
use crate::checkpoint::names::{FileName, Tenure};
use crate::checkpoint::volume::{Operation, VolumeError, replace};

/// What one attempt says of itself. Replaced, by its owner alone, as it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Under which the attempt writes.
    pub tenure: Tenure,
    /// The lineage that it goes on in.
    pub lineage: Tenure,
    /// How many attempts came before, by the engine's count or else by that of claims.
    pub attempt: u32,
    /// When it started (RFC 3339).
    pub started: String,
    /// When it last wrote this record (RFC 3339).
    pub heartbeat: String,
    /// A digest of all that a failure depends on: plugin, configuration, input, limits.
    pub fingerprint: String,
    /// The digest of the component it ran.
    pub plugin: String,
    /// Where a registry has that component; none if it came from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactFacts>,
    /// What ran the kernels.
    pub device: String,
    /// The checkpoint it went on from; none from step 0.
    pub from: Option<String>,
    /// The first step it ran.
    pub first_step: u64,
    /// The next step after the last that it ran.
    pub next_step: u64,
    /// The next step of its newest verified checkpoint, its own or the one it came from; none before there is one.
    pub safe_step: Option<u64>,
    /// How saving went.
    pub saves: SaveFigures,
    /// Where the guest failed, if it did.
    pub failure: Option<Failure>,
    /// Checkpoints that could not be read for an error of the volume (as opposed to damage).
    pub unreadable: BTreeSet<String>,
    /// How it ended; none while it runs, or if it was killed.
    pub ended: Option<Ended>,
    /// Digests of components that it ran before `plugin`, or tried in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_plugins: Vec<String>,
    /// Where the device's time went, if a profile was asked for; written when the attempt ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<ProfileFigures>,
}

/// Operations of one kind in an attempt's profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFigures {
    /// A kernel's name; other operations stand in parentheses.
    pub what: String,
    /// How the device ran the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_as: Option<String>,
    /// How many.
    pub calls: u64,
    /// Blocks that were run.
    pub blocks: u64,
    /// Threads that were run.
    pub threads: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// From their calls to their ends.
    pub nanoseconds: u64,
}

impl AttemptRecord {
    /// The component that the attempt begins with, or begins again with.
    pub fn begins_under(&mut self, plugin: &str, artifact: Option<ArtifactFacts>, fingerprint: String) {
        plugin.clone_into(&mut self.plugin);
        self.artifact = artifact;
        self.fingerprint = fingerprint;
    }

    /// Another component took over.
    pub fn goes_on_under(&mut self, plugin: &str, artifact: Option<ArtifactFacts>, fingerprint: String) {
        let before = self.plugin.clone();
        if before != plugin {
            self.tried(&before);
        }
        self.begins_under(plugin, artifact, fingerprint);
    }

    /// A component that the attempt does not run, or no longer.
    pub fn tried(&mut self, plugin: &str) {
        if !self.other_plugins.iter().any(|known| known == plugin) {
            self.other_plugins.push(plugin.to_owned());
        }
    }
}

impl Store {
    /// Replaces an attempt's record of itself. One writer at a time.
    pub fn write_record(&self, record: &AttemptRecord) -> Result<(), VolumeError> {
        let name = FileName::Attempt(record.tenure);
        let (stage, path) = (self.path(&name.stage()), self.path(&name));
        let volume = &**self.volume();
        let bytes = sealed::seal(record).map_err(|cause| VolumeError::new(volume, Operation::Write, &path, cause))?;
        replace(volume, &stage, &path, |out: &mut dyn Write| out.write_all(&bytes))
    }
}

/// How saving went in one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveFigures {
    /// Checkpoints published and verified.
    pub done: u64,
    /// Saves that failed.
    pub failed: u64,
    /// Saves that were due while another was running.
    pub skipped: u64,
    /// Size of the newest checkpoint file in bytes.
    pub last_bytes: u64,
    /// Milliseconds from the frozen state to the verified file, for the newest checkpoint.
    pub last_ms: u64,
    /// Milliseconds that the guest waited for its state to be frozen, all saves together.
    pub waited_ms: u64,
}

/// Where the guest failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// In which call.
    pub call: Call,
    /// The step that it was about to run, or ran.
    pub step: u64,
    /// A trap ends a guest; a refusal is its own word that another attempt may succeed.
    pub trap: bool,
    /// What it said.
    pub message: String,
}

/// The call in which a guest failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Beginning at step 0.
    Start,
    /// Going on from a checkpoint.
    Restore,
    /// A step.
    Step,
    /// Writing its state.
    Snapshot,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When (RFC 3339).
    pub at: String,
    /// The exit code.
    pub exit: u8,
    /// Why.
    pub why: Why,
    /// For people.
    pub message: String,
}

/// Why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The task is done.
    Done,
    /// The platform or a keyboard asked it to stop.
    Stopped,
    /// Its own deadline came.
    Deadline,
    /// The guest failed.
    Guest,
    /// The volume, the device or the host failed.
    Host,
    /// It refused to start over.
    Refused,
    /// A newer attempt is at work.
    Fenced,
}

impl AttemptRecord {
    fn made_progress(&self) -> bool {
        self.safe_step.is_some_and(|safe| safe > self.first_step)
    }

    /// Whether the attempt counts as stalled: it ended by itself, not for the volume's or the device's sake, with nothing new
    /// to go on from. Kills and preemptions say nothing about the plugin.
    fn stalled(&self) -> bool {
        let by_itself = self.ended.as_ref().is_some_and(|ended| matches!(ended.why, Why::Guest | Why::Deadline));
        by_itself && !self.made_progress()
    }

    fn killed_by_checkpoint(&self, name: &str) -> bool {
        self.from.as_deref() == Some(name)
            && self.failure.as_ref().is_some_and(|failure| {
                failure.trap
                    && match failure.call {
                        Call::Restore => true,
                        Call::Step => failure.step == self.first_step,
                        Call::Start | Call::Snapshot => false,
                    }
            })
    }
}

/// The records of a lineage, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<AttemptRecord>);

/// Why there is no use in another attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hopeless {
    /// The same step trapped from two different starting points.
    TrapsAtStep {
        /// The step.
        step: u64,
        /// What the guest said last.
        message: String,
    },
    /// So many attempts in a row ended by themselves without progress.
    Stalled {
        /// How many.
        attempts: u32,
        /// What the last of them said.
        message: String,
    },
}

impl History {
    /// Of these records, in any order.
    #[must_use]
    pub fn new(mut records: Vec<AttemptRecord>) -> Self {
        records.sort_by_key(|record| record.tenure);
        Self(records)
    }

    /// Whether an attempt has run this component, or tried to.
    #[must_use]
    pub fn has_met(&self, plugin: &str) -> bool {
        self.0.iter().any(|record| record.plugin == plugin || record.other_plugins.iter().any(|other| other == plugin))
    }

    /// The records, oldest first.
    #[must_use]
    pub fn records(&self) -> &[AttemptRecord] {
        &self.0
    }

    /// This history with one more attempt.
    #[must_use]
    pub fn with(&self, record: AttemptRecord) -> Self {
        let mut records = self.0.clone();
        records.retain(|other| other.tenure != record.tenure);
        records.push(record);
        Self::new(records)
    }

    /// Whether a checkpoint is to be passed over because two attempts that went on from it trapped at once, and none did not.
    #[must_use]
    pub fn kills(&self, checkpoint: &str, fingerprint: &str) -> bool {
        let mut killed = 0;
        for record in self.like(fingerprint).filter(|record| record.from.as_deref() == Some(checkpoint)) {
            if record.killed_by_checkpoint(checkpoint) {
                killed += 1;
            } else if record.next_step > record.first_step {
                return false;
            }
        }
        killed >= 2
    }

    /// In how many earlier attempts a checkpoint could not be read.
    #[must_use]
    pub fn unreadable_before(&self, checkpoint: &str) -> usize {
        self.0.iter().filter(|record| record.unreadable.contains(checkpoint)).count()
    }

    /// Whether another attempt with the same plugin, configuration, input and limits is of no use.
    #[must_use]
    pub fn hopeless(&self, fingerprint: &str, max_stalled: u32) -> Option<Hopeless> {
        self.traps_at_step(fingerprint).or_else(|| self.stalled(fingerprint, max_stalled))
    }

    fn traps_at_step(&self, fingerprint: &str) -> Option<Hopeless> {
        let traps = self.like(fingerprint).filter_map(|record| match &record.failure {
            Some(failure) if failure.trap && failure.call == Call::Step => Some((record, failure)),
            _ => None,
        });
        let traps: Vec<_> = traps.collect();
        let (_, failure) = traps.iter().find(|(record, failure)| {
            traps.iter().any(|(other, twin)| twin.step == failure.step && other.from != record.from)
        })?;
        Some(Hopeless::TrapsAtStep { step: failure.step, message: failure.message.clone() })
    }

    fn stalled(&self, fingerprint: &str, max_stalled: u32) -> Option<Hopeless> {
        let mut attempts = 0;
        let mut message = None;
        for record in self.0.iter().rev() {
            if record.made_progress() || (record.ended.is_some() && record.fingerprint != fingerprint) {
                break;
            }
            if record.stalled() {
                attempts += 1;
                message = message.or_else(|| record.ended.as_ref().map(|ended| ended.message.clone()));
            }
        }
        (attempts >= max_stalled).then(|| Hopeless::Stalled { attempts, message: message.unwrap_or_default() })
    }

    fn like(&self, fingerprint: &str) -> impl Iterator<Item = &AttemptRecord> {
        self.0.iter().filter(move |record| record.fingerprint == fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(epoch: u32, from: Option<&str>, first_step: u64) -> AttemptRecord {
        let tenure = Tenure { epoch, nonce: 7 };
        AttemptRecord {
            tenure,
            lineage: Tenure { epoch: 1, nonce: 7 },
            attempt: epoch - 1,
            started: String::new(),
            heartbeat: String::new(),
            fingerprint: "same".into(),
            plugin: String::new(),
            artifact: None,
            device: String::new(),
            from: from.map(Into::into),
            first_step,
            next_step: first_step,
            safe_step: Some(first_step),
            saves: SaveFigures::default(),
            failure: None,
            unreadable: BTreeSet::new(),
            ended: None,
            other_plugins: Vec::new(),
            profile: Vec::new(),
        }
    }

    fn ends(mut record: AttemptRecord, why: Why) -> AttemptRecord {
        record.ended = Some(Ended { at: String::new(), exit: 75, why, message: "as it says".into() });
        record
    }

    fn traps(record: AttemptRecord, call: Call, step: u64) -> AttemptRecord {
        let mut record = ends(record, Why::Guest);
        record.next_step = step;
        record.failure = Some(Failure { call, step, trap: true, message: "unreachable".into() });
        record
    }

    #[test]
    fn a_checkpoint_is_passed_over_after_two_traps_at_once() {
        let first = traps(attempt(2, Some("c"), 8), Call::Restore, 8);
        let second = traps(attempt(4, Some("c"), 8), Call::Step, 8);
        let preempted = ends(attempt(3, Some("c"), 8), Why::Stopped);
        assert!(!History::new(vec![first.clone()]).kills("c", "same"));
        let both = History::new(vec![first.clone(), preempted, second.clone()]);
        assert!(both.kills("c", "same"));
        assert!(!both.kills("c", "another plugin"));
        assert!(!both.kills("d", "same"));
        let mut went_on = attempt(5, Some("c"), 8);
        went_on.next_step = 12;
        assert!(!both.with(went_on).kills("c", "same"));
    }

    #[test]
    fn the_same_step_from_two_starting_points_is_the_plugins_fault() {
        let one = traps(attempt(1, None, 0), Call::Step, 9);
        let same_start = History::new(vec![one.clone(), traps(attempt(2, None, 0), Call::Step, 9)]);
        assert_eq!(same_start.hopeless("same", 9), None);
        let other_step = History::new(vec![one.clone(), traps(attempt(2, Some("c"), 8), Call::Step, 8)]);
        assert_eq!(other_step.hopeless("same", 9), None);
        let both = History::new(vec![one, traps(attempt(2, Some("c"), 8), Call::Step, 9)]);
        assert!(matches!(both.hopeless("same", 9), Some(Hopeless::TrapsAtStep { step: 9, .. })));
        assert_eq!(both.hopeless("changed", 9), None);
    }

    #[test]
    fn stalled_attempts_are_counted_apart_from_preemptions() {
        let stalled = |epoch| ends(attempt(epoch, Some("c"), 8), Why::Guest);
        let mut records =
            vec![stalled(2), ends(attempt(3, Some("c"), 8), Why::Stopped), attempt(4, Some("c"), 8), stalled(5)];
        assert_eq!(History::new(records.clone()).hopeless("same", 3), None);
        records.push(stalled(6));
        let three = History::new(records);
        assert!(matches!(three.hopeless("same", 3), Some(Hopeless::Stalled { attempts: 3, .. })));
        assert_eq!(three.hopeless("changed", 3), None);
        let mut progress = stalled(7);
        progress.safe_step = Some(9);
        assert_eq!(three.with(progress).hopeless("same", 3), None);
    }

    #[test]
    fn a_failing_volume_is_not_the_plugins_fault() {
        let failed = |epoch| ends(attempt(epoch, Some("c"), 8), Why::Host);
        assert_eq!(History::new((1..9).map(failed).collect()).hopeless("same", 3), None);
    }
}
