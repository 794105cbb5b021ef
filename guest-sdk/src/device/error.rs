//! Why the device did not do as it was asked.

use std::cell::RefCell;
use std::fmt;

use crate::bindings::steadfast::job::device as wit;

/// The result of everything that the device is asked for.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the device did not do as it was asked. Becomes the plugin's [`Error`](crate::Error) under `?`: invalid where another
/// attempt would get the same answer, else retryable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The memory does not suffice: that of the device, or what the job allows.
    OutOfMemory,
    /// An argument is wrong: a range, a size, a kind, a name.
    InvalidArgument,
    /// The text of a module is not accepted.
    InvalidModule,
    /// This device cannot do it; without a host, there is none that could.
    Unsupported,
    /// A file could not be read or written.
    File,
    /// A kernel did what it must not. The host ends the attempt after the step, whatever the plugin answers.
    KernelFault,
    /// The device is gone. The host ends the attempt after the step, whatever the plugin answers.
    Lost,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// The same error, met in this call.
    pub(super) fn within(self, call: &str) -> Self {
        Self { message: format!("{call}: {}", self.message), ..self }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error.kind {
            ErrorKind::InvalidArgument | ErrorKind::InvalidModule | ErrorKind::Unsupported => Self::invalid(error),
            ErrorKind::OutOfMemory | ErrorKind::File | ErrorKind::KernelFault | ErrorKind::Lost => {
                Self::retryable(error)
            }
        }
    }
}

impl From<wit::DeviceError> for Error {
    fn from(error: wit::DeviceError) -> Self {
        use wit::DeviceError as From;
        let (kind, message) = match error {
            From::OutOfMemory(message) => (ErrorKind::OutOfMemory, message),
            From::InvalidArgument(message) => (ErrorKind::InvalidArgument, message),
            From::InvalidModule(message) => (ErrorKind::InvalidModule, message),
            From::Unsupported(message) => (ErrorKind::Unsupported, message),
            From::File(message) => (ErrorKind::File, message),
            From::KernelFault(message) => (ErrorKind::KernelFault, message),
            From::Lost(message) => (ErrorKind::Lost, message),
        };
        Self { kind, message }
    }
}

thread_local! {
    /// The state's encoding has no room for the words of an error, so they take this way around it.
    static IN_STATE: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Remembers why a buffer could not be encoded or decoded with the state; answers what serde is told.
pub(super) fn in_state<E>(error: Error, told: impl FnOnce(&Error) -> E) -> E {
    let told = told(&error);
    IN_STATE.set(Some(error));
    told
}

/// Why the device kept the state from being encoded or decoded, if it did.
pub(crate) fn take_from_state() -> Option<Error> {
    IN_STATE.take()
}

/// The same, where state that asks for the wrong buffers is state that this plugin cannot read.
pub(crate) fn while_decoding(error: Error) -> crate::Error {
    match error.kind {
        ErrorKind::InvalidArgument => crate::Error::incompatible_state(error),
        _ => error.into(),
    }
}

/// Natively there is no host, and so no device.
pub(super) fn needs_host(call: &str) -> Result<()> {
    if cfg!(target_family = "wasm") {
        return Ok(());
    }
    let why = "a device needs a host: build the plugin for wasm32-wasip2, and run it with `steadfast run`";
    Err(Error::new(ErrorKind::Unsupported, format!("{call}: {why}")))
}
