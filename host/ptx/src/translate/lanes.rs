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
//! A group has one place in the body: where a branch depends on the lane, it is asked while running whether the four agree. What happens if they do not is
//! one of two:
//!
//! - The group is *given up* ([`shapes`]): its threads run again from their beginning, one by one, as scalar code. That is right only while the group has stored nothing; a
//!   kernel whose threads never wait, and that has no such branch behind a store, runs so.
//! - The group *parts* ([`shapes_in_lockstep`]): its threads go on one by one from there, and later together again (see [`super::parting`]).
//!
//! Since all lanes of a group always are in one place, a parameter of a block is one number for all if its arguments are, whatever the branches above depend on.
//!
//! # Side by side
//!
//! Up to eight groups of a row, a warp, run side by side ([`shapes_side_by_side`], [`shapes_in_lockstep_side_by_side`]): a line is one scalar for all of their lanes, other values are vectors, one
//! or two for each group. Within a block all instructions of one group come before those of the next, so that few vectors are needed at a time; what is one number for all is computed
//! once, before them. A branch is asked once for all, if it can be by scalars (see [`super::lazy`]). Where groups disagree, each goes on by itself. How many there are is chosen for a
//! kernel; a block whose rows are not of so many runs in single groups.
//!
//! # Wrapping
//!
//! Strides are exact modulo the width of the value: a sum that wraps round in some lane does so in the scalar code. Only where 32 bits become 64 it
//! matters between which lanes that happens; there the code asks whether it happens within the group, which then is given up or parts. So such a value is a line only
//! before the first store, or where groups part.
//!
//! # What it leaves out
//!
//! Strides that are no constants (`tid * width`) are not followed: those are four numbers, and their accesses are made lane by lane. Of known bits only zeros at the lower end
//! are: since a group begins at a multiple of four, `tid & 31` is a line, and `tid >> 5` the same for all.

use std::collections::HashMap;

use super::graph::Graph;
use super::ir::{Access, Binary, Definition, Function, Input, Inst, Kind, Memory, Terminator, Unary, Value};
use super::masking::{Masked, candidates};
use crate::kernel::Obstacle;
use crate::module::Axis;

pub use crate::kernel::LANES;

/// Strides from one lane to the next are not followed through an extension to 64 bits if they are larger.
pub const MOST_STRIDE: u64 = 1 << 24;
/// Instructions and blocks of a body, at most: the vector form comes on top of the scalar one, and both have to be compiled.
const MOST_INSTRUCTIONS: usize = 1500;

/// Times that a lane is asked whether it runs, at most, for a branch of groups that run side by side.
const MOST_ASKED: u32 = 128;

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
    /// The distance from lane to lane; and of the first lane's number, how many of its lowest bits are known to be 0.
    Line(i64, u32),
    Varying,
}

impl State {
    /// One number, of which nothing is known.
    const SAME: Self = Self::Line(0, 0);

    /// How many of the lowest bits are all that differs between lanes, which count from 0 in them: nothing is carried beyond.
    fn own_bits(self, lanes: u32) -> Option<u32> {
        match self {
            Self::Line(stride, zeros) if stride > 0 && zeros < 32 && stride * i64::from(lanes - 1) < 1 << zeros => {
                Some(zeros)
            }
            _ => None,
        }
    }
}

/// The shapes of the values of a body whose threads never wait, if it can run in groups that begin again one by one where they do not agree.
///
/// # Errors
///
/// Why it cannot.
pub fn shapes(function: &Function, graph: &Graph, uniform: &[bool], pure: &[bool]) -> Result<Shapes, Obstacle> {
    let insts = graph.order.iter().flat_map(|block| &function.blocks[*block as usize].insts);
    if insts.clone().count() + graph.order.len() > MOST_INSTRUCTIONS {
        return Err(Obstacle::TooLarge);
    }
    for value in insts {
        refuse(&function.values[value.0 as usize], pure)?;
    }
    let stored = stored_before(function, graph);
    let found = Shapes::new(function, graph, uniform, &early(function, graph, &stored), Row::GROUP, |_| false);
    agrees_early(function, graph, &found, &stored)?;
    Ok(found)
}

/// The same for several groups side by side, of a body that has shapes for one. Here the branches that are run for some lanes only are those before the first store, where neighbours read
/// neighbouring elements: such lanes may read all of them, if they lie in one page.
pub fn shapes_side_by_side(function: &Function, graph: &Graph, uniform: &[bool], groups: u32) -> Option<Shapes> {
    let stored = stored_before(function, graph);
    let early = early(function, graph, &stored);
    // Rows begin anywhere.
    let row = Row { groups, ..Row::GROUP };
    // What is read may have to be given up, and after a store nothing can be.
    let before_stores = |masked: &Masked| {
        let side = &function.blocks[masked.side as usize].insts;
        let any = |which: fn(&Inst) -> bool| side.iter().any(|value| which(function.inst(*value)));
        !any(reads) || (!stored[masked.side as usize] && !any(stores))
    };
    let mut masked = candidates(function, graph);
    masked.retain(before_stores);
    loop {
        let shapes = held(function, graph, &spread(function, graph, uniform, &early, &masked, row));
        let fits = |masked: &Masked| {
            let side = &function.blocks[masked.side as usize].insts;
            let whole = side.iter().all(|value| !wraps(function, *value, &shapes));
            whole && side.iter().all(|value| reads_neighbours(function, *value, &shapes))
        };
        let kept: Vec<Masked> = masked.iter().copied().filter(fits).collect();
        if kept.len() < masked.len() {
            masked = kept;
            continue;
        }
        masked.retain(|masked| shapes[masked.condition.0 as usize] != Shape::SAME);
        let found = Shapes { shapes, masked };
        return agrees_early(function, graph, &found, &stored).is_ok().then_some(found);
    }
}

/// The shapes of a function that is given something else by each lane.
pub fn shapes_of_arguments(function: &Function, graph: &Graph, uniform: &[bool]) -> Shapes {
    let early = vec![true; function.values.len()];
    Shapes::new(function, graph, uniform, &early, Row::GROUP, |_| false)
}

/// Whether an instruction, if it reads memory, reads one number for all lanes or what lies side by side.
fn reads_neighbours(function: &Function, value: Value, shapes: &[Shape]) -> bool {
    let Inst::Load(access, address) = function.inst(value) else { return true };
    let step = shapes[address.0 as usize];
    step == Shape::SAME || step == Shape::Line(access.bytes.into()) && access.bytes == function.kind(value).bytes()
}

/// Whether lanes that disagree do so before the first store.
fn agrees_early(function: &Function, graph: &Graph, found: &Shapes, stored: &[bool]) -> Result<(), Obstacle> {
    let shapes = &found.shapes;
    for block in &graph.order {
        let data = &function.blocks[*block as usize];
        let diverges = Err(Obstacle::Diverges(data.position));
        match &data.terminator {
            Terminator::Table(index, _) if shapes[index.0 as usize] != Shape::SAME => return diverges,
            Terminator::Branch(condition, ..)
                if shapes[condition.0 as usize] != Shape::SAME
                    && found.masked.iter().all(|masked| masked.branch != *block)
                    && (stored[*block as usize] || data.insts.iter().any(|value| stores(function.inst(*value)))) =>
            {
                return diverges;
            }
            Terminator::Suspend(..) => return Err(Obstacle::Waits(data.position)),
            _ => {}
        }
    }
    Ok(())
}

/// What is found of a body.
pub struct Shapes {
    /// How each value is held.
    pub shapes: Vec<Shape>,
    /// Branches on which lanes may disagree and that need not be asked for that.
    pub masked: Vec<Masked>,
}

impl Shapes {
    /// Blocks that are `left` are not part of what is run without interruption.
    fn new(
        function: &Function,
        graph: &Graph,
        uniform: &[bool],
        early: &[bool],
        row: Row,
        left: impl Fn(u32) -> bool,
    ) -> Self {
        let mut masked = candidates(function, graph);
        masked.retain(|masked| !left(masked.side) && !left(masked.join) && row.affords(function, masked));
        let states = spread(function, graph, uniform, early, &masked, row);
        let shapes = held(function, graph, &states);
        let whole = |masked: &Masked| {
            let insts = &function.blocks[masked.side as usize].insts;
            insts.iter().all(|value| !wraps(function, *value, &shapes))
        };
        masked.retain(|masked| shapes[masked.condition.0 as usize] != Shape::SAME && whole(masked));
        Self { shapes, masked }
    }
}

/// Whether an instruction makes a line of 64 bits from one of 32, which may wrap round within the group.
pub fn wraps(function: &Function, value: Value, shapes: &[Shape]) -> bool {
    let Inst::Unary(Unary::Widen { .. }, operand) = function.inst(value) else { return false };
    let line = |value: Value| matches!(shapes[value.0 as usize], Shape::Line(stride) if stride != 0);
    line(value) && line(*operand)
}

/// The shapes of a body's values, where a group may part anywhere: in front of each branch on which its threads disagree, and of each line that wraps round within it. Blocks that are `left` begin
/// another region.
///
/// # Errors
///
/// If the body is too large.
pub fn shapes_in_lockstep(
    function: &Function,
    graph: &Graph,
    uniform: &[bool],
    left: impl Fn(u32) -> bool,
) -> Result<Shapes, Obstacle> {
    let insts = graph.order.iter().map(|block| function.blocks[*block as usize].insts.len());
    if insts.sum::<usize>() + graph.order.len() > MOST_INSTRUCTIONS {
        return Err(Obstacle::TooLarge);
    }
    Ok(Shapes::new(function, graph, uniform, &vec![true; function.values.len()], Row::GROUP, left))
}

/// The same for several groups of a warp side by side.
pub fn shapes_in_lockstep_side_by_side(
    function: &Function,
    graph: &Graph,
    uniform: &[bool],
    groups: u32,
    left: impl Fn(u32) -> bool,
) -> Shapes {
    let row = Row { groups, linear_zeros: (groups * LANES).trailing_zeros() };
    Shapes::new(function, graph, uniform, &vec![true; function.values.len()], row, left)
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

fn reads(inst: &Inst) -> bool {
    matches!(inst, Inst::Load(access, _) if !access.constant)
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

/// Threads that run side by side, neighbours in a row of the block. Their first one's place in the row is a multiple of their number.
#[derive(Clone, Copy)]
struct Row {
    groups: u32,
    /// Of the first one's linear index, so many of the lowest bits are 0.
    linear_zeros: u32,
}

impl Row {
    const GROUP: Self = Self { groups: 1, linear_zeros: LANES.trailing_zeros() };

    fn lanes(self) -> u32 {
        self.groups * LANES
    }

    /// Whether the code is not too long in which each lane is asked whether it makes the accesses of a branch.
    fn affords(self, function: &Function, masked: &Masked) -> bool {
        let insts = function.blocks[masked.side as usize].insts.iter();
        let accesses = insts.filter(|value| matches!(function.inst(**value), Inst::Load(..) | Inst::Store(..)));
        self.groups == 1 || accesses.count() as u32 * self.lanes() <= MOST_ASKED
    }

    fn zeros(self, input: Input) -> u32 {
        if input == Input::Linear { self.linear_zeros } else { self.lanes().trailing_zeros() }
    }
}

/// From the best that could be, downwards until nothing contradicts.
fn spread(
    function: &Function,
    graph: &Graph,
    uniform: &[bool],
    early: &[bool],
    masked: &[Masked],
    row: Row,
) -> Vec<State> {
    let mut states: Vec<State> = (0..function.values.len())
        .map(|index| match &function.values[index].inst {
            Inst::Input(input @ (Input::Linear | Input::Packed | Input::Thread(Axis::X))) => {
                State::Line(1, row.zeros(*input))
            }
            // In the frame of a group, words of its threads lie side by side.
            Inst::Input(Input::Frame) => State::Line(4, 0),
            Inst::Const(bits) => State::Line(0, bits.trailing_zeros()),
            Inst::Input(Input::Thread(_)) => State::SAME,
            Inst::Argument(_) => State::Varying,
            _ if uniform[index] => State::SAME,
            _ => State::Unknown,
        })
        .collect();
    let mut joins: HashMap<u32, Vec<&Masked>> = HashMap::new();
    for masked in masked {
        joins.entry(masked.join).or_default().push(masked);
    }
    loop {
        let mut changed = false;
        for block in &graph.order {
            let masked = joins.get(block).map_or(&[][..], Vec::as_slice);
            for (index, parameter) in function.blocks[*block as usize].parameters.iter().enumerate() {
                let state = joined(function, graph, *block, index, &states, masked);
                changed |= std::mem::replace(&mut states[parameter.0 as usize], state) != state;
            }
            for value in &function.blocks[*block as usize].insts {
                if uniform[value.0 as usize] {
                    continue;
                }
                let state = state_of(function, *value, &states, early[value.0 as usize], row);
                changed |= std::mem::replace(&mut states[value.0 as usize], state) != state;
            }
        }
        if !changed {
            return states;
        }
    }
}

/// What a block's parameter is, from the arguments that come over its edges.
fn joined(function: &Function, graph: &Graph, block: u32, index: usize, states: &[State], masked: &[&Masked]) -> State {
    // Lanes come over both edges of such a branch at once.
    let argument = |from: u32| {
        let mut edges = function.blocks[from as usize].terminator.edges();
        edges.find(|edge| edge.block == block).and_then(|edge| edge.arguments.get(index).copied())
    };
    for masked in masked {
        let agreed = matches!(states[masked.condition.0 as usize], State::Unknown | State::Line(0, _));
        if !agreed && argument(masked.branch) != argument(masked.side) {
            return State::Varying;
        }
    }
    let mut state = State::Unknown;
    for from in &graph.predecessors[block as usize] {
        for edge in function.blocks[*from as usize].terminator.edges().filter(|edge| edge.block == block) {
            let argument = edge.arguments.get(index).map_or(State::Varying, |value| states[value.0 as usize]);
            state = match (state, argument) {
                (State::Unknown, other) | (other, State::Unknown) => other,
                (State::Line(one, zeros), State::Line(other, others)) if one == other => {
                    State::Line(one, zeros.min(others))
                }
                _ => State::Varying,
            };
        }
    }
    state
}

fn state_of(function: &Function, value: Value, states: &[State], early: bool, row: Row) -> State {
    let definition = &function.values[value.0 as usize];
    let of = |value: Value| states[value.0 as usize];
    let (mut unknown, mut same) = (false, true);
    for operand in definition.inst.operands() {
        match of(operand) {
            State::Varying => return State::Varying,
            State::Unknown => unknown = true,
            State::Line(stride, _) => same &= stride == 0,
        }
    }
    if unknown {
        return State::Unknown;
    }
    if same {
        return State::SAME;
    }
    let stride = |value: Value| match of(value) {
        State::Line(stride, _) => stride,
        _ => 0,
    };
    let zeros = |value: Value| match of(value) {
        State::Line(_, zeros) => zeros,
        _ => 0,
    };
    let known = |value: Value| match function.inst(value) {
        Inst::Const(bits) => Some(*bits as i64),
        _ => None,
    };
    let wide = definition.kind == Some(Kind::I64);
    // The distance, and the zeros.
    let sum = match &definition.inst {
        Inst::Unary(Unary::Wrap, a) => Some((stride(*a), zeros(*a).min(31))),
        Inst::Unary(Unary::Widen { .. }, a) if early && stride(*a).unsigned_abs() <= MOST_STRIDE => {
            Some((stride(*a), zeros(*a)))
        }
        Inst::Binary(Binary::Add, a, b) => Some((stride(*a).wrapping_add(stride(*b)), zeros(*a).min(zeros(*b)))),
        Inst::Binary(Binary::Sub, a, b) => Some((stride(*a).wrapping_sub(stride(*b)), zeros(*a).min(zeros(*b)))),
        Inst::Binary(Binary::Mul, a, b) => match (known(*a), known(*b)) {
            (_, Some(factor)) => Some((stride(*a).wrapping_mul(factor), zeros(*a))),
            (Some(factor), _) => Some((stride(*b).wrapping_mul(factor), zeros(*b))),
            _ => None,
        },
        Inst::Binary(Binary::Shl, a, b) => {
            known(*b).map(|places| (stride(*a).wrapping_shl(places as u32), zeros(*a) + places as u32 % 64))
        }
        Inst::Binary(Binary::And, a, b) => known(*b).and_then(|mask| masked(of(*a), mask, row.lanes())),
        Inst::Binary(Binary::ShrU | Binary::ShrS, a, b) => known(*b)
            .filter(|places| of(*a).own_bits(row.lanes()).is_some_and(|bits| *places >= i64::from(bits)))
            .map(|_| (0, 0)),
        Inst::Select(condition, a, b) if stride(*condition) == 0 && stride(*a) == stride(*b) => {
            Some((stride(*a), zeros(*a).min(zeros(*b))))
        }
        _ => None,
    };
    match sum {
        Some((stride, zeros)) if wide => State::Line(stride, zeros),
        Some((stride, zeros)) => State::Line(i64::from(stride as i32), zeros),
        None => State::Varying,
    }
}

/// A line of which only these bits are left: all of those in which lanes differ, or none of them.
fn masked(line: State, mask: i64, lanes: u32) -> Option<(i64, u32)> {
    let State::Line(stride, zeros) = line else { return None };
    // Those below the distance are 0 in all lanes.
    let own = (1 << line.own_bits(lanes)?) - (1 << stride.trailing_zeros());
    match mask & own {
        0 => Some((0, 0)),
        bits if bits == own => Some((stride, zeros)),
        _ => None,
    }
}

/// What varies is held by its kind; predicates as masks where nothing but logic and comparisons made them.
fn held(function: &Function, graph: &Graph, states: &[State]) -> Vec<Shape> {
    let predicates = predicates(function, graph);
    let shape = |index: usize| match states[index] {
        State::Line(stride, _) => Shape::Line(stride),
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
