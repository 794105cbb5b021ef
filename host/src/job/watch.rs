//! Keeps time while the guest runs: the end of the grace time, the limit of a step, a stall worth a warning.
//!
//! One thread, which waits for neither guest nor volume nor driver, nor for whoever reads the log. When a stop is requested it lets the running step go on
//! for as long as the save that follows leaves room, then interrupts the guest; and shortly before the platform would send
//! SIGKILL it ends the process itself, whatever hangs, so that the exit code is ours.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::ExitCode;
use crate::checkpoint::store::Call;
use crate::platform::{StopReason, StopRequests};
use crate::plugin::{Interrupter, Interruption};

/// How often a call's age is looked at where only its limit or a stall can matter.
const TICK: Duration = Duration::from_millis(250);

/// A step is called a stall when it takes this many times the 95th percentile of those before, and at least [`LEAST_STALL`].
const STALL_FACTOR: u32 = 20;
const LEAST_STALL: Duration = Duration::from_secs(60);

/// The watching thread's other end. Clones are the same.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    grace: Duration,
    step_timeout: Option<Duration>,
    /// What [`Running`] is counted from.
    began: Instant,
    /// The running call, as [`Running::word`]; 0 for none. No part of the state behind the lock: steps may be so short that
    /// taking a lock around each would cost more than they do.
    call: AtomicU64,
    /// Whether a stop is requested.
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    stop: Option<StopReason>,
    interrupter: Option<Interrupter>,
    /// The call whose stall was told.
    stall_told: Option<Running>,
    /// What a save is predicted to take.
    reserve: Duration,
    /// The 95th percentile of step times; none before there are enough.
    usual_step: Option<Duration>,
    /// How long a call may take now, whatever the limit is else.
    patience: Option<Duration>,
}

/// A call that has begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Running {
    call: Call,
    /// Since the watch began.
    since: Duration,
}

/// In the word of a running call: it was told to end.
const INTERRUPTED: u64 = 1 << 3;

impl Running {
    /// Nanoseconds, of which 60 bits last for decades, then a bit for [`INTERRUPTED`] and three for the call.
    fn word(self) -> u64 {
        let call = match self.call {
            Call::Start => 1,
            Call::Restore => 2,
            Call::Step => 3,
            Call::Snapshot => 4,
        };
        (self.since.as_nanos() as u64) << 4 | call
    }

    fn of_word(word: u64) -> Option<Self> {
        let call = match word & 0b111 {
            1 => Call::Start,
            2 => Call::Restore,
            3 => Call::Step,
            4 => Call::Snapshot,
            _ => return None,
        };
        Some(Self { call, since: Duration::from_nanos(word >> 4) })
    }
}

/// Of the grace time, what is kept for ending: the process is gone before SIGKILL comes.
#[must_use]
pub fn margin(grace: Duration) -> Duration {
    (grace / 20).clamp(Duration::from_millis(20), Duration::from_millis(500)).min(grace / 2)
}

impl Watch {
    /// Starts watching.
    pub fn start(stops: &StopRequests, grace: Duration, step_timeout: Option<Duration>) -> std::io::Result<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let (call, stopping) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Shared { state, changed, grace, step_timeout, began: Instant::now(), call, stopping };
        let watch = Self(Arc::new(shared));
        let told = watch.clone();
        stops.subscribe(move |reason| {
            told.lock().stop = Some(reason.clone());
            told.0.stopping.store(true, Ordering::SeqCst);
            told.0.changed.notify_all();
        });
        let watching = watch.clone();
        thread::Builder::new().name("watch".into()).spawn(move || watching.run())?;
        Ok(watch)
    }

    /// From now on this interrupter reaches the guest.
    pub fn guest(&self, interrupter: Interrupter) {
        self.lock().interrupter = Some(interrupter);
    }

    /// From now on a call may take this long at most; none for the limit that there is else.
    pub fn patience(&self, limit: Option<Duration>) {
        self.lock().patience = limit;
    }

    /// What a save is predicted to take: a step may not run into that part of the grace time.
    pub fn reserve(&self, save: Duration, usual_step: Option<Duration>) {
        let mut state = self.lock();
        state.reserve = save;
        state.usual_step = usual_step;
    }

    /// Runs a call of the guest under watch, which counts from `began`. One at a time.
    pub fn during<T>(&self, call: Call, began: Instant, run: impl FnOnce() -> T) -> T {
        let running = Running { call, since: began.saturating_duration_since(self.0.began) };
        // One order for this and the stop request: either it is seen here, or whoever makes it sees the call.
        self.0.call.store(running.word(), Ordering::SeqCst);
        if self.0.stopping.load(Ordering::SeqCst) {
            // The watching thread does not know yet when this call has to end. It looks under the lock, then waits.
            drop(self.lock());
            self.0.changed.notify_all();
        }
        let answer = run();
        let word = self.0.call.swap(0, Ordering::SeqCst);
        if word & INTERRUPTED != 0 {
            // The watching thread marks the call and makes its wish under one lock, so by now it has made it.
            if let Some(interrupter) = &self.lock().interrupter {
                // The call may have ended by itself just before: the wish must not hit the next one.
                interrupter.clear();
            }
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if let Some(end) = self.end_of_process(&state)
                && now >= end
            {
                let code = state.stop.as_ref().map_or(ExitCode::Preempted, stop_code);
                let told = tell(|| {
                    tracing::warn!(
                        "The grace time is over before everything was written; the last verified checkpoint stands"
                    );
                });
                // Who reads the log has the margin's better part; SIGKILL comes after it.
                let _ = told.recv_timeout(margin(self.0.grace) * 3 / 4);
                signal_hook::low_level::exit(code.code().into());
            }
            self.judge(&mut state, now);
            let wait = self.next_look(&state, now);
            state = self.0.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end_of_process(&self, state: &State) -> Option<Instant> {
        state.stop.as_ref().map(|stop| stop.at + self.0.grace.saturating_sub(margin(self.0.grace)))
    }

    /// When the running call has to give way to the end of the grace time.
    fn end_of_call(&self, state: &State, call: Call) -> Option<Instant> {
        let stop = state.stop.as_ref()?;
        Some(match call {
            // There is nothing new to save.
            Call::Start | Call::Restore => stop.at,
            // Where saving takes next to nothing, ending still takes a moment: for the interrupted guest, and the record.
            Call::Step => {
                let margin = margin(self.0.grace);
                stop.at + self.0.grace.saturating_sub(margin + state.reserve.max(margin))
            }
            Call::Snapshot => stop.at + self.0.grace.saturating_sub(margin(self.0.grace) * 2),
        })
    }

    fn judge(&self, state: &mut State, now: Instant) {
        let word = self.0.call.load(Ordering::SeqCst);
        let Some(running) = Running::of_word(word) else { return };
        let age = now.saturating_duration_since(self.0.began + running.since);
        let grace_ends = self.end_of_call(state, running.call).is_some_and(|end| now >= end);
        let too_long = state.patience.or(self.0.step_timeout).is_some_and(|limit| age >= limit);
        let stall = running.call == Call::Step
            && age >= state.usual_step.map_or(LEAST_STALL, |usual| (usual * STALL_FACTOR).max(LEAST_STALL));
        let why = match (grace_ends, too_long) {
            (true, _) => Some(Interruption::GraceEnds),
            (false, true) => Some(Interruption::StepTimeout),
            (false, false) => None,
        };
        if let (Some(why), Some(interrupter), 0) = (why, &state.interrupter, word & INTERRUPTED) {
            // Unless the call ended meanwhile, and another perhaps began.
            let mark = self.0.call.compare_exchange(word, word | INTERRUPTED, Ordering::SeqCst, Ordering::Relaxed);
            if mark.is_ok() {
                interrupter.interrupt(why);
            }
        }
        if stall && state.stall_told != Some(running) {
            state.stall_told = Some(running);
            let seconds = age.as_secs();
            drop(tell(move || tracing::warn!(seconds, "A step has been running for {seconds} s")));
        }
    }

    fn next_look(&self, state: &State, now: Instant) -> Duration {
        let tick = state
            .patience
            .or(self.0.step_timeout)
            .map_or(TICK, |limit| (limit / 4).clamp(Duration::from_millis(1), TICK));
        let word = self.0.call.load(Ordering::SeqCst);
        let running = Running::of_word(word).filter(|_| word & INTERRUPTED == 0);
        let ends = [self.end_of_process(state), running.and_then(|running| self.end_of_call(state, running.call))];
        let ends = ends.into_iter().flatten().map(|end| end.saturating_duration_since(now));
        ends.chain([tick]).min().unwrap_or(tick)
    }
}

/// Logs from a thread of its own: a log that nobody reads may be full, and this thread waits for nothing. The answer comes, or
/// ends, when it was said.
fn tell(what: impl FnOnce() + Send + 'static) -> Receiver<()> {
    let (said, heard) = channel();
    let say = move || {
        what();
        let _ = said.send(());
    };
    // Where not even a thread can be had, the line is what matters least.
    let _ = thread::Builder::new().name("tell".into()).spawn(say);
    heard
}

/// The exit code that a stop ends with.
#[must_use]
pub fn stop_code(stop: &StopReason) -> ExitCode {
    if stop.from_keyboard { ExitCode::Keyboard } else { ExitCode::Preempted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up() {
        let (read, stuck) = channel::<()>();
        let told = tell(move || assert!(stuck.recv().is_err()));
        assert!(told.try_recv().is_err());
        drop(read);
        assert_eq!(told.recv(), Ok(()));
    }
}
