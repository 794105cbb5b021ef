//! Ending what a device is at, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the device's work in progress and refuses what comes, until [`clear`](Self::clear). Clones are the same.
///
/// The device looks at the wish between pieces of its own work; `kick` reaches what runs without looking, such as a compiled kernel.
#[derive(Clone)]
pub struct Stopper {
    wish: Arc<AtomicBool>,
    kick: Arc<dyn Fn() + Send + Sync>,
}

impl Stopper {
    /// A stopper that also calls `kick` whenever it is used. `kick` is quick and does not wait.
    pub fn new(kick: impl Fn() + Send + Sync + 'static) -> Self {
        Self { wish: Arc::default(), kick: Arc::new(kick) }
    }

    /// The work in progress ends soon, with [`DeviceError::Stopped`](super::DeviceError::Stopped).
    pub fn stop(&self) {
        // The wish stands before the kick, so whoever is woken sees it.
        self.wish.store(true, Ordering::SeqCst);
        (self.kick)();
    }

    /// Takes the wish back, for the case that the work had ended by itself in the meantime.
    pub fn clear(&self) {
        self.wish.store(false, Ordering::SeqCst);
    }

    /// Whether work is to end.
    pub fn is_stopped(&self) -> bool {
        self.wish.load(Ordering::SeqCst)
    }
}
