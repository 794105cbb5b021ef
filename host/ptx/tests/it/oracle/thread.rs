//! A thread: the stack of its calls, and whether it can go on.

use steadfast_ptx::module::{FunctionId, Instruction, Operand, Predicate, RegisterId, Space, Type};

use super::integer::mask;
use super::{Code, LOCAL_BYTES};

/// One call.
pub(super) struct Frame {
    pub(super) function: FunctionId,
    /// The next instruction, by its index in the function.
    pub(super) next: usize,
    registers: Vec<u128>,
    /// The carry flag.
    pub(super) carry: bool,
    /// Bytes of each parameter. Those of an entry are elsewhere.
    pub(super) arguments: Vec<Vec<u8>>,
    /// Bytes of each value to be returned.
    pub(super) returns: Vec<Vec<u8>>,
    /// Bytes of each variable in the space `param`; empty for others.
    pub(super) call_memory: Vec<Vec<u8>>,
    /// Addresses of local variables; 0 for others.
    pub(super) locals: Vec<u64>,
    /// Where the local memory of calls from here begins.
    pub(super) stack: u64,
    /// Where the values returned go, in the caller.
    pub(super) results: Vec<Operand>,
}

impl Frame {
    /// With zeros everywhere. `stack` is the first free byte of the thread's local memory.
    pub(super) fn new(function: FunctionId, code: &Code, mut stack: u64, results: Vec<Operand>) -> Self {
        let variables = &code.function.variables;
        let locals = variables
            .iter()
            .map(|variable| {
                if variable.space != Space::Local {
                    return 0;
                }
                let address = stack.next_multiple_of(variable.align.into());
                stack = address + variable.bytes;
                address
            })
            .collect();
        let zeros = |bytes: u64| vec![0; bytes as usize];
        Self {
            function,
            next: 0,
            registers: vec![0; code.function.registers.len()],
            carry: false,
            arguments: code.function.parameters.iter().map(|parameter| zeros(parameter.bytes.into())).collect(),
            returns: code.function.returns.iter().map(|value| zeros(value.bytes.into())).collect(),
            call_memory: variables
                .iter()
                .map(|variable| zeros(if variable.space == Space::Param { variable.bytes } else { 0 }))
                .collect(),
            locals,
            stack,
            results,
        }
    }

    pub(super) fn register(&self, register: RegisterId) -> u128 {
        self.registers[register.0 as usize]
    }

    pub(super) fn predicate(&self, predicate: Predicate) -> bool {
        (self.register(predicate.register) != 0) != predicate.negated
    }

    /// Puts a value of type `ty` into a register, which may be wider: by the sign of `ty`.
    pub(super) fn set(&mut self, code: &Code, register: RegisterId, ty: Type, value: u128) {
        let unused = 128 - mask(ty).count_ones();
        let value = value << unused;
        let value = if ty.is_signed() { (value as i128 >> unused) as u128 } else { value >> unused };
        self.registers[register.0 as usize] = value & mask(code.function.ty(register));
    }
}

/// What a thread waits for.
pub(super) enum State<'a> {
    Runnable,
    /// The barrier of this number, with so many threads where a number is given; what it adds to the reduction.
    Barrier {
        barrier: u64,
        threads: Option<u64>,
        holds: bool,
    },
    /// The other lanes of `members`.
    Warp(Offer<'a>),
    Finished,
}

/// What a lane brings to a meeting of its warp.
#[derive(Clone)]
pub(super) struct Offer<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) members: u32,
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) c: u64,
    /// Registers with parts of matrices.
    pub(super) brought: Vec<u64>,
}

/// A thread of a block.
pub(super) struct Thread<'a> {
    pub(super) index: u32,
    pub(super) frames: Vec<Frame>,
    pub(super) state: State<'a>,
}

impl Thread<'_> {
    pub(super) fn lane(&self) -> u32 {
        self.index % 32
    }

    pub(super) fn is_runnable(&self) -> bool {
        matches!(self.state, State::Runnable)
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished)
    }

    /// Where a thread's local memory begins.
    pub(super) fn local(launch_local: u64, index: u32) -> u64 {
        launch_local + u64::from(index) * LOCAL_BYTES
    }
}
