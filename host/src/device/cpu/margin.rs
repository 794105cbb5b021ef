//! The end of a buffer to the byte, though memory is protected by pages.
//!
//! ```text
//!  inaccessible │ front: less than a page, 0 │ the buffer │ back: less than 16 bytes, 0 │ inaccessible
//! ```
//!
//! A buffer lies at the end of its pages, so that what runs beyond it is a fault at once, or writes to the few bytes behind it that its alignment
//! leaves. Those, and the ones in front of it, are looked at when a step ends: a kernel that wrote there reached out of its buffer, and what it left there
//! would be lost with the next resume. Reading there gives zeros, always.

use std::ops::Range;

use super::memory_unsafe::Memory;
use crate::device::error::size;

/// What a buffer's address is a multiple of: kernels load and store vectors of 16 bytes at most.
pub(super) const ALIGN: u64 = 16;

/// A buffer in its pages.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    /// Where its pages begin: what it is given back by.
    pub(super) pages: u64,
    /// The buffer.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl Placed {
    /// At the end of pages of so many bytes in all.
    pub(super) fn new(pages: u64, whole: u64, bytes: u64) -> Self {
        let start = if bytes == 0 { pages } else { pages + whole - bytes.next_multiple_of(ALIGN) };
        Self { pages, start, bytes }
    }

    fn margins(&self) -> [Range<u64>; 2] {
        let end = self.start + self.bytes;
        // Nothing backs a buffer of no bytes.
        if self.bytes == 0 { [0..0, 0..0] } else { [self.pages..self.start, end..end.next_multiple_of(ALIGN)] }
    }

    /// What a kernel has written beside the buffer, in words.
    pub(super) fn trespass(&self, memory: &Memory) -> Option<String> {
        let [front, back] = self.margins();
        let written = |margin: Range<u64>| memory.bytes(margin).iter().position(|byte| *byte != 0);
        let last = || memory.bytes(front.clone()).iter().rposition(|byte| *byte != 0);
        let place = match (written(back), last()) {
            (Some(byte), _) => format!("byte {byte} behind the end"),
            (None, Some(byte)) => format!("byte {} in front of the beginning", front.end - front.start - byte as u64),
            (None, None) => return None,
        };
        Some(format!("a kernel of this step wrote to {place} of a buffer of {}", size(self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_written_beside_a_buffer_is_found() {
        let mut memory = Memory::reserve(1 << 22, 64 << 10).unwrap();
        memory.open(1 << 20..(1 << 20) + 4096).unwrap();
        let placed = Placed::new(1 << 20, 4096, 100);
        assert_eq!(placed.start, (1 << 20) + 4096 - 112);
        let mut after = |at: u64| {
            memory.bytes_mut(at..at + 1)[0] = 7;
            let found = placed.trespass(&memory);
            memory.bytes_mut(at..at + 1)[0] = 0;
            found
        };
        assert_eq!(after(placed.start), None);
        assert_eq!(after(placed.start + 99), None);
        let said = |place: &str| Some(format!("a kernel of this step wrote to {place} of a buffer of 100 B"));
        assert_eq!(after(placed.start + 100), said("byte 0 behind the end"));
        assert_eq!(after(placed.start + 111), said("byte 11 behind the end"));
        assert_eq!(after(placed.start - 1), said("byte 1 in front of the beginning"));
        assert_eq!(after(1 << 20), said("byte 3984 in front of the beginning"));
        assert_eq!(Placed::new(1 << 20, 4096, 0).trespass(&memory), None);
    }
}
