//! An entry of a module to WebAssembly.
//!
//! ```text
//!  PTX ──► survey ──► build ──────────► tidy ──► regions, uniform, liveness ──► lower ──► WebAssembly
//!          what is    SSA values in     less     where threads wait, what is    one instruction for an
//!          inlined    blocks, PTX's              the same for all threads,      operation, nested control
//!                     special cases              what outlives a wait           flow, the scheduler
//!                     spelled out
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `survey` | which functions a kernel reaches, and which become part of their caller |
//! | `build` | PTX to the intermediate form |
//! | `helper` | functions for what WebAssembly lacks, in the same form |
//! | `collective` | routines that do for a whole warp what its lanes came together for |
//! | `ir` | the intermediate form: typed values, blocks with parameters |
//! | `graph`, `tidy`, `uniform`, `liveness` | analyses of it, and what they make superfluous |
//! | `regions` | cuts a body where threads wait |
//! | `frame` | how the private memory is laid out |
//! | `lanes`, `if_conversion` | what stays a scalar when four threads run as the lanes of vectors, and which branches they need not agree on |
//! | `masking` | branches that such threads need not agree on, though memory is read or written |
//! | `lazy` | which branches are decided by the first lane and the last |
//! | `parting` | where four threads that run so stop doing it |
//! | `lower` | the intermediate form to WebAssembly, for one thread at a time, for four, or for up to a warp |
//!
//! Everything up to `regions` speaks of one thread and not of how many run together.
//!
//! # An example
//!
//! ```text
//!   ld.param.u64  %rd1, [p];           // float* p
//!   mov.u32       %r1, %ctaid.x;
//!   mov.u32       %r2, %ntid.x;
//!   mov.u32       %r3, %tid.x;
//!   mad.lo.s32    %r4, %r1, %r2, %r3;
//!   mul.wide.s32  %rd2, %r4, 4;
//!   add.s64       %rd3, %rd1, %rd2;
//!   ld.global.f32 %f1, [%rd3+8];
//!   fma.rn.f32    %f2, %f1, %f1, %f1;
//!   st.global.f32 [%rd3], %f2;
//!   ret;
//! ```
//!
//! is built as (`v0` to `v3` belong to no block: they are the same for all threads of a block)
//!
//! ```text
//!   v0 = load private[256]     v1 = load private[64]      v2 = load private[12]      v3 = mul v1, v2
//!   block 0:
//!     v4 = add v3, thread.x    v5 = widen v4              v6 = shl v5, 2             v7 = add v0, v6
//!     v8 = load device[v7+8]   v9 = fma v8, v8, v8        store device[v7], v9       return
//! ```
//!
//! and becomes, for one thread at a time,
//!
//! ```text
//!   (func $run (param $first i64) (param $last i64)
//!     ;; for each block: its place in the grid to private[64], then v0 and v3 into locals
//!     ;; for each thread:
//!     (local.set $v7 (i64.add (local.get $v0) (i64.shl (i64.extend_i32_s (i32.add (local.get $v3) (local.get $x))) (i64.const 2))))
//!     (local.set $v8 (v128.load32_zero offset=8 (local.get $v7)))
//!     (f32.store (local.get $v7) (f32x4.extract_lane 0 (f32x4.relaxed_madd (local.get $v8) (local.get $v8) (local.get $v8)))))
//! ```
//!
//! For four at a time `v7` is the address of the first lane's element, the load a `v128.load` and the store a `v128.store`.
//!
//! Had there been a `bar.sync` before the store, `v7` and `v9` would go to the thread's frame, the body would end there, and a second function would begin with
//! loading them; `run` would be a scheduler that calls the first function for every warp, and the second when all have arrived.

mod build;
mod collective;
mod error;
mod frame;
mod graph;
mod helper;
mod if_conversion;
mod ir;
mod lanes;
mod lazy;
mod liveness;
mod lower;
mod masking;
mod parting;
mod regions;
mod survey;
#[cfg(test)]
mod tests;
mod tidy;
mod uniform;

pub use error::TranslateError;

use crate::kernel::{Kernel, Options};
use crate::module::{FunctionId, Module, Position};

/// In the private memory, written by the generated code behind [`crate::kernel::Launch`]: bytes of local memory for each thread.
const LOCAL_BYTES: u32 = 104;

/// For what lanes of a warp meet.
mod meeting {
    /// Only to wait for each other.
    pub const SYNC: u32 = 0;
    /// Each gets the value of the lane that it names.
    pub const SHUFFLE: u32 = 1;
    /// Each gets who of the group brings something other than 0, and the group.
    pub const VOTE: u32 = 2;
    /// Each gets who brings the same as it, and the group.
    pub const MATCH: u32 = 3;
    /// Each gets the sum of all; with the next ones, what their names say.
    pub const ADD: u32 = 4;
    pub const MIN: u32 = 5;
    pub const MAX: u32 = 6;
    pub const MIN_SIGNED: u32 = 7;
    pub const MAX_SIGNED: u32 = 8;
    pub const AND: u32 = 9;
    pub const OR: u32 = 10;
    pub const XOR: u32 = 11;
    /// Whoever has come to the same place when no lane can go on: their mask.
    pub const ACTIVE: u32 = 12;
    /// A routine runs for all lanes of the warp: the first of the kernel's, and with the next numbers the others (see `collective`).
    pub const COLLECTIVE: u32 = 16;
}

use crate::kernel::trap;

/// Translates an entry of a module.
///
/// # Errors
///
/// If the entry uses what this translation does not have, with the place in the text.
pub fn translate(module: &Module, entry: FunctionId, options: &Options) -> Result<Kernel, TranslateError> {
    let Some(function) =
        module.functions.get(entry.0 as usize).filter(|function| function.entry && !function.declaration)
    else {
        return Err(TranslateError::new(Position::default(), "this is not an entry of the module"));
    };
    let built = build::program::Workshop::build(module, entry, options)?;
    lower::kernel(function, built, options)
}
