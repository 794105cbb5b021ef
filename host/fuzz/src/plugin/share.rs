//! How many inputs come as far as `step`.

use std::sync::atomic::{AtomicU64, Ordering};

/// The count of this process.
pub(super) struct Share {
    inputs: AtomicU64,
    reached: AtomicU64,
}

impl Share {
    pub(super) fn of_process() -> &'static Self {
        static SHARE: Share = Share { inputs: AtomicU64::new(0), reached: AtomicU64::new(0) };
        &SHARE
    }

    /// Counts an input; says the sum now and then, since nobody tells a target that it ends. `cargo xtask fuzz` reads it.
    pub(super) fn count(&self, reached: bool) {
        let inputs = self.inputs.fetch_add(1, Ordering::Relaxed) + 1;
        let reached = self.reached.fetch_add(u64::from(reached), Ordering::Relaxed) + u64::from(reached);
        if inputs.is_multiple_of(100) || (inputs >= 16 && inputs.is_power_of_two()) {
            eprintln!("reached step: {reached} of {inputs} inputs");
        }
    }
}
