//! `run` for kernels whose threads never wait: the loop over blocks, what is the same for all threads of a block, the loop over threads, the body.
//!
//! A short body stands several times in a turn of the loop along x (see [`copies`]).

use wasm_encoder::{BlockType, InstructionSink, MemArg, ValType};

use super::clear::clear;
use super::module::{Functions, Parts, block_index, next_block_index, prologue};
use super::plan::Plan;
use super::structure::{self, Exits, copies};
use super::unit::{Area, Code, PRIVATE, Unit};
use crate::kernel::Launch;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Input, Inst, Suspension, Value};

/// Functions of such a kernel, in front of its routines.
pub const FUNCTIONS: u32 = 1;
/// Operations in all copies, at most.
const MOST_OPERATIONS: usize = 256;

/// The thread's end is the end of the loop's body, so many blocks of code outside the thread's own.
pub struct BodyExits(pub u32);

impl Exits for BodyExits {
    fn leaves(&self, _: u32) -> bool {
        false
    }

    fn hop(&self, _: &mut Unit<'_>, _: &Edge, _: u32) {}

    fn suspend(&self, unit: &mut Unit<'_>, _: &Suspension, _: &Edge, _: u32) {
        unit.sink().unreachable();
    }

    fn finish(&self, unit: &mut Unit<'_>, _: Option<Value>, depth: u32) {
        unit.sink().br(depth + self.0);
    }
}

/// Adds `run`.
pub fn add<'a>(functions: &mut Functions, parts: &'a Parts<'a>) {
    let body = &parts.program.body;
    let graph = Graph::of(body);
    let plan = Plan::new(body, &graph, parts.uniform, &[], &[]);
    let (first, last) = (0, 1);
    let mut code = Code::new(2);
    let sizes = [0; 3].map(|_| code.local(ValType::I32));
    let linear = code.local(ValType::I32);
    let axes = [0; 3].map(|_| code.local(ValType::I32));
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.axes = Some(axes);
    share_call_areas(&mut unit, parts);
    prologue(&mut unit.code, parts);
    read_sizes(&mut unit, sizes);
    let copies = copies(body, &graph, MOST_OPERATIONS);
    // Along x: behind the last whole turn.
    let whole = unit.code.local(ValType::I32);
    unit.sink().local_get(sizes[0]).i32_const(-(copies as i32)).i32_and().local_set(whole);
    let block = Block { first, last, sizes, axes, linear };
    blocks(
        &mut unit,
        parts,
        &block,
        |_| {},
        |unit| {
            if copies > 1 {
                row(unit, &graph, copies, whole);
            }
            row(unit, &graph, 1, sizes[0]);
        },
    );
    functions.add(&[ValType::I64, ValType::I64], &[], unit.code);
}

/// The threads of a block run one after the other, and share the memory of their calls.
pub fn share_call_areas(unit: &mut Unit<'_>, parts: &Parts<'_>) {
    let calls = parts.layout.calls;
    unit.thread.call_area = Area { local: None, offset: calls };
    unit.thread.next_call_area = Area { local: None, offset: calls + parts.program.body.call_area };
}

/// Reads the block's size from the launch record.
pub fn read_sizes(unit: &mut Unit<'_>, sizes: [u32; 3]) {
    let mut sink = unit.sink();
    for (axis, size) in sizes.into_iter().enumerate() {
        let at = MemArg { offset: u64::from(Launch::BLOCK) + 4 * axis as u64, align: 2, memory_index: PRIVATE };
        sink.i32_const(0).i32_load(at).local_set(size);
    }
}

/// Locals of the loop over blocks.
pub struct Block {
    pub first: u32,
    pub last: u32,
    pub sizes: [u32; 3],
    pub axes: [u32; 3],
    pub linear: u32,
}

/// For each block: what is the same for all its threads, `begin`, and for each of its rows `row`, with x at 0.
pub fn blocks<'a>(
    unit: &mut Unit<'a>,
    parts: &Parts<'_>,
    block: &Block,
    begin: impl FnOnce(&mut Unit<'a>),
    row: impl FnOnce(&mut Unit<'a>),
) {
    let Block { first, last, sizes, axes, linear } = *block;
    block_index(&mut unit.code, first);
    let mut sink = unit.sink();
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(first).local_get(last).i64_ge_u().br_if(1);
    clear(&mut unit.code, parts);
    unit.preamble();
    begin(unit);
    let mut sink = unit.sink();
    sink.i32_const(0).local_set(linear);
    let [x, y, z] = axes;
    for axis in [z, y] {
        sink.i32_const(0).local_set(axis).loop_(BlockType::Empty);
    }
    sink.i32_const(0).local_set(x);
    row(unit);
    let mut sink = unit.sink();
    for (axis, size) in [(y, sizes[1]), (z, sizes[2])] {
        increment(&mut sink, axis, 1);
        sink.local_get(axis).local_get(size).i32_lt_u().br_if(0).end();
    }
    next_block_index(&mut unit.code);
    unit.sink().local_get(first).i64_const(1).i64_add().local_set(first).br(0).end().end();
}

/// The threads of a row from the present x to `end`, so many in a turn.
pub fn row(unit: &mut Unit<'_>, graph: &Graph, copies: u32, end: u32) {
    let [x, ..] = unit.thread.axes.unwrap_or_default();
    let (linear, counted) = (unit.thread.linear, reads_linear(unit.function));
    let uniform = unit.parts.uniform;
    unit.sink().local_get(x).local_get(end).i32_lt_u().if_(BlockType::Empty).loop_(BlockType::Empty);
    for _ in 0..copies {
        unit.sink().block(BlockType::Empty);
        structure::write(unit, graph, uniform, &BodyExits(0));
        let mut sink = unit.sink();
        sink.end();
        if counted {
            increment(&mut sink, linear, 1);
        }
        increment(&mut sink, x, 1);
    }
    unit.sink().local_get(x).local_get(end).i32_lt_u().br_if(0).end().end();
}

/// Whether the thread's linear index is needed: counting it costs something in each turn.
fn reads_linear(body: &Function) -> bool {
    body.values.iter().any(|definition| matches!(definition.inst, Inst::Input(Input::Linear)))
}

/// Adds to a local.
pub fn increment(sink: &mut InstructionSink<'_>, local: u32, by: u32) {
    sink.local_get(local).i32_const(by as i32).i32_add().local_set(local);
}
