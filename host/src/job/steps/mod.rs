//! The loop: step, save when due, stop when asked.

mod saving;
mod stopping;
mod swapping;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::in_words;
use super::events::Events;
use super::journal::Journal;
use super::marks::Phase;
use super::pace::Pace;
use super::run::Context;
use super::saver::Saver;
use super::watch::margin;
use super::{ExitCode, RunError};
use crate::checkpoint::metadata::{Metadata, Progress};
use crate::checkpoint::outputs::{Scratch, Tracker};
use crate::checkpoint::store::{Call, Ended, Failure, History, Session};
use crate::platform::StopReason;
use crate::plugin::{CallError, Guest, GuestError, Interruption, JobInfo, Plugin, Snapshot, Step};
use crate::report::Progress as Bar;

pub(super) use swapping::{Probation, Unfit, go_back, patience};

/// The bar hears of steps this often at most: its words and its locks would cost a short step more than the step itself.
const BAR_EVERY: Duration = Duration::from_millis(50);

/// A guest between two steps, with all that belongs to it.
pub(super) struct Running {
    /// None only while a new plugin takes the place of the old.
    pub guest: Option<Guest>,
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
    pub plugin: Plugin,
    pub probation: Option<Probation>,
    pub job: JobInfo,
}

impl Running {
    pub fn guest(&mut self) -> Result<&mut Guest, CallError> {
        self.guest.as_mut().ok_or_else(no_guest)
    }

    pub fn flush_output(&self) {
        if let Some(guest) = &self.guest {
            guest.flush_output();
        }
    }
}

#[cold]
fn no_guest() -> CallError {
    CallError::Trap { message: "the guest has ended".to_owned() }
}

/// The task goes on from its newest checkpoint, in this process.
pub(super) struct Onward {
    /// Under which plugin.
    pub plugin: Plugin,
    /// Which one to go back to, should this one not fit.
    pub probation: Option<Probation>,
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
    /// It has to begin again.
    Onward {
        how: Onward,
        /// The newest segment of outputs that this attempt named.
        last_segment: u32,
    },
}

/// Runs the loop, and gives the session back for what comes after it.
pub(super) fn run(
    context: &Context<'_>,
    session: Session,
    mut running: Running,
    journal: &Arc<Journal>,
) -> Result<(Session, End), RunError> {
    let saver = Saver::start(session, Arc::clone(journal), context.marks.clone()).map_err(RunError::Thread)?;
    let pace = Pace::new(context.spec.every, running.next_step, running.state_bytes);
    // Step 0 is saved too: from then on the task is known to the volume with its outputs.
    let saved_step = running.from_checkpoint.then_some(running.next_step);
    let now = Instant::now();
    let mut steps = Steps {
        context,
        probation: running.probation.take(),
        running,
        saver,
        pace,
        journal,
        saved_step,
        failures: 0,
        bar: context.reporter.progress(),
        bar_due: now,
        now,
        freezing: now,
        long_steps_told: false,
        waiting_told: false,
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
    say_dropped(running.guest.as_ref());
    {
        let mut record = journal.record();
        record.next_step = record.next_step.max(running.next_step);
    }
    let end = end.map(|end| match end {
        Ending::Stopped(stop) => End::Stopped(stop),
        Ending::Done(metadata) => End::Done(Box::new(Finished { metadata: *metadata, scratch: running.scratch })),
        Ending::Onward(how) => End::Onward { how, last_segment: running.tracker.last_segment() },
    });
    // Also after a failure: the thread comes to its end before the attempt does.
    let session = saver.end();
    let end = end?;
    Ok((session?, end))
}

enum Ending {
    Done(Box<Metadata>),
    Stopped(StopReason),
    Onward(Onward),
}

struct Steps<'a> {
    context: &'a Context<'a>,
    running: Running,
    /// While the plugin has yet to run a step.
    probation: Option<Probation>,
    saver: Saver,
    pace: Pace,
    journal: &'a Arc<Journal>,
    /// The next step of the newest checkpoint that is saved, or being saved.
    saved_step: Option<u64>,
    /// Saves that failed in a row.
    failures: u32,
    bar: Bar,
    bar_due: Instant,
    /// When the last step ended, or what came after it: as good as now for what is due between two steps and for when the
    /// next one begins, so that one look at the clock a step is enough.
    now: Instant,
    /// When the guest was last stopped to be saved.
    freezing: Instant,
    /// That steps are too long for the grace time is said once.
    long_steps_told: bool,
    /// That another plugin waits is said once.
    waiting_told: bool,
}

impl Steps<'_> {
    fn go(&mut self) -> Result<Ending, RunError> {
        loop {
            self.hear()?;
            if let Some(stop) = self.context.stops.requested() {
                return self.stop(stop);
            }
            if self.context.offers.are_there()
                && let Some(ending) = self.swap_if_offered()?
            {
                return Ok(ending);
            }
            self.save_if_due()?;
            self.context.marks.at(Phase::Step, self.running.next_step);
            if self.context.marks.are_read() {
                self.now = Instant::now();
            }
            if let Some(stop) = self.context.stops.requested() {
                return self.stop(stop);
            }
            let answer = match self.step() {
                Ok(answer) => answer,
                Err(CallError::Interrupted(Interruption::GraceEnds)) => {
                    return Err(self.failed(Call::Step, CallError::Interrupted(Interruption::GraceEnds)));
                }
                Err(cause) => {
                    let unfit = Unfit::Call { call: Call::Step, cause: cause.clone() };
                    return match self.back(&unfit)? {
                        Some(ending) => Ok(ending),
                        None => Err(self.failed(Call::Step, cause)),
                    };
                }
            };
            if self.probation.is_some() {
                self.passed();
            }
            if let Some(line) = answer {
                return self.done(line);
            }
        }
    }

    /// One step; answers the guest's line when it is done.
    fn step(&mut self) -> Result<Option<String>, CallError> {
        let began = self.now;
        let running = &mut self.running;
        let answer = match &mut running.guest {
            Some(guest) => self.context.watch.during(Call::Step, began, || guest.step()),
            None => Err(no_guest()),
        };
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
                    let safe = self.journal.record().safe_step;
                    let note = safe.map_or(String::new(), |step| format!("last verified checkpoint at step {step}"));
                    self.bar.update(done, total, &note);
                }
                Ok(None)
            }
        }
    }

    fn failed(&mut self, call: Call, cause: CallError) -> RunError {
        self.running.flush_output();
        // What is being saved is worth having: the next attempt goes on from there.
        let _ = self.wait_for_save();
        if cause == CallError::Interrupted(Interruption::GraceEnds) {
            return RunError::Guest { call, step: self.running.next_step, cause, hopeless: None };
        }
        guest_failed(self.context, self.journal, &self.running.history, call, self.running.next_step, cause)
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

/// How many metrics of a guest that ends were dropped for their names.
fn say_dropped(guest: Option<&Guest>) {
    if let Some(dropped @ 1..) = guest.map(Guest::dropped_metrics) {
        tracing::warn!(dropped, "Metrics dropped because of their names, in this attempt: {dropped}");
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

/// Writes the failure into the record, and says whether earlier attempts show that another is of no use.
pub(super) fn guest_failed(
    context: &Context<'_>,
    journal: &Journal,
    history: &History,
    call: Call,
    step: u64,
    cause: CallError,
) -> RunError {
    // A refusal is the guest's own word; that the device is gone is nobody's fault.
    let trap = !matches!(
        cause,
        CallError::Guest(GuestError::Invalid(_) | GuestError::Retryable(_) | GuestError::IncompatibleState(_))
            | CallError::Device(_)
    );
    let record = {
        let mut record = journal.record();
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
