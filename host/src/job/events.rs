//! What a guest says while it runs, on its way to the log and to the record of metrics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::plugin::{GuestEvents, GuestLevel, GuestStream};
use crate::report::{GuestSource, Reporter, Severity};

/// More metrics than this in one step are dropped, and counted.
const MOST_METRICS: usize = 10_000;

/// Receives a guest's reports.
pub struct Events {
    reporter: Reporter,
    metrics: Mutex<Metrics>,
    /// Whether there are any: asked after every step, most of which report none.
    some: AtomicBool,
}

/// The metrics of one call.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Names and values, in the order in which they were reported.
    pub values: Vec<(String, f64)>,
    /// How many were too many.
    pub dropped: u64,
}

impl Events {
    /// Reports through `reporter`.
    #[must_use]
    pub fn new(reporter: Reporter) -> Arc<Self> {
        Arc::new(Self { reporter, metrics: Mutex::default(), some: AtomicBool::new(false) })
    }

    /// The metrics since this was last asked.
    pub fn take_metrics(&self) -> Metrics {
        if !self.some.load(Ordering::Acquire) {
            return Metrics::default();
        }
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        self.some.store(false, Ordering::Release);
        std::mem::take(&mut *metrics)
    }
}

impl GuestEvents for Events {
    fn line(&self, stream: GuestStream, line: &str) {
        let source = match stream {
            GuestStream::Stdout => GuestSource::Stdout,
            GuestStream::Stderr => GuestSource::Stderr,
        };
        self.reporter.guest_line(source, line);
    }

    fn log(&self, level: GuestLevel, message: &str) {
        let severity = match level {
            GuestLevel::Debug => Severity::Debug,
            GuestLevel::Info => Severity::Info,
            GuestLevel::Warn => Severity::Warning,
            GuestLevel::Error => Severity::Error,
        };
        self.reporter.guest_line(GuestSource::Log(severity), message);
    }

    fn metric(&self, name: &str, value: f64) {
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        self.some.store(true, Ordering::Release);
        if metrics.values.len() < MOST_METRICS {
            metrics.values.push((name.to_owned(), value));
        } else {
            metrics.dropped += 1;
        }
    }
}
