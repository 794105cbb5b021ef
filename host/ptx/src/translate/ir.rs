//! The form between PTX and WebAssembly: typed values, each defined once, in blocks with parameters.
//!
//! Operations are those of the target, without PTX's special cases: `build` has spelled these out. So a pass has few kinds of instruction to know,
//! and lowering is one WebAssembly instruction for one operation, for one thread (a scalar) or for the lanes of a vector.
//!
//! Values that are the same wherever they are computed (constants, loads from the launch record) belong to no block: `Function::values` alone holds them.

use crate::module::{Axis, Position};

/// What a value is. Predicates are `I32`, 0 or 1; 8 and 16 bits are `I32`, zero-extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    I32,
    I64,
    F32,
    F64,
}

impl Kind {
    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point number.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// An index into [`Function::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);
/// An index into [`Program::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Routine(pub u32);

/// Which memory an access goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Of the device: 64-bit addresses.
    Device,
    /// Of this instance: 32-bit addresses.
    Private,
}

/// How memory is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Which memory.
    pub memory: Memory,
    /// 1, 2, 4 or 8; integers may be wider than what is read or written.
    pub bytes: u32,
    /// Whether a narrow integer is extended by its sign.
    pub signed: bool,
    /// Added to the address, without wrapping round.
    pub offset: u64,
    /// Ordered with the accesses of other instances.
    pub atomic: bool,
    /// Part of an operation that reads and writes: no other thread of the block may come between.
    pub exclusive: bool,
    /// Nothing writes there while a block runs, and the address is always good.
    pub constant: bool,
}

/// What differs from thread to thread without being computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// The thread's place in its block, by axis.
    Thread(Axis),
    /// The same along all axes: x + y · width + z · width · height.
    Linear,
    /// The same by axis in one number: x + y · 2¹⁰ + z · 2²⁰.
    Packed,
    /// Where the thread's frame lies in the private memory.
    Frame,
    /// Where the `.param` variables of this function lie in the private memory.
    CallArea,
    /// Where those of a function that it calls may lie.
    NextCallArea,
}

/// One operand, one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Leading zeros.
    Clz,
    /// Ones.
    Popcnt,
    /// Whether it is 0.
    IsZero,
    /// Sign-extends the lower 8 bits.
    Extend8,
    /// Sign-extends the lower 16 bits.
    Extend16,
    /// `I64` to its lower half.
    Wrap,
    /// `I32` to `I64`, by sign or by zeros.
    Widen {
        /// By sign.
        signed: bool,
    },
    /// A float's bits, or the float of these bits.
    Reinterpret,
    /// `F32` to `F64`.
    Promote,
    /// `F64` to `F32`, to the nearest.
    Demote,
    /// A float to the nearest integer below or above in the direction of 0, saturated; NaN to 0.
    ToInteger {
        /// The kind of the result.
        to: Kind,
        /// Whether it is signed.
        signed: bool,
    },
    /// An integer to the nearest float.
    ToFloat {
        /// The kind of the result.
        to: Kind,
        /// Whether the integer is signed.
        signed: bool,
    },
    /// Flips the sign.
    Neg,
    /// Clears the sign.
    Abs,
    /// To the nearest.
    Sqrt,
    /// To an integer above.
    Ceil,
    /// To an integer below.
    Floor,
    /// To an integer towards 0.
    Trunc,
    /// To the nearest integer, ties to even.
    Nearest,
    /// A denormal becomes a zero of the same sign.
    Flush,
    /// A NaN becomes PTX's.
    Canonical,
    /// Clamped to 0 … 1, NaN to 0.
    Saturate,
}

/// Two operands of one kind, one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Of floats.
    Div,
    /// Integer division; the divisor is never 0, and never -1 where the dividend is the smallest integer.
    DivS,
    DivU,
    RemS,
    RemU,
    And,
    Or,
    Xor,
    /// Shift amounts are below the width, in the kind of the value.
    Shl,
    ShrS,
    ShrU,
    Rotl,
    Eq,
    Ne,
    LtS,
    LtU,
    LeS,
    LeU,
    /// Of floats, false if one is NaN.
    Lt,
    Le,
    /// Of floats: a NaN wins; -0 is less than +0.
    Min,
    Max,
    /// Of floats: a NaN loses; -0 is less than +0.
    MinNumber,
    MaxNumber,
    /// The magnitude of the first, the sign of the second.
    Copysign,
}

impl Binary {
    /// Whether the result is a predicate.
    pub fn compares(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::LtS | Self::LtU | Self::LeS | Self::LeU | Self::Lt | Self::Le)
    }
}

/// What an atomic read-modify-write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rmw {
    Add,
    And,
    Or,
    Xor,
}

/// What defines a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Inst {
    /// Bits, those of `F32` in the lower half.
    Const(u64),
    /// A parameter of this function.
    Argument(u32),
    /// A parameter of a block.
    BlockParameter,
    /// Something of this thread.
    Input(Input),
    /// One operand.
    Unary(Unary, Value),
    /// Two operands.
    Binary(Binary, Value, Value),
    /// `a * b + c`, rounded once.
    Fma(Value, Value, Value),
    /// The second where the first is not 0, else the third.
    Select(Value, Value, Value),
    /// Reads at an address.
    Load(Access, Value),
    /// Writes to an address.
    Store(Access, Value, Value),
    /// Reads, combines, writes; gives what was there.
    Rmw(Rmw, Access, Value, Value),
    /// Writes the last where the second is found; gives what was there.
    CompareExchange(Access, Value, Value, Value),
    /// Calls a function of this program.
    Call(Routine, Vec<Value>),
    /// Calls the function with the index of the first value in the table, if it is among the candidates; else traps.
    CallIndirect(Value, Vec<Value>),
}

impl Inst {
    /// Every value that it reads, in the order of evaluation.
    pub fn operands(&self) -> impl Iterator<Item = Value> {
        let (fixed, rest): ([Option<Value>; 3], &[Value]) = match self {
            Self::Const(_) | Self::Argument(_) | Self::BlockParameter | Self::Input(_) => ([None; 3], &[]),
            Self::Unary(_, a) | Self::Load(_, a) => ([Some(*a), None, None], &[]),
            Self::Binary(_, a, b) | Self::Store(_, a, b) | Self::Rmw(_, _, a, b) => ([Some(*a), Some(*b), None], &[]),
            Self::Fma(a, b, c) | Self::Select(a, b, c) | Self::CompareExchange(_, a, b, c) => {
                ([Some(*a), Some(*b), Some(*c)], &[])
            }
            Self::Call(_, arguments) => ([None; 3], arguments),
            Self::CallIndirect(target, arguments) => ([Some(*target), None, None], arguments),
        };
        fixed.into_iter().flatten().chain(rest.iter().copied())
    }

    /// Puts another value in the place of each that it reads.
    pub fn replace(&mut self, with: impl Fn(Value) -> Value) {
        let each = |values: &mut [&mut Value]| values.iter_mut().for_each(|value| **value = with(**value));
        match self {
            Self::Const(_) | Self::Argument(_) | Self::BlockParameter | Self::Input(_) => {}
            Self::Unary(_, a) | Self::Load(_, a) => each(&mut [a]),
            Self::Binary(_, a, b) | Self::Store(_, a, b) | Self::Rmw(_, _, a, b) => each(&mut [a, b]),
            Self::Fma(a, b, c) | Self::Select(a, b, c) | Self::CompareExchange(_, a, b, c) => each(&mut [a, b, c]),
            Self::Call(_, arguments) => arguments.iter_mut().for_each(|value| *value = with(*value)),
            Self::CallIndirect(target, arguments) => {
                *target = with(*target);
                arguments.iter_mut().for_each(|value| *value = with(*value));
            }
        }
    }
}

/// A value: what defines it, of what kind it is, and for which instruction of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What defines it.
    pub inst: Inst,
    /// None for what gives nothing: a store, a call without result.
    pub kind: Option<Kind>,
    /// For error messages about traps.
    pub position: Position,
}

/// Where control goes, and what the parameters of the block there become.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edge {
    /// Index of the block.
    pub block: u32,
    /// One for each of its parameters.
    pub arguments: Vec<Value>,
}

/// Why a thread waits. What it gets is read from its frame by the block that goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Suspension {
    /// For nothing: others may run.
    Yield,
    /// At a barrier, for so many threads (0: all of the block), with a predicate.
    Barrier {
        /// Its number.
        barrier: Value,
        /// How many threads.
        threads: Value,
        /// 0 or 1.
        predicate: Option<Value>,
    },
    /// For nothing, having counted at a barrier.
    Arrival {
        /// Its number.
        barrier: Value,
        /// How many threads.
        threads: Value,
    },
    /// For the lanes of `mask`.
    Meeting {
        /// What for: a number that says how the lanes' values are combined.
        purpose: u32,
        /// The lanes; for `ACTIVE` nothing.
        mask: Option<Value>,
        /// What this lane brings, `I64`.
        value: Option<Value>,
        /// Which lane's value it wants.
        source: Option<Value>,
    },
}

impl Suspension {
    /// Every value that it reads.
    pub fn operands(&self) -> impl Iterator<Item = Value> {
        let values = match self {
            Self::Yield => [None; 3],
            Self::Barrier { barrier, threads, predicate } => [Some(*barrier), Some(*threads), *predicate],
            Self::Arrival { barrier, threads } => [Some(*barrier), Some(*threads), None],
            Self::Meeting { mask, value, source, .. } => [*mask, *value, *source],
        };
        values.into_iter().flatten()
    }

    fn replace(&mut self, with: impl Fn(Value) -> Value) {
        match self {
            Self::Yield => {}
            Self::Barrier { barrier, threads, predicate } => {
                for value in [barrier, threads].into_iter().chain(predicate) {
                    *value = with(*value);
                }
            }
            Self::Arrival { barrier, threads } => {
                *barrier = with(*barrier);
                *threads = with(*threads);
            }
            Self::Meeting { mask, value, source, .. } => {
                for value in [mask, value, source].into_iter().flatten() {
                    *value = with(*value);
                }
            }
        }
    }
}

/// How a block ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Terminator {
    /// Always there.
    Jump(Edge),
    /// There if the value is not 0, else there.
    Branch(Value, Edge, Edge),
    /// To the edge with that index; beyond them a trap.
    Table(Value, Vec<Edge>),
    /// Ends the function, or the thread.
    Return(Option<Value>),
    /// Traps for this reason (see `crate::kernel`).
    Trap(i32),
    /// The thread waits, then goes on there.
    Suspend(Suspension, Edge),
}

impl Terminator {
    /// Where control may go.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        let (fixed, rest): ([Option<&Edge>; 2], &[Edge]) = match self {
            Self::Jump(edge) | Self::Suspend(_, edge) => ([Some(edge), None], &[]),
            Self::Branch(_, yes, no) => ([Some(yes), Some(no)], &[]),
            Self::Table(_, edges) => ([None; 2], edges),
            Self::Return(_) | Self::Trap(_) => ([None; 2], &[]),
        };
        fixed.into_iter().flatten().chain(rest)
    }

    /// Where control may go, to be changed.
    pub fn edges_mut(&mut self) -> impl Iterator<Item = &mut Edge> {
        let (fixed, rest): ([Option<&mut Edge>; 2], &mut [Edge]) = match self {
            Self::Jump(edge) | Self::Suspend(_, edge) => ([Some(edge), None], &mut []),
            Self::Branch(_, yes, no) => ([Some(yes), Some(no)], &mut []),
            Self::Table(_, edges) => ([None, None], edges),
            Self::Return(_) | Self::Trap(_) => ([None, None], &mut []),
        };
        fixed.into_iter().flatten().chain(rest)
    }

    /// What it reads itself; the arguments of its edges are not among them.
    pub fn operands(&self) -> Vec<Value> {
        match self {
            Self::Branch(value, ..) | Self::Table(value, _) | Self::Return(Some(value)) => vec![*value],
            Self::Suspend(suspension, _) => suspension.operands().collect(),
            Self::Jump(_) | Self::Return(None) | Self::Trap(_) => Vec::new(),
        }
    }

    /// Puts another value in the place of each that it or its edges read.
    pub fn replace(&mut self, with: impl Fn(Value) -> Value) {
        match self {
            Self::Branch(value, ..) | Self::Table(value, _) | Self::Return(Some(value)) => *value = with(*value),
            Self::Suspend(suspension, _) => suspension.replace(&with),
            Self::Jump(_) | Self::Return(None) | Self::Trap(_) => {}
        }
        for edge in self.edges_mut() {
            edge.arguments.iter_mut().for_each(|value| *value = with(*value));
        }
    }
}

/// Instructions that are executed one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What each edge to it gives.
    pub parameters: Vec<Value>,
    /// In order.
    pub insts: Vec<Value>,
    /// How it ends.
    pub terminator: Terminator,
    /// Of the instruction that ends it.
    pub position: Position,
}

/// A function: what becomes one WebAssembly function, or a kernel's body for one thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Function {
    /// The kinds of its parameters.
    pub arguments: Vec<Kind>,
    /// What it gives.
    pub result: Option<Kind>,
    /// The first is its entry, and nothing jumps there.
    pub blocks: Vec<Block>,
    /// All values.
    pub values: Vec<Definition>,
    /// Bytes of its `.param` variables: arguments of calls, and what they return.
    pub call_area: u32,
    /// Whether calls of it may be moved and left out: it depends on nothing but its arguments, and ends.
    pub pure: bool,
    /// Whether it has the arguments of a device function, whose first three are the thread's linear index, its packed place and the call area.
    pub device: bool,
}

impl Function {
    /// What defines a value.
    pub fn inst(&self, value: Value) -> &Inst {
        &self.values[value.0 as usize].inst
    }

    /// The kind of a value. Only values that give something are asked.
    pub fn kind(&self, value: Value) -> Kind {
        self.values[value.0 as usize].kind.unwrap_or(Kind::I32)
    }
}

/// A kernel's body, and every function that it calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// What one thread does.
    pub body: Function,
    /// What is called, by [`Routine`]; the functions of the PTX and those that stand for instructions WebAssembly lacks.
    pub functions: Vec<Function>,
    /// What runs for a whole warp, in the order of the meetings' purposes.
    pub collectives: Vec<Routine>,
    /// Bytes of the exchange area in a thread's frame, where those find what the lanes bring.
    pub exchange: u32,
    /// Functions that indirect calls may reach: their indices in the module, and what they became.
    pub table: Vec<(u32, Routine)>,
}
