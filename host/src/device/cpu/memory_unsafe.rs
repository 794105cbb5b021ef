//! Device memory: one reservation of addresses, of which only buffers are backed by memory, shared by the host and all compiled kernels.
//!
//! ```text
//!  0      64 KiB                                                                            reservation   + guard
//!  │ never │    inaccessible     │ buffer │   inaccessible    │ buffer │    inaccessible          │ inaccessible │
//! ```
//!
//! Every instance of a kernel imports the whole reservation as its memory of 64 bits, or its first 4 GiB as one of 32 as long as all buffers lie there. Compiled code compares an
//! address of 64 bits with the reservation's size, which is a constant; whatever lies below it and in no buffer faults in hardware, and wasmtime turns the fault into a trap. So the
//! page tables are the sandbox, and a kernel reaches buffers and nothing else.
//!
//! [`Creator`] also makes the ordinary memories of kernels (`private`), as wasmtime's own allocator would: where a creator is set, it makes all of them.
//!
//! # Who may touch a buffer when
//!
//! [`Memory`] belongs to one device. Slices borrow it. Compiled kernels only run inside of a call that borrows it exclusively
//! ([`Memory::lend`]), from whichever threads. So safe code never holds a slice while a kernel runs. Kernels race with each other where their author lets them: that is
//! between machine instructions of compiled code, as on a GPU, and no Rust reference is involved.
#![expect(unsafe_code, reason = "mapping memory, and lending it to compiled code")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::engine::{NARROW_BYTES, RESERVATION};

/// Bytes of the system's pages.
pub(super) fn page_bytes() -> u64 {
    // SAFETY: asks for a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(64 << 10)
}

/// Ranges of so many bytes are advised to lie in huge pages: a kernel that goes through one would otherwise wait for the translation of an address every few thousand bytes.
#[cfg(target_os = "linux")]
const WORTH_HUGE_PAGES: usize = 4 << 20;

/// A mapping, inaccessible where nobody opened it.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value, no thread in particular; who may access which part is decided by its owners.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives out nothing but addresses and changes of protection, which are the kernel's to synchronise.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn reserve(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping where the system likes replaces nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the system mapped address 0"))?;
        Ok(Self { base, bytes })
    }

    /// The address of a range of the mapping.
    fn at(&self, range: &Range<usize>) -> io::Result<*mut libc::c_void> {
        if range.start > range.end || range.end > self.bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: inside the mapping, as was just checked.
        Ok(unsafe { self.base.as_ptr().add(range.start) }.cast())
    }

    /// Makes pages accessible. New ones read as 0.
    fn open(&self, range: Range<usize>) -> io::Result<()> {
        let at = self.at(&range)?;
        // SAFETY: pages of our own mapping, to which this only adds permissions.
        if unsafe { libc::mprotect(at, range.len(), libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        #[cfg(target_os = "linux")]
        if range.len() >= WORTH_HUGE_PAGES {
            // SAFETY: advice about pages of our own mapping, which changes nothing that is read or written. A system that has no huge pages refuses it.
            unsafe { libc::madvise(at, range.len(), libc::MADV_HUGEPAGE) };
        }
        Ok(())
    }

    /// Makes accessible pages read-only.
    fn seal(&self, range: Range<usize>) -> io::Result<()> {
        let at = self.at(&range)?;
        // SAFETY: pages of our own mapping, from which this only takes a permission; `Memory` lets nobody write to them any more.
        match unsafe { libc::mprotect(at, range.len(), libc::PROT_READ) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes pages inaccessible and gives their memory back to the system. Nobody may hold a reference into them.
    unsafe fn close(&self, range: Range<usize>) -> io::Result<()> {
        let at = self.at(&range)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces pages of our own mapping, which nobody refers to, says the caller.
        let mapped = unsafe { libc::mmap(at, range.len(), libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, whose last owner goes. Failing would leave it mapped, which harms nobody.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The memory of a device. Addresses are offsets from its beginning.
pub(super) struct Memory {
    mapping: Arc<Mapping>,
    bytes: usize,
    /// What is accessible: start → end.
    open: BTreeMap<usize, usize>,
    /// The starts of what is read-only among it.
    sealed: BTreeSet<usize>,
}

impl Memory {
    /// Reserves addresses, a multiple of the page size, with `guard` inaccessible bytes behind them.
    pub(super) fn reserve(bytes: u64, guard: u64) -> io::Result<Self> {
        let whole = bytes.checked_add(guard).and_then(|whole| usize::try_from(whole).ok());
        let whole = whole.ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Arc::new(Mapping::reserve(whole)?);
        Ok(Self { mapping, bytes: bytes as usize, open: BTreeMap::new(), sealed: BTreeSet::new() })
    }

    /// What gives kernels this memory.
    pub(super) fn creator(&self) -> Creator {
        Creator { device: self.mapping.clone(), bytes: self.bytes }
    }

    /// Makes whole pages accessible, all 0. They are not open yet.
    pub(super) fn open(&mut self, range: Range<u64>) -> io::Result<()> {
        let range = range.start as usize..range.end as usize;
        let before = self.open.range(..range.end).next_back();
        if range.end > self.bytes || range.is_empty() || before.is_some_and(|(_, end)| *end > range.start) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.mapping.open(range.clone())?;
        self.open.insert(range.start, range.end);
        Ok(())
    }

    /// Makes what was opened as a whole at `start` read-only, for kernels and for this program.
    pub(super) fn seal(&mut self, start: u64) -> io::Result<()> {
        let start = start as usize;
        let end = *self.open.get(&start).ok_or(io::ErrorKind::InvalidInput)?;
        // First of all: what may not be written to is not handed out to be.
        self.sealed.insert(start);
        self.mapping.seal(start..end)
    }

    /// Gives back what was opened as a whole at `start`.
    pub(super) fn close(&mut self, start: u64) -> io::Result<()> {
        let start = start as usize;
        self.sealed.remove(&start);
        let end = self.open.remove(&start).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: slices borrow `self`, which is borrowed exclusively here, and kernels run only while it is lent.
        unsafe { self.mapping.close(start..end) }
    }

    /// The bytes of an open range.
    ///
    /// # Panics
    ///
    /// When the range is not open as a whole: an error of this program, which must not become an access to memory that is not ours.
    pub(super) fn bytes(&self, range: Range<u64>) -> &[u8] {
        let (at, len) = self.opened(range);
        // SAFETY: accessible, initialised (pages are 0 or written), and not written to while `self` is borrowed: see the module.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// The bytes of an open range, to write to. Panics as [`bytes`](Self::bytes) does.
    pub(super) fn bytes_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        let (at, len) = self.opened_to_write(range);
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(at, len) }
    }

    /// Bytes to write to beside others to read. Panics as [`bytes`](Self::bytes) does, and where one of them overlaps with what is written.
    pub(super) fn bytes_beside<const N: usize>(
        &mut self,
        write: Range<u64>,
        read: [Range<u64>; N],
    ) -> (&mut [u8], [&[u8]; N]) {
        let apart = |other: &Range<u64>| {
            other.is_empty() || write.is_empty() || other.end <= write.start || write.end <= other.start
        };
        assert!(read.iter().all(apart), "what is read overlaps with what is written");
        let read = read.map(|range| {
            let (at, len) = self.opened(range);
            // SAFETY: as for `bytes`; the only part that is written to does not overlap.
            unsafe { std::slice::from_raw_parts(at, len) }
        });
        let (at, len) = self.opened_to_write(write);
        // SAFETY: as for `bytes_mut`; nothing else refers to these bytes.
        (unsafe { std::slice::from_raw_parts_mut(at, len) }, read)
    }

    /// Copies bytes within the memory; the ranges may overlap. Panics as [`bytes`](Self::bytes) does.
    pub(super) fn copy(&mut self, to: u64, from: Range<u64>) {
        let (target, _) = self.opened_to_write(to..to + (from.end - from.start));
        let (source, len) = self.opened(from);
        // SAFETY: both ranges are accessible, and `self` is borrowed exclusively; `copy` lets them overlap.
        unsafe { ptr::copy(source, target, len) };
    }

    /// Whoever runs kernels borrows the memory for as long.
    pub(super) fn lend(&mut self) -> Lent<'_> {
        Lent(self)
    }

    fn opened_to_write(&self, range: Range<u64>) -> (*mut u8, usize) {
        let opened = self.opened(range.clone());
        let around = self.open.range(..=range.start as usize).next_back();
        let sealed = around.is_some_and(|(start, _)| self.sealed.contains(start));
        assert!(opened.1 == 0 || !sealed, "bytes {} and more are read-only", range.start);
        opened
    }

    fn opened(&self, range: Range<u64>) -> (*mut u8, usize) {
        let Range { start, end } = range.start as usize..range.end as usize;
        if start == end {
            return (NonNull::dangling().as_ptr(), 0);
        }
        let around = self.open.range(..=start).next_back();
        assert!(start < end && around.is_some_and(|(_, open)| end <= *open), "bytes {start}..{end} are no buffer");
        // SAFETY: inside an open range, so inside the mapping.
        (unsafe { self.mapping.base.as_ptr().add(start) }, end - start)
    }
}

/// What kernels have of it with addresses of 32 bits.
const NARROW: usize = NARROW_BYTES as usize;

/// Proof that nobody in this program refers to device memory while kernels run.
pub(super) struct Lent<'a>(#[expect(dead_code, reason = "its borrow is the point")] &'a mut Memory);

/// Makes the memories of kernels: those of 64 bits are the device memory, those of 32 bits and of [`NARROW_BYTES`] its beginning, all others are new.
pub(super) struct Creator {
    device: Arc<Mapping>,
    bytes: usize,
}

// SAFETY: a memory of 64 bits is a view of a mapping that lives as long as the view, accessible or faulting everywhere from 0 to its size and, as `Memory` was
// reserved, in its guard; so is the beginning of one that has as many addresses as are reserved for memories of 32 bits, as is asked below. It is written to outside of wasmtime only while no kernel runs (see the module), and wasmtime itself keeps no references into it.
// It is not zero-filled, which matters only for data segments and images: kernels import this memory and have neither for it. A memory of 32 bits is a
// mapping of its own with the reservation and guard that were asked for.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if ty.is_64() {
            if minimum != self.bytes || maximum != Some(minimum) {
                return Err(format!("the device memory has {} bytes, and the kernel expects {minimum}", self.bytes));
            }
            return Ok(Box::new(View { mapping: self.device.clone(), bytes: self.bytes }));
        }
        if maximum == Some(NARROW) {
            if minimum != NARROW || (self.bytes as u64) < RESERVATION || reserved != Some(RESERVATION as usize) {
                return Err("the device memory has no 4 GiB of addresses".into());
            }
            return Ok(Box::new(View { mapping: self.device.clone(), bytes: NARROW }));
        }
        let capacity = reserved.unwrap_or_default().max(minimum);
        let whole = capacity.checked_add(guard).ok_or("too large")?;
        let mapping =
            Mapping::reserve(whole).map_err(|error| format!("no addresses for a kernel's memory: {error}"))?;
        let mut private = Private { mapping, bytes: 0, capacity };
        private.grow_to(minimum).map_err(|error| error.to_string())?;
        Ok(Box::new(private))
    }
}

/// The device memory, as one kernel sees it.
struct View {
    mapping: Arc<Mapping>,
    bytes: usize,
}

// SAFETY: see `Creator`.
unsafe impl LinearMemory for View {
    fn byte_size(&self) -> usize {
        self.bytes
    }

    fn byte_capacity(&self) -> usize {
        self.bytes
    }

    fn grow_to(&mut self, _: usize) -> wasmtime::Result<()> {
        Err(wasmtime::Error::msg("the device memory cannot grow"))
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping.base.as_ptr()
    }
}

/// A kernel's own memory.
struct Private {
    mapping: Mapping,
    bytes: usize,
    capacity: usize,
}

// SAFETY: page-aligned, accessible up to its size and inaccessible from there to the end of reservation and guard; never moves.
unsafe impl LinearMemory for Private {
    fn byte_size(&self) -> usize {
        self.bytes
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, bytes: usize) -> wasmtime::Result<()> {
        if bytes > self.capacity {
            return Err(wasmtime::Error::msg("the memory would be larger than its reservation"));
        }
        if bytes > self.bytes {
            self.mapping.open(self.bytes..bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping.base.as_ptr()
    }
}

/// Numbers as they lie in device memory, which is little-endian on every machine that this runs on.
pub(super) trait Number: Copy {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for u16 {}

const _: () = assert!(cfg!(target_endian = "little"), "device memory is little-endian");

/// Bytes as numbers. Panics where they are not aligned or no whole number of numbers.
pub(super) fn numbers<T: Number>(bytes: &[u8]) -> &[T] {
    // SAFETY: any bits are a `T`, all of which are plain numbers.
    let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
    assert!(before.is_empty() && after.is_empty(), "bytes that are no numbers");
    numbers
}

/// Bytes as numbers to write to. Panics as [`numbers`] does.
pub(super) fn numbers_mut<T: Number>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: as above, in both directions.
    let (before, numbers, after) = unsafe { bytes.align_to_mut::<T>() };
    assert!(before.is_empty() && after.is_empty(), "bytes that are no numbers");
    numbers
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const PAGE: u64 = 1 << 16;

    #[test]
    fn only_what_is_open_is_there() {
        let mut memory = Memory::reserve(1 << 36, PAGE).unwrap();
        memory.open(PAGE..3 * PAGE).unwrap();
        for bad in [2 * PAGE..4 * PAGE, PAGE..2 * PAGE, 0..2 * PAGE, 5 * PAGE..5 * PAGE, 1 << 36..(1 << 36) + PAGE] {
            assert!(memory.open(bad.clone()).is_err(), "{bad:?}");
        }
        memory.bytes_mut(PAGE..PAGE + 4).copy_from_slice(&[1, 2, 3, 4]);
        memory.copy(PAGE + 1, PAGE..PAGE + 4);
        assert_eq!(memory.bytes(PAGE..PAGE + 6), [1, 1, 2, 3, 4, 0]);
        let (write, [read, none]) = memory.bytes_beside(PAGE..PAGE + 2, [PAGE + 2..PAGE + 4, 0..0]);
        write.copy_from_slice(read);
        assert_eq!((&*write, none), (&[2, 3][..], &[][..]));
        memory.close(PAGE).unwrap();
        assert!(memory.close(PAGE).is_err());
        memory.open(PAGE..3 * PAGE).unwrap();
        assert_eq!(memory.bytes(PAGE..PAGE + 6), [0; 6]);
    }

    #[test]
    #[should_panic(expected = "are no buffer")]
    fn a_range_across_a_buffer_s_end_is_never_given_out() {
        let mut memory = Memory::reserve(1 << 36, PAGE).unwrap();
        memory.open(PAGE..2 * PAGE).unwrap();
        memory.bytes(PAGE..2 * PAGE + 1);
    }

    #[test]
    #[should_panic(expected = "overlaps")]
    fn what_is_written_is_never_read_beside() {
        let mut memory = Memory::reserve(1 << 36, PAGE).unwrap();
        memory.open(PAGE..2 * PAGE).unwrap();
        memory.bytes_beside(PAGE..PAGE + 8, [0..0, PAGE + 7..PAGE + 9]);
    }
}
