//! What may be removed, and by whom.
//!
//! An attempt removes files of its own tenure, and those of lower epochs only after its own first checkpoint was verified;
//! except their stage files, which go as soon as it has decided what to load. Segments and attempt records stay until the task
//! is done. So a fenced attempt can never take away what its successor stands on.
//!
//! Nothing here fails: what could not be removed is answered as warnings.

use std::path::Path;

use super::survey::named;
use super::{Damaged, SET_ASIDE, Session};
use crate::checkpoint::names::{FileName, Tenure};
use crate::checkpoint::volume::{EntryKind, Volume};

/// What became of files that were to be removed.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) removed: usize,
    pub(super) warnings: Vec<String>,
}

impl Session {
    /// Sets damaged checkpoints aside and removes the stage files of dead attempts. Called once it is decided what to load.
    pub fn settle(&self, damaged: &[Damaged]) -> Vec<String> {
        let folder = self.store().folder();
        let volume = &**self.store().volume();
        let mut warnings = Vec::new();
        for bad in damaged {
            let aside = folder.join(SET_ASIDE);
            let moved =
                volume.make_dirs(&aside).and_then(|()| volume.rename(&folder.join(&bad.name), &aside.join(&bad.name)));
            warnings.extend(moved.err().map(|error| format!("cannot set `{}` aside: {error}", bad.name)));
        }
        warnings.extend(self.remove_old_stages().warnings);
        warnings
    }

    /// Removes what attempts of lower epochs had not finished writing.
    pub(super) fn remove_old_stages(&self) -> Removed {
        let folder = self.store().folder();
        let own = self.tenure();
        let mut done = Removed::default();
        for name in &self.survey().names {
            if matches!(name, FileName::Stage(tenure, _) if tenure.epoch < own.epoch) {
                match remove(&**self.store().volume(), &folder, &name.to_string()) {
                    None => done.removed += 1,
                    Some(warning) => done.warnings.push(warning),
                }
            }
        }
        done
    }

    /// Removes the checkpoints beyond `--keep`, newest first, across the epochs of the lineage. Those that cannot be gone on
    /// from do not count: else `--keep 2` might hold a single usable one.
    pub(super) fn prune(&self) -> Vec<String> {
        let folder = self.store().folder();
        let entries = match self.store().list(&folder) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(error) => return vec![format!("cannot prune: {error}")],
        };
        let mut there: Vec<(Tenure, u64)> = entries
            .iter()
            .filter_map(|(name, kind)| match named(name, *kind)? {
                FileName::Checkpoint(tenure, step) => Some((tenure, step)),
                _ => None,
            })
            .filter(|(tenure, _)| *tenure <= self.tenure() && self.survey().may_belong(*tenure, self.lineage()))
            .collect();
        there.sort_unstable();
        let newest_first = there.iter().rev().map(|(tenure, step)| FileName::Checkpoint(*tenure, *step).to_string());
        let mut usable = 0;
        let old = newest_first.skip_while(|name| {
            let within = usable < self.keep();
            usable += usize::from(within && !self.is_passed_over(name));
            within
        });
        old.filter_map(|name| remove(&**self.store().volume(), &folder, &name)).collect()
    }
}

/// Removes a file; one that is gone already is as good as removed.
pub(super) fn remove(volume: &dyn Volume, folder: &Path, name: &str) -> Option<String> {
    match volume.remove_file(&folder.join(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Some(format!("cannot remove `{name}`: {error}")),
        _ => None,
    }
}

/// Removes a folder and everything below it.
pub(super) fn remove_tree(volume: &dyn Volume, folder: &Path) -> std::io::Result<()> {
    for entry in volume.list(folder)?.unwrap_or_default() {
        let path = folder.join(&entry.name);
        match entry.kind {
            EntryKind::Dir => remove_tree(volume, &path)?,
            EntryKind::File | EntryKind::Other => volume.remove_file(&path)?,
        }
    }
    volume.remove_dir(folder)
}
