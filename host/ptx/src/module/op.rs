//! Instructions: one variant for a family that is executed alike.
//!
//! Where a variant has `ty`, operands without a type of their own have it. Registers may be wider or of another kind than the operand, as
//! PTX allows (a `.b32` register holds a `.f32`; `ld.u8` fills a `.b32` register, zero- or sign-extended): readers convert by bits.

use super::{Comparison, FunctionId, LabelId, Logic, RegisterId, Rounding, Space, Special, Type};

/// A truth value: a predicate register or its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Predicate {
    /// The register, of type `Pred`.
    pub register: RegisterId,
    /// Whether `!` stands before it.
    pub negated: bool,
}

/// Something that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Register(RegisterId),
    /// Bits, in the type that the instruction gives this operand: integers cut to its width, `.f32` in the lower half, predicates 0 or 1.
    Immediate(u64),
    /// A special register: 32 bits, or 64 for clocks.
    Special(Special),
    /// The address of a variable (in its own space) plus an offset, or the index of a function.
    Address(Symbol, i64),
}

/// Something with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable of the module, by its index in `Module::variables`.
    Module(u32),
    /// A variable of the function, by its index in `Function::variables`.
    Function(u32),
    /// A parameter, by its index in `Function::parameters`.
    Parameter(u32),
    /// What the function returns, by its index in `Function::returns`.
    Return(u32),
    /// A function, for indirect calls.
    Code(FunctionId),
}

/// Where a memory operation goes: a base and a constant offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// A register with an address, a symbol (its own offset is 0 then), or an absolute address as an immediate.
    pub base: Operand,
    /// Added to it, in bytes.
    pub offset: i64,
}

/// How a memory operation is ordered with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// No promise.
    #[default]
    Weak,
    /// `.volatile`, `.relaxed`, `.acquire`, `.release`, `.acq_rel`, `.mmio`: not left out, joined or moved over another of them.
    Strong,
}

/// A two-operand integer operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum IntegerOp {
    Add,
    Sub,
    /// The lower half of the product.
    MulLo,
    /// The upper half.
    MulHi,
    /// All of it: the result is twice as wide as `ty`.
    MulWide,
    /// The product of the lower 24 bits, its lower 32 bits.
    Mul24Lo,
    /// The product of the lower 24 bits, bits 16 to 47.
    Mul24Hi,
    /// Division by zero gives all ones; the smallest integer by -1 gives itself.
    Div,
    /// By zero: the dividend; the smallest integer by -1: 0.
    Rem,
    Min,
    Max,
    /// `shl`: `b` is a 32-bit unsigned number; from the width on everything is shifted out.
    Shl,
    /// `shr`: logical for unsigned and bits, arithmetic for signed types; `b` clamps at the width.
    Shr,
}

/// A one-operand integer operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum IntegerUnary {
    Neg,
    Abs,
    /// Of bits; of a predicate, its negation.
    Not,
    /// C's logical not, as an integer.
    Cnot,
    /// The result of this and the next is 32 bits, whatever `ty`.
    Popc,
    Clz,
    Brev,
    /// `bfind`: the position of the highest bit that is not the sign, or `0xffff_ffff`. The result is 32 bits.
    Bfind {
        /// Instead the shift that brings it to the top.
        shift_amount: bool,
    },
}

/// A two-operand operation on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    /// A NaN loses against a number; -0 is less than +0.
    Min,
    Max,
    /// `min.NaN`: a NaN wins.
    MinNan,
    MaxNan,
    /// The sign of `a` with the magnitude of `b`, in the order of PTX's operands.
    Copysign,
}

/// A one-operand operation on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum FloatUnary {
    Neg,
    Abs,
    Sqrt,
    Rcp,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
}

/// What `testp` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum FloatTest {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// How a floating-point result is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// The rounding; `NearestEven` where the text says none.
    pub rounding: Rounding,
    /// `.ftz`: denormal inputs and results become zeros of the same sign.
    pub flush: bool,
    /// `.sat`: clamped to 0 … 1, NaN to 0.
    pub saturate: bool,
    /// `.relu`: what is negative becomes 0.
    pub relu: bool,
}

/// Carry chains: `add.cc`, `addc`, `subc` and `mad` with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Carry {
    /// Adds (subtracts) the carry flag: the `c` of `addc`, `subc`, `madc`.
    pub reads: bool,
    /// `.cc`: sets the carry flag.
    pub writes: bool,
}

/// Which lane a shuffle reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

/// What a vote answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum Vote {
    All,
    Any,
    Uni,
    /// 32 bits, a bit a lane.
    Ballot,
}

/// What an atomic operation does with the old value and its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum AtomicOp {
    Exch,
    /// With a third operand: the new value.
    Cas,
    Add,
    /// `old >= b ? 0 : old + 1`.
    Inc,
    /// `old == 0 || old > b ? b : old - 1`.
    Dec,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// What a barrier gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BarrierReduction {
    /// `popc`: in how many threads the predicate holds (32 bits).
    Count,
    /// `and`: in all (a predicate).
    All,
    /// `or`: in any (a predicate).
    Any,
}

/// Which bytes `prmt` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX")]
pub enum PermuteMode {
    Default,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// The shape of a product of matrices: `rows` × `depth` times `depth` × 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// 8 or 16.
    pub rows: u32,
    /// How many products an element of the result is the sum of.
    pub depth: u32,
}

/// What an instruction does. `dst` is where its result goes; `None` stands for `_`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields are named as in PTX and explained with their variant")]
pub enum Op {
    /// `mov`, also of an address; `cvta` between generic and `global`, `const`, `param` or none where addresses are the same is [`Op::ToGeneric`].
    Mov { ty: Type, dst: RegisterId, src: Operand },
    /// `mov.b32 d, {a, b}`: `parts` from the lowest bits on, equally wide.
    Pack { ty: Type, dst: RegisterId, parts: Vec<Operand> },
    /// `mov.b32 {a, b}, s`.
    Unpack { ty: Type, dst: Vec<Option<RegisterId>>, src: Operand },
    /// `cvta.space`: an address in a space → a generic one.
    ToGeneric { space: Space, ty: Type, dst: RegisterId, src: Operand },
    /// `cvta.to.space`: a generic address → one in a space.
    FromGeneric { space: Space, ty: Type, dst: RegisterId, src: Operand },
    /// `isspacep`: whether a generic address is in the space.
    IsSpace { space: Space, dst: RegisterId, src: Operand },
    /// `ld`, `ldu`, `ld.nc`: 1, 2 or 4 values, one after the other. Narrow integers are extended by the sign of `ty`.
    Load { space: Space, order: Order, ty: Type, dst: Vec<Option<RegisterId>>, address: Address },
    /// `st`.
    Store { space: Space, order: Order, ty: Type, address: Address, src: Vec<Operand> },
    /// `atom`, and `red` (`dst` none). `b` and, for `Cas`, `c` have type `ty`; `f16x2` and `bf16x2` add in halves.
    Atomic {
        op: AtomicOp,
        space: Space,
        ty: Type,
        dst: Option<RegisterId>,
        address: Address,
        b: Operand,
        c: Option<Operand>,
    },
    /// `cp.async`: so many bytes from global to shared memory, at once. Bytes from the number `given` on are zeros, and all are where `ignored` holds.
    AsyncCopy { bytes: u32, to: Address, from: Address, given: Option<Operand>, ignored: Option<Predicate> },
    /// `mbarrier.init`: phases of `count` arrivals.
    MbarrierInit { space: Space, address: Address, count: Operand },
    /// `mbarrier.arrive`, and `.arrive_drop`: later phases expect so many less. `state` receives what the barrier was before.
    MbarrierArrive { space: Space, address: Address, state: Option<RegisterId>, count: Operand, drops: bool },
    /// `mbarrier.test_wait` and `.try_wait`: whether the phase is over in which the state `phase` was received, or that has this parity.
    MbarrierTest { space: Space, address: Address, dst: RegisterId, parity: bool, phase: Operand },
    /// `mbarrier.pending_count`: how many arrivals a state was waiting for.
    MbarrierPending { dst: RegisterId, state: Operand },
    /// `prefetch`, `discard` and others without an effect here.
    Hint,

    /// `cvt`. `second`, for packed results (`cvt.rn.f16x2.f32 d, a, b`): the lower half's source; `src` is the upper's.
    Convert {
        to: Type,
        from: Type,
        mode: FloatMode,
        rounding_given: bool,
        dst: RegisterId,
        src: Operand,
        second: Option<Operand>,
    },
    /// `cvt.pack.sat`: `a` and `b` saturated to `to` (16 bits: both in 32; 8 bits: both below the bits of `c`).
    ConvertPack { to: Type, from: Type, dst: RegisterId, a: Operand, b: Operand, c: Option<Operand> },

    /// Integer arithmetic and shifts. `saturate`: `.sat`, and of `Min` and `Max` `.relu`, which makes 0 of what is negative.
    Integer { op: IntegerOp, ty: Type, saturate: bool, carry: Carry, dst: RegisterId, a: Operand, b: Operand },
    /// `mad`, `mad24`, `madc`: `op` is one of the products; `c` and the result are twice as wide for `MulWide`. `saturate`: `mad.hi.sat.s32`.
    MultiplyAdd {
        op: IntegerOp,
        ty: Type,
        saturate: bool,
        carry: Carry,
        dst: RegisterId,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    /// `sad`: `c + |a - b|`.
    SumAbsoluteDifference { ty: Type, dst: RegisterId, a: Operand, b: Operand, c: Operand },
    /// One operand.
    IntegerUnary { op: IntegerUnary, ty: Type, dst: RegisterId, a: Operand },
    /// `and`, `or`, `xor`, of bits or predicates (then operands may be negated registers only through [`Op::IntegerUnary`]).
    Logic { op: Logic, ty: Type, dst: RegisterId, a: Operand, b: Operand },
    /// `lop3.b32`: the truth table `table`. `lop3.and` and `.or` also combine whether the result is not 0 with a predicate (`truth`: how, where it goes, with which).
    Logic3 {
        dst: Option<RegisterId>,
        a: Operand,
        b: Operand,
        c: Operand,
        table: u8,
        truth: Option<(Logic, RegisterId, Predicate)>,
    },
    /// `shf.l` / `shf.r`: 32 bits of `b:a` shifted by `c`; `wrap`: modulo 32, else clamped at 32.
    FunnelShift { left: bool, wrap: bool, dst: RegisterId, a: Operand, b: Operand, c: Operand },
    /// `bfe`: `len` bits from `pos` on, extended by the sign of `ty`; `pos` and `len` are 32 bits, the lower 8 count.
    BitExtract { ty: Type, dst: RegisterId, a: Operand, pos: Operand, len: Operand },
    /// `bfi`: `a` into `b` at `pos`, `len` bits.
    BitInsert { ty: Type, dst: RegisterId, a: Operand, b: Operand, pos: Operand, len: Operand },
    /// `bmsk`: `len` ones from `pos` on.
    BitMask { wrap: bool, dst: RegisterId, pos: Operand, len: Operand },
    /// `szext`: `a` extended from its bit `n`.
    ExtendFrom { wrap: bool, ty: Type, dst: RegisterId, a: Operand, n: Operand },
    /// `fns`: the position of the n-th set bit.
    FindNthSet { dst: RegisterId, mask: Operand, base: Operand, offset: Operand },
    /// `prmt.b32`.
    Permute { mode: PermuteMode, dst: RegisterId, a: Operand, b: Operand, selector: Operand },
    /// `dp4a`: four products of bytes; types `U32` or `S32` say how each operand's bytes are read.
    Dot4 { a_ty: Type, b_ty: Type, dst: RegisterId, a: Operand, b: Operand, c: Operand },
    /// `dp2a`: two products of halves of `a` and the lower or upper bytes of `b`.
    Dot2 { upper: bool, a_ty: Type, b_ty: Type, dst: RegisterId, a: Operand, b: Operand, c: Operand },

    /// Arithmetic on floats.
    Float { op: FloatOp, ty: Type, mode: FloatMode, dst: RegisterId, a: Operand, b: Operand },
    /// `fma`, and `mad` on floats: fused.
    Fma { ty: Type, mode: FloatMode, dst: RegisterId, a: Operand, b: Operand, c: Operand },
    /// One operand.
    FloatUnary { op: FloatUnary, ty: Type, mode: FloatMode, dst: RegisterId, a: Operand },
    /// `testp`.
    Test { test: FloatTest, ty: Type, dst: RegisterId, a: Operand },

    /// `setp`: `dst` the comparison, combined with `combine`; `inverse` the negated comparison, combined alike. For `f16x2` one
    /// predicate a half: `dst` the lower's.
    SetPredicate {
        comparison: Comparison,
        ty: Type,
        flush: bool,
        dst: Option<RegisterId>,
        inverse: Option<RegisterId>,
        a: Operand,
        b: Operand,
        combine: Option<(Logic, Predicate)>,
    },
    /// `set`: all ones or 0 for integer `to`, 1.0 or 0 for float `to`.
    Set {
        comparison: Comparison,
        to: Type,
        ty: Type,
        flush: bool,
        dst: RegisterId,
        a: Operand,
        b: Operand,
        combine: Option<(Logic, Predicate)>,
    },
    /// `selp`: `a` where the predicate holds, else `b`.
    Select { ty: Type, dst: RegisterId, a: Operand, b: Operand, predicate: Operand },
    /// `slct`: `a` where `c >= 0`, else `b`; `c_ty` is `S32` or `F32`.
    SelectBySign { ty: Type, c_ty: Type, flush: bool, dst: RegisterId, a: Operand, b: Operand, c: Operand },

    /// `bra`. With the instruction's guard, conditional. `uniform` is a promise of the text that may be wrong.
    Branch { target: LabelId, uniform: bool },
    /// `brx.idx`: to `targets[index]`; beyond them the behaviour is undefined, here: a trap.
    BranchTable { index: Operand, targets: Vec<LabelId> },
    /// `call`: `arguments` and `returns` are the caller's `.param` variables (`Operand::Address(Symbol::Function(_), 0)`), registers or immediates.
    Call { callee: Callee, returns: Vec<Operand>, arguments: Vec<Operand> },
    /// `ret`: of an entry, the thread ends.
    Return,
    /// `exit`: the thread ends.
    Exit,
    /// `trap` and `brkpt`: the kernel fails.
    Trap,

    /// `bar.sync`, `barrier.sync`: `threads` (a multiple of 32) none for all of the block; `reduction` for `bar.red`.
    Barrier { barrier: Operand, threads: Option<Operand>, reduction: Option<(BarrierReduction, RegisterId, Predicate)> },
    /// `bar.arrive`: counts at the barrier and goes on.
    BarrierArrive { barrier: Operand, threads: Operand },
    /// `bar.warp.sync`: the lanes of `mask` meet.
    WarpBarrier { mask: Operand },
    /// `shfl.sync` (`shfl` without: all lanes). `valid` receives whether the source lane was in range.
    Shuffle {
        mode: Shuffle,
        dst: Option<RegisterId>,
        valid: Option<RegisterId>,
        a: Operand,
        b: Operand,
        c: Operand,
        mask: Operand,
    },
    /// `vote.sync`.
    Vote { vote: Vote, dst: RegisterId, predicate: Predicate, mask: Operand },
    /// `match.any.sync` / `match.all.sync`: the lanes with the same `a`; `all` sets `valid` too.
    Match { all: bool, ty: Type, dst: RegisterId, valid: Option<RegisterId>, a: Operand, mask: Operand },
    /// `redux.sync`: `op` over the lanes of `mask`.
    Redux { op: AtomicOp, ty: Type, dst: RegisterId, a: Operand, mask: Operand },
    /// `activemask`: the lanes that are there now.
    ActiveMask { dst: RegisterId },
    /// `elect.sync`: `dst` receives a lane of `mask`, and `leads` whether it is this one.
    Elect { dst: Option<RegisterId>, leads: RegisterId, mask: Operand },
    /// `mma.sync`: a product of matrices and a sum, of all lanes. Which elements a lane's registers hold is as PTX has it.
    Product {
        shape: MatrixShape,
        factors: [Type; 2],
        sum: Type,
        dst: Vec<RegisterId>,
        a: Vec<Operand>,
        b: Vec<Operand>,
        c: Vec<Operand>,
    },
    /// `ldmatrix`: as many matrices of 8×8 halves as there are results; the n-th eight lanes have the addresses of the n-th's rows.
    LoadMatrices { space: Space, transposed: bool, dst: Vec<RegisterId>, address: Address },
    /// `stmatrix`.
    StoreMatrices { space: Space, transposed: bool, address: Address, src: Vec<Operand> },
    /// `movmatrix`: an 8×8 matrix of halves, transposed.
    TransposeMatrix { dst: RegisterId, a: Operand },
    /// `membar`, `fence`.
    Fence,
    /// `nanosleep`, `pragma` and the like: no effect here; a good moment to let other threads go on.
    Yield,
}

impl Op {
    /// Whether a thread may wait here for others of its warp or block, or is counted by them.
    pub fn meets(&self) -> bool {
        matches!(
            self,
            Self::Barrier { .. }
                | Self::BarrierArrive { .. }
                | Self::WarpBarrier { .. }
                | Self::Shuffle { .. }
                | Self::Vote { .. }
                | Self::Match { .. }
                | Self::Redux { .. }
                | Self::ActiveMask { .. }
                | Self::Elect { .. }
                | Self::Product { .. }
                | Self::LoadMatrices { .. }
                | Self::StoreMatrices { .. }
                | Self::TransposeMatrix { .. }
        )
    }
}

/// What a call calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module.
    Direct(FunctionId),
    /// A register that holds a function's address, and the functions that it may be (all of the module with that prototype where no list is given).
    Indirect {
        /// The register.
        target: Operand,
        /// Candidates.
        candidates: Vec<FunctionId>,
    },
}
