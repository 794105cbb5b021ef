//! Buffers: where they are, how much they may take together, and giving them back once nothing uses them.

use std::collections::HashMap;

use super::driver_unsafe::Module;
use super::gpu::Gpu;
use crate::device::error::size;
use crate::device::{BufferId, DeviceError, Result, Span};

/// The buffers of a device.
pub(super) struct Memory {
    buffers: HashMap<BufferId, Placed>,
    budget: u64,
    used: u64,
    /// What operations under way may still use.
    graves: Vec<Grave>,
    /// Bytes in there.
    buried: u64,
}

#[derive(Clone, Copy)]
struct Placed {
    /// 0 for a buffer of no bytes.
    address: u64,
    bytes: u64,
}

enum Grave {
    Buffer(u64),
    Module(Module),
}

impl Memory {
    pub(super) fn new(budget: u64) -> Self {
        Self { buffers: HashMap::new(), budget, used: 0, graves: Vec::new(), buried: 0 }
    }

    /// The address of a range.
    pub(super) fn address(&self, span: Span) -> u64 {
        self.start(span.buffer()) + span.offset()
    }

    /// The address of a live buffer.
    pub(super) fn start(&self, buffer: BufferId) -> u64 {
        self.buffers.get(&buffer).map_or(0, |placed| placed.address)
    }

    /// A new buffer, all 0.
    pub(super) fn allocate(&mut self, gpu: &mut Gpu, buffer: BufferId, bytes: u64) -> Result<()> {
        let left = self.budget - self.used;
        if bytes > left {
            let text = format!(
                "{} were asked for, and of the {} that buffers may have together {} are left",
                size(bytes),
                size(self.budget),
                size(left)
            );
            return Err(DeviceError::OutOfMemory(text));
        }
        let mut address = 0;
        if bytes > 0 {
            address = self.take(gpu, bytes)?;
            let zeroed = gpu.driver.zero(address, bytes, gpu.stream);
            gpu.order(zeroed)?;
        }
        self.buffers.insert(buffer, Placed { address, bytes });
        self.used += bytes;
        Ok(())
    }

    /// Memory of the device, of any content.
    pub(super) fn take(&mut self, gpu: &mut Gpu, bytes: u64) -> Result<u64> {
        if self.buried > self.budget.saturating_sub(self.used).saturating_sub(bytes) {
            self.clear(gpu)?;
        }
        let failed = match gpu.driver.allocate(bytes) {
            Ok(address) => return Ok(address),
            Err(failed) if failed.is_out_of_memory() && self.buried > 0 => {
                self.clear(gpu)?;
                match gpu.driver.allocate(bytes) {
                    Ok(address) => return Ok(address),
                    Err(failed) => failed,
                }
            }
            Err(failed) => failed,
        };
        if failed.is_out_of_memory() {
            return Err(DeviceError::OutOfMemory(format!(
                "{} were asked for, and the GPU has no such piece left: {failed}",
                size(bytes)
            )));
        }
        Err(gpu.lost(failed))
    }

    /// Gives a buffer back once what was ordered before is done.
    pub(super) fn free(&mut self, buffer: BufferId) {
        let Some(Placed { address, bytes }) = self.buffers.remove(&buffer) else { return };
        self.used -= bytes;
        if bytes > 0 {
            self.bury(address, bytes);
        }
    }

    /// Gives memory back once what was ordered before is done.
    pub(super) fn bury(&mut self, address: u64, bytes: u64) {
        self.graves.push(Grave::Buffer(address));
        self.buried += bytes;
    }

    /// Gives a module back once what was ordered before is done.
    pub(super) fn bury_module(&mut self, module: Module) {
        self.graves.push(Grave::Module(module));
    }

    /// Waits for everything, and gives back what nobody needs any more.
    pub(super) fn clear(&mut self, gpu: &mut Gpu) -> Result<()> {
        gpu.settle()?;
        self.buried = 0;
        for grave in self.graves.drain(..) {
            let given_back = match grave {
                Grave::Buffer(address) => gpu.driver.free(address),
                Grave::Module(module) => gpu.driver.unload(module),
            };
            // The driver tells here what went wrong before, too.
            gpu.done(given_back)?;
        }
        Ok(())
    }
}
