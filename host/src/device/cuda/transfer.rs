//! Between the host's memory and the device's, through pinned memory in two halves: while one is being copied, the other is filled or emptied.
//!
//! What the host has in its own memory the driver would copy too, but it would wait in that call for everything that was ordered before.

use super::driver_unsafe::{Driver, Event, Pinned};
use super::error::Failed;
use super::gpu::Gpu;
use crate::device::{DeviceError, Result};

/// Bytes of a half: enough for the bus' full speed.
pub(super) const HALF: usize = 4 << 20;
/// Where in a half the next small piece begins is a multiple of this.
const ALIGN: usize = 64;

/// Both directions; memory is taken when a direction is first used.
#[derive(Default)]
pub(super) struct Transfers {
    up: Option<Up>,
    down: Option<[Half; 2]>,
}

pub(super) struct Half {
    pub(super) pinned: Pinned,
    /// Behind the last transfer of it.
    pub(super) mark: Event,
}

/// Small pieces go one behind the other, so that one transfer need not wait for another.
struct Up {
    halves: [Half; 2],
    current: usize,
    used: usize,
}

impl Transfers {
    /// Orders that `bytes` go to an address. They may be changed as soon as this returns.
    pub(super) fn upload(&mut self, gpu: &mut Gpu, mut to: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let up = match &mut self.up {
                Some(up) => up,
                empty => empty.insert(Up { halves: halves(gpu)?, current: 0, used: 0 }),
            };
            let room = up.room(gpu)?;
            let half = &mut up.halves[up.current];
            let (piece, rest) = bytes.split_at(bytes.len().min(room));
            half.pinned.put(up.used, piece);
            let ordered = gpu.driver.upload(to, &half.pinned, up.used, piece.len(), gpu.stream);
            gpu.order(ordered)?;
            up.used = (up.used + piece.len()).next_multiple_of(ALIGN);
            to += piece.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Fills `bytes` from an address, after all that was ordered before; then nothing is under way any more.
    pub(super) fn download(&mut self, gpu: &mut Gpu, from: u64, bytes: &mut [u8]) -> Result<()> {
        let halves = match &mut self.down {
            Some(halves) => halves,
            empty => empty.insert(halves(gpu)?),
        };
        let pieces = bytes.len().div_ceil(HALF);
        let length = |piece: usize| HALF.min(bytes.len() - piece * HALF);
        let lengths: Vec<_> = (0..pieces).map(length).collect();
        let order = |gpu: &mut Gpu, half: &Half, piece: usize| {
            let ordered = gpu.driver.download(&half.pinned, from + (piece * HALF) as u64, lengths[piece], gpu.stream);
            gpu.order(ordered)?;
            gpu.mark(half.mark)
        };
        for (piece, half) in halves.iter().enumerate().take(pieces) {
            order(gpu, half, piece)?;
        }
        for (piece, target) in bytes.chunks_mut(HALF).enumerate() {
            let half = &halves[piece % 2];
            gpu.wait(half.mark)?;
            half.pinned.take(target);
            if piece + 2 < pieces {
                order(gpu, half, piece + 2)?;
            }
        }
        gpu.is_settled();
        Ok(())
    }

    /// Gives pinned memory back, where nothing is under way.
    pub(super) fn close(&mut self, gpu: &Gpu) {
        let up = self.up.take().map(|up| up.halves);
        for half in [up, self.down.take()].into_iter().flatten().flatten() {
            let _ = gpu.driver.unpin(half.pinned);
        }
    }
}

impl Up {
    /// Bytes that the current half has left: where it has none, the other, once that is free.
    fn room(&mut self, gpu: &mut Gpu) -> Result<usize> {
        let half = &self.halves[self.current];
        if self.used < half.pinned.bytes() {
            return Ok(half.pinned.bytes() - self.used);
        }
        gpu.mark(half.mark)?;
        self.current = 1 - self.current;
        self.used = 0;
        let half = &self.halves[self.current];
        gpu.wait(half.mark)?;
        Ok(half.pinned.bytes())
    }
}

fn halves(gpu: &mut Gpu) -> Result<[Half; 2]> {
    two_halves(gpu.driver).map_err(|failed| no_memory(failed).unwrap_or_else(|| gpu.lost(failed)))
}

/// In the current context.
pub(super) fn two_halves(driver: &Driver) -> Result<[Half; 2], Failed> {
    let half = || Ok(Half { pinned: driver.pin(HALF)?, mark: driver.event()? });
    Ok([half()?, half()?])
}

/// The host's memory is what was lacking, if memory was.
fn no_memory(failed: Failed) -> Option<DeviceError> {
    failed
        .is_out_of_memory()
        .then(|| DeviceError::OutOfMemory(format!("the host has no memory for transfers: {failed}")))
}
