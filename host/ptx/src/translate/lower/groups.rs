//! The vector form of a kernel whose threads never wait: the loop over blocks, and in each over groups of four threads side by side.
//!
//! ```text
//!  run(first, last)                for each block, for each row: the body for several groups side by side, and where these
//!                                  do not agree or are not as many, for each group: the body for four lanes
//!  threads(x, end, y, z, linear)   the threads of a row from x to end, one by one
//! ```
//!
//! Several groups side by side share what is one number for all their lanes, and ask once whether all go the same way. A short body has up to eight of them, a warp.
//!
//! A group that is given up (see [`crate::translate::lanes`]) has done work in vain before `threads` does it again. So a block has *patience*: when a quarter of its groups
//! have been given up, all others run one by one. A block whose width is no multiple of four has none from the beginning. It has as much patience with groups that run
//! side by side. Patience is counted by block, and so does not depend on which instance ran which block before.

use wasm_encoder::{BlockType, ValType};

use super::flat::{self, BodyExits, increment};
use super::module::{Functions, Parts, prologue};
use super::plan::Plan;
use super::structure;
use super::unit::{Code, Unit};
use super::vector::Lanes;
use crate::kernel::Obstacle;
use crate::translate::graph::Graph;
use crate::translate::if_conversion::{convert_one, join_chains};
use crate::translate::ir::{Function, Program, Value};
use crate::translate::lanes::{LANES, Shape, Shapes, shapes, shapes_side_by_side};
use crate::translate::lazy::decisions;
use crate::translate::parting::SideBySide;

/// Index of `threads`, behind `run`.
const THREADS: u32 = 1;
/// Functions of such a kernel, in front of its routines.
pub const FUNCTIONS: u32 = 2;

/// Operations of all groups that run side by side, at most.
const MOST_OPERATIONS: usize = 512;
/// Branches that become selections, at most.
const MOST_CONVERSIONS: usize = 64;

/// A kernel's body made for groups, and what is known of it.
pub struct Wide {
    body: Function,
    graph: Graph,
    uniform: Vec<bool>,
    found: Shapes,
    side_by_side: Option<SideBySide>,
}

impl Wide {
    /// Of a body whose threads never wait.
    pub fn of(
        body: &Function,
        program: &Program,
        uniform_of: impl Fn(&Function) -> Vec<bool>,
    ) -> Result<Self, Obstacle> {
        let pure: Vec<bool> = program.functions.iter().map(|function| function.pure).collect();
        let mut body = body.clone();
        let mut left = MOST_CONVERSIONS;
        loop {
            join_chains(&mut body);
            let (graph, uniform) = (Graph::of(&body), uniform_of(&body));
            let found = shapes(&body, &graph, &uniform, &pure);
            let varying = |value: Value| match &found {
                Ok(found) => found.shapes[value.0 as usize] != Shape::SAME,
                Err(_) => !uniform[value.0 as usize],
            };
            let refused = matches!(found, Err(ref obstacle) if !matches!(obstacle, Obstacle::Diverges(_)));
            if !refused && left > 0 && convert_one(&mut body, &graph, varying) {
                left -= 1;
                continue;
            }
            let found = found?;
            let side_by_side = side_by_side(&body, &graph, &uniform);
            return Ok(Self { found, side_by_side, body, graph, uniform });
        }
    }
}

fn side_by_side(body: &Function, graph: &Graph, uniform: &[bool]) -> Option<SideBySide> {
    let operations = graph.order.iter().map(|block| body.blocks[*block as usize].insts.len()).sum();
    let groups = structure::affordable(operations, MOST_OPERATIONS);
    if groups == 1 {
        return None;
    }
    let found = shapes_side_by_side(body, graph, uniform, groups)?;
    let decisions = decisions(body, graph, uniform, &found.shapes);
    Some(SideBySide { groups, found, decisions })
}

/// Locals of `run`.
struct Locals {
    width: u32,
    /// How many more groups of the block may be given up.
    patience: u32,
    /// The same of turns for groups side by side.
    patience_side_by_side: u32,
    /// In a row, from where on groups may run side by side again.
    again: u32,
    axes: [u32; 3],
    linear: u32,
}

/// Adds `run` and `threads`.
pub fn add<'a>(functions: &mut Functions, parts: &'a Parts<'a>, wide: &'a Wide) {
    let body = &wide.body;
    let plan = Plan::with_locals(body, &wide.graph, &wide.uniform);
    let (first, last) = (0, 1);
    let mut code = Code::new(2);
    let sizes = [0; 3].map(|_| code.local(ValType::I32));
    let mut local = || code.local(ValType::I32);
    let locals = Locals {
        width: sizes[0],
        patience: local(),
        patience_side_by_side: local(),
        again: local(),
        axes: [local(), local(), local()],
        linear: local(),
    };
    let mut unit = Unit::new(body, plan, code, parts);
    unit.lanes = Some(Lanes::new(&wide.found));
    unit.thread.linear = locals.linear;
    unit.thread.axes = Some(locals.axes);
    prologue(&mut unit.code, parts);
    flat::read_sizes(&mut unit, sizes);
    let block = flat::Block { first, last, sizes, axes: locals.axes, linear: locals.linear };
    flat::blocks(&mut unit, parts, &block, |unit| patience(unit, &locals, sizes), |unit| row(unit, wide, &locals));
    functions.add(&[ValType::I64, ValType::I64], &[], unit.code);
    threads(functions, parts);
}

/// What a block has at its beginning.
fn patience(unit: &mut Unit<'_>, locals: &Locals, sizes: [u32; 3]) {
    let mut sink = unit.sink();
    sink.local_get(sizes[0]).local_get(sizes[1]).i32_mul().local_get(sizes[2]).i32_mul();
    sink.i32_const((4 * LANES) as i32).i32_div_u().i32_const(1).i32_add().i32_const(0);
    sink.local_get(locals.width).i32_const(LANES as i32 - 1).i32_and().i32_eqz().select();
    sink.local_tee(locals.patience).local_set(locals.patience_side_by_side);
}

/// The groups of a row.
fn row<'a>(unit: &mut Unit<'a>, wide: &'a Wide, locals: &Locals) {
    let [x, ..] = locals.axes;
    let mut sink = unit.sink();
    sink.i32_const(0).local_set(locals.again);
    sink.loop_(BlockType::Empty).block(BlockType::Empty);
    sink.local_get(locals.patience).i32_eqz().if_(BlockType::Empty);
    one_by_one(unit, locals, |sink| {
        sink.local_get(locals.width);
    });
    let mut sink = unit.sink();
    sink.local_get(locals.linear).local_get(locals.width).i32_add().local_get(x).i32_sub().local_set(locals.linear);
    sink.local_get(locals.width).local_set(x).br(1).end();
    if let Some(side_by_side) = &wide.side_by_side {
        groups_side_by_side(unit, wide, locals, side_by_side);
    }
    unit.sink().block(BlockType::Empty).block(BlockType::Empty);
    structure::write(unit, &wide.graph, &wide.uniform, &BodyExits(1));
    unit.sink().end();
    // Given up.
    one_by_one(unit, locals, |sink| {
        sink.local_get(x).i32_const(LANES as i32).i32_add();
    });
    decrement(&mut unit.sink(), locals.patience);
    let mut sink = unit.sink();
    sink.end();
    increment(&mut sink, locals.linear, LANES);
    increment(&mut sink, x, LANES);
    sink.end().local_get(x).local_get(locals.width).i32_lt_u().br_if(0).end();
}

/// A turn for several groups, if so many are left; then it jumps to the end of the label round it. Where they do not agree, it leaves all to the code for one.
fn groups_side_by_side<'a>(unit: &mut Unit<'a>, wide: &'a Wide, locals: &Locals, own: &'a SideBySide) {
    let ([x, ..], lanes) = (locals.axes, own.groups * LANES);
    let mut sink = unit.sink();
    sink.local_get(locals.width).local_get(x).i32_sub().i32_const(lanes as i32).i32_ge_u();
    sink.local_get(x).local_get(locals.again).i32_ge_u().i32_and();
    sink.local_get(locals.patience_side_by_side).i32_const(0).i32_ne().i32_and().if_(BlockType::Empty);
    sink.block(BlockType::Empty).block(BlockType::Empty);
    let one = unit.lanes.replace(Lanes::side_by_side(own));
    let kept = unit.common_locals(&wide.uniform);
    let kept = unit.swap_locals(kept);
    structure::write(unit, &wide.graph, &wide.uniform, &BodyExits(1));
    unit.swap_locals(kept);
    unit.lanes = one;
    let mut sink = unit.sink();
    sink.end();
    sink.local_get(x).i32_const(lanes as i32).i32_add().local_set(locals.again);
    decrement(&mut sink, locals.patience_side_by_side);
    sink.br(1).end();
    increment(&mut sink, locals.linear, lanes);
    increment(&mut sink, x, lanes);
    sink.br(1).end();
}

/// Down to 0.
fn decrement(sink: &mut wasm_encoder::InstructionSink<'_>, local: u32) {
    sink.local_get(local).local_get(local).i32_const(0).i32_ne().i32_sub().local_set(local);
}

/// Calls `threads` for those from the present x to the end that `end` puts on the stack.
fn one_by_one(unit: &mut Unit<'_>, locals: &Locals, end: impl FnOnce(&mut wasm_encoder::InstructionSink<'_>)) {
    let [x, y, z] = locals.axes;
    let mut sink = unit.sink();
    sink.local_get(x);
    end(&mut sink);
    sink.local_get(y).local_get(z).local_get(locals.linear).call(THREADS);
}

/// Adds `threads`.
fn threads<'a>(functions: &mut Functions, parts: &'a Parts<'a>) {
    let body = &parts.program.body;
    let graph = Graph::of(body);
    let plan = Plan::new(body, &graph, parts.uniform, &[], &[]);
    let mut unit = Unit::new(body, plan, Code::new(5), parts);
    let (x, end, y, z, linear) = (0, 1, 2, 3, 4);
    unit.thread.axes = Some([x, y, z]);
    unit.thread.linear = linear;
    flat::share_call_areas(&mut unit, parts);
    unit.preamble();
    flat::row(&mut unit, &graph, 1, end);
    functions.add(&[ValType::I32; 5], &[], unit.code);
}
