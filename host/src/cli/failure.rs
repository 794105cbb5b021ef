//! How a command fails: one text for people, hints set apart, and the code that the process exits with.

use std::fmt;
use std::io;

use crate::checkpoint::browse::BrowseError;
use crate::checkpoint::format::FormatError;
use crate::job::{ExitCode, RunError};
use crate::platform::PlatformError;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Reads well after `steadfast: `. Lines that begin with `hint: ` say what can be done.
    pub message: String,
    /// What the process exits with.
    pub code: u8,
}

impl Failure {
    /// A failure with this exit code.
    #[must_use]
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { message: message.into(), code }
    }

    /// The command line, a specification or the place that it runs in is wrong.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    /// The same with something that can be done about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.message.push_str(&format!("\nhint: {hint}"));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<PlatformError> for Failure {
    fn from(error: PlatformError) -> Self {
        let failure = Self::usage(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let failure = Self::new(error.exit_code().code(), error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<BrowseError> for Failure {
    fn from(error: BrowseError) -> Self {
        let code = match &error {
            BrowseError::Nothing(_) | BrowseError::Name(_) | BrowseError::NoSuchOutput { .. } => ExitCode::Usage,
            BrowseError::Read { cause, .. } if cause.kind() == io::ErrorKind::NotFound => ExitCode::Usage,
            BrowseError::Read { .. } | BrowseError::Store(_) => ExitCode::Retry,
            BrowseError::Format { cause: FormatError::Io(_), .. } => ExitCode::Retry,
            BrowseError::Format { .. } | BrowseError::NoOutputs { .. } => ExitCode::Refused,
        };
        Self::new(code.code(), error.to_string())
    }
}
