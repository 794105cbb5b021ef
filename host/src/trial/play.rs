//! One plugin, brought to a checkpoint as a run would bring it there, and so many steps on.
//!
//! The guest lives on a thread of its own, and says before each call which one comes: a call that takes too long is interrupted, and
//! one that cannot be, since it is in a call of the host, is left behind with its thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::events::Metrics;
use super::subject::Subject;
use super::{TrialSpec, scratch_failed};
use crate::checkpoint::outputs::{RebuildError, Scratch};
use crate::checkpoint::store::{Call, LoadError};
use crate::job::RunError;
use crate::plugin::{
    CallError, GuestSettings, Interrupter, Interruption, JobInfo, Plugin, RandomPosition, Snapshot, Step,
};

/// How long an interrupted call has to come to its end.
const LAST: Duration = Duration::from_secs(2);
/// For the guest's own stack, and as much again for the host.
const STACK: usize = 4 << 20;

/// What a plugin did.
#[derive(Debug)]
pub struct Played {
    /// A step each: how long it took, and how far the task was then.
    pub steps: Vec<(Duration, Step)>,
    /// Step, name and value.
    pub metrics: Vec<(u64, String, f64)>,
    /// What it saved at the end.
    pub state: Snapshot,
    /// Where the host's generators of random bytes were then.
    pub random: RandomPosition,
    /// Bytes in its memories and tables.
    pub memory: u64,
    /// With its outputs.
    pub(super) scratch: Scratch,
}

impl Played {
    /// Bytes of its state.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.state.bytes()
    }

    /// The middle one of its step times.
    #[must_use]
    pub fn usual_step(&self) -> Duration {
        let mut times: Vec<Duration> = self.steps.iter().map(|(time, _)| *time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// How many calls there are: `restore`, the steps, `snapshot`.
pub(super) fn calls(steps: u32) -> u64 {
    u64::from(steps) + 2
}

enum Event {
    Begins(Call, u64),
    Ended(Box<Result<(Played, Snapshot), RunError>>),
}

/// Goes on from the subject's checkpoint. The state comes back, for the next plugin. `progress` hears of each call.
pub(super) fn play(
    spec: &TrialSpec,
    plugin: &Plugin,
    subject: &Subject,
    config: &str,
    state: Snapshot,
    progress: &dyn Fn(u64, &str),
) -> Result<(Played, Snapshot), RunError> {
    let scratch = Scratch::make(&spec.scratch).map_err(scratch_failed(spec))?;
    rebuild(spec, subject, &scratch)?;
    let metadata = &subject.content.metadata;
    let random = RandomPosition::deserialize(&metadata.random).map_err(|cause| {
        let checkpoint = subject.checkpoint.display().to_string();
        RunError::Random { checkpoint, cause }
    })?;
    let metrics = Arc::<Metrics>::default();
    let (sender, events) = channel();
    let player = Player {
        plugin: plugin.clone(),
        settings: GuestSettings {
            input: spec.input.clone(),
            output: scratch.output(),
            memory_limit: spec.memory_limit,
            state_limit: spec.state_limit,
            device: Some(spec.device.opener(spec.device_memory)),
            device_memory: spec.device_memory,
            seed: metadata.seed,
            events: metrics.clone(),
        },
        metrics,
        job: subject.job(),
        config: config.to_owned(),
        random,
        next_step: metadata.next_step,
        steps: spec.steps,
        scratch,
        events: sender.clone(),
    };
    let work = move || drop(sender.send(Event::Ended(Box::new(player.play(state)))));
    thread::Builder::new().name("trial".into()).stack_size(STACK).spawn(work).map_err(RunError::Thread)?;
    watch(&events, &plugin.interrupter(), spec.step_timeout, progress)
}

/// Waits for the player, and interrupts a call that takes longer than `limit`.
fn watch(
    events: &Receiver<Event>,
    interrupter: &Interrupter,
    limit: Duration,
    progress: &dyn Fn(u64, &str),
) -> Result<(Played, Snapshot), RunError> {
    // A trial before this one may have been ended so.
    interrupter.clear();
    let mut begun = 0;
    let mut running = None;
    let mut interrupted = false;
    let mut wait = limit;
    loop {
        match (events.recv_timeout(wait), running) {
            (Ok(Event::Begins(call, step)), _) => {
                progress(begun, &format!("{} at step {step}", name(call)));
                begun += 1;
                if std::mem::take(&mut interrupted) {
                    // What was to be interrupted had just ended by itself.
                    interrupter.clear();
                }
                (running, wait) = (Some((call, step)), limit);
            }
            (Ok(Event::Ended(outcome)), _) => return *outcome,
            (Err(RecvTimeoutError::Timeout), Some((call, step))) if interrupted => {
                let cause = CallError::Interrupted(Interruption::StepTimeout);
                return Err(RunError::Guest { call, step, cause, hopeless: None });
            }
            (Err(RecvTimeoutError::Timeout), running) => {
                interrupter.interrupt(Interruption::StepTimeout);
                interrupted = true;
                // The plugin is set up before its first call: code of its own that runs then ends too, the rest takes its time.
                wait = if running.is_some() { LAST } else { limit };
            }
            (Err(RecvTimeoutError::Disconnected), _) => {
                return Err(RunError::Thread(io::Error::other("the guest's thread is gone")));
            }
        }
    }
}

fn name(call: Call) -> &'static str {
    match call {
        Call::Start => "start",
        Call::Restore => "restore",
        Call::Step => "step",
        Call::Snapshot => "snapshot",
    }
}

/// What the guest's thread needs.
struct Player {
    plugin: Plugin,
    settings: GuestSettings,
    metrics: Arc<Metrics>,
    job: JobInfo,
    config: String,
    random: RandomPosition,
    next_step: u64,
    steps: u32,
    scratch: Scratch,
    events: Sender<Event>,
}

impl Player {
    fn play(mut self, state: Snapshot) -> Result<(Played, Snapshot), RunError> {
        let mut guest = self.plugin.instantiate(self.settings.clone())?;
        let job = self.job.clone();
        let state = Arc::new(state);
        self.call(Call::Restore, || guest.restore(&job, &self.config, &state))?;
        // As in a run: what `restore` draws and reports belongs to no step.
        guest.set_random_position(self.random);
        drop(self.metrics.take());

        let (mut steps, mut metrics) = (Vec::new(), Vec::new());
        for _ in 0..self.steps {
            let began = Instant::now();
            let answer = self.call(Call::Step, || guest.step())?;
            let done = matches!(answer, Step::Done(_));
            steps.push((began.elapsed(), answer));
            metrics.extend(self.metrics.take().into_iter().map(|(name, value)| (self.next_step, name, value)));
            self.next_step += 1;
            if done {
                break;
            }
        }
        let saved = self.call(Call::Snapshot, || guest.snapshot(Snapshot::default()))?;
        let (random, memory) = (guest.random_position(), guest.memory_used());
        // The guest goes before its outputs are looked at: what it still holds open is written by then.
        drop(guest);
        Ok((
            Played { steps, metrics, state: saved, random, memory, scratch: self.scratch },
            Arc::try_unwrap(state).unwrap_or_default(),
        ))
    }

    fn call<T>(&self, call: Call, make: impl FnOnce() -> Result<T, CallError>) -> Result<T, RunError> {
        // Nobody listens any more when the call before took too long; then nothing comes of this one either.
        let _ = self.events.send(Event::Begins(call, self.next_step));
        make().map_err(|cause| RunError::Guest { call, step: self.next_step, cause, hopeless: None })
    }
}

fn rebuild(spec: &TrialSpec, subject: &Subject, scratch: &Scratch) -> Result<(), RunError> {
    subject.content.rebuild(&scratch.output(), &scratch.metrics()).map_err(|error| match error {
        RebuildError::Scratch { cause, .. } => scratch_failed(spec)(cause),
        // It was whole when the checkpoint was chosen; a job at work may have pruned it since.
        RebuildError::Segment(damage) => {
            let name = subject.checkpoint.display().to_string();
            LoadError::Unreadable { name, cause: io::Error::other(damage) }.into()
        }
    })
}
