//! Saving between two steps: when it is due, what is frozen, and what became of it.

use std::sync::Arc;
use std::time::Instant;

use super::{Ending, Steps};
use crate::checkpoint::metadata::{Metadata, PluginFacts};
use crate::checkpoint::outputs::{LONGEST_PATH, Manifest};
use crate::checkpoint::store::{Call, SaveError};
use crate::job::RunError;
use crate::job::error::in_words;
use crate::job::memory::in_bytes;
use crate::job::run::Context;
use crate::job::saver::{News, Parcel};
use crate::job::scene::Scene;
use crate::job::source;
use crate::plugin::{CallError, Guest, Snapshot};

impl Steps<'_> {
    /// Listens to the saver without waiting.
    pub(super) fn hear(&mut self) -> Result<(), RunError> {
        while let Some(news) = self.saver.poll()? {
            self.take(news)?;
            self.now = Instant::now();
        }
        Ok(())
    }

    pub(super) fn wait_for_save(&mut self) -> Result<(), RunError> {
        while self.saver.is_busy() {
            if let Some(news) = self.saver.wait()? {
                self.take(news)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, news: News) -> Result<(), RunError> {
        let report = match news {
            News::Fenced(by) => return Err(RunError::Fenced(by)),
            News::Saved(report) => report,
        };
        let bytes = report.snapshot.bytes();
        // Unless somebody still reads them.
        self.running.buffers = Arc::try_unwrap(report.snapshot).unwrap_or_default();
        match report.result {
            Ok(saved) => {
                self.failures = 0;
                self.pace.saved(bytes, saved.took);
                self.watch_pace();
                saved.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                tracing::info!(
                    step = saved.next_step,
                    bytes = saved.file_bytes,
                    ms = saved.took.as_millis() as u64,
                    "Saved step {} in {} ({})",
                    saved.next_step,
                    in_words(saved.took),
                    in_bytes(saved.file_bytes)
                );
                Ok(())
            }
            Err(SaveError::Fenced(by)) => Err(RunError::Fenced(by)),
            Err(cause) => {
                self.failures += 1;
                self.saved_step = self.journal.record().safe_step;
                if let Some(segment) = &report.segment {
                    self.running.tracker.distrust(segment);
                }
                let hint = if let SaveError::Volume(error) = &cause { error.hint() } else { None };
                let hint = hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
                tracing::warn!(failures = self.failures, "A save failed ({} in a row): {cause}{hint}", self.failures);
                if self.failures >= self.context.spec.max_save_failures.get() {
                    return Err(RunError::SavesFail { failures: self.failures, cause });
                }
                Ok(())
            }
        }
    }

    pub(super) fn save_if_due(&mut self) -> Result<(), RunError> {
        let step = self.running.next_step;
        // A checkpoint that was asked for is not skipped: it waits for the one that is being saved.
        let asked = !self.saver.is_busy() && self.context.stops.take_checkpoint_request();
        let first = self.saved_step.is_none() && step == 0 && self.failures == 0;
        if !(asked || first || self.pace.is_due(step, self.now)) {
            return Ok(());
        }
        self.pace.passed(step);
        if self.saver.is_busy() {
            self.journal.record().saves.skipped += 1;
            tracing::debug!(step, "A save is due at step {step}, but the last one is still running; it is skipped");
            return Ok(());
        }
        if self.saved_step == Some(step) {
            return Ok(());
        }
        self.save(None).map(drop)
    }

    /// Freezes everything and hands it to the saver.
    pub(super) fn save(&mut self, finished: Option<String>) -> Result<Metadata, RunError> {
        let snapshot = self.snapshot().map_err(|cause| self.failed(Call::Snapshot, cause))?;
        self.hand_over(Arc::new(snapshot), finished)
    }

    /// The guest's state between two steps.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot, CallError> {
        let step = self.running.next_step;
        self.freezing = Instant::now();
        tracing::info!(step, "Saving checkpoint at step {step}");
        let buffers = std::mem::take(&mut self.running.buffers);
        let running = &mut self.running;
        self.context.watch.during(Call::Snapshot, self.freezing, || running.guest()?.snapshot(buffers))
    }

    /// Freezes everything beside the state, and gives both to the saver.
    pub(super) fn hand_over(
        &mut self,
        snapshot: Arc<Snapshot>,
        finished: Option<String>,
    ) -> Result<Metadata, RunError> {
        let step = self.running.next_step;
        // How often a snapshot is taken is the host's affair: what it reports belongs to no step.
        drop(self.running.events.take_metrics());
        let scratch_failed = |cause| RunError::Scratch { path: Scene::scratch(self.context.spec), cause };
        self.running.flush_output();
        self.running.scratch.flush_metrics().map_err(scratch_failed)?;
        let frozen = self.running.tracker.freeze().map_err(scratch_failed)?;
        for name in &frozen.not_kept {
            if name.len() > LONGEST_PATH {
                let beginning: String = name.chars().take(100).collect();
                tracing::warn!("`/output/{beginning}…` lies too deep in folders and will not be kept");
            } else {
                tracing::warn!("`/output/{name}` is no ordinary file and will not be kept");
            }
        }
        let metadata = self.metadata(&snapshot, &frozen.manifest, finished);
        let waited = self.freezing.elapsed();
        self.pace.froze(snapshot.bytes(), waited);
        self.journal.record().saves.waited_ms += u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let plugin = self.running.plugin.clone();
        self.saver.save(Parcel { metadata: metadata.clone(), plugin, snapshot, frozen })?;
        self.saved_step = Some(step);
        self.now = Instant::now();
        Ok(metadata)
    }

    fn metadata(&self, snapshot: &Snapshot, outputs: &Manifest, finished: Option<String>) -> Metadata {
        let Context { spec, scene, began, .. } = self.context;
        let (tenure, lineage) = {
            let record = self.journal.record();
            (record.tenure, record.lineage)
        };
        let random = self.running.guest.as_ref().map(Guest::random_position).unwrap_or_default();
        Metadata {
            host_version: env!("CARGO_PKG_VERSION").into(),
            made: jiff::Timestamp::now().to_string(),
            job: self.running.job.name.clone(),
            task_index: self.running.job.task_index,
            task_count: self.running.job.task_count,
            lineage,
            tenure,
            next_step: self.running.next_step,
            finished,
            progress: self.running.progress,
            plugin: PluginFacts {
                name: spec.plugin_name(),
                digest: self.running.plugin.digest().to_owned(),
                state_version: snapshot.version,
                artifact: source::facts(&self.running.plugin),
            },
            config: spec.config.clone(),
            input: scene.input.clone(),
            seed: self.running.job.seed,
            random: serde_json::to_value(random).unwrap_or_default(),
            device: scene.device_of(&self.running.plugin).into(),
            elapsed_ms: self.running.elapsed_ms + u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            outputs: outputs.clone(),
        }
    }

    /// The final checkpoint has to be saved: without it the outputs could not be assembled by another attempt. Tried again
    /// until it is, or too many saves failed.
    pub(super) fn done(&mut self, line: String) -> Result<Ending, RunError> {
        self.wait_for_save()?;
        loop {
            let metadata = self.save(Some(line.clone()))?;
            self.wait_for_save()?;
            if self.failures == 0 {
                return Ok(Ending::Done(Box::new(metadata)));
            }
        }
    }
}
