//! One look at a task's folder.

use std::collections::BTreeMap;
use std::path::Path;

use super::{AttemptRecord, Claim, DoneRecord, History, PLUGINS, SET_ASIDE, Store, StoreError, sealed};
use crate::checkpoint::names::{FileName, TaskFolder, Tenure};
use crate::checkpoint::volume::EntryKind;

/// What a task's folder holds.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Whether the job's folder is there at all.
    pub job_known: bool,
    /// Folders of the same task index with another count.
    pub other_counts: Vec<TaskFolder>,
    /// All names of ours.
    pub names: Vec<FileName>,
    /// Checkpoints in `set-aside/`.
    pub set_aside: Vec<FileName>,
    /// All claims; none where one cannot be understood (its attempt died while writing it).
    pub claims: BTreeMap<Tenure, Option<Claim>>,
}

impl Store {
    /// Looks at the task's folder. Errors of reading are errors, and never "nothing there".
    pub fn survey(&self) -> Result<Survey, StoreError> {
        let folder = self.folder();
        let siblings = self.list(&self.job)?;
        let other_counts = siblings.iter().flatten().filter_map(|(name, _)| TaskFolder::parse(name));
        let other_counts =
            other_counts.filter(|other| other.index == self.task.index && other.count != self.task.count);
        let own = self.list(&folder)?.unwrap_or_default();
        let names: Vec<FileName> = own.iter().filter_map(|(name, kind)| seen(name, *kind)).collect();
        let set_aside = self.list(&folder.join(SET_ASIDE))?.unwrap_or_default();
        let set_aside = set_aside.iter().filter_map(|(name, kind)| named(name, *kind));

        let mut claims = BTreeMap::new();
        for name in &names {
            if let FileName::Claim(tenure) = name {
                claims.insert(*tenure, self.read_claim(*tenure)?);
            }
        }
        Ok(Survey {
            job_known: siblings.as_ref().is_some_and(|entries| is_trace(entries)),
            other_counts: other_counts.collect(),
            set_aside: set_aside.filter(|name| matches!(name, FileName::Checkpoint(..))).collect(),
            names,
            claims,
        })
    }

    pub(super) fn list(&self, folder: &Path) -> Result<Option<Vec<(String, EntryKind)>>, StoreError> {
        let entries = self.volume.list(folder).map_err(StoreError::at(&*self.volume, "list", folder))?;
        Ok(entries.map(|entries| entries.into_iter().map(|entry| (entry.name, entry.kind)).collect()))
    }

    pub(super) fn read_claim(&self, tenure: Tenure) -> Result<Option<Claim>, StoreError> {
        let path = self.path(&FileName::Claim(tenure));
        let claim: Option<Claim> =
            sealed::read(&*self.volume, &path).map_err(StoreError::at(&*self.volume, "read", &path))?;
        Ok(claim.filter(|claim| claim.tenure == tenure))
    }

    /// The attempt records of a lineage. They carry no correctness: one that cannot be read is an attempt about which nothing
    /// is known, and must not stop the job for ever.
    #[must_use]
    pub fn history(&self, survey: &Survey, lineage: Tenure) -> History {
        let mut records = Vec::new();
        for name in &survey.names {
            if let FileName::Attempt(tenure) = name
                && survey.may_belong(*tenure, lineage)
            {
                let record: Option<AttemptRecord> =
                    sealed::read(&*self.volume, &self.path(name)).unwrap_or_else(|error| {
                        tracing::warn!("Cannot read the attempt record `{name}`: {error}");
                        None
                    });
                records.extend(record.filter(|record| record.tenure == *tenure && record.lineage == lineage));
            }
        }
        History::new(records)
    }

    /// The done record of a lineage, the newest if two attempts got so far.
    pub fn done(&self, survey: &Survey, lineage: Tenure) -> Result<Option<DoneRecord>, StoreError> {
        let mut found: Option<DoneRecord> = None;
        for name in &survey.names {
            if let FileName::Done(tenure) = name
                && survey.may_belong(*tenure, lineage)
                && found.as_ref().is_none_or(|found| found.tenure < *tenure)
            {
                let path = self.path(name);
                let record: Option<DoneRecord> =
                    sealed::read(&*self.volume, &path).map_err(StoreError::at(&*self.volume, "read", &path))?;
                found = record.filter(|record| record.holds(*tenure, lineage)).or(found);
            }
        }
        Ok(found)
    }
}

/// Whether entries of a job's folder show that an attempt was here. An empty folder does: one that was killed between making it
/// and its task's left it so.
fn is_trace(entries: &[(String, EntryKind)]) -> bool {
    entries.is_empty() || entries.iter().any(|(name, _)| name != PLUGINS)
}

/// A name that a survey counts. What has a checkpoint's name is there, whatever it is: that it is a link, say to where somebody
/// moved the file, makes it unusable, and not nothing.
pub(super) fn seen(name: &str, kind: EntryKind) -> Option<FileName> {
    let checkpoint = || FileName::parse(name).filter(|found| matches!(found, FileName::Checkpoint(..)));
    named(name, kind).or_else(checkpoint)
}

/// Ours only if the name fits what it is: what is a folder or a link is nobody's to prune or to count.
pub(super) fn named(name: &str, kind: EntryKind) -> Option<FileName> {
    let found = FileName::parse(name)?;
    let wanted = if matches!(found, FileName::Output(_)) { EntryKind::Dir } else { EntryKind::File };
    (kind == wanted).then_some(found)
}

impl Survey {
    /// The newest claim that can be understood: it tells the newest lineage.
    #[must_use]
    pub fn newest(&self) -> Option<&Claim> {
        self.claims.values().rev().flatten().next()
    }

    /// The newest lineage. Should all claims be lost, everything there is counts as one lineage.
    #[must_use]
    pub fn lineage(&self) -> Option<Tenure> {
        self.newest().map(|claim| claim.lineage).or_else(|| self.checkpoints().map(|(tenure, _)| tenure).min())
    }

    /// Whether an attempt may belong to a lineage: certainly by its claim, or possibly where that is lost.
    #[must_use]
    pub fn may_belong(&self, tenure: Tenure, lineage: Tenure) -> bool {
        match self.claims.get(&tenure) {
            Some(Some(claim)) => claim.lineage == lineage,
            Some(None) | None => tenure >= lineage,
        }
    }

    /// All checkpoints, by tenure and next step.
    pub fn checkpoints(&self) -> impl Iterator<Item = (Tenure, u64)> {
        self.names.iter().filter_map(|name| match name {
            FileName::Checkpoint(tenure, step) => Some((*tenure, *step)),
            _ => None,
        })
    }

    /// The name that carries the highest epoch; none where there are no names.
    #[must_use]
    pub fn last(&self) -> Option<&FileName> {
        self.names.iter().chain(&self.set_aside).max_by_key(|name| name.tenure())
    }

    /// How many attempts of a lineage claimed the task.
    #[must_use]
    pub fn attempts(&self, lineage: Tenure) -> u32 {
        let claims = self.claims.keys().filter(|tenure| self.may_belong(**tenure, lineage));
        u32::try_from(claims.count()).unwrap_or(u32::MAX)
    }
}
