//! The device: buffers, kernels and products of matrices, on a GPU or, the same, on the CPU.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use steadfast_guest::device::{Buffer, Module};
//! use steadfast_guest::{Job, NoConfig, Outcome, Plugin, Result, plugin};
//!
//! const N: u32 = 1 << 20;
//! const PTX: &str = "
//!     .version 8.2
//!     .target sm_75
//!     .address_size 64
//!     .visible .entry decay(.param .u64 values, .param .f32 factor, .param .u32 n) {
//!         .reg .pred %outside;
//!         .reg .b32 %block, %threads, %thread, %i, %n;
//!         .reg .b64 %values, %offset;
//!         .reg .f32 %factor, %value;
//!         mov.u32 %block, %ctaid.x;  mov.u32 %threads, %ntid.x;  mov.u32 %thread, %tid.x;
//!         mad.lo.u32 %i, %block, %threads, %thread;
//!         ld.param.u32 %n, [n];
//!         setp.ge.u32 %outside, %i, %n;
//!         @%outside ret;
//!         ld.param.u64 %values, [values];
//!         cvta.to.global.u64 %values, %values;
//!         mul.wide.u32 %offset, %i, 4;
//!         add.u64 %values, %values, %offset;
//!         ld.param.f32 %factor, [factor];
//!         ld.global.f32 %value, [%values];
//!         mul.rn.f32 %value, %value, %factor;
//!         st.global.f32 [%values], %value;
//!         ret;
//!     }";
//!
//! #[derive(Serialize, Deserialize)]
//! struct Decay { step: u64, values: Buffer<f32>, #[serde(skip)] kernels: Module }
//!
//! impl Plugin for Decay {
//!     type Config = NoConfig;
//!
//!     fn start(job: &Job, _: NoConfig) -> Result<Self> {
//!         let values = Buffer::persistent("values", N.into())?;
//!         values.fill_normal(job.seed, 0)?;
//!         Ok(Self { step: 0, values, kernels: Module::from_ptx(PTX)? })
//!     }
//!
//!     fn resumed(&mut self, _: &Job, _: NoConfig) -> Result<()> {
//!         self.kernels = Module::from_ptx(PTX)?;
//!         Ok(())
//!     }
//!
//!     fn step(&mut self) -> Result<Outcome> {
//!         let decay = self.kernels.kernel("decay").grid(N.div_ceil(256)).block(256);
//!         decay.arg(&self.values).arg(0.99f32).arg(N).launch()?;
//!         self.step += 1;
//!         if self.step < 100 { return Ok(Outcome::progress(self.step, 100)); }
//!         self.values.store("/output/values.f32", 0)?;
//!         Ok(Outcome::done("decayed"))
//!     }
//! }
//!
//! plugin!(Decay);
//! # fn main() {}
//! ```
//!
//! A [`Buffer`] that is persistent is part of every checkpoint; in the struct it is saved as its name, and comes back open, with its
//! content. Scratch buffers and [`Module`]s are made anew in every attempt: `#[serde(skip)]`, and [`Plugin::resumed`](crate::Plugin::resumed).
//!
//! Operations run in order, and those that give nothing back don't wait: [`Launch::launch`] returns while the kernel runs. What a kernel does
//! wrong is therefore said later, by the next call that waits or at the end of the step.
//!
//! Kernels are PTX. `nvcc -ptx -arch=compute_75 kernels.cu` (or NVRTC, without a GPU) makes it from CUDA C; beside the plugin's source, it
//! is built in with `include_str!`. On the CPU device the same text runs, more slowly, and what reaches out of
//! its buffer ends the step with the place in the PTX.
//!
//! Natively, in `cargo test`, there is no device, and everything here answers with an error that says so.

mod buffer;
mod element;
mod error;
mod gemm;
mod module;

pub use buffer::{Buffer, View};
pub use element::{Bf16, Element, F16, Float};
pub use error::{Error, ErrorKind, Result};
pub(crate) use error::{take_from_state, while_decoding};
pub use gemm::{Gemm, Matrix};
pub use module::{Argument, Dimensions, Launch, Module};

pub use crate::bindings::steadfast::job::device::{Backend, Facts};

/// What the device is. For people and for choosing sizes that fit; results should not depend on it.
pub fn describe() -> Result<Facts> {
    error::needs_host("describe")?;
    Ok(crate::bindings::steadfast::job::device::describe())
}

#[cfg(test)]
mod tests;
