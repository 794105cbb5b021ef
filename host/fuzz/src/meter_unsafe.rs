//! The allocator of every fuzz target: it counts, and it has no room for what nobody should ask for.
//!
//! libFuzzer's own limit looks at memory that was touched. A table of four gigabytes that a few bytes of a file ask for is
//! not touched when it is cleared by the system, so it would go unseen.
#![expect(unsafe_code, reason = "the interface of an allocator is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most that one allocation gets. Whoever asks for more and is prepared for a refusal (`try_reserve`) is told; whoever
/// is not ends the process, which is a finding.
pub const LARGEST: usize = 512 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Runs `work`, and answers by how many bytes the memory of all threads grew meanwhile, at the most. In tests, which run side
/// by side, the answer would be that of all of them; it is 0.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (result, if cfg!(test) { 0 } else { peak })
}

struct Meter;

#[global_allocator]
static METER: Meter = Meter;

impl Meter {
    fn took(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }

    fn gave_back(bytes: usize) {
        LIVE.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came, or is answered with null, which means "no room".
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return std::ptr::null_mut();
        }
        Self::took(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return std::ptr::null_mut();
        }
        Self::took(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > LARGEST {
            return std::ptr::null_mut();
        }
        Self::took(size);
        Self::gave_back(layout.size());
        // SAFETY: the block came from the system's allocator, and the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::gave_back(layout.size());
        // SAFETY: the block came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}
