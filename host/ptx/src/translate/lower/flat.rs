//! `run` for kernels whose threads never wait: the loop over blocks, what is the same for all threads of a block, the loop over threads, the body.

use wasm_encoder::{BlockType, MemArg, ValType};

use super::module::{Functions, Parts, block_index, prologue};
use super::plan::Plan;
use super::structure::{self, Exits};
use super::unit::{Area, Code, PRIVATE, Unit};
use crate::kernel::Launch;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Suspension, Value};

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
    let threads = code.local(ValType::I32);
    let sizes = [0; 2].map(|_| code.local(ValType::I32));
    let linear = code.local(ValType::I32);
    let axes = [0; 3].map(|_| code.local(ValType::I32));
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.axes = Some(axes);
    unit.thread.call_area = Area { local: None, offset: parts.layout.calls };
    unit.thread.next_call_area = Area { local: None, offset: parts.layout.calls + body.call_area };
    prologue(&mut unit.code, parts);
    let size = |axis: u32| MemArg { offset: u64::from(Launch::BLOCK + 4 * axis), align: 2, memory_index: PRIVATE };
    let mut sink = unit.sink();
    sink.i32_const(0).i32_load(size(0)).local_tee(sizes[0]);
    sink.i32_const(0).i32_load(size(1)).local_tee(sizes[1]).i32_mul();
    sink.i32_const(0).i32_load(size(2)).i32_mul().local_set(threads);
    // For each block:
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(first).local_get(last).i64_ge_u().br_if(1);
    block_index(&mut unit.code, first);
    unit.preamble();
    let mut sink = unit.sink();
    for local in axes.into_iter().chain([linear]) {
        sink.i32_const(0).local_set(local);
    }
    // For each thread:
    sink.loop_(BlockType::Empty).block(BlockType::Empty);
    structure::write(&mut unit, &graph, parts.uniform, &FlatExits);
    let [x, y, z] = axes;
    let mut sink = unit.sink();
    sink.end();
    sink.local_get(x).i32_const(1).i32_add().local_tee(x).local_get(sizes[0]).i32_eq().if_(BlockType::Empty);
    sink.i32_const(0).local_set(x);
    sink.local_get(y).i32_const(1).i32_add().local_tee(y).local_get(sizes[1]).i32_eq().if_(BlockType::Empty);
    sink.i32_const(0).local_set(y).local_get(z).i32_const(1).i32_add().local_set(z).end().end();
    sink.local_get(linear).i32_const(1).i32_add().local_tee(linear).local_get(threads).i32_lt_u().br_if(0).end();
    sink.local_get(first).i64_const(1).i64_add().local_set(first).br(0).end().end();
    functions.add(&[ValType::I64, ValType::I64], &[], unit.code);
}
