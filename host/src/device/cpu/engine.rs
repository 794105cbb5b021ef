//! The wasmtime engine of kernels.
//!
//! Two settings carry weight. Bulk memory instructions are refused, since wasmtime carries them out in the host, where reaching between two buffers
//! would not be a trap. And relaxed SIMD is deterministic: `relaxed_madd` is the fused multiply-add that kernels are full of, on every processor.

use std::sync::Arc;

use wasmtime::{Config, Engine, Store, UpdateDeadline};

use super::memory_unsafe::Creator;
use crate::device::{DeviceError, Stopper};

/// The native stack that a kernel may use, beside what the guest that launches it has used already.
const KERNEL_STACK: usize = 512 << 10;
/// What a thread needs that runs kernels and nothing else.
pub(super) const THREAD_STACK: usize = KERNEL_STACK + (512 << 10);
/// Inaccessible bytes behind every memory: compiled code leaves constant offsets up to it to the hardware.
pub(super) const GUARD: u64 = 32 << 20;
/// Addresses that the memory of 32 bits of a kernel takes, so that none of its accesses needs a comparison.
const PRIVATE_RESERVATION: u64 = 4 << 30;

/// An engine whose kernels see `device` as their memory of 64 bits.
pub(super) fn engine(device: Creator, canonical_nans: bool) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(KERNEL_STACK)
        .memory_reservation(PRIVATE_RESERVATION)
        .memory_guard_size(GUARD)
        .with_host_memory(Arc::new(device))
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_threads(true)
        .wasm_relaxed_simd(true)
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(canonical_nans)
        .wasm_bulk_memory(false);
    Engine::new(&config)
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
