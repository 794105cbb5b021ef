//! Ending a call that takes too long.
//!
//! wasmtime's compiled code compares an epoch counter at every loop and function entry. Nobody ticks it here: the counter
//! moves only when somebody wants a call to end, so a guest that is left alone pays for the comparison and nothing more.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::{Engine, UpdateDeadline};

use crate::device::Stopper;

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// The call took longer than `--step-timeout` allows.
    #[error("the call took longer than --step-timeout allows")]
    StepTimeout,
    /// The platform's grace time is nearly over.
    #[error("the grace time ended")]
    GraceEnds,
}

/// Ends the call that a guest is in, from another thread. Clones, and all guests of one [`super::Plugin`], share one wish.
///
/// It ends WebAssembly code at its next loop or call, and what the device is at. It does not end another host call that is in progress: a guest that
/// sleeps or waits for a file system comes back from that first. An interrupted guest is never called again.
#[derive(Clone)]
pub struct Interrupter {
    engine: Engine,
    wish: Arc<AtomicU8>,
    device: Arc<Mutex<Option<Stopper>>>,
}

impl Interrupter {
    pub(super) fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone(), wish: Arc::default(), device: Arc::default() }
    }

    /// From now on an interruption ends the work of this device, and of no other.
    pub(super) fn attach(&self, device: Stopper) {
        *self.device.lock().unwrap_or_else(PoisonError::into_inner) = Some(device);
        // Either this sees a wish that is made meanwhile, or whoever makes it sees the device.
        if self.wish().is_some() {
            self.tell_device(Stopper::stop);
        }
    }

    fn tell_device(&self, what: impl FnOnce(&Stopper)) {
        if let Some(device) = &*self.device.lock().unwrap_or_else(PoisonError::into_inner) {
            what(device);
        }
    }

    /// Ends the call in progress, and every later one until [`clear`](Self::clear). The first reason given stays.
    pub fn interrupt(&self, why: Interruption) {
        let code = match why {
            Interruption::StepTimeout => 1,
            Interruption::GraceEnds => 2,
        };
        // The wish stands before the epoch moves, so a guest that sees the new epoch sees the wish too.
        let _ = self.wish.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.engine.increment_epoch();
        self.tell_device(Stopper::stop);
    }

    /// Takes the wish back, for the case that the call had ended by itself in the meantime.
    pub fn clear(&self) {
        self.wish.store(0, Ordering::SeqCst);
        self.tell_device(Stopper::clear);
    }

    /// What is wished at the moment.
    pub fn wish(&self) -> Option<Interruption> {
        match self.wish.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Interruption::StepTimeout),
            _ => Some(Interruption::GraceEnds),
        }
    }

    /// Answers the store's deadline callback: any movement of the epoch asks, since the deadline is always one ahead.
    pub(super) fn at_deadline(&self) -> wasmtime::Result<UpdateDeadline> {
        match self.wish() {
            Some(why) => Err(wasmtime::Error::new(why)),
            None => Ok(UpdateDeadline::Continue(1)),
        }
    }
}
