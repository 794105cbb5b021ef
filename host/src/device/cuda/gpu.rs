//! A context of a GPU and its one order of operations: waiting, and what a failure means.
//!
//! No call is made whose purpose is to wait. What has to be waited for is asked about again and again, with a look at the [`Stopper`] in
//! between: a kernel cannot be stopped, but whoever waits for it can. For the same reason no more than a few hundred operations are under
//! way at a time: the driver's own queue is finite, and a call that finds it full waits. What is left are calls that may wait for reasons of the driver's own, such
//! as loading a module beside a kernel that never ends: there only the end of the process helps, which waits for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::driver_unsafe::{Context, Driver, Event, Ordinal, Progress, Stream, leave_without_driver};
use super::error::Failed;
use crate::device::{DeviceError, Result, Stopper};

/// Operations between two fences. At most twice as many are under way.
const BETWEEN_FENCES: u32 = 256;
/// Names of kernels that a message may have.
const MOST_NAMES: usize = 8;
/// How often a question is asked at once again, and then with a pause: together about what a short kernel takes.
const EAGER: u32 = 200;
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// What a device that is closed in the middle of its work waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A context, which is destroyed with the last that needs it.
pub(super) struct Owned {
    pub(super) driver: &'static Driver,
    context: Context,
    /// Something is under way that nobody waits for: it has to outlive us.
    abandoned: AtomicBool,
}

impl Owned {
    /// Makes it current in this thread.
    pub(super) fn bind(&self) -> Result<(), Failed> {
        self.driver.bind(self.context)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.abandoned.load(Ordering::SeqCst) {
            // Destroying the context would wait for the kernel; it goes with the process, which therefore must not wait either.
            leave_without_driver();
            return;
        }
        // Whatever it answers, there is nothing left to do about it.
        let _ = self.driver.destroy(self.context);
    }
}

/// A context in use.
pub(super) struct Gpu {
    pub(super) driver: &'static Driver,
    pub(super) context: Arc<Owned>,
    pub(super) stream: Stream,
    pub(super) stopper: Stopper,
    name: String,
    settled: Event,
    fences: [Event; 2],
    /// Since the last fence.
    ordered: u32,
    /// Launched since everything was known to be done, each name once, and how many more there were.
    kernels: Vec<String>,
    more_kernels: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// All that was ordered is done.
    Idle,
    /// Something may be under way.
    Busy,
    /// A call failed, for good.
    Failed,
    /// Somebody stopped waiting for what is under way.
    Abandoned,
}

impl Gpu {
    pub(super) fn open(driver: &'static Driver, device: Ordinal) -> Result<Self, Failed> {
        let name = driver.name(device)?;
        let context = driver.context(device)?;
        let made = || Ok((driver.stream()?, driver.event()?, [driver.event()?, driver.event()?]));
        let (stream, settled, fences) = made().inspect_err(|_| {
            let _ = driver.destroy(context);
        })?;
        let context = Arc::new(Owned { driver, context, abandoned: AtomicBool::new(false) });
        let stopper = Stopper::new(|| ());
        let (kernels, more_kernels, state) = (Vec::new(), false, State::Idle);
        Ok(Self { driver, context, stream, stopper, name, settled, fences, ordered: 0, kernels, more_kernels, state })
    }

    /// The beginning of every operation: from this thread, and unless somebody has had enough.
    pub(super) fn enter(&mut self) -> Result<()> {
        if self.stopper.is_stopped() {
            return Err(self.abandon());
        }
        let bound = self.context.bind();
        self.done(bound)
    }

    /// The end of every order: it was given, or the device is lost.
    pub(super) fn order(&mut self, given: Result<(), Failed>) -> Result<()> {
        self.state = State::Busy;
        self.done(given)?;
        self.ordered += 1;
        if self.ordered < BETWEEN_FENCES {
            return Ok(());
        }
        self.ordered = 0;
        self.fences.reverse();
        let [newest, before] = self.fences;
        let recorded = self.driver.record(newest, self.stream);
        self.done(recorded)?;
        self.wait(before)
    }

    /// Notes that a kernel was launched, for the case that it fails.
    pub(super) fn launched(&mut self, name: &str) {
        if self.kernels.iter().any(|known| known == name) {
            return;
        }
        match self.kernels.len() {
            ..MOST_NAMES => self.kernels.push(name.to_owned()),
            _ => self.more_kernels = true,
        }
    }

    /// Puts a mark behind all that was ordered.
    pub(super) fn mark(&mut self, event: Event) -> Result<()> {
        let recorded = self.driver.record(event, self.stream);
        self.done(recorded)
    }

    /// Waits until what was ordered before the mark is done.
    pub(super) fn wait(&mut self, mark: Event) -> Result<()> {
        let mut pause = Pause::default();
        loop {
            let progress = self.driver.event_query(mark);
            if self.done(progress)? == Progress::Done {
                return Ok(());
            }
            if self.stopper.is_stopped() {
                return Err(self.abandon());
            }
            pause.take();
        }
    }

    /// Waits for everything.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.mark(self.settled)?;
        self.wait(self.settled)?;
        self.is_settled();
        Ok(())
    }

    /// Notes that everything is done.
    pub(super) fn is_settled(&mut self) {
        self.state = State::Idle;
        self.kernels.clear();
        self.more_kernels = false;
    }

    /// The result of a call of which only a failure for good is left.
    pub(super) fn done<T>(&mut self, outcome: Result<T, Failed>) -> Result<T> {
        outcome.map_err(|failed| self.lost(failed))
    }

    /// What a failed call means for the device.
    pub(super) fn lost(&mut self, failed: Failed) -> DeviceError {
        self.state = State::Failed;
        let Self { name, kernels, more_kernels, .. } = self;
        let mut text = format!("the GPU ({name}) failed: {failed}");
        let names = kernels.join("`, `");
        match kernels.len() {
            0 => {}
            1 => text.push_str(&format!("; under way was the kernel `{names}`")),
            _ => {
                let more = if *more_kernels { " and others" } else { "" };
                text.push_str(&format!(
                    "; under way were the kernels `{names}`{more}, and it does not say which it was"
                ));
            }
        }
        DeviceError::Lost(text)
    }

    fn abandon(&mut self) -> DeviceError {
        if self.state == State::Busy {
            self.state = State::Abandoned;
        }
        DeviceError::Stopped
    }

    /// Whether nothing is under way any more, so that memory can be given back; waits for a moment if need be.
    pub(super) fn comes_to_rest(&mut self) -> bool {
        if self.state == State::Busy {
            let _ = self.context.bind();
            if self.mark(self.settled).is_ok() && self.is_done_by(self.settled, Instant::now() + PATIENCE) {
                self.is_settled();
            } else if self.state == State::Busy {
                self.state = State::Abandoned;
            }
        }
        self.state == State::Idle && self.context.bind().is_ok()
    }

    fn is_done_by(&mut self, mark: Event, end: Instant) -> bool {
        let mut pause = Pause::default();
        loop {
            let progress = self.driver.event_query(mark);
            match self.done(progress) {
                Ok(Progress::Done) => return true,
                Ok(Progress::UnderWay) if Instant::now() < end => pause.take(),
                Ok(Progress::UnderWay) | Err(_) => return false,
            }
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.state == State::Abandoned {
            self.context.abandoned.store(true, Ordering::SeqCst);
        }
    }
}

/// Waits for a mark in a thread that nobody stops.
pub(super) fn wait_for(driver: &Driver, mark: Event) -> Result<(), Failed> {
    let mut pause = Pause::default();
    while driver.event_query(mark)? == Progress::UnderWay {
        pause.take();
    }
    Ok(())
}

/// The time between two questions, longer each time.
#[derive(Default)]
struct Pause {
    asked: u32,
    pause: Duration,
}

impl Pause {
    fn take(&mut self) {
        self.asked = self.asked.saturating_add(1);
        if self.asked < EAGER {
            thread::yield_now();
            return;
        }
        self.pause = (self.pause * 5 / 4).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        thread::sleep(self.pause);
    }
}
