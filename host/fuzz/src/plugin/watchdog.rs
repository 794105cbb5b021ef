//! Ends calls that take too long: most loops of made-up code have no end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use steadfast::plugin::{Interrupter, Interruption};

/// How long a call may take. A call that ends by itself takes microseconds.
const PATIENCE: Duration = Duration::from_millis(10);

struct Call {
    deadline: Instant,
    interrupter: Interrupter,
}

#[derive(Default)]
struct Watched {
    call: Mutex<Option<Call>>,
    changed: Condvar,
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Option<Call>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self) {
        let mut call = self.lock();
        loop {
            let now = Instant::now();
            call = match &*call {
                None => self.changed.wait(call).unwrap_or_else(PoisonError::into_inner),
                Some(Call { deadline, interrupter }) if *deadline <= now => {
                    interrupter.interrupt(Interruption::StepTimeout);
                    *call = None;
                    call
                }
                Some(Call { deadline, .. }) => {
                    let left = *deadline - now;
                    self.changed.wait_timeout(call, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Watches one call at a time.
pub(super) struct Watchdog(Arc<Watched>);

impl Watchdog {
    /// The watchdog of this process.
    pub(super) fn of_process() -> &'static Self {
        static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
        WATCHDOG.get_or_init(|| {
            let watched = Arc::new(Watched::default());
            let of_thread = Arc::clone(&watched);
            thread::spawn(move || of_thread.keep());
            Self(watched)
        })
    }

    /// Makes a call, and has it interrupted once it takes too long.
    pub(super) fn watch<T>(&self, interrupter: &Interrupter, call: impl FnOnce() -> T) -> T {
        *self.0.lock() = Some(Call { deadline: Instant::now() + PATIENCE, interrupter: interrupter.clone() });
        self.0.changed.notify_one();
        let result = call();
        // From here on nobody interrupts: the thread does it only while it holds the lock.
        *self.0.lock() = None;
        interrupter.clear();
        result
    }
}
