//! Bytes of a buffer as they were at one moment: here, or on their way to the host while the guest computes on.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{DeviceError, Result};

/// What a buffer held.
pub struct Content {
    bytes: u64,
    here: OnceLock<Result<Vec<u8>>>,
    coming: Mutex<Option<Box<dyn Download>>>,
}

/// The rest of a transfer. May be dropped instead, from any thread.
pub trait Download: Send {
    /// Waits for it, in any thread.
    fn finish(self: Box<Self>) -> Result<Vec<u8>>;
}

impl Content {
    /// Bytes that are here.
    #[must_use]
    pub fn here(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.len() as u64, here: OnceLock::from(Ok(bytes)), coming: Mutex::default() }
    }

    /// So many bytes that are on their way.
    #[must_use]
    pub fn coming(bytes: u64, download: Box<dyn Download>) -> Self {
        Self { bytes, here: OnceLock::new(), coming: Mutex::new(Some(download)) }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes; waits for them.
    pub fn bytes(&self) -> Result<&[u8]> {
        let arrived = self.here.get_or_init(|| {
            let coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner).take();
            coming.map_or_else(|| Err(DeviceError::Lost("the transfer was given up".to_owned())), Download::finish)
        });
        arrived.as_deref().map_err(Clone::clone)
    }

    /// Memory to be used again, whatever it holds.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.here.into_inner().and_then(Result::ok).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::here(bytes)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.here.get() {
            Some(here) => here.fmt(f),
            None => write!(f, "{} bytes that are on their way", self.bytes),
        }
    }
}

/// By what arrives; waits for it.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Content {}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sent(Result<Vec<u8>>);

    impl Download for Sent {
        fn finish(self: Box<Self>) -> Result<Vec<u8>> {
            self.0
        }
    }

    #[test]
    fn what_comes_is_the_same_as_what_is_here() {
        let coming = Content::coming(3, Box::new(Sent(Ok(vec![1, 2, 3]))));
        assert_eq!((coming.len(), format!("{coming:?}")), (3, "3 bytes that are on their way".to_owned()));
        assert_eq!(coming, Content::here(vec![1, 2, 3]));
        assert_eq!(coming.into_memory(), [1, 2, 3]);
        let lost = Content::coming(1, Box::new(Sent(Err(DeviceError::Lost("gone".to_owned())))));
        assert_eq!(lost.bytes(), Err(DeviceError::Lost("gone".to_owned())));
        assert_eq!(lost.bytes(), Err(DeviceError::Lost("gone".to_owned())), "and again");
        assert!(lost.into_memory().is_empty());
    }
}
