//! `run` for kernels whose threads never wait: the loop over blocks, what is the same for all threads of a block, the loop over threads, the body.

use wasm_encoder::{BlockType, MemArg, ValType};

use super::module::{Functions, Parts, block_index, prologue};
use super::plan::Plan;
use super::structure::{self, Exits};
use super::unit::{Area, Code, PRIVATE, Unit};
use crate::kernel::Launch;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Input, Inst, Suspension, Value};

/// The thread's end is the end of the loop's body.
struct FlatExits;

impl Exits for FlatExits {
    fn leaves(&self, _: u32) -> bool {
        false
    }

    fn hop(&self, _: &mut Unit<'_>, _: &Edge, _: u32) {}

    fn suspend(&self, unit: &mut Unit<'_>, _: &Suspension, _: &Edge, _: u32) {
        unit.sink().unreachable();
    }

    fn finish(&self, unit: &mut Unit<'_>, _: Option<Value>, depth: u32) {
        unit.sink().br(depth);
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
    unit.thread.call_area = Area { local: None, offset: parts.layout.calls };
    unit.thread.next_call_area = Area { local: None, offset: parts.layout.calls + body.call_area };
    prologue(&mut unit.code, parts);
    let mut sink = unit.sink();
    for (axis, size) in sizes.into_iter().enumerate() {
        let at = MemArg { offset: u64::from(Launch::BLOCK) + 4 * axis as u64, align: 2, memory_index: PRIVATE };
        sink.i32_const(0).i32_load(at).local_set(size);
    }
    // For each block:
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(first).local_get(last).i64_ge_u().br_if(1);
    block_index(&mut unit.code, first);
    unit.preamble();
    let mut sink = unit.sink();
    sink.i32_const(0).local_set(linear);
    // For each thread, x fastest:
    for axis in axes.into_iter().rev() {
        sink.i32_const(0).local_set(axis).loop_(BlockType::Empty);
    }
    sink.block(BlockType::Empty);
    structure::write(&mut unit, &graph, parts.uniform, &FlatExits);
    let mut sink = unit.sink();
    sink.end();
    if reads_linear(body) {
        sink.local_get(linear).i32_const(1).i32_add().local_set(linear);
    }
    for (axis, size) in axes.into_iter().zip(sizes) {
        sink.local_get(axis).i32_const(1).i32_add().local_tee(axis).local_get(size).i32_lt_u().br_if(0).end();
    }
    sink.local_get(first).i64_const(1).i64_add().local_set(first).br(0).end().end();
    functions.add(&[ValType::I64, ValType::I64], &[], unit.code);
}

/// Whether the thread's linear index is needed: counting it costs something in each turn.
fn reads_linear(body: &Function) -> bool {
    body.values.iter().any(|definition| matches!(definition.inst, Inst::Input(Input::Linear)))
}
