//! The wasmtime engine of kernels.
//!
//! One setting carries weight: relaxed SIMD is deterministic, so that `relaxed_madd` is the fused multiply-add that kernels are full of, on every
//! processor.

use std::sync::{Arc, OnceLock};

use wasm_encoder::{ExportKind, ExportSection, MemorySection, MemoryType};
use wasmtime::{Config, Engine, Module, Store, UpdateDeadline};

use super::memory_unsafe::Creator;
use crate::compiled::EngineKey;
use crate::device::{DeviceError, Stopper};

/// The native stack that a kernel may use, beside what the guest that launches it has used already.
const KERNEL_STACK: usize = 512 << 10;
/// What a thread needs that runs kernels and nothing else.
pub(super) const THREAD_STACK: usize = KERNEL_STACK + (512 << 10);
/// Inaccessible bytes behind every memory: compiled code leaves constant offsets up to it to the hardware.
pub(super) const GUARD: u64 = 32 << 20;
/// Addresses that a memory of 32 bits takes, so that no access needs a comparison.
pub(super) const RESERVATION: u64 = 4 << 30;

pub(super) const WASM_PAGE: u64 = 64 << 10;
/// Of the device memory, what kernels have with addresses of 32 bits: all but the last page, whose addresses stand for all that need more.
pub(super) const NARROW_BYTES: u64 = RESERVATION - WASM_PAGE;
/// At the end of these no buffer lies, so that what is near one has an address of 32 bits too, and is told as such.
pub(super) const MARGIN: u64 = 2 * super::fault::NEAR;

/// An engine whose kernels see `device` as their memory of 64 bits.
pub(super) fn engine(device: Creator, canonical_nans: bool) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(KERNEL_STACK)
        .memory_reservation(RESERVATION)
        .memory_guard_size(GUARD)
        .with_host_memory(Arc::new(device))
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_threads(true)
        .wasm_relaxed_simd(true)
        .relaxed_simd_deterministic(true)
        // For unwinders that are not wasmtime's own: a page or more of every kernel, and registered one by one.
        .native_unwind_info(false)
        .cranelift_nan_canonicalization(canonical_nans);
    Engine::new(&config)
}

/// What names the engine in the cache. The engines of a process differ in nothing else that compiled code depends on.
pub(super) fn engine_key(engine: &Engine, canonical_nans: bool) -> EngineKey {
    static KEYS: [OnceLock<EngineKey>; 2] = [OnceLock::new(), OnceLock::new()];
    *KEYS[usize::from(canonical_nans)].get_or_init(|| EngineKey::of(engine))
}

/// A module that defines the device memory, of so many bytes, as export `memory`, with addresses of 64 bits or of 32. A memory that wasmtime's `Memory::new` makes would not come
/// from the engine's creator: only those of instances do.
pub(super) fn device_module(engine: &Engine, bytes: u64, wide: bool) -> wasmtime::Result<Module> {
    let pages = bytes / WASM_PAGE;
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: pages,
        maximum: Some(pages),
        memory64: wide,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    let mut module = wasm_encoder::Module::new();
    module.section(&memories).section(&exports);
    Module::new(engine, module.finish())
}

/// A store whose code ends when `stopper` says so.
pub(super) fn store(engine: &Engine, stopper: &Stopper) -> Store<()> {
    let mut store = Store::new(engine, ());
    let stopper = stopper.clone();
    store.set_epoch_deadline(1);
    // Any movement of the epoch asks, since the deadline is always one ahead.
    store.epoch_deadline_callback(move |_| {
        if stopper.is_stopped() {
            Err(wasmtime::Error::new(DeviceError::Stopped))
        } else {
            Ok(UpdateDeadline::Continue(1))
        }
    });
    store
}
