//! What a guest reports while it is tried: its metrics are compared; its lines are not shown, since they are those of steps that do not
//! count.

use std::sync::{Mutex, PoisonError};

use crate::plugin::{GuestEvents, GuestLevel, GuestStream};

/// More than this in one trial are not compared.
const MOST: usize = 100_000;

/// Keeps metrics, in the order in which they came.
#[derive(Default)]
pub(super) struct Metrics(Mutex<Vec<(String, f64)>>);

impl Metrics {
    /// Those since this was last asked.
    pub(super) fn take(&self) -> Vec<(String, f64)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl GuestEvents for Metrics {
    fn line(&self, _: GuestStream, _: &str) {}

    fn log(&self, _: GuestLevel, _: &str) {}

    fn metric(&self, name: &str, value: f64) {
        let mut metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if metrics.len() < MOST {
            metrics.push((name.to_owned(), value));
        }
    }
}
