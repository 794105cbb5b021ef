//! Requests to stop, and to save, that come as signals.
//!
//! The handler (of `signal-hook`) sets a flag and writes a byte to a pipe; nothing else happens in it. A thread reads the pipe
//! and keeps the first request: later ones are logged, and change nothing. Saving is the job loop's business, and so is the
//! line "Received SIGTERM" for the first one, since only the loop knows what it will do about it.
//!
//! | signal | what happens |
//! |---|---|
//! | SIGTERM, and the engine's own | a stop is requested |
//! | SIGINT from a keyboard | the same; a second one ends the process at once, 130 |
//! | SIGUSR1 | a checkpoint is requested |
//! | SIGHUP | a look at the plugin's file is requested |

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::{PlatformError, StopSignal};

/// Why the attempt has to stop, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReason {
    /// What asked for it: `SIGTERM`, `SIGINT`, or what [`StopRequests::request`] was told.
    pub name: &'static str,
    /// When it was asked for; the grace time runs from then.
    pub at: Instant,
    /// It came from the keyboard: exit code 130, not 143.
    pub from_keyboard: bool,
}

type Subscriber = Box<dyn Fn(&StopReason) + Send>;

/// What has been asked of this process. Clones are the same requests; asking is as cheap as reading a flag.
#[derive(Clone)]
pub struct StopRequests {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: OnceLock<StopReason>,
    checkpoint: AtomicBool,
    reload: AtomicBool,
    subscribers: Mutex<Vec<Subscriber>>,
    /// Held while those who subscribed are told: nobody acts on a request, perhaps by ending the process, before it is logged.
    telling: Mutex<()>,
    /// Held while something changes that a waiter waits for.
    changes: Mutex<()>,
    changed: Condvar,
}

/// What ended a wait for a look at the plugin's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A stop is requested.
    Stop,
    /// A look was requested.
    Look,
    /// Nothing was, for as long as it was waited.
    Time,
}

/// What the thread does about a signal; apart from it, so that it can be tested.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Stop { name: &'static str, from_keyboard: bool },
    Checkpoint,
    Reload,
}

impl StopRequests {
    /// Begins to listen. The first thing a process does, so that a signal at start-up isn't lost. With `keyboard`, SIGINT comes
    /// from a person; else it is only listened to if it is one of the engine's.
    pub fn install(stop_signals: &[StopSignal], keyboard: bool) -> Result<Self, PlatformError> {
        let engine_interrupts = stop_signals.contains(&StopSignal::Interrupt);
        let mut numbers = vec![SIGTERM, SIGUSR1, SIGHUP];
        if keyboard || engine_interrupts {
            numbers.push(SIGINT);
        }
        let mut signals = Signals::new(numbers).map_err(PlatformError::Signals)?;
        let requests = Self::detached();
        let listener = requests.clone();
        let listen = move || {
            let mut interrupts = 0_u32;
            for number in &mut signals {
                interrupts += u32::from(number == SIGINT);
                if number == SIGINT && !engine_interrupts && interrupts > 1 {
                    signal_hook::low_level::exit(130);
                }
                listener.handle(effect_of(number, engine_interrupts));
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(PlatformError::Signals)?;
        Ok(requests)
    }

    /// Requests that no signal makes, only [`StopRequests::request`].
    #[must_use]
    pub fn detached() -> Self {
        Self { shared: Arc::new(Shared::default()) }
    }

    /// The first request to stop, if there was one; once all who subscribed know of it, so they must not ask.
    #[must_use]
    pub fn requested(&self) -> Option<StopReason> {
        let reason = self.shared.stop.get()?;
        drop(lock(&self.shared.telling));
        Some(reason.clone())
    }

    /// Requests a stop from within, as the attempt's deadline does. Only the first request counts; whether this was it is
    /// answered.
    pub fn request(&self, name: &'static str) -> bool {
        self.stop(StopReason { name, at: Instant::now(), from_keyboard: false })
    }

    /// Waits for a request to stop, no longer than `limit`.
    #[must_use]
    pub fn wait_timeout(&self, limit: Duration) -> Option<StopReason> {
        let guard = lock(&self.shared.changes);
        let nothing_yet = |_: &mut ()| self.shared.stop.get().is_none();
        let waited = self.shared.changed.wait_timeout_while(guard, limit, nothing_yet);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.requested()
    }

    /// Calls back once when a stop is requested, at once if it already was. It is called from the thread that listens to
    /// signals, which must not be held up.
    pub fn subscribe(&self, callback: impl Fn(&StopReason) + Send + 'static) {
        let mut subscribers = lock(&self.shared.subscribers);
        match self.shared.stop.get() {
            None => subscribers.push(Box::new(callback)),
            Some(reason) => {
                drop(subscribers);
                callback(reason);
            }
        }
    }

    /// Whether a checkpoint was requested (SIGUSR1) since this was last asked.
    #[must_use]
    pub fn take_checkpoint_request(&self) -> bool {
        // Looked at first, since it is asked before every step and hardly ever true.
        self.shared.checkpoint.load(Ordering::Relaxed) && self.shared.checkpoint.swap(false, Ordering::AcqRel)
    }

    /// Waits for a request to stop or to look at the plugin's file (SIGHUP), no longer than `limit` if there is one. A request
    /// to look is taken with the answer.
    #[must_use]
    pub fn wait_for_look(&self, limit: Option<Duration>) -> Woken {
        let Shared { changes, changed, stop, reload, .. } = &*self.shared;
        let nothing_yet = |_: &mut ()| stop.get().is_none() && !reload.load(Ordering::Acquire);
        let guard = lock(changes);
        let guard = match limit {
            Some(limit) => changed.wait_timeout_while(guard, limit, nothing_yet).map(|(guard, _)| guard).ok(),
            None => changed.wait_while(guard, nothing_yet).ok(),
        };
        drop(guard);
        match (self.requested(), reload.swap(false, Ordering::AcqRel)) {
            (Some(_), _) => Woken::Stop,
            (None, true) => Woken::Look,
            (None, false) => Woken::Time,
        }
    }

    fn handle(&self, effect: Effect) {
        match effect {
            Effect::Reload => {
                let guard = lock(&self.shared.changes);
                self.shared.reload.store(true, Ordering::Release);
                drop(guard);
                self.shared.changed.notify_all();
            }
            Effect::Checkpoint => self.shared.checkpoint.store(true, Ordering::Release),
            Effect::Stop { name, from_keyboard } => {
                let before = self.requested();
                if !self.stop(StopReason { name, at: Instant::now(), from_keyboard }) {
                    let again = if before.is_some_and(|before| before.name == name) { " again" } else { "" };
                    tracing::info!(signal = name, "Received {name}{again}, already stopping");
                }
            }
        }
    }

    fn stop(&self, reason: StopReason) -> bool {
        let _telling = lock(&self.shared.telling);
        // The reason is set under both locks, so that one who subscribes or begins to wait meanwhile misses nothing.
        let mut subscribers = lock(&self.shared.subscribers);
        let guard = lock(&self.shared.changes);
        if self.shared.stop.set(reason.clone()).is_err() {
            return false;
        }
        let waiting = std::mem::take(&mut *subscribers);
        drop((guard, subscribers));
        self.shared.changed.notify_all();
        for callback in waiting {
            callback(&reason);
        }
        true
    }
}

fn effect_of(number: i32, engine_interrupts: bool) -> Effect {
    match number {
        SIGUSR1 => Effect::Checkpoint,
        SIGHUP => Effect::Reload,
        SIGINT => Effect::Stop { name: StopSignal::Interrupt.name(), from_keyboard: !engine_interrupts },
        _ => Effect::Stop { name: StopSignal::Terminate.name(), from_keyboard: false },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for StopRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopRequests").field("stop", &self.shared.stop).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::atomic::AtomicU32;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn only_the_first_request_counts_and_a_storm_changes_nothing() {
        let requests = StopRequests::detached();
        assert_eq!(requests.requested(), None);
        assert_eq!(requests.wait_timeout(Duration::ZERO), None);
        requests.handle(effect_of(SIGTERM, false));
        let first = requests.requested().unwrap();
        assert_eq!((first.name, first.from_keyboard), ("SIGTERM", false));
        for _ in 0..1000 {
            requests.handle(effect_of(SIGTERM, false));
            requests.handle(effect_of(SIGINT, false));
        }
        assert!(!requests.request("the attempt's deadline"));
        assert_eq!(requests.requested(), Some(first));
    }

    #[test]
    fn an_interrupt_is_the_keyboards_unless_the_engine_stops_with_it() {
        assert_eq!(effect_of(SIGINT, false), Effect::Stop { name: "SIGINT", from_keyboard: true });
        assert_eq!(effect_of(SIGINT, true), Effect::Stop { name: "SIGINT", from_keyboard: false });
    }

    #[test]
    fn a_checkpoint_request_is_taken_once_and_stops_nothing() {
        let requests = StopRequests::detached();
        assert!(!requests.take_checkpoint_request());
        requests.handle(effect_of(SIGUSR1, false));
        requests.handle(effect_of(SIGUSR1, false));
        assert!(requests.take_checkpoint_request());
        assert!(!requests.take_checkpoint_request());
        assert_eq!(requests.requested(), None);
    }

    #[test]
    fn every_subscriber_is_called_once_whenever_it_came() {
        let requests = StopRequests::detached();
        let calls = Arc::new(AtomicU32::new(0));
        let subscribe = || {
            let calls = Arc::clone(&calls);
            requests.subscribe(move |_| {
                calls.fetch_add(1, Ordering::SeqCst);
            });
        };
        subscribe();
        subscribe();
        assert!(requests.request("the attempt's deadline"));
        requests.handle(effect_of(SIGTERM, false));
        subscribe();
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn nobody_sees_a_request_before_all_subscribers_were_told() {
        let requests = StopRequests::detached();
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        requests.subscribe(move |_| {
            tell.send("telling").unwrap();
            wait.recv().unwrap();
        });
        let asking = requests.clone();
        let stopping = std::thread::spawn(move || asking.request("SIGTERM"));
        assert_eq!(told.recv(), Ok("telling"));
        let seen = Arc::new(AtomicBool::new(false));
        let looking = std::thread::spawn({
            let (requests, seen) = (requests.clone(), Arc::clone(&seen));
            move || {
                let reason = requests.requested();
                seen.store(true, Ordering::SeqCst);
                reason
            }
        });
        // However long it takes to look, it cannot be seen yet.
        std::thread::yield_now();
        assert!(!seen.load(Ordering::SeqCst));
        go_on.send(()).unwrap();
        assert_eq!(looking.join().unwrap().unwrap().name, "SIGTERM");
        assert!(stopping.join().unwrap());
    }

    #[test]
    fn a_waiter_is_woken() {
        let requests = StopRequests::detached();
        let waiter = std::thread::spawn({
            let requests = requests.clone();
            move || requests.wait_timeout(LONG)
        });
        requests.request("SIGTERM");
        assert_eq!(waiter.join().unwrap().unwrap().name, "SIGTERM");
    }

    #[test]
    fn who_waits_for_a_look_is_woken_by_either_request() {
        let requests = StopRequests::detached();
        assert_eq!(requests.wait_for_look(Some(Duration::ZERO)), Woken::Time);
        let wait = || {
            let requests = requests.clone();
            std::thread::spawn(move || requests.wait_for_look(None))
        };
        let waiter = wait();
        requests.handle(effect_of(SIGHUP, false));
        assert_eq!(waiter.join().unwrap(), Woken::Look);
        assert_eq!(requests.wait_for_look(Some(Duration::ZERO)), Woken::Time, "it is taken once");
        let waiter = wait();
        requests.request("SIGTERM");
        assert_eq!(waiter.join().unwrap(), Woken::Stop);
    }

    #[test]
    fn real_signals_arrive() {
        let requests = StopRequests::install(&[StopSignal::Terminate], true).unwrap();
        signal_hook::low_level::raise(SIGTERM).unwrap();
        let reason = requests.wait_timeout(LONG).unwrap();
        assert_eq!((reason.name, reason.from_keyboard), ("SIGTERM", false));
    }
}
