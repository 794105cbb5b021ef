//! The oracle: an obvious, slow interpreter of the typed module. What it computes is what the translation must compute.
//!
//! | module | what it is for |
//! |---|---|
//! | `block` | the threads of a block and who goes next: in each warp those with the lowest program counter |
//! | `step` | one instruction of one thread |
//! | `thread` | a thread's frames: registers, parameters, where its variables lie |
//! | `warp` | what the lanes of a warp give one another |
//! | `matrix` | what a whole warp does with matrices |
//! | `mbarrier` | barriers that are objects in memory |
//! | `integer`, `float`, `convert`, `exact` | arithmetic in the words of PTX |
//!
//! Written from the description of PTX alone. It shares the typed module and the layout of variables with the translation and nothing else, and it
//! makes no attempt at speed. Approximations (`ex2`, `sin` …) are as precise as f64 allows, so those are compared with a tolerance.

mod arithmetic;
mod block;
mod convert;
mod exact;
mod float;
mod integer;
mod matrix;
mod mbarrier;
mod step;
mod thread;
mod warp;

use std::collections::BTreeMap;

use steadfast_ptx::kernel::Launch;
use steadfast_ptx::layout::Layout;
use steadfast_ptx::module::{Function, FunctionId, Instruction, Module, Space, Statement, Variable};

use crate::random::Random;

/// Bytes of local memory that each thread has here.
pub(crate) const LOCAL_BYTES: u64 = 1024;
/// Calls deeper than this are taken for endless.
const MOST_FRAMES: usize = 64;
/// Instructions of one launch; more are taken for endless.
const MOST_INSTRUCTIONS: u64 = 200_000_000;

/// Why a launch ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trap {
    /// An access to this many bytes at this address.
    OutOfBounds(u64, u64),
    /// The instruction `trap`.
    Asked,
    /// Every thread waits.
    Deadlock,
    /// `brx.idx` or an indirect call with an index that names nothing.
    NoSuchTarget(u64),
    /// Too many calls within calls.
    TooDeep,
    /// Too many instructions.
    Endless,
    /// Something that PTX leaves undefined or that these tests have no use for.
    Undefined(&'static str),
}

/// Who goes next in a warp.
#[derive(Clone)]
pub(crate) enum Schedule {
    /// All threads with the lowest program counter go one instruction.
    LowestFirst,
    /// Any one thread goes one instruction: what a kernel without data races must not notice.
    Anyone(Random),
}

/// A function with its labels resolved.
struct Code<'a> {
    function: &'a Function,
    instructions: Vec<&'a Instruction>,
    /// For each label, the index of the instruction that follows it.
    labels: Vec<usize>,
    /// What stands before it in the text, for a program counter that is one number for the whole module.
    first: usize,
}

/// A launch in progress.
pub(crate) struct Oracle<'a> {
    module: &'a Module,
    codes: Vec<Code<'a>>,
    layout: Layout,
    launch: Launch,
    parameters: Vec<u8>,
    /// Addresses of shared variables: of the module (no function) and of functions.
    shared: BTreeMap<(Option<FunctionId>, u32), u64>,
    shared_end: u64,
    memory: &'a mut Vec<u8>,
    schedule: Schedule,
    instructions: u64,
}

/// Runs every block of the launch of `entry`, in order. The device memory is `memory`, the variables of the module are in it already.
pub(crate) fn run(
    module: &Module,
    entry: &str,
    launch: Launch,
    parameters: &[u8],
    memory: &mut Vec<u8>,
    schedule: Schedule,
) -> Result<(), Trap> {
    let entry = module.functions.iter().position(|function| function.entry && function.name == entry);
    let entry = FunctionId(entry.ok_or(Trap::Undefined("there is no such entry"))? as u32);
    let (shared, shared_end) = shared_addresses(module, &launch);
    let mut oracle = Oracle {
        module,
        codes: codes(module),
        layout: Layout::of(module),
        launch,
        parameters: parameters.to_vec(),
        shared,
        shared_end,
        memory,
        schedule,
        instructions: 0,
    };
    let [x, y, z] = launch.grid;
    for block in 0..x * y * z {
        oracle.run_block(entry, [block % x, block / x % y, block / x / y])?;
    }
    Ok(())
}

fn codes(module: &Module) -> Vec<Code<'_>> {
    let mut first = 0;
    let code = |function| {
        let mut code = Code { function, instructions: Vec::new(), labels: vec![0; function.labels as usize], first };
        for statement in &function.body {
            match statement {
                Statement::Label(label) => code.labels[label.0 as usize] = code.instructions.len(),
                Statement::Instruction(instruction) => code.instructions.push(instruction),
            }
        }
        first += code.instructions.len() + 1;
        code
    };
    module.functions.iter().map(code).collect()
}

/// Static variables one after the other, then the dynamic memory at the next multiple of 16.
fn shared_addresses(module: &Module, launch: &Launch) -> (BTreeMap<(Option<FunctionId>, u32), u64>, u64) {
    let all: Vec<((Option<FunctionId>, u32), &Variable)> = (0u32..)
        .zip(&module.variables)
        .map(|(index, variable)| ((None, index), variable))
        .chain((0u32..).zip(&module.functions).flat_map(|(function, code)| {
            (0u32..).zip(&code.variables).map(move |(index, variable)| ((Some(FunctionId(function)), index), variable))
        }))
        .filter(|(_, variable)| variable.space == Space::Shared)
        .collect();
    let mut addresses = BTreeMap::new();
    let mut end = launch.shared;
    for (key, variable) in all.iter().filter(|(_, variable)| !variable.external) {
        end = end.next_multiple_of(variable.align.into());
        addresses.insert(*key, end);
        end += variable.bytes;
    }
    let dynamic = end.next_multiple_of(16);
    addresses.extend(all.iter().filter(|(_, variable)| variable.external).map(|(key, _)| (*key, dynamic)));
    (addresses, dynamic + u64::from(launch.dynamic_shared))
}

impl Oracle<'_> {
    fn span(&self, address: u64, bytes: u64) -> Result<std::ops::Range<usize>, Trap> {
        match address.checked_add(bytes) {
            Some(end) if end <= self.memory.len() as u64 => Ok(address as usize..end as usize),
            _ => Err(Trap::OutOfBounds(address, bytes)),
        }
    }

    fn load(&self, address: u64, bytes: u64) -> Result<u128, Trap> {
        Ok(number(&self.memory[self.span(address, bytes)?]))
    }

    fn store(&mut self, address: u64, bytes: u64, value: u128) -> Result<(), Trap> {
        let span = self.span(address, bytes)?;
        self.memory[span].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }
}

/// Up to 16 bytes, the lowest first.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
