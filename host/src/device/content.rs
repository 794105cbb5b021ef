//! Bytes of a buffer as they were at one moment: here, or on their way to the host, part by part, while the guest computes on.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::error::size;
use super::{DeviceError, Result};

/// What a buffer held.
pub struct Content {
    bytes: u64,
    /// In order.
    parts: Vec<Part>,
}

struct Part {
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
        Self::in_parts(vec![bytes])
    }

    /// Bytes that are here, in parts.
    #[must_use]
    pub fn in_parts(parts: Vec<Vec<u8>>) -> Self {
        let here = |part| Part { here: OnceLock::from(Ok(part)), coming: Mutex::default() };
        Self { bytes: parts.iter().map(|part| part.len() as u64).sum(), parts: parts.into_iter().map(here).collect() }
    }

    /// So many bytes that are on their way, each part by a transfer of its own.
    #[must_use]
    pub fn coming(bytes: u64, parts: Vec<Box<dyn Download>>) -> Self {
        let coming = |download| Part { here: OnceLock::new(), coming: Mutex::new(Some(download)) };
        Self { bytes, parts: parts.into_iter().map(coming).collect() }
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

    /// The bytes, in order. Each part is waited for when it is asked for; who asks first for one does the transfer, in the own thread.
    pub fn parts(&self) -> impl Iterator<Item = Result<&[u8]>> {
        self.parts.iter().map(Part::bytes)
    }

    /// The bytes in one piece; waits for them.
    pub fn whole(&self) -> Result<Cow<'_, [u8]>> {
        match &self.parts[..] {
            [only] => only.bytes().map(Cow::Borrowed),
            parts => Ok(parts.iter().map(Part::bytes).collect::<Result<Vec<_>>>()?.concat().into()),
        }
    }

    /// Why they will never be here, as far as that is known by now.
    #[must_use]
    pub fn failure(&self) -> Option<&DeviceError> {
        self.parts.iter().find_map(|part| part.here.get()?.as_ref().err())
    }

    /// Memory to be used again, whatever it holds: of each part.
    #[must_use]
    pub fn into_memory(self) -> Vec<Vec<u8>> {
        self.parts.into_iter().map(|part| part.here.into_inner().and_then(Result::ok).unwrap_or_default()).collect()
    }
}

impl Part {
    fn bytes(&self) -> Result<&[u8]> {
        let arrived = self.here.get_or_init(|| {
            let coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner).take();
            coming.map_or_else(|| Err(DeviceError::Lost("the transfer was given up".to_owned())), Download::finish)
        });
        arrived.as_deref().map_err(Clone::clone)
    }
}

/// Memory of this length, whatever it holds: what is spare, if the host has what that lacks.
pub fn memory(spare: Option<Vec<u8>>, bytes: u64) -> Result<Vec<u8>> {
    let refuse = || DeviceError::OutOfMemory(format!("the host has no memory for a copy of {}", size(bytes)));
    let length = usize::try_from(bytes).map_err(|_| refuse())?;
    let mut memory = spare.unwrap_or_default();
    memory.try_reserve_exact(length.saturating_sub(memory.len())).map_err(|_| refuse())?;
    memory.resize(length, 0);
    Ok(memory)
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::here(bytes)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here: Option<Vec<_>> = self.parts.iter().map(|part| part.here.get()).collect();
        match here.as_deref() {
            Some([only]) => only.fmt(f),
            Some(parts) => parts.fmt(f),
            None => write!(f, "{} bytes that are on their way", self.bytes),
        }
    }
}

/// By what arrives; waits for it.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.whole() == other.whole()
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

    fn sent(bytes: u64, parts: &[Result<&[u8], &str>]) -> Content {
        let download = |part: &Result<&[u8], &str>| -> Box<dyn Download> {
            Box::new(Sent(part.map(<[u8]>::to_vec).map_err(|why| DeviceError::Lost(why.to_owned()))))
        };
        Content::coming(bytes, parts.iter().map(download).collect())
    }

    #[test]
    fn what_comes_is_the_same_as_what_is_here() {
        for parts in [&[Ok(&b"abc"[..])][..], &[Ok(b"ab"), Ok(b"c")]] {
            let coming = sent(3, parts);
            assert_eq!((coming.len(), format!("{coming:?}")), (3, "3 bytes that are on their way".to_owned()));
            assert_eq!(coming, Content::here(b"abc".to_vec()));
            assert_eq!(coming.into_memory().concat(), b"abc");
        }
        assert_eq!(sent(0, &[]), Content::here(Vec::new()));
    }

    #[test]
    fn what_is_lost_stays_lost_and_what_came_before_is_here() {
        let lost = sent(3, &[Ok(b"ab"), Err("gone")]);
        assert_eq!(lost.failure(), None, "nobody has asked");
        let gone = DeviceError::Lost("gone".to_owned());
        for _ in 0..2 {
            assert_eq!(lost.parts().collect::<Vec<_>>(), [Ok(&b"ab"[..]), Err(gone.clone())]);
        }
        assert_eq!((lost.whole(), lost.failure()), (Err(gone.clone()), Some(&gone)));
        assert_eq!(lost.into_memory(), [b"ab".to_vec(), Vec::new()]);
    }
}
