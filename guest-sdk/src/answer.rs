//! What a plugin answers: an [`Outcome`] where a call went well, an [`Error`] where it did not.

use std::fmt;
use std::io;

use crate::bindings::steadfast::job::types as wit;

/// The result of everything that a plugin does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a step achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is more to do: the host calls `step` again.
    More {
        /// Units done so far, in a unit of the plugin's choice.
        done: u64,
        /// Units in all, if known.
        total: Option<u64>,
    },
    /// The task is complete. The line is for people; results belong in `/output`.
    Done(String),
}

impl Outcome {
    /// There is more to do, and it is known how much.
    pub fn progress(done: u64, total: u64) -> Self {
        Self::More { done, total: Some(total) }
    }

    /// There is more to do, and nobody knows how much.
    pub fn more(done: u64) -> Self {
        Self::More { done, total: None }
    }

    /// The task is complete.
    pub fn done(line: impl fmt::Display) -> Self {
        Self::Done(line.to_string())
    }
}

impl From<Outcome> for wit::Outcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::More { done, total } => Self::More(wit::Progress { done, total }),
            Outcome::Done(line) => Self::Done(line),
        }
    }
}

/// Why something cannot go on. The kind decides whether the platform tries again; the text is for people.
///
/// An [`io::Error`] becomes [`Retryable`](Error::Retryable) under `?`, since a folder that cannot be read now may be
/// readable on another machine. Where the input itself is at fault, say so: `.map_err(Error::invalid)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The configuration or the input can never work. Not retried.
    Invalid(String),
    /// Another attempt may succeed. Retried.
    Retryable(String),
    /// The state is of a version that this plugin cannot read. The checkpoints stay as they are. Not retried.
    IncompatibleState(String),
}

impl Error {
    /// An error that no retry can help.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }

    /// An error that another attempt may not meet.
    pub fn retryable(message: impl fmt::Display) -> Self {
        Self::Retryable(message.to_string())
    }

    /// State that this plugin cannot read.
    pub fn incompatible_state(message: impl fmt::Display) -> Self {
        Self::IncompatibleState(message.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(message) | Self::Retryable(message) | Self::IncompatibleState(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::retryable(error)
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(message) => Self::Invalid(message),
            Error::Retryable(message) => Self::Retryable(message),
            Error::IncompatibleState(message) => Self::IncompatibleState(message),
        }
    }
}
