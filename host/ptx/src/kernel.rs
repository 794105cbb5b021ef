//! What a translated kernel is, and how it is run: the contract between the generated WebAssembly and whoever instantiates it.
//!
//! # The generated module
//!
//! ```text
//!  import "device" "memory"   (memory, i64 if Options::wide, minimum = maximum = Options::memory_bytes)
//!                                                                                        global, const, shared and local space; generic addresses
//!  export "private"           (memory i32, grown by the host to Kernel::private_bytes)   the launch record, parameters, frames of waiting threads
//!  export "trap"              (global mut i32)                                           why it stopped itself, see [`trap`]
//!  export "run"               (func (param $first i64) (param $last i64))                 runs the blocks first .. last (linear, x fastest)
//! ```
//!
//! Before `run` the host writes a [`Launch`] to the beginning of `private` ([`Launch::encode`]) and the parameter block to
//! [`PARAMETERS`]. An address in the space `global`, `const`, `shared` or `local` *is* the generic address: an offset in the device memory, of 64 bits and
//! checked in full, so that a wild one traps. `param` addresses of an entry are offsets in `private`, out of reach for everything but `ld.param`.
//!
//! PTX holds addresses of shared and local memory in 32-bit registers too: [`Launch::shared`], [`Launch::local`] and what follows them must lie below 4 GiB.
//!
//! Several instances may run at once, each with disjoint blocks, a `private` of its own and [`Launch::shared`] and [`Launch::local`] of its own, over the
//! same device memory, unless [`Kernel::sequential`] says that the blocks must run in order. A block finds
//! zeros in its shared and local memory. Results are the same for every number of instances.
//!
//! # In which order the threads of a block run
//!
//! As PTX says: in any, between two barriers. It is always the same order for a kernel and the shape of its blocks, whatever the number of instances: one thread after the
//! other, or ([`Form::Vector`]) some with consecutive places along x, four or several times four, block of instructions by block of instructions; atomic operations
//! come in the same order in both cases. So a race within a block, which PTX leaves undefined, ends the same way each time; it may end another way with [`Options::vectors`] off. Of several faults in a block one
//! is reported; which one is fixed likewise.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::module::{Parameter, Position};

/// Where the parameter block begins in the private memory.
pub const PARAMETERS: u32 = 256;
/// The most bytes of parameters that an entry may have (PTX 8.1: 32764; before: 4352).
pub const MOST_PARAMETER_BYTES: u32 = 32_764;
/// Threads in a warp.
pub const WARP: u32 = 32;
/// Threads side by side in the lanes of vectors, with consecutive places along x: blocks whose width is a multiple of it run so.
pub const LANES: u32 = 4;
/// The most threads in a block, as on every GPU since 2.0.
pub const MOST_THREADS: u32 = 1024;

/// Choices about a translation. Part of the name under which compiled code is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    /// The size of the imported memory: a multiple of 64 KiB.
    pub memory_bytes: u64,
    /// Whether the imported memory has addresses of 64 bits, as it must from 4 GiB on. Each access then costs comparisons that the memory's end takes care of otherwise.
    pub wide: bool,
    /// Every NaN that arithmetic makes is `0x7fffffff` (f32), `0x7fff` (f16, bf16) or `0xfff8000000000000` … as PTX says; else the processor's.
    pub canonical_nans: bool,
    /// Whether kernels that can run threads side by side, as the lanes of vectors, do so. Results are the same bit for bit; without it translations are smaller.
    pub vectors: bool,
}

/// How many threads the code of a kernel runs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// Four neighbours in a row of the block, as the lanes of vectors, and up to eight times as many side by side; where these disagree on a branch, and where rows are not of whole groups
    /// of four, one.
    Vector,
    /// One, and why.
    Scalar(Obstacle),
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vector => "vector lanes",
            Self::Scalar(_) => "thread by thread",
        })
    }
}

/// Why a kernel has no vector form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Obstacle {
    /// [`Options::vectors`] is off.
    Disabled,
    /// Its threads wait, first of all here, and it calls functions besides or moves matrices.
    Waits(Position),
    /// Its threads never wait, and here it has an atomic operation, or an access that is ordered with those of other blocks.
    Atomics(Position),
    /// Here it calls a device function, or readies the call's arguments.
    Calls(Position),
    /// Its threads never wait, and it has local memory, this variable first of all.
    LocalMemory(Position),
    /// Here it may go different ways in neighbouring threads after it has stored something, and it is too large for a form in which they meet again.
    Diverges(Position),
    /// Its code is so large that a second form would cost more than it gains.
    TooLarge,
}

impl Obstacle {
    /// Where in the text it is, if it is at one place.
    pub fn place(&self) -> Option<Position> {
        match self {
            Self::Waits(place)
            | Self::Atomics(place)
            | Self::Calls(place)
            | Self::LocalMemory(place)
            | Self::Diverges(place) => Some(*place),
            Self::Disabled | Self::TooLarge => None,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "vectors are switched off",
            Self::Waits(_) => "its threads wait for each other",
            Self::Atomics(_) => "it has atomic operations",
            Self::Calls(_) => "it calls a function that is no part of it",
            Self::LocalMemory(_) => "it has local memory",
            Self::Diverges(_) => "neighbouring threads may part behind a store",
            Self::TooLarge => "it is too large",
        })
    }
}

/// A translated entry point.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Its name in the PTX.
    pub name: String,
    /// A WebAssembly module, as above.
    pub wasm: Vec<u8>,
    /// What a launch must give.
    pub parameters: Vec<Parameter>,
    /// Bytes of the parameter block.
    pub parameter_bytes: u32,
    /// `.maxntid` by axis.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid` by axis.
    pub required_threads: Option<[u32; 3]>,
    /// Bytes of static shared memory. Dynamic shared memory follows at the next multiple of 16.
    pub static_shared: u32,
    /// Bytes of local memory for each thread of a block: a multiple of 16.
    pub local_bytes: u32,
    /// Where the frames begin in the private memory.
    pub frame_base: u32,
    /// Bytes of private memory for each thread of a block.
    pub frame_bytes: u32,
    /// Blocks must run one after the other, in order: atomics on global memory whose outcome depends on it.
    pub sequential: bool,
    /// How many threads it runs at a time.
    pub form: Form,
    /// From offsets in `wasm` to places in the PTX, ascending: a trap at offset `o` belongs to the last entry at or below `o`.
    pub places: Vec<(u32, Position)>,
}

impl Kernel {
    /// How large the private memory has to be for a block of so many threads.
    pub fn private_bytes(&self, threads: u32) -> u64 {
        // Frames of four threads may be one.
        u64::from(self.frame_base) + u64::from(self.frame_bytes) * u64::from(threads).next_multiple_of(4)
    }

    /// Bytes of shared memory for a block with so much dynamic shared memory.
    pub fn shared_bytes(&self, dynamic: u32) -> u64 {
        if dynamic == 0 {
            u64::from(self.static_shared)
        } else {
            u64::from(self.static_shared).next_multiple_of(16) + u64::from(dynamic)
        }
    }

    /// Where in the PTX the instruction at `offset` of the module came from.
    pub fn place(&self, offset: u32) -> Option<Position> {
        let after = self.places.partition_point(|(at, _)| *at <= offset);
        // Code that stands for no instruction of the text says line 0.
        after.checked_sub(1).map(|index| self.places[index].1).filter(|place| place.line > 0)
    }
}

/// One launch, as the generated code reads it. Addresses are offsets in the device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Launch {
    /// Blocks in the grid, by axis; none is 0.
    pub grid: [u32; 3],
    /// Threads in a block, by axis; none is 0 and their product is at most [`MOST_THREADS`].
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The module's `.global` variables (see [`crate::layout`]).
    pub globals: u64,
    /// The module's `.const` variables.
    pub constants: u64,
    /// This instance's shared memory, aligned to 256 bytes. The kernel clears it for each block, and local memory too.
    pub shared: u64,
    /// This instance's local memory: threads × [`Kernel::local_bytes`], aligned to 256 bytes.
    pub local: u64,
}

impl Launch {
    /// Bytes of the record.
    pub const BYTES: usize = 64;
    pub(crate) const GRID: u32 = 0;
    pub(crate) const BLOCK: u32 = 12;
    pub(crate) const DYNAMIC_SHARED: u32 = 24;
    pub(crate) const GLOBALS: u32 = 32;
    pub(crate) const CONSTANTS: u32 = 40;
    pub(crate) const SHARED: u32 = 48;
    pub(crate) const LOCAL: u32 = 56;
    /// What follows is written by the generated code: the block's place in the grid, by axis …
    pub const BLOCK_INDEX: u32 = 64;
    /// … where the dynamic shared memory begins …
    pub(crate) const DYNAMIC: u32 = 80;
    /// … and where all shared and all local memory ends.
    pub(crate) const SHARED_END: u32 = 88;
    pub(crate) const LOCAL_END: u32 = 96;

    /// The record, little-endian: what the host writes to offset 0 of the private memory.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut record = [0; Self::BYTES];
        let mut put = |at: u32, bytes: &[u8]| record[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        for axis in 0..3 {
            put(Self::GRID + 4 * axis, &self.grid[axis as usize].to_le_bytes());
            put(Self::BLOCK + 4 * axis, &self.block[axis as usize].to_le_bytes());
        }
        put(Self::DYNAMIC_SHARED, &self.dynamic_shared.to_le_bytes());
        put(Self::GLOBALS, &self.globals.to_le_bytes());
        put(Self::CONSTANTS, &self.constants.to_le_bytes());
        put(Self::SHARED, &self.shared.to_le_bytes());
        put(Self::LOCAL, &self.local.to_le_bytes());
        record
    }
}

/// Why a kernel stopped itself: what the exported global `trap` holds when the trap is `unreachable`. Other traps (an access beyond the memory) leave it 0.
pub mod trap {
    /// `trap` in the PTX.
    pub const TRAP: i32 = 1;
    /// No thread of the block can go on: they wait at barriers, or for lanes, that others never come to.
    pub const DEADLOCK: i32 = 2;
    /// `brx.idx` with an index beyond its table.
    pub const TABLE: i32 = 3;
    /// `__assertfail` was called.
    pub const ASSERTION: i32 = 4;
    /// A barrier with a number beyond 15.
    pub const BARRIER: i32 = 5;
    /// Device functions call each other too deep for their arguments.
    pub const STACK: i32 = 6;
}
