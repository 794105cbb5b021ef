//! Where the four threads of a group part, in a body that they run in lockstep.
//!
//! They do it in front of a branch on which they disagree, of a line that wraps round within the group (see [`super::lanes`]), and of whatever is one thread's own affair:
//! atomic operations, calls with effects. There the group leaves what each of its threads needs in their frames, and they go on one by one. When
//! next all four wait at the same place, they go on together again.
//!
//! For that, what lies behind such a place has to begin a block. In the body that threads run alone it does; the body of groups, where control seldom goes that way, is not cut up.

use std::collections::HashSet;

use super::graph::Graph;
use super::ir::{Block, Edge, Function, Inst, Kind, Suspension, Terminator, Unary, Value};
use super::lanes::{Shape, Shapes, shapes_in_lockstep, shapes_in_lockstep_side_by_side, wraps};
use super::lazy::{Decision, decisions};
use super::meeting;
use super::regions::inside;
use crate::kernel::Obstacle;

/// More places are not worth their code.
const MOST_PARTINGS: usize = 96;

/// Instructions behind a place where threads meet again, at least.
const LEAST_BEHIND: usize = 12;

/// A place where a group may part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// In front of this instruction of this block; behind its last one for what ends the block.
    pub block: u32,
    pub index: usize,
    /// In the body of threads, the block that begins there.
    pub rest: u32,
    /// Whether it parts in any case.
    pub always: bool,
}

/// A body for groups.
pub struct Lockstep {
    /// With the same values and blocks as the body for threads. Where a group parts in any case, it jumps to the rest.
    pub body: Function,
    /// How each value is held, and where groups need not agree.
    pub found: Shapes,
    /// Those of each block from the first to the last, and of the blocks where groups go on that ran side by side.
    pub partings: Vec<Parting>,
    /// Where threads meet again that parted at a branch, if they do not wait before.
    pub joins: Vec<u32>,
    /// What is known of several groups of a warp that run side by side.
    pub side_by_side: Option<SideBySide>,
}

/// Of groups of a warp that run side by side.
pub struct SideBySide {
    pub groups: u32,
    pub found: Shapes,
    pub decisions: Vec<Option<Decision>>,
}

impl Lockstep {
    /// Makes a body for groups from one for threads, and cuts that up.
    pub fn new(
        body: &mut Function,
        uniform: &[bool],
        pure: &[bool],
        heads: &[bool],
        groups: u32,
    ) -> Result<Self, Obstacle> {
        let graph = Graph::of(body);
        let left = |block: u32| heads[block as usize];
        let found = shapes_in_lockstep(body, &graph, uniform, left)?;
        let mut side_by_side = side_by_side(body, &graph, uniform, &found, groups, left);
        let mut partings = Vec::new();
        for block in &graph.order {
            let more = side_by_side.as_ref().map(|side_by_side| &side_by_side.found);
            find(body, *block, [Some(&found), more], uniform, pure, &mut partings);
        }
        if partings.len() > MOST_PARTINGS {
            return Err(Obstacle::TooLarge);
        }
        if let Some(side_by_side) = &mut side_by_side {
            // Threads that part before find what has been computed until then.
            let within =
                partings.iter().filter(|parting| parting.index < body.blocks[parting.block as usize].insts.len());
            within.for_each(|parting| side_by_side.decisions[parting.block as usize] = None);
        }
        let joins = joins(body, &graph, &partings);
        let mut lockstep = body.clone();
        for parting in partings.iter_mut().rev() {
            parting.rest = cut(body, parting);
        }
        lockstep.blocks.extend_from_slice(&body.blocks[lockstep.blocks.len()..]);
        for parting in partings.iter().filter(|parting| parting.always) {
            let block = &mut lockstep.blocks[parting.block as usize];
            block.insts.truncate(parting.index);
            block.terminator = Terminator::Jump(Edge { block: parting.rest, arguments: Vec::new() });
        }
        narrow(&mut lockstep);
        let mut lockstep = Self { body: lockstep, found, partings, joins, side_by_side };
        // Each group is asked again there.
        let again: Vec<Parting> =
            lockstep.splits().map(|parting| Parting { block: parting.rest, index: 0, ..*parting }).collect();
        lockstep.partings.extend(again);
        Ok(lockstep)
    }
}

impl Lockstep {
    /// Where groups side by side may disagree of which each by itself agrees in most cases, as on the end of a loop over the elements of a row: on branches.
    pub fn splits(&self) -> impl Iterator<Item = &Parting> {
        let branches = |parting: &&Parting| {
            let rest = &self.body.blocks[parting.rest as usize];
            rest.insts.is_empty() && matches!(rest.terminator, Terminator::Branch(..))
        };
        let several = self.side_by_side.is_some();
        self.partings.iter().filter(move |parting| several && !parting.always).filter(branches)
    }
}

/// None where they would have to part in a way that one group does not.
fn side_by_side(
    body: &Function,
    graph: &Graph,
    uniform: &[bool],
    one: &Shapes,
    groups: u32,
    left: impl Fn(u32) -> bool,
) -> Option<SideBySide> {
    let found = shapes_in_lockstep_side_by_side(body, graph, uniform, groups, left);
    let alike = |block: &u32| parts_always(body, *block, one) == parts_always(body, *block, &found);
    if !graph.order.iter().all(alike) {
        return None;
    }
    let decisions = decisions(body, graph, uniform, &found.shapes);
    Some(SideBySide { groups, found, decisions })
}

/// Whether the end of a block is of a kind that each thread comes to by itself.
fn parts_always(body: &Function, block: u32, found: &Shapes) -> bool {
    let varies = |value: &Value| found.shapes[value.0 as usize] != Shape::SAME;
    match &body.blocks[block as usize].terminator {
        Terminator::Table(index, _) => varies(index),
        Terminator::Suspend(
            Suspension::Barrier { barrier, threads, .. } | Suspension::Arrival { barrier, threads },
            _,
        ) => varies(barrier) || varies(threads),
        _ => false,
    }
}

/// Notes the partings of a block, up to the first that happens in any case: those of one group, or of several side by side.
fn find(
    body: &Function,
    block: u32,
    found: [Option<&Shapes>; 2],
    uniform: &[bool],
    pure: &[bool],
    partings: &mut Vec<Parting>,
) {
    let data = &body.blocks[block as usize];
    let any = |parts: &dyn Fn(&Shapes) -> bool| found.into_iter().flatten().any(parts);
    let mut note = |index: usize, always: bool| partings.push(Parting { block, index, rest: 0, always });
    for (index, value) in data.insts.iter().enumerate().filter(|(_, value)| !uniform[value.0 as usize]) {
        let inst = body.inst(*value);
        if stays_alone(body, inst, pure) {
            note(index, true);
            return;
        }
        if any(&|found| wraps(body, *value, &found.shapes)) {
            note(index, false);
        }
    }
    let disagrees = |found: &Shapes| {
        let Terminator::Branch(condition, ..) = &data.terminator else { return false };
        found.shapes[condition.0 as usize] != Shape::SAME && found.masked.iter().all(|masked| masked.branch != block)
    };
    let always = any(&|found| parts_always(body, block, found));
    if always || any(&disagrees) {
        note(data.insts.len(), always);
    }
}

/// Whether each thread does this by itself.
pub fn stays_alone(body: &Function, inst: &Inst, pure: &[bool]) -> bool {
    match inst {
        Inst::Rmw(..) | Inst::CompareExchange(..) | Inst::CallIndirect(..) => true,
        Inst::Call(routine, _) => !pure[routine.0 as usize],
        Inst::Load(access, _) | Inst::Store(access, ..) if access.atomic || access.exclusive => true,
        Inst::Store(access, ..) => access.memory == super::ir::Memory::Private,
        Inst::Load(access, address) => {
            let received = matches!(body.inst(*address), Inst::Input(super::ir::Input::Frame)) && access.bytes == 4;
            access.memory == super::ir::Memory::Private && !access.constant && !received
        }
        _ => false,
    }
}

/// Where all ways from the branches meet on which groups part. None if some effect depends on the order of threads: those that meet again change it. None where hardly anything follows, which
/// is not worth going on together for.
fn joins(body: &Function, graph: &Graph, partings: &[Parting]) -> Vec<u32> {
    if partings.iter().any(|parting| parting.always) {
        return Vec::new();
    }
    // Backwards, from an end behind all blocks that go nowhere, and where threads wait.
    let end = body.blocks.len() as u32;
    let waits = |block: u32| matches!(body.blocks[block as usize].terminator, Terminator::Suspend(..));
    let ends = |block: &&u32| waits(**block) || body.blocks[**block as usize].terminator.edges().next().is_none();
    let last: Vec<u32> = graph.order.iter().filter(ends).copied().collect();
    let backwards = Graph::new(body.blocks.len() + 1, end, |block| {
        if block == end {
            return last.clone();
        }
        graph.predecessors[block as usize].iter().copied().filter(|from| !waits(*from)).collect()
    });
    let branches = partings.iter().filter(|parting| parting.index == body.blocks[parting.block as usize].insts.len());
    let mut joins: Vec<u32> = branches
        .filter(|parting| backwards.position[parting.block as usize].is_some())
        .map(|parting| backwards.dominator[parting.block as usize])
        .filter(|join| *join != end && follows(body, *join) >= LEAST_BEHIND)
        .collect();
    joins.sort_unstable();
    joins.dedup();
    joins
}

/// How many instructions follow at a block before threads wait; counted only until they are enough.
fn follows(body: &Function, block: u32) -> usize {
    let mut seen = HashSet::from([block]);
    let mut pending = vec![block];
    let mut count = 0;
    while let Some(block) = pending.pop() {
        count += body.blocks[block as usize].insts.len();
        if count >= LEAST_BEHIND {
            break;
        }
        pending.extend(inside(body, block, |_| false).into_iter().filter(|next| seen.insert(*next)));
    }
    count
}

/// Moves what lies behind a parting to a new block.
fn cut(body: &mut Function, parting: &Parting) -> u32 {
    let rest = body.blocks.len() as u32;
    let block = &mut body.blocks[parting.block as usize];
    let insts = block.insts.split_off(parting.index);
    let to_rest = Terminator::Jump(Edge { block: rest, arguments: Vec::new() });
    let terminator = std::mem::replace(&mut block.terminator, to_rest);
    let position = block.position;
    body.blocks.push(Block { parameters: Vec::new(), insts, terminator, position });
    rest
}

/// What lanes bring to each other are words, but for those that are compared.
fn narrow(lockstep: &mut Function) {
    for index in 0..lockstep.blocks.len() {
        let Terminator::Suspend(Suspension::Meeting { purpose, value: Some(value), .. }, _) =
            &lockstep.blocks[index].terminator
        else {
            continue;
        };
        if *purpose == meeting::MATCH {
            continue;
        }
        let here = lockstep.blocks[index].insts.contains(value);
        let Inst::Unary(Unary::Widen { .. }, word) = lockstep.inst(*value) else { continue };
        if !here {
            // Only what is extended here has its word at hand.
            continue;
        }
        let word = *word;
        debug_assert_eq!(lockstep.kind(word), Kind::I32);
        if let Terminator::Suspend(Suspension::Meeting { value, .. }, _) = &mut lockstep.blocks[index].terminator {
            *value = Some(word);
        }
    }
}
