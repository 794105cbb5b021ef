//! The way of a checkpoint's buffers to the host, beside the guest.
//!
//! ```text
//!  stream of the device   ── … ── copy on the GPU ── the guest's next step ── …
//!                                      │ mark
//!  a thread that saves                 └──► a stream of its own ── two pinned halves in turn ──► the host's memory
//! ```
//!
//! Each copy comes in parts, each of which may be compressed and written while the next is on its way.
//!
//! The guest waits for the copy on the GPU, which is a hundred times as fast as the way to the host. Where the GPU has no room for one, it waits for it all.

use std::sync::{Arc, Mutex, PoisonError};

use super::driver_unsafe::{Event, Stream};
use super::error::Failed;
use super::gpu::{Gpu, Owned, wait_for};
use super::transfer::{HALF, Half, two_halves};
use crate::device::{DeviceError, Download, Result, content};

/// Bytes of a part, but for the last: so many that starting anew with each costs little, and little beside a large buffer. A multiple of a checkpoint's chunks.
const PART: usize = 128 << 20;

/// What downloads need: shared with those that are under way.
pub(super) struct Downloads {
    context: Arc<Owned>,
    stream: Stream,
    /// One download at a time. None after a transfer of which nobody knows whether it is over.
    halves: Mutex<Option<[Half; 2]>>,
    /// Room for copies that nobody uses at the moment.
    idle: Mutex<Vec<Room>>,
}

/// Memory of the GPU for a copy.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Behind the making of the copy in it.
    pub(super) made: Event,
}

/// A copy on the GPU; its room is given back with the last part.
struct Copied {
    downloads: Arc<Downloads>,
    room: Room,
}

/// A part of a copy, on its way.
struct Coming {
    copied: Arc<Copied>,
    offset: u64,
    memory: Vec<u8>,
}

/// Memory of the host for so many bytes, part by part.
pub(super) fn memory_for(bytes: u64, spare: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let mut spare = spare.into_iter();
    let length = |offset: u64| (bytes - offset).min(PART as u64);
    (0..bytes).step_by(PART).map(|offset| content::memory(spare.next(), length(offset))).collect()
}

/// The parts of a copy whose making is ordered.
pub(super) fn parts(downloads: Arc<Downloads>, room: Room, memory: Vec<Vec<u8>>) -> Vec<Box<dyn Download>> {
    let copied = Arc::new(Copied { downloads, room });
    let part =
        |(offset, memory)| -> Box<dyn Download> { Box::new(Coming { copied: Arc::clone(&copied), offset, memory }) };
    (0..).step_by(PART).zip(memory).map(part).collect()
}

impl Downloads {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, Failed> {
        let (halves, stream) = (two_halves(gpu.driver)?, gpu.driver.stream()?);
        let context = Arc::clone(&gpu.context);
        Ok(Self { context, stream, halves: Mutex::new(Some(halves)), idle: Mutex::default() })
    }

    /// Room on the GPU that an earlier copy took, if some is large enough and not much larger.
    pub(super) fn room(&self, bytes: u64) -> Option<Room> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|room| (bytes..=bytes.saturating_mul(2)).contains(&room.bytes))?;
        Some(idle.swap_remove(at))
    }

    /// Gives room back, to be used again: what is ordered later comes later.
    fn leave(&self, room: Room) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(room);
    }

    /// All room that nobody needs at the moment.
    pub(super) fn spare(&self) -> Vec<Room> {
        std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn download(&self, room: Room, offset: u64, memory: &mut [u8]) -> Result<(), Failed> {
        let driver = self.context.driver;
        self.context.bind()?;
        wait_for(driver, room.made)?;
        let from = room.address + offset;
        let mut shared = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that after a failure nobody touches what may still be written to; the next then takes others.
        let halves = shared.take().map_or_else(|| two_halves(driver), Ok)?;
        let order = |piece: usize, bytes: usize| {
            let half = &halves[piece % 2];
            driver.download(&half.pinned, from + (piece * HALF) as u64, bytes, self.stream)?;
            driver.record(half.mark, self.stream)
        };
        let lengths: Vec<_> = memory.chunks(HALF).map(<[u8]>::len).collect();
        for (piece, bytes) in lengths.iter().enumerate().take(2) {
            order(piece, *bytes)?;
        }
        for (piece, target) in memory.chunks_mut(HALF).enumerate() {
            let half = &halves[piece % 2];
            wait_for(driver, half.mark)?;
            half.pinned.take(target);
            if let Some(bytes) = lengths.get(piece + 2) {
                order(piece + 2, *bytes)?;
            }
        }
        *shared = Some(halves);
        Ok(())
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        let halves = self.halves.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.context.bind().is_ok() {
            for half in halves.into_iter().flatten() {
                let _ = self.context.driver.unpin(half.pinned);
            }
        }
    }
}

impl Download for Coming {
    fn finish(self: Box<Self>) -> Result<Vec<u8>> {
        let Self { copied, offset, mut memory } = *self;
        let downloaded = copied.downloads.download(copied.room, offset, &mut memory);
        downloaded.map_err(|failed| DeviceError::Lost(format!("the GPU failed: {failed}")))?;
        Ok(memory)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.downloads.leave(self.room);
    }
}
