//! Running a kernel: blocks in chunks to instances, one for each seat.
//!
//! A chunk is the next so many blocks in order; whoever is free takes one. When a block fails, chunks before it still run, and no chunk behind it begins: so the
//! failure that is told is that of the first block that fails, however many cores there are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use steadfast_ptx::kernel::{Kernel, Launch, PARAMETERS};
use wasmtime::{Engine, Instance, Module, Store, TypedFunc};

use super::crew::Crew;
use super::engine::{self, WASM_PAGE};
use super::fault::{Fault, Given};
use super::kernel::Compiled;
use super::memory_unsafe::Lent;
use crate::device::{DeviceError, Result, Stopper};

/// The most bytes of memory of its own that an instance may have: frames of a block's threads.
const MOST_PRIVATE_BYTES: u64 = 512 << 20;
/// Instances that a seat keeps. Each takes more than 4 GiB of addresses, of which there are 128 TiB.
const MOST_INSTANCES: usize = 64;
/// Chunks for each seat, so that none waits long for the last one.
const CHUNKS: u64 = 16;
/// Work that is done before another thread would have woken up, in nanoseconds.
const WAKING: u64 = 20_000;

/// What all seats know of a launch.
pub(super) struct Job<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) launch: Launch,
    /// The parameter block, addresses filled in.
    pub(super) parameters: &'a [u8],
    /// Shared and local memory, for each seat.
    pub(super) scratch: &'a [Scratch],
    /// For messages.
    pub(super) given: &'a [Given],
}

/// Device memory of one seat.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scratch {
    pub(super) shared: u64,
    pub(super) local: u64,
}

/// All instances of all kernels.
pub(super) struct Seats {
    engine: Engine,
    /// Define the device memory, for kernels that reach the window (if there is one) and for the others.
    devices: [Option<Module>; 2],
    stopper: Stopper,
    seats: Vec<Mutex<HashMap<u64, Seated>>>,
    /// Of all instances.
    frames: Arc<AtomicU64>,
}

/// A kernel, ready to run in one seat.
struct Seated {
    store: Store<()>,
    private: wasmtime::Memory,
    /// Why it stopped itself.
    trap: wasmtime::Global,
    run: TypedFunc<(i64, i64), ()>,
    frames: Frames,
}

/// What an instance's memory of its own has beyond its first page.
struct Frames {
    bytes: u64,
    total: Arc<AtomicU64>,
}

impl Frames {
    fn grown_to(&mut self, bytes: u64) {
        self.total.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes beyond the first page that an instance needs for blocks of so many threads, for what they keep while they wait.
pub(super) fn frame_bytes(kernel: &Kernel, threads: u32) -> u64 {
    kernel.private_bytes(threads).next_multiple_of(WASM_PAGE).saturating_sub(WASM_PAGE)
}

impl Seats {
    pub(super) fn new(engine: Engine, devices: [Option<Module>; 2], stopper: Stopper, count: usize) -> Self {
        let seats = (0..count).map(|_| Mutex::default()).collect();
        Self { engine, devices, stopper, seats, frames: Arc::default() }
    }

    /// Runs all blocks. `memory` is borrowed for as long as kernels run.
    pub(super) fn run(&self, crew: &Crew, job: &Job<'_>, _memory: Lent<'_>) -> Result<()> {
        let [x, y, z] = job.launch.grid.map(u64::from);
        let blocks = x * y * z;
        let seats = if job.compiled.kernel.sequential { 1 } else { job.scratch.len().min(crew.seats()) };
        let run = Run {
            seats: self,
            job,
            blocks,
            next: AtomicU64::new(0),
            chunk: AtomicU64::new(1),
            ending: Ending::default(),
        };
        if seats == 1 || blocks == 1 {
            run.chunk.store(blocks, Ordering::Relaxed);
            run.work(0);
        } else if !run.is_soon_done() {
            run.chunk.store((blocks / (seats as u64 * CHUNKS)).max(1), Ordering::Relaxed);
            crew.work(usize::try_from(blocks).unwrap_or(seats).min(seats), |seat| run.work(seat));
        }
        run.ending.outcome()
    }

    /// Gives back the instances of a kernel that is not launched any more, and the memory that its threads had.
    pub(super) fn forget(&self, kernel: u64) {
        for seat in &self.seats {
            seat.lock().unwrap_or_else(PoisonError::into_inner).remove(&kernel);
        }
    }

    /// Bytes that instances hold for frames, between launches too.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Gives all instances back; the next launch makes what it needs.
    pub(super) fn clear(&self) {
        for seat in &self.seats {
            seat.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn instantiate(&self, compiled: &Compiled) -> wasmtime::Result<Seated> {
        let mut store = engine::store(&self.engine, &self.stopper);
        let missing = || wasmtime::Error::msg("an export is missing");
        let device = self.devices[compiled.reach as usize].as_ref();
        let device = device.ok_or_else(|| wasmtime::Error::msg("the device has no such memory"))?;
        let device = Instance::new(&mut store, device, &[])?;
        let device = device.get_memory(&mut store, "memory").ok_or_else(missing)?;
        let instance = Instance::new(&mut store, &compiled.module, &[device.into()])?;
        let private = instance.get_memory(&mut store, "private").ok_or_else(missing)?;
        let trap = instance.get_global(&mut store, "trap").ok_or_else(missing)?;
        let run = instance.get_typed_func(&mut store, "run")?;
        let frames = Frames { bytes: 0, total: self.frames.clone() };
        Ok(Seated { store, private, trap, run, frames })
    }
}

/// A launch in progress.
struct Run<'a> {
    seats: &'a Seats,
    job: &'a Job<'a>,
    blocks: u64,
    next: AtomicU64,
    chunk: AtomicU64,
    ending: Ending,
}

impl Run<'_> {
    /// Runs all blocks if they are likely done before another thread would have woken up, as the kernel's last launch says, or the first block if there was none.
    fn is_soon_done(&self) -> bool {
        let pace = &self.job.compiled.pace;
        if pace.load(Ordering::Relaxed) == 0 {
            self.next.store(1, Ordering::Relaxed);
            self.with_seated(0, |seated| self.take(seated, 0, 1));
        }
        let left = self.blocks - self.next.load(Ordering::Relaxed);
        if self.ending.is_near() || pace.load(Ordering::Relaxed).saturating_mul(left) > WAKING {
            return self.ending.is_near();
        }
        self.chunk.store(self.blocks, Ordering::Relaxed);
        self.work(0);
        true
    }

    /// Takes chunks until there are no more.
    fn work(&self, seat: usize) {
        self.with_seated(seat, |seated| {
            let chunk = self.chunk.load(Ordering::Relaxed);
            loop {
                let first = self.next.fetch_add(chunk, Ordering::Relaxed);
                let last = first.saturating_add(chunk).min(self.blocks);
                if first >= last || !self.ending.wants(first) {
                    return;
                }
                self.take(seated, first, last);
            }
        });
    }

    fn with_seated(&self, seat: usize, work: impl FnOnce(&mut Seated)) {
        let mut seats = self.seats.seats[seat].lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = self.job.compiled;
        // An instance that failed is in the middle of something: it is not used again.
        let seated = seats.remove(&compiled.id).map_or_else(|| self.seats.instantiate(compiled), Ok);
        match seated.and_then(|mut seated| self.prepare(&mut seated, seat).map(|()| seated)) {
            Ok(mut seated) => {
                work(&mut seated);
                if !self.ending.is_near() {
                    if seats.len() >= MOST_INSTANCES {
                        seats.clear();
                    }
                    seats.insert(compiled.id, seated);
                }
            }
            Err(error) => {
                let text = format!("there is no room to run kernel `{}`: {error:#}", compiled.kernel.name);
                self.ending.fail(0, DeviceError::OutOfMemory(text));
            }
        }
    }

    fn prepare(&self, seated: &mut Seated, seat: usize) -> wasmtime::Result<()> {
        let (kernel, launch) = (&self.job.compiled.kernel, &self.job.launch);
        let needed = kernel.private_bytes(launch.block.iter().product());
        if needed > MOST_PRIVATE_BYTES {
            return Err(wasmtime::Error::msg(format!(
                "a block's threads need {} for what they keep while they wait, and {} is the most; smaller blocks need less",
                crate::device::error::size(needed),
                crate::device::error::size(MOST_PRIVATE_BYTES)
            )));
        }
        let there = seated.private.data_size(&seated.store) as u64;
        if needed > there {
            seated.private.grow(&mut seated.store, (needed - there).div_ceil(WASM_PAGE))?;
            seated.frames.grown_to(frame_bytes(kernel, launch.block.iter().product()));
        }
        let Scratch { shared, local } = self.job.scratch[seat];
        let private = seated.private.data_mut(&mut seated.store);
        private[..Launch::BYTES].copy_from_slice(&Launch { shared, local, ..*launch }.encode());
        private[PARAMETERS as usize..][..self.job.parameters.len()].copy_from_slice(self.job.parameters);
        Ok(())
    }

    /// Runs blocks.
    fn take(&self, seated: &mut Seated, first: u64, last: u64) {
        // A stop is either seen here or by the running code: the wish stands before the epoch moves.
        seated.store.set_epoch_deadline(1);
        if self.seats.stopper.is_stopped() {
            return self.ending.fail(first, DeviceError::Stopped);
        }
        let began = Instant::now();
        let Err(error) = seated.run.call(&mut seated.store, (first as i64, last as i64)) else {
            let pace = began.elapsed().as_nanos() as u64 / (last - first);
            self.job.compiled.pace.store(pace.max(1), Ordering::Relaxed);
            return;
        };
        if error.downcast_ref::<DeviceError>().is_some() {
            self.ending.fail(first, DeviceError::Stopped);
        } else {
            let block = block_in(seated.private.data(&seated.store));
            let reason = seated.trap.get(&mut seated.store).i32().unwrap_or_default();
            let fault =
                Fault { kernel: &self.job.compiled.kernel, error: &error, reason, block, given: self.job.given };
            self.ending.fail(first, DeviceError::Lost(fault.to_string()));
        }
    }
}

/// Which block ran last, as the generated code says.
fn block_in(private: &[u8]) -> Option<[u32; 3]> {
    let record = private.get(Launch::BLOCK_INDEX as usize..)?.first_chunk::<12>()?;
    let axis = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    Some([axis(0), axis(4), axis(8)])
}

/// How a launch goes on and ends.
#[derive(Default)]
struct Ending {
    failed: AtomicBool,
    /// The failure in the first chunk of those that failed.
    first: Mutex<Option<(u64, DeviceError)>>,
}

impl Ending {
    fn is_near(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether a chunk that begins with this block should still run.
    fn wants(&self, block: u64) -> bool {
        let earlier = || self.lock().as_ref().is_none_or(|(failed, _)| block < *failed);
        !self.is_near() || earlier()
    }

    fn fail(&self, block: u64, error: DeviceError) {
        self.failed.store(true, Ordering::Relaxed);
        let mut first = self.lock();
        if first.as_ref().is_none_or(|(failed, _)| block < *failed) {
            *first = Some((block, error));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(u64, DeviceError)>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(self) -> Result<()> {
        let first = self.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[cfg(test)]
mod tests;
