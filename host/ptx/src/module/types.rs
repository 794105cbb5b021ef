//! Types, state spaces and the small sets that modifiers of instructions are drawn from.

use serde::{Deserialize, Serialize};

/// Where in the text something stands, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A fundamental or packed type. Names are PTX's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// A truth value: `.pred`.
    Pred,
    /// Bits of no particular type.
    B8,
    /// Bits of no particular type.
    B16,
    /// Bits of no particular type.
    B32,
    /// Bits of no particular type.
    B64,
    /// Bits of no particular type.
    B128,
    /// An unsigned integer.
    U8,
    /// An unsigned integer.
    U16,
    /// An unsigned integer.
    U32,
    /// An unsigned integer.
    U64,
    /// A signed integer.
    S8,
    /// A signed integer.
    S16,
    /// A signed integer.
    S32,
    /// A signed integer.
    S64,
    /// IEEE binary16.
    F16,
    /// Two of them in 32 bits, the first in the lower half.
    F16x2,
    /// The upper half of an `f32`.
    Bf16,
    /// Two of them in 32 bits.
    Bf16x2,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Two unsigned integers in 32 bits, the first in the lower half. Instructions have it, no register is declared so.
    U16x2,
    /// Two signed ones.
    S16x2,
    /// An `f32` of which only the upper 10 bits of the fraction count, in a register of 32 bits: instructions have it, no register is declared so.
    Tf32,
}

impl Type {
    /// Bytes in memory. A predicate has none there; 1 is answered.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32
            | Self::U32
            | Self::S32
            | Self::F32
            | Self::F16x2
            | Self::Bf16x2
            | Self::U16x2
            | Self::S16x2
            | Self::Tf32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// Bits, 8 times [`bytes`](Self::bytes).
    pub fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether it is one or two floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64 | Self::Tf32)
    }
}

/// A state space: where memory lives. In generic addresses all but `Param` of a device function may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Space {
    /// Any of the others, told by the address.
    Generic,
    /// Device memory: buffers and module variables.
    Global,
    /// Memory of a block of threads.
    Shared,
    /// Memory of one thread.
    Local,
    /// Constants of the module.
    Const,
    /// Parameters of the entry, read-only, or of a call.
    Param,
}

/// How a floating-point or integer result is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to the nearest, ties to even.
    NearestEven,
    /// `.rna`: to the nearest, ties away from zero.
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: towards minus infinity.
    Down,
    /// `.rp`: towards plus infinity.
    Up,
    /// `.rni`: to an integer, to the nearest, ties to even.
    IntegerNearestEven,
    /// `.rzi`: to an integer, towards zero.
    IntegerZero,
    /// `.rmi`: to an integer, towards minus infinity.
    IntegerDown,
    /// `.rpi`: to an integer, towards plus infinity.
    IntegerUp,
    /// `.approx`: the hardware's approximation; the CPU's is at least as precise.
    Approximate,
    /// `.full`: full range, at most 2 units in the last place off.
    Full,
}

/// What a comparison asks. The unordered ones are true also where an operand is NaN. For unsigned types `lo`, `ls`, `hi`, `hs` are `Lt`,
/// `Le`, `Gt`, `Ge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Neither is NaN.
    Num,
    /// One is NaN.
    Nan,
}

/// A logic operation on bits or predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// One of the axes of a block or grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum Axis {
    X,
    Y,
    Z,
}

/// A read-only register that the machine sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// `%tid`: the thread's place in its block.
    Thread(Axis),
    /// `%ntid`: threads in a block.
    BlockSize(Axis),
    /// `%ctaid`: the block's place in the grid.
    Block(Axis),
    /// `%nctaid`: blocks in the grid.
    GridSize(Axis),
    /// `%laneid`: the thread's place in its warp.
    Lane,
    /// `%warpid`: the warp's place in its block.
    Warp,
    /// `%nwarpid`: warps in a block.
    WarpCount,
    /// `%smid`: 0 here.
    Processor,
    /// `%nsmid`: 1 here.
    ProcessorCount,
    /// `%gridid`: 0 here.
    Grid,
    /// `%lanemask_eq` and its kin: the lanes that compare so with this one.
    LaneMask(Comparison),
    /// `%clock`, `%clock64`, `%globaltimer`: 0 here, since results must repeat.
    Clock,
    /// `%dynamic_smem_size`: bytes of dynamic shared memory.
    DynamicSharedBytes,
    /// `%total_smem_size`: bytes of static and dynamic shared memory.
    TotalSharedBytes,
}
