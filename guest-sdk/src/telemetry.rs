//! What a plugin reports while it works. Never blocks and never fails; the host thins and counts floods.

/// Reports a value at the current step, for the job's `metrics.jsonl`.
///
/// Kept exactly once across preemptions: a step that is repeated replaces what its lost twin had reported.
pub fn metric(name: &str, value: f64) {
    #[cfg(target_family = "wasm")]
    crate::bindings::steadfast::job::telemetry::metric(name, value);
    #[cfg(not(target_family = "wasm"))]
    crate::testing::record_metric(name, value);
}

/// Lines in the job's log, with a level. `println!` and `eprintln!` reach the log as well, without one.
pub mod log {
    /// What only somebody who looks for it wants to read.
    pub fn debug(message: impl AsRef<str>) {
        line(Level::Debug, message.as_ref());
    }

    /// What happened.
    pub fn info(message: impl AsRef<str>) {
        line(Level::Info, message.as_ref());
    }

    /// What is odd, but does no harm yet.
    pub fn warn(message: impl AsRef<str>) {
        line(Level::Warn, message.as_ref());
    }

    /// What went wrong. Return an [`Error`](crate::Error) to end the attempt.
    pub fn error(message: impl AsRef<str>) {
        line(Level::Error, message.as_ref());
    }

    #[derive(Debug)]
    enum Level {
        Debug,
        Info,
        Warn,
        Error,
    }

    #[cfg(target_family = "wasm")]
    fn line(level: Level, message: &str) {
        use crate::bindings::steadfast::job::telemetry as wit;
        let level = match level {
            Level::Debug => wit::Level::Debug,
            Level::Info => wit::Level::Info,
            Level::Warn => wit::Level::Warn,
            Level::Error => wit::Level::Error,
        };
        wit::log(level, message);
    }

    #[cfg(not(target_family = "wasm"))]
    fn line(level: Level, message: &str) {
        eprintln!("{level:?}: {message}");
    }
}
