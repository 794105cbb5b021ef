//! Why a call was not done, as the guest is told it.

use crate::device::{Backend, DeviceError};
use crate::plugin::Interruption;
use crate::plugin::bindings::steadfast::job::device as wit;
use crate::plugin::engine::GuestState;

/// Why a call was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// The device says why.
    Device(DeviceError),
    /// Another kind of device may do it.
    Unsupported(String),
    /// A file is in the way.
    File(String),
    /// The call makes no sense at all: it ends the guest.
    Trap(wasmtime::Error),
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn argument(text: impl Into<String>) -> Self {
        Self::Device(DeviceError::InvalidArgument(text.into()))
    }

    /// The same, about this thing.
    pub(super) fn about(self, thing: &str) -> Self {
        match self {
            Self::Device(DeviceError::InvalidArgument(text)) => Self::argument(format!("{thing}: {text}")),
            Self::Device(DeviceError::OutOfMemory(text)) => {
                Self::Device(DeviceError::OutOfMemory(format!("{thing}: {text}")))
            }
            Self::File(text) => Self::File(format!("{thing}: {text}")),
            other => other,
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<wasmtime::component::ResourceTableError> for Failure {
    fn from(error: wasmtime::component::ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<wasmtime::Error> for Failure {
    fn from(error: wasmtime::Error) -> Self {
        Self::Trap(error)
    }
}

/// What the guest gets as the answer of a call.
pub(super) fn answer<T>(
    state: &GuestState,
    outcome: Result<T>,
) -> wasmtime::Result<(std::result::Result<T, wit::DeviceError>,)> {
    let failure = match outcome {
        Ok(value) => return Ok((Ok(value),)),
        Err(failure) => failure,
    };
    Ok((Err(match failure {
        Failure::Trap(error) => return Err(error),
        // Whoever stopped the device has a wish, unless it was taken back in the meantime.
        Failure::Device(DeviceError::Stopped) => {
            return Err(wasmtime::Error::new(state.interrupter.wish().unwrap_or(Interruption::GraceEnds)));
        }
        Failure::Device(DeviceError::OutOfMemory(text)) => wit::DeviceError::OutOfMemory(text),
        Failure::Device(DeviceError::InvalidArgument(text)) => wit::DeviceError::InvalidArgument(text),
        Failure::Device(DeviceError::InvalidModule(text)) => wit::DeviceError::InvalidModule(text),
        Failure::Device(DeviceError::Lost(text)) if is_repeatable(state.holdings.backend()) => {
            wit::DeviceError::KernelFault(text)
        }
        Failure::Device(DeviceError::Lost(text)) => wit::DeviceError::Lost(text),
        Failure::Unsupported(text) => wit::DeviceError::Unsupported(text),
        Failure::File(text) => wit::DeviceError::File(text),
    }),))
}

/// Whether a device that is lost was lost by what a kernel did, which it would do again. A GPU can be lost in other ways, and does not
/// say in which it was.
pub(in crate::plugin) fn is_repeatable(backend: Option<Backend>) -> bool {
    backend == Some(Backend::Cpu)
}
