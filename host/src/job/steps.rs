//! The loop: step, save when due, stop when asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::in_words;
use super::events::Events;
use super::marks::Phase;
use super::pace::Pace;
use super::run::Context;
use super::saver::{News, Parcel, Saver, SharedRecord, record};
use super::watch::margin;
use super::{ExitCode, RunError};
use crate::checkpoint::metadata::{Metadata, PluginFacts, Progress};
use crate::checkpoint::outputs::{LONGEST_PATH, Manifest, Scratch, Tracker};
use crate::checkpoint::store::{Call, Ended, Failure, History, SaveError, Session};
use crate::platform::StopReason;
use crate::plugin::{CallError, Guest, GuestError, Interruption, JobInfo, Snapshot, Step};
use crate::report::Progress as Bar;

/// The bar hears of steps this often at most: its words and its locks would cost a short step more than the step itself.
const BAR_EVERY: Duration = Duration::from_millis(50);

/// A guest between two steps, with all that belongs to it.
pub(super) struct Running {
    pub guest: Guest,
    pub events: Arc<Events>,
    pub scratch: Scratch,
    pub tracker: Tracker,
    pub history: History,
    /// Buffers of an earlier snapshot, to be filled again.
    pub buffers: Snapshot,
    pub progress: Progress,
    pub next_step: u64,
    /// Whether there is a checkpoint of this very step.
    pub from_checkpoint: bool,
    /// Of earlier attempts.
    pub elapsed_ms: u64,
    pub state_bytes: u64,
    pub plugin: String,
    pub job: JobInfo,
}

/// A task all of whose steps are done and saved.
pub(super) struct Finished {
    pub metadata: Metadata,
    pub scratch: Scratch,
}

/// How the loop ended.
pub(super) enum End {
    /// All steps are done.
    Done(Box<Finished>),
    /// As it was asked to.
    Stopped(StopReason),
}

/// Runs the loop. The session comes back, unless the saving thread died.
pub(super) fn run(
    context: &Context<'_>,
    session: Session,
    running: Running,
    shared: &SharedRecord,
) -> (Option<Session>, Result<End, RunError>) {
    let saver = match Saver::start(session, Arc::clone(shared), context.marks.clone()) {
        Ok(saver) => saver,
        Err(error) => return (None, Err(RunError::Thread(error))),
    };
    let pace = Pace::new(context.spec.every, running.next_step, running.state_bytes);
    // Step 0 is saved too: from then on the task is known to the volume with its outputs.
    let saved_step = running.from_checkpoint.then_some(running.next_step);
    let now = Instant::now();
    let mut steps = Steps {
        context,
        running,
        saver,
        pace,
        shared,
        saved_step,
        failures: 0,
        bar: context.reporter.progress(),
        bar_due: now,
        now,
        long_steps_told: false,
    };
    let end = match steps.go() {
        // A stop is no failure of the guest, in whichever call it came.
        Err(RunError::Guest { call, cause: CallError::Interrupted(Interruption::GraceEnds), .. })
            if let Some(stop) = context.stops.requested() =>
        {
            Ok(steps.broken_off(call, stop))
        }
        end => end,
    };
    steps.bar.finish();
    let Steps { saver, running, .. } = steps;
    if let dropped @ 1.. = running.guest.dropped_metrics() {
        tracing::warn!(dropped, "Metrics dropped because of their names, in this attempt: {dropped}");
    }
    {
        let mut record = record(shared);
        record.next_step = record.next_step.max(running.next_step);
    }
    let end = end.map(|end| match end {
        Ending::Stopped(stop) => End::Stopped(stop),
        Ending::Done(metadata) => End::Done(Box::new(Finished { metadata: *metadata, scratch: running.scratch })),
    });
    match saver.end() {
        Ok(session) => (Some(session), end),
        Err(gone) => (None, end.and(Err(gone.into()))),
    }
}

enum Ending {
    Done(Box<Metadata>),
    Stopped(StopReason),
}

struct Steps<'a> {
    context: &'a Context<'a>,
    running: Running,
    saver: Saver,
    pace: Pace,
    shared: &'a SharedRecord,
    /// The next step of the newest checkpoint that is saved, or being saved.
    saved_step: Option<u64>,
    /// Saves that failed in a row.
    failures: u32,
    bar: Bar,
    bar_due: Instant,
    /// When the last step ended, or what came after it: as good as now for what is due between two steps and for when the
    /// next one begins, so that one look at the clock a step is enough.
    now: Instant,
    /// That steps are too long for the grace time is said once.
    long_steps_told: bool,
}

impl Steps<'_> {
    fn go(&mut self) -> Result<Ending, RunError> {
        loop {
            self.hear()?;
            if let Some(stop) = self.context.stops.requested() {
                return self.stop(stop);
            }
            self.save_if_due()?;
            self.context.marks.at(Phase::Step, self.running.next_step);
            if self.context.marks.are_read() {
                self.now = Instant::now();
            }
            if let Some(stop) = self.context.stops.requested() {
                return self.stop(stop);
            }
            match self.step() {
                Ok(Some(line)) => return self.done(line),
                Ok(None) => {}
                Err(cause) => return Err(self.failed(Call::Step, cause)),
            }
        }
    }

    /// One step; answers the guest's line when it is done.
    fn step(&mut self) -> Result<Option<String>, CallError> {
        let began = self.now;
        let running = &mut self.running;
        let answer = self.context.watch.during(Call::Step, began, || running.guest.step());
        self.now = Instant::now();
        self.pace.stepped(self.now.duration_since(began));
        if self.pace.is_time_to_look() {
            self.watch_pace();
        }
        let answer = answer?;
        let step = self.running.next_step;
        self.running.next_step += 1;
        keep_metrics(&self.running.events, &mut self.running.scratch, step);
        match answer {
            Step::Done(line) => Ok(Some(line)),
            Step::More { done, total } => {
                self.running.progress = Progress { done, total };
                if self.now >= self.bar_due {
                    self.bar_due = self.now + BAR_EVERY;
                    let safe = record(self.shared).safe_step;
                    let note = safe.map_or(String::new(), |step| format!("last verified checkpoint at step {step}"));
                    self.bar.update(done, total, &note);
                }
                Ok(None)
            }
        }
    }

    /// Listens to the saver without waiting.
    fn hear(&mut self) -> Result<(), RunError> {
        while let Some(news) = self.saver.poll()? {
            self.take(news)?;
            self.now = Instant::now();
        }
        Ok(())
    }

    fn wait_for_save(&mut self) -> Result<(), RunError> {
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
        let bytes = size(&report.snapshot);
        self.running.buffers = report.snapshot;
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
                    bytesize::ByteSize::b(saved.file_bytes).display().iec()
                );
                Ok(())
            }
            Err(SaveError::Fenced(by)) => Err(RunError::Fenced(by)),
            Err(cause) => {
                self.failures += 1;
                self.saved_step = record(self.shared).safe_step;
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

    fn save_if_due(&mut self) -> Result<(), RunError> {
        let step = self.running.next_step;
        // A checkpoint that was asked for is not skipped: it waits for the one that is being saved.
        let asked = !self.saver.is_busy() && self.context.stops.take_checkpoint_request();
        let first = self.saved_step.is_none() && step == 0 && self.failures == 0;
        if !(asked || first || self.pace.is_due(step, self.now)) {
            return Ok(());
        }
        self.pace.passed(step);
        if self.saver.is_busy() {
            record(self.shared).saves.skipped += 1;
            tracing::debug!(step, "A save is due at step {step}, but the last one is still running; it is skipped");
            return Ok(());
        }
        if self.saved_step == Some(step) {
            return Ok(());
        }
        self.save(None).map(drop)
    }

    /// Freezes everything and hands it to the saver.
    fn save(&mut self, finished: Option<String>) -> Result<Metadata, RunError> {
        let step = self.running.next_step;
        let began = Instant::now();
        tracing::info!(step, "Saving checkpoint at step {step}");
        let buffers = std::mem::take(&mut self.running.buffers);
        let running = &mut self.running;
        let snapshot = self.context.watch.during(Call::Snapshot, began, || running.guest.snapshot(buffers));
        let snapshot = snapshot.map_err(|cause| self.failed(Call::Snapshot, cause))?;
        // How often a snapshot is taken is the host's affair: what it reports belongs to no step.
        drop(self.running.events.take_metrics());
        let scratch_failed = |cause| RunError::Scratch { path: super::scene::Scene::scratch(self.context.spec), cause };
        self.running.guest.flush_output();
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
        let waited = began.elapsed();
        self.pace.froze(size(&snapshot), waited);
        record(self.shared).saves.waited_ms += u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.saver.save(Parcel { metadata: metadata.clone(), snapshot, frozen })?;
        self.saved_step = Some(step);
        self.now = Instant::now();
        Ok(metadata)
    }

    fn metadata(&self, snapshot: &Snapshot, outputs: &Manifest, finished: Option<String>) -> Metadata {
        let Context { spec, scene, began, .. } = self.context;
        let (tenure, lineage) = {
            let record = record(self.shared);
            (record.tenure, record.lineage)
        };
        let name = spec.plugin.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
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
            plugin: PluginFacts { name, digest: self.running.plugin.clone(), state_version: snapshot.version },
            config: spec.config.clone(),
            input: scene.input.clone(),
            seed: self.running.job.seed,
            random: serde_json::to_value(self.running.guest.random_position()).unwrap_or_default(),
            device: "none".into(),
            elapsed_ms: self.running.elapsed_ms + u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            outputs: outputs.clone(),
        }
    }

    /// A stop was requested, between two steps: a running save is finished, then what is new is saved if that is predicted to
    /// fit into what is left of the grace time.
    fn stop(&mut self, stop: StopReason) -> Result<Ending, RunError> {
        self.wait_for_save()?;
        let step = self.running.next_step;
        while self.saved_step != Some(step) {
            let grace = self.context.scene.placement.grace.time;
            let left = grace.saturating_sub(margin(grace)).saturating_sub(stop.at.elapsed());
            let needed = self.pace.predicted_save();
            if needed > left {
                tracing::warn!(
                    "Not saving step {step}: that is predicted to take {}, and {} of the grace time are left",
                    in_words(needed),
                    in_words(left)
                );
                break;
            }
            self.save(None)?;
            self.wait_for_save()?;
        }
        self.say_safe();
        Ok(Ending::Stopped(stop))
    }

    /// The guest was interrupted in mid-call: there is nothing new to save.
    fn broken_off(&mut self, call: Call, stop: StopReason) -> Ending {
        let step = self.running.next_step;
        let what = if call == Call::Step { "Step" } else { "The snapshot at step" };
        tracing::warn!("{what} {step} did not end within the grace time; the last checkpoint stands");
        self.say_safe();
        Ending::Stopped(stop)
    }

    fn say_safe(&self) {
        let safe = record(self.shared).safe_step.unwrap_or(0);
        let Progress { total, .. } = self.running.progress;
        let lost = self.running.next_step.saturating_sub(safe);
        let losing = if lost > 0 { format!(", {lost} will be run again") } else { String::new() };
        tracing::info!(
            safe,
            lost,
            total,
            "Stopped: {safe} steps are safe{losing}; the same command goes on from there"
        );
    }

    /// The final checkpoint has to be saved: without it the outputs could not be assembled by another attempt. Tried again
    /// until it is, or too many saves failed.
    fn done(&mut self, line: String) -> Result<Ending, RunError> {
        self.wait_for_save()?;
        loop {
            let metadata = self.save(Some(line.clone()))?;
            self.wait_for_save()?;
            if self.failures == 0 {
                return Ok(Ending::Done(Box::new(metadata)));
            }
        }
    }

    fn failed(&mut self, call: Call, cause: CallError) -> RunError {
        self.running.guest.flush_output();
        // What is being saved is worth having: the next attempt goes on from there.
        let _ = self.wait_for_save();
        if cause == CallError::Interrupted(Interruption::GraceEnds) {
            return RunError::Guest { call, step: self.running.next_step, cause, hopeless: None };
        }
        guest_failed(self.context, self.shared, &self.running.history, call, self.running.next_step, cause)
    }

    fn watch_pace(&mut self) {
        let usual = self.pace.usual_step();
        let reserve = self.pace.predicted_save();
        self.context.watch.reserve(reserve, usual);
        self.warn_of_long_steps(usual, reserve);
    }

    fn warn_of_long_steps(&mut self, usual: Option<Duration>, reserve: Duration) {
        let grace = self.context.scene.placement.grace.time;
        let room = grace.saturating_sub(margin(grace) + reserve);
        if let Some(usual) = usual.filter(|usual| *usual > room && !self.long_steps_told) {
            self.long_steps_told = true;
            tracing::warn!(
                "Steps take {} (95th percentile), and a stop leaves them {}: a preemption will lose the step that is running",
                in_words(usual),
                in_words(room)
            );
        }
    }
}

/// Adds what the guest reported in its last call to the record of metrics.
pub(super) fn keep_metrics(events: &Events, scratch: &mut Scratch, step: u64) {
    let metrics = events.take_metrics();
    if metrics.dropped > 0 {
        let dropped = metrics.dropped;
        tracing::warn!(step, dropped, "{dropped} metrics of step {step} were too many, and dropped");
    }
    for (name, value) in metrics.values {
        if let Err(error) = scratch.add_metric(step, &name, value) {
            tracing::warn!("Cannot write a metric to scratch space: {error}");
        }
    }
}

fn size(snapshot: &Snapshot) -> u64 {
    snapshot.sections.iter().map(|section| section.bytes.len() as u64).sum()
}

/// Writes the failure into the record, and says whether earlier attempts show that another is of no use.
pub(super) fn guest_failed(
    context: &Context<'_>,
    shared: &SharedRecord,
    history: &History,
    call: Call,
    step: u64,
    cause: CallError,
) -> RunError {
    let trap = !matches!(
        cause,
        CallError::Guest(GuestError::Invalid(_) | GuestError::Retryable(_) | GuestError::IncompatibleState(_))
    );
    let record = {
        let mut record = record(shared);
        record.next_step = record.next_step.max(step);
        record.failure = Some(Failure { call, step, trap, message: cause.to_string() });
        record.clone()
    };
    let error = RunError::Guest { call, step, cause, hopeless: None };
    if error.exit_code() != ExitCode::Retry {
        return error;
    }
    // As the next attempt would judge it: an attempt that ends like this one counts.
    let mut ended = record;
    ended.ended =
        Some(Ended { at: String::new(), exit: error.exit_code().code(), why: error.why(), message: error.to_string() });
    let fingerprint = ended.fingerprint.clone();
    let hopeless = history.with(ended).hopeless(&fingerprint, context.spec.max_stalled.get());
    match error {
        RunError::Guest { call, step, cause, .. } => RunError::Guest { call, step, cause, hopeless },
        other => other,
    }
}
