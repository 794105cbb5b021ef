//! What each value is when four threads run side by side: one number for all of them, numbers at equal distances, or four numbers.
//!
//! A *group* is four threads with consecutive places along x, the first of them at a multiple of four. They go through the body together, so a value is in one of
//! these shapes:
//!
//! | shape | what is held | examples |
//! |---|---|---|
//! | [`Shape::Line`] with stride 0 | one scalar | parameters, counters of loops, what is read at one address |
//! | [`Shape::Line`] | the first lane's scalar | `tid.x`, an index made of it, the address of an element |
//! | [`Shape::Mask`] | a vector of all ones or zeros | comparisons, and what logic makes of them |
//! | [`Shape::Words`] | a vector of four | other values of 32 bits |
//! | [`Shape::Pair`] | two vectors of two | other values of 64 bits |
//!
//! # Control flow
//!
//! A group has one place in the body: where a branch depends on the lane, it is asked while running whether the four agree. If they do not, the group is *given
//! up*: its threads run again from their beginning, one by one, as scalar code. That is right only while the group has stored nothing, so a kernel with
//! such a branch behind a store has no vector form ([`Obstacle::Diverges`]). Since all lanes always are in one place, a parameter of a block is one number for all
//! if its arguments are, whatever the branches above depend on.
//!
//! # Wrapping
//!
//! Strides are exact modulo the width of the value: a sum that wraps round in some lane does so in the scalar code. Only where 32 bits become 64 it
//! matters between which lanes that happens; there the code asks whether it happens within the group, and gives it up. So such a value is a line only before
//! the first store.
//!
//! # What it leaves out
//!
//! Strides that are no constants (`tid * width`) are not followed: those are four numbers, and their accesses are made lane by lane. Known bits are not followed either
//! (`tid & 31` is four numbers).

use super::graph::Graph;
use super::ir::{Access, Binary, Definition, Function, Input, Inst, Kind, Memory, Terminator, Unary, Value};
use crate::kernel::Obstacle;
use crate::module::Axis;

pub use crate::kernel::LANES;

/// Strides from one lane to the next are not followed through an extension to 64 bits if they are larger.
const MOST_STRIDE: u64 = 1 << 24;
/// Instructions and blocks of a body, at most: the vector form comes on top of the scalar one, and both have to be compiled.
const MOST_INSTRUCTIONS: usize = 1500;

/// How a value is held by a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The first lane's; each further lane has so much more, wrapping round. Floats only with 0.
    Line(i64),
    /// Four predicates: all ones or zeros.
    Mask,
    /// Four of 32 bits.
    Words,
    /// Four of 64 bits, in two vectors.
    Pair,
}

impl Shape {
    /// One number for all lanes.
    pub const SAME: Self = Self::Line(0);
}

/// What is known while it is found out; it only ever goes downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Line(i64),
    Varying,
}

/// The shapes of a body's values, if it can run in groups.
///
/// # Errors
///
/// Why it cannot.
pub fn shapes(function: &Function, graph: &Graph, uniform: &[bool], pure: &[bool]) -> Result<Vec<Shape>, Obstacle> {
    let insts = graph.order.iter().flat_map(|block| &function.blocks[*block as usize].insts);
    if insts.clone().count() + graph.order.len() > MOST_INSTRUCTIONS {
        return Err(Obstacle::TooLarge);
    }
    for value in insts {
        refuse(&function.values[value.0 as usize], pure)?;
    }
    let stored = stored_before(function, graph);
    let states = spread(function, graph, uniform, &early(function, graph, &stored));
    let shapes = held(function, graph, &states);
    for block in &graph.order {
        let data = &function.blocks[*block as usize];
        let diverges = Err(Obstacle::Diverges(data.position));
        match &data.terminator {
            Terminator::Table(index, _) if shapes[index.0 as usize] != Shape::SAME => return diverges,
            Terminator::Branch(condition, ..)
                if shapes[condition.0 as usize] != Shape::SAME
                    && (stored[*block as usize] || data.insts.iter().any(|value| stores(function.inst(*value)))) =>
            {
                return diverges;
            }
            Terminator::Suspend(..) => return Err(Obstacle::Waits(data.position)),
            _ => {}
        }
    }
    Ok(shapes)
}

/// Effects that are not the same when lanes take turns at each instruction, and memory that belongs to one thread.
fn refuse(definition: &Definition, pure: &[bool]) -> Result<(), Obstacle> {
    let own = |value: &Access| value.memory == Memory::Private && !value.constant;
    let at = definition.position;
    match &definition.inst {
        Inst::Rmw(..) | Inst::CompareExchange(..) => Err(Obstacle::Atomics(at)),
        Inst::Load(access, _) | Inst::Store(access, ..) if access.atomic || access.exclusive => {
            Err(Obstacle::Atomics(at))
        }
        Inst::Call(routine, _) if !pure[routine.0 as usize] => Err(Obstacle::Calls(at)),
        Inst::CallIndirect(..) => Err(Obstacle::Calls(at)),
        Inst::Load(access, _) | Inst::Store(access, ..) if own(access) => Err(Obstacle::Calls(at)),
        _ => Ok(()),
    }
}

fn stores(inst: &Inst) -> bool {
    matches!(inst, Inst::Store(..))
}

/// By block, whether something may have been stored on the way there.
fn stored_before(function: &Function, graph: &Graph) -> Vec<bool> {
    let mut stored = vec![false; function.blocks.len()];
    let writes = |block: u32| function.blocks[block as usize].insts.iter().any(|value| stores(function.inst(*value)));
    loop {
        let mut changed = false;
        for block in &graph.order {
            let before = graph.predecessors[*block as usize].iter().any(|from| stored[*from as usize] || writes(*from));
            changed |= before != stored[*block as usize];
            stored[*block as usize] = before;
        }
        if !changed {
            return stored;
        }
    }
}

/// By value, whether it is computed before anything can have been stored.
fn early(function: &Function, graph: &Graph, stored: &[bool]) -> Vec<bool> {
    let mut early = vec![false; function.values.len()];
    for block in graph.order.iter().filter(|block| !stored[**block as usize]) {
        let insts = &function.blocks[*block as usize].insts;
        for value in insts.iter().take_while(|value| !stores(function.inst(**value))) {
            early[value.0 as usize] = true;
        }
    }
    early
}

/// From the best that could be, downwards until nothing contradicts.
fn spread(function: &Function, graph: &Graph, uniform: &[bool], early: &[bool]) -> Vec<State> {
    let mut states: Vec<State> = (0..function.values.len())
        .map(|index| match &function.values[index].inst {
            Inst::Input(Input::Linear | Input::Packed | Input::Thread(Axis::X)) => State::Line(1),
            Inst::Input(Input::Thread(_)) | Inst::Const(_) => State::Line(0),
            _ if uniform[index] => State::Line(0),
            _ => State::Unknown,
        })
        .collect();
    loop {
        let mut changed = false;
        for block in &graph.order {
            for (index, parameter) in function.blocks[*block as usize].parameters.iter().enumerate() {
                let state = joined(function, graph, *block, index, &states);
                changed |= std::mem::replace(&mut states[parameter.0 as usize], state) != state;
            }
            for value in &function.blocks[*block as usize].insts {
                if uniform[value.0 as usize] {
                    continue;
                }
                let state = state_of(function, *value, &states, early[value.0 as usize]);
                changed |= std::mem::replace(&mut states[value.0 as usize], state) != state;
            }
        }
        if !changed {
            return states;
        }
    }
}

/// What a block's parameter is, from the arguments that come over its edges.
fn joined(function: &Function, graph: &Graph, block: u32, index: usize, states: &[State]) -> State {
    let mut state = State::Unknown;
    for from in &graph.predecessors[block as usize] {
        for edge in function.blocks[*from as usize].terminator.edges().filter(|edge| edge.block == block) {
            let argument = edge.arguments.get(index).map_or(State::Varying, |value| states[value.0 as usize]);
            state = match (state, argument) {
                (State::Unknown, other) | (other, State::Unknown) => other,
                (one, other) if one == other => one,
                _ => State::Varying,
            };
        }
    }
    state
}

fn state_of(function: &Function, value: Value, states: &[State], early: bool) -> State {
    let definition = &function.values[value.0 as usize];
    let of = |value: Value| states[value.0 as usize];
    let (mut unknown, mut same) = (false, true);
    for operand in definition.inst.operands() {
        match of(operand) {
            State::Varying => return State::Varying,
            State::Unknown => unknown = true,
            State::Line(stride) => same &= stride == 0,
        }
    }
    if unknown {
        return State::Unknown;
    }
    if same {
        return State::Line(0);
    }
    let stride = |value: Value| match of(value) {
        State::Line(stride) => stride,
        _ => 0,
    };
    let known = |value: Value| match function.inst(value) {
        Inst::Const(bits) => Some(*bits as i64),
        _ => None,
    };
    let wide = definition.kind == Some(Kind::I64);
    let sum = match &definition.inst {
        Inst::Unary(Unary::Wrap, a) => Some(stride(*a)),
        Inst::Unary(Unary::Widen { .. }, a) if early && stride(*a).unsigned_abs() <= MOST_STRIDE => Some(stride(*a)),
        Inst::Binary(Binary::Add, a, b) => Some(stride(*a).wrapping_add(stride(*b))),
        Inst::Binary(Binary::Sub, a, b) => Some(stride(*a).wrapping_sub(stride(*b))),
        Inst::Binary(Binary::Mul, a, b) => match (known(*a), known(*b)) {
            (_, Some(factor)) => Some(stride(*a).wrapping_mul(factor)),
            (Some(factor), _) => Some(stride(*b).wrapping_mul(factor)),
            _ => None,
        },
        Inst::Binary(Binary::Shl, a, b) => known(*b).map(|places| stride(*a).wrapping_shl(places as u32)),
        Inst::Select(condition, a, b) if stride(*condition) == 0 && stride(*a) == stride(*b) => Some(stride(*a)),
        _ => None,
    };
    match sum {
        Some(stride) if wide => State::Line(stride),
        Some(stride) => State::Line(i64::from(stride as i32)),
        None => State::Varying,
    }
}

/// What varies is held by its kind; predicates as masks where nothing but logic and comparisons made them.
fn held(function: &Function, graph: &Graph, states: &[State]) -> Vec<Shape> {
    let predicates = predicates(function, graph);
    let shape = |index: usize| match states[index] {
        State::Line(stride) => Shape::Line(stride),
        // What nothing reaches is in no code.
        State::Unknown => Shape::SAME,
        State::Varying => match function.values[index].kind {
            Some(Kind::I64 | Kind::F64) => Shape::Pair,
            _ if predicates[index] => Shape::Mask,
            _ => Shape::Words,
        },
    };
    (0..function.values.len()).map(shape).collect()
}

/// Values that are 0 or 1 because of what computes them.
fn predicates(function: &Function, graph: &Graph) -> Vec<bool> {
    let bit = |value: &Value| matches!(function.inst(*value), Inst::Const(0 | 1));
    let mut predicates = vec![false; function.values.len()];
    for value in graph.order.iter().flat_map(|block| &function.blocks[*block as usize].insts) {
        predicates[value.0 as usize] = match function.inst(*value) {
            Inst::Unary(Unary::IsZero, _) => true,
            Inst::Binary(op, ..) if op.compares() => true,
            Inst::Binary(Binary::And | Binary::Or | Binary::Xor, a, b) => {
                [a, b].into_iter().all(|value| predicates[value.0 as usize] || bit(value))
            }
            _ => false,
        };
    }
    predicates
}

#[cfg(test)]
mod tests;
