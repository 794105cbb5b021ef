//! A **test double** of `libcuda.so.1` and `libcublas.so.12`. There is no GPU in it: what the host orders is computed by Steadfast's CPU device.
//!
//! It exports the functions that the CUDA device binds, under their real names, so that the device's whole path runs unmodified on a machine without a
//! GPU: contexts, streams, events, pinned memory, modules, launches, products, and any of them failing. Tests put it into a folder of their own as `libcuda.so` and
//! `libcublas.so` and have the dynamic linker look there; it is built under another name, so that nothing takes it for the driver by accident.
//!
//! ```text
//!  host ──► exports_unsafe ──► Gpu: a queue, a thread that works it off ──► Bench: addresses ──► steadfast's Context on its CPU device
//! ```
//!
//! What it is strict about, more than the driver: memory and modules are given back at once, so work under way that still needs them fails; memory of the
//! host that is not pinned is refused; with `CUDA_DOUBLE_LAZY=1` nothing is done before somebody asks whether it is done. What it leaves out:
//! work of two streams at the same time (it takes turns), one stream that waits for another, everything about speed, and that a call may wait.
//!
//! # Environment
//!
//! | variable | |
//! |---|---|
//! | `CUDA_DOUBLE_LAZY=1` | work is only done when somebody asks for it |
//! | `CUDA_DOUBLE_FAIL=call:n:code` | the n-th call of this function, from 1, answers this code; `kernel` fails a kernel under way |
//! | `CUDA_DOUBLE_TRACE=file` | the name of each call is appended to this file |
//! | `CUDA_DOUBLE_CUDA=12020` | the CUDA that the driver serves |
//! | `CUDA_DOUBLE_GPUS=1`, `CUDA_DOUBLE_MEMORY=bytes` | how many GPUs there are, and what each has |

mod bench;
mod exports_unsafe;
mod gpu;
mod settings;

/// What the driver's functions answer.
pub(crate) mod code {
    pub(crate) const INVALID_VALUE: u32 = 1;
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const NOT_INITIALIZED: u32 = 3;
    pub(crate) const NO_DEVICE: u32 = 100;
    pub(crate) const INVALID_DEVICE: u32 = 101;
    pub(crate) const INVALID_CONTEXT: u32 = 201;
    pub(crate) const INVALID_PTX: u32 = 218;
    pub(crate) const UNSUPPORTED_PTX: u32 = 222;
    pub(crate) const INVALID_HANDLE: u32 = 400;
    pub(crate) const NOT_FOUND: u32 = 500;
    pub(crate) const NOT_READY: u32 = 600;
    pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
    pub(crate) const LAUNCH_FAILED: u32 = 719;
    pub(crate) const UNKNOWN: u32 = 999;
}
