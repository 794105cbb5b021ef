//! The end of a task: its outputs are assembled on the volume, and only then does the done record say so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::prune::{remove, remove_tree};
use super::survey::named;
use super::{SaveError, Session, Standing, sealed};
use crate::checkpoint::format::{FormatError, Reader};
use crate::checkpoint::metadata::Metadata;
use crate::checkpoint::names::{FileName, Tenure};
use crate::checkpoint::outputs::{self, Assembled, AssembledFile};
use crate::checkpoint::volume::{Operation, VolumeError, publish};

/// Says that a lineage is done, and where its outputs are. Written last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneRecord {
    /// The attempt that finished the task.
    pub tenure: Tenure,
    /// The lineage that is done.
    pub lineage: Tenure,
    /// When (RFC 3339).
    pub at: String,
    /// The line that the guest said.
    pub message: String,
    /// How many steps were run.
    pub steps: u64,
    /// The folder of the finished outputs, below the task's folder.
    pub folder: String,
    /// What it holds.
    pub outputs: Assembled,
    /// The host's record of metrics, below the task's folder.
    pub metrics: Option<AssembledFile>,
    /// Milliseconds that all attempts spent.
    pub elapsed_ms: u64,
}

impl DoneRecord {
    /// Whether the record speaks of its own lineage and of nothing outside of the task's folder: a hash proves what was
    /// written, not who wrote it, and the paths lead to where the user wants a copy.
    pub(super) fn holds(&self, tenure: Tenure, lineage: Tenure) -> bool {
        let paths = self.outputs.folders.iter().chain(self.outputs.files.iter().map(|file| &file.path));
        (self.tenure, self.lineage) == (tenure, lineage)
            && self.folder == FileName::Output(tenure).to_string()
            && self.metrics.as_ref().is_none_or(|file| file.path == FileName::Metrics(tenure).to_string())
            && paths.into_iter().all(|path| outputs::stays_below(path))
    }
}

/// Why a task could not be finished. The final checkpoint stands: the next attempt has only this left to do.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// A newer attempt is at work.
    #[error("a newer attempt of this task is at work ({0})")]
    Fenced(Tenure),
    /// The volume failed.
    #[error(transparent)]
    Save(#[from] SaveError),
}

impl From<VolumeError> for FinishError {
    fn from(error: VolumeError) -> Self {
        Self::Save(error.into())
    }
}

impl Session {
    /// Assembles the outputs from the scratch folder `output` and the file `metrics`, as the final checkpoint's `metadata`
    /// lists them, and writes the done record. Answers it with warnings about what could not be tidied up.
    pub fn finish(
        &mut self,
        metadata: &Metadata,
        output: &Path,
        metrics: &Path,
    ) -> Result<(DoneRecord, Vec<String>), FinishError> {
        if let Standing::Fenced(by) = self.look().map_err(SaveError::from)? {
            return Err(FinishError::Fenced(by));
        }
        let tenure = self.tenure();
        let store = self.store().clone();
        let volume = &**store.volume();
        let stage = store.path(&FileName::Stage(tenure, "output".into()));
        let name = FileName::Output(tenure);
        let assembled = outputs::assemble(volume, output, &metadata.outputs, &store.path(&name), &stage)?;
        let metrics = match &metadata.outputs.metrics {
            None => None,
            Some(_) => {
                let name = FileName::Metrics(tenure);
                let (bytes, hash) = outputs::copy_to_volume(volume, split(metrics), &store.path(&name), &stage)?;
                Some(AssembledFile { path: name.to_string(), bytes, hash })
            }
        };
        let record = DoneRecord {
            tenure,
            lineage: self.lineage(),
            at: jiff::Timestamp::now().to_string(),
            message: metadata.finished.clone().unwrap_or_default(),
            steps: metadata.next_step,
            folder: name.to_string(),
            outputs: assembled,
            metrics,
            elapsed_ms: metadata.elapsed_ms,
        };
        if let Standing::Fenced(by) = self.look().map_err(SaveError::from)? {
            return Err(FinishError::Fenced(by));
        }
        let done = FileName::Done(tenure);
        let bytes = sealed::seal(&record)
            .map_err(|cause| VolumeError::new(volume, Operation::Write, &store.path(&done), cause))?;
        publish(volume, &store.path(&done.stage()), &store.path(&done), |out| out.write_all(&bytes))?;
        Ok((record, self.tidy()))
    }

    /// Removes what a done task no longer needs: segments that no kept checkpoint stands on, stage files, and outputs that
    /// other attempts had half assembled.
    fn tidy(&self) -> Vec<String> {
        let folder = self.store().folder();
        let volume = &**self.store().volume();
        let entries = match self.store().list(&folder) {
            Ok(entries) => entries.unwrap_or_default(),
            Err(error) => return vec![format!("cannot tidy up: {error}")],
        };
        let ours = |tenure: Tenure| tenure <= self.tenure() && self.survey().may_belong(tenure, self.lineage());
        let names: Vec<FileName> =
            entries.iter().filter_map(|(name, kind)| named(name, *kind)).filter(|name| ours(name.tenure())).collect();
        let needed = match self.needed_segments(&names) {
            Ok(needed) => needed,
            Err(warning) => return vec![warning],
        };
        let mut warnings = Vec::new();
        for name in names {
            let text = name.to_string();
            match name {
                FileName::Segment(..) if !needed.contains(&text) => warnings.extend(remove(volume, &folder, &text)),
                FileName::Stage(..) => warnings.extend(remove(volume, &folder, &text)),
                FileName::Metrics(tenure) if tenure != self.tenure() => warnings.extend(remove(volume, &folder, &text)),
                FileName::Output(tenure) if tenure != self.tenure() => {
                    let removed = remove_tree(volume, &folder.join(&text));
                    warnings.extend(removed.err().map(|error| format!("cannot remove `{text}`: {error}")));
                }
                _ => {}
            }
        }
        warnings
    }

    fn needed_segments(&self, names: &[FileName]) -> Result<BTreeSet<String>, String> {
        let mut needed = BTreeSet::new();
        for name in names.iter().filter(|name| matches!(name, FileName::Checkpoint(..))) {
            let path: PathBuf = self.store().path(name);
            let read = || -> Result<Metadata, FormatError> {
                let file = self.store().volume().open(&path).map_err(FormatError::Io)?;
                super::parse(Reader::open(&*file)?.metadata())
            };
            let metadata =
                read().map_err(|error| format!("kept all output segments, since `{name}` cannot be read: {error}"))?;
            needed.extend(metadata.outputs.segments().into_iter().map(str::to_owned));
        }
        Ok(needed)
    }
}

/// A file as the folder that it is in, and its name.
fn split(file: &Path) -> (&Path, &Path) {
    (file.parent().unwrap_or(Path::new("")), file.file_name().map_or(Path::new(""), Path::new))
}
