//! Why the device did not do what it was asked to.

/// What the device answers instead of a result. Each text says what was wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is not enough device memory. Nothing changed.
    #[error("{0}")]
    OutOfMemory(String),
    /// A range, size, kind or name is wrong; the text says which argument. Nothing changed.
    #[error("{0}")]
    InvalidArgument(String),
    /// The text of a module is not accepted: line, column, what.
    #[error("{0}")]
    InvalidModule(String),
    /// A kernel faulted or the device is gone: what its memory holds is not to be trusted, and every later call answers the same.
    #[error("{0}")]
    Lost(String),
    /// Somebody ended the call by the [`Stopper`](super::Stopper). No answer for a guest: whoever stopped it knows why, and says so.
    #[error("the device was told to stop")]
    Stopped,
}

impl DeviceError {
    pub(super) fn argument(text: impl Into<String>) -> Self {
        Self::InvalidArgument(text.into())
    }
}

/// A number of bytes, for people.
pub(super) fn size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes).display().iec().to_string()
}
