//! A region of a body whose threads wait, for groups of four threads of a warp as the lanes of vectors.
//!
//! ```text
//! lockstep(base: linear index of the warp's first thread, pass: lanes to run) -> lanes that were run
//!   what is the same for all threads
//!   for each group with a lane in `pass`:
//!     if it and the next ones are as many as run side by side, all to run, go on in this region, and what should be lines is:
//!       the same as below, for all of them; what the lanes of a whole warp exchange, they have at once, and go on
//!       where they part at a branch: keep, and call the region of groups that begins there
//!     else if all four go on in this region, and what should be lines in their frames is:
//!       load the vectors that they kept; run; keep the vectors that are needed later; note where they go on and why they wait
//!       where they part (see `parting`): keep, and call the region of threads that begins there
//!     else: call the region of threads for them
//!   update the warp's record
//!   and once more for the next warp, if it is to run too
//! ```
//!
//! Threads that part go on at once, one by one, until they wait. So whatever has an effect that depends on the order happens in the same order as if all threads ran alone.
//!
//! A value is held here in the shape that it has as long as threads do not part (see [`crate::translate::lanes`]). That threads which parted come back with values that have none,
//! because they went different ways, is seen when they are loaded: lines are compared with what all of them kept. Threads that came with their
//! group, or with all that run side by side, have noted that in their frames beside where they go on: there is nothing to compare then.

mod exits;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use wasm_encoder::{BlockType, InstructionSink, MemArg, ValType};

use super::exchange::{self, Chain, Exchange};
use super::frames::{Frames, place};
use super::module::{Functions, GROUPED, MORE_WARPS, Parts, SIDE_BY_SIDE};
use super::outcome::Outcome;
use super::plan::Plan;
use super::region::kept;
use super::unit::{Code, PRIVATE, Unit};
use super::vector::Lanes;
use super::{schedule, structure};
use crate::kernel::WARP;
use crate::translate::frame;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Inst, Program, Suspension, Terminator, Value};
use crate::translate::lanes::LANES;
use crate::translate::liveness::reads;
use crate::translate::parting::{Lockstep, Parting, SideBySide};
use crate::translate::regions::{Regions, inside};
use exits::LockstepExits;

/// Operations of all regions for several groups side by side, at most: those from the body's beginning on, up to so many.
const MOST_SIDE_BY_SIDE: usize = 12_000;

/// A region as groups run it.
pub struct Wide {
    /// Its number.
    pub number: u32,
    head: u32,
    /// Its blocks.
    pub graph: Graph,
    /// What several groups side by side run of the body, if they do.
    several: Option<Several>,
}

/// What several groups of a warp run side by side from the head of a region on. A whole warp that exchanges something does not end there, but goes on.
struct Several {
    graph: Graph,
    /// Of all groups together.
    operations: usize,
    passing: Rc<Passing>,
}

/// Where a whole warp exchanges something and goes on at once.
#[derive(Default)]
pub struct Passing {
    /// By block that ends with it.
    pub exchanges: HashMap<u32, (Exchange, Value)>,
    /// The blocks behind them.
    pub behind: HashSet<u32>,
}

impl Passing {
    fn of(lockstep: &Lockstep) -> Self {
        let body = &lockstep.body;
        let whole_warps = lockstep.side_by_side.as_ref().is_some_and(|own| own.groups * LANES == WARP);
        if !whole_warps {
            return Self::default();
        }
        let graph = Graph::of(body);
        let exchanges: HashMap<u32, (Exchange, Value)> =
            graph.order.iter().filter_map(|block| Some((*block, exchange::whole(body, &graph, *block)?))).collect();
        let next = |block: &u32| body.blocks[*block as usize].terminator.edges().map(|edge| edge.block);
        let behind = exchanges.keys().flat_map(next).collect();
        Self { exchanges, behind }
    }
}

impl Several {
    /// None for what a whole warp comes to in another region already.
    fn new(
        lockstep: &Lockstep,
        regions: &Regions,
        rests: &HashSet<u32>,
        head: u32,
        passing: &Rc<Passing>,
    ) -> Option<Self> {
        let body = &lockstep.body;
        let groups = lockstep.side_by_side.as_ref()?.groups;
        if passing.behind.contains(&head) {
            return None;
        }
        let leaves = |block: u32| {
            rests.contains(&block) || regions.leaves(head, false, block) && !passing.behind.contains(&block)
        };
        let graph = Graph::new(body.blocks.len(), head, |from| match &body.blocks[from as usize].terminator {
            Terminator::Suspend(_, edge) if passing.exchanges.contains_key(&from) => vec![edge.block],
            _ => inside(body, from, leaves),
        });
        let insts: usize = graph.order.iter().map(|block| body.blocks[*block as usize].insts.len()).sum();
        Some(Self { graph, operations: insts * groups as usize, passing: passing.clone() })
    }
}

/// The regions that groups run: those where all threads begin or go on, and those where threads meet again that parted.
pub fn regions(lockstep: &Lockstep, regions: &Regions, chains: &[Chain]) -> Vec<Wide> {
    let body = &lockstep.body;
    let rests: HashSet<u32> = lockstep.partings.iter().map(|parting| parting.rest).collect();
    // A whole warp never goes on within a chain of exchanges.
    let passed: HashSet<u32> = chains.iter().flat_map(Chain::passed).collect();
    // Groups that run side by side and disagree go on as such where each by itself may agree.
    let splits: HashSet<u32> = lockstep.splits().map(|parting| parting.rest).collect();
    let begins = regions.regions.iter().filter(|region| {
        !passed.contains(&region.head) && (splits.contains(&region.head) || !rests.contains(&region.head))
    });
    let passing = Rc::new(Passing::of(lockstep));
    let mut left = MOST_SIDE_BY_SIDE;
    let wide = begins.map(|region| {
        let leaves = |block: u32| rests.contains(&block) || regions.leaves(region.head, false, block);
        let graph = Graph::new(body.blocks.len(), region.head, |from| inside(body, from, leaves));
        let begins = !splits.contains(&region.head) && !regions.is_join(region.head);
        let several = if begins { Several::new(lockstep, regions, &rests, region.head, &passing) } else { None };
        let several = several.filter(|several| several.operations <= left);
        left -= several.as_ref().map_or(0, |several| several.operations);
        Wide { number: region.number, head: region.head, graph, several }
    });
    wide.collect()
}

/// All that groups run.
pub struct Together<'a> {
    lockstep: &'a Lockstep,
    regions: Vec<Wide>,
    chains: Vec<Chain>,
}

impl<'a> Together<'a> {
    /// Of a body cut up into these regions.
    pub fn new(lockstep: &'a Lockstep, of: &Regions, uniform: &[bool]) -> Self {
        let chains = exchange::chains(lockstep, &Graph::of(&lockstep.body), uniform);
        Self { lockstep, regions: regions(lockstep, of, &chains), chains }
    }

    /// The numbers of the regions, in the order of their functions.
    pub fn numbers(&self) -> Vec<u32> {
        self.regions.iter().map(|region| region.number).collect()
    }

    /// How many groups of a warp run side by side, if the rows of a block are of so many.
    pub fn side_by_side(&self) -> Option<u32> {
        self.lockstep.side_by_side.as_ref().map(|side_by_side| side_by_side.groups)
    }

    /// A bit for each region, by its number, that may run for one warp after the other before any of them goes on.
    pub fn warp_after_warp(&self, program: &Program) -> u64 {
        let may = |region: &&Wide| region.number < u64::BITS && self.may_wait(region, program);
        self.regions.iter().filter(may).fold(0, |bits, region| bits | 1 << region.number)
    }

    /// Whether a warp that has run a region may wait until others have: up to the next barrier it does nothing whose order counts.
    fn may_wait(&self, region: &Wide, program: &Program) -> bool {
        let body = &self.lockstep.body;
        let mut seen = HashSet::new();
        let mut pending = vec![region.head];
        while let Some(block) = pending.pop() {
            if !seen.insert(block) {
                continue;
            }
            match &body.blocks[block as usize].terminator {
                Terminator::Suspend(Suspension::Barrier { .. }, _) => {}
                terminator => pending.extend(terminator.edges().map(|edge| edge.block)),
            }
            let parts = self.lockstep.partings.iter().filter(|parting| parting.block == block);
            pending.extend(parts.map(|parting| parting.rest));
        }
        let ordered = |block: &u32| {
            body.blocks[*block as usize].insts.iter().any(|value| order_counts(program, body.inst(*value)))
        };
        region.several.is_some() && !seen.iter().any(ordered)
    }

    /// How many functions there are.
    pub fn functions(&self) -> u32 {
        (self.regions.len() + self.chains.len()) as u32
    }

    /// Adds them.
    pub fn add(&'a self, functions: &mut Functions, parts: &'a Parts<'a>, frames: &'a Frames) {
        let first = parts.first_lockstep + self.regions.len() as u32;
        let exchanges = (first..).zip(&self.chains).map(|(function, chain)| (chain.start(), function)).collect();
        for region in &self.regions {
            add_one(functions, parts, frames, self.lockstep, region, &exchanges);
        }
        for chain in &self.chains {
            exchange::add(functions, parts, frames, self.lockstep, chain);
        }
    }
}

/// Whether what an instruction leaves depends on when it happens, even in programs without races.
fn order_counts(program: &Program, inst: &Inst) -> bool {
    match inst {
        Inst::Rmw(..) | Inst::CompareExchange(..) | Inst::CallIndirect(..) => true,
        Inst::Load(access, _) | Inst::Store(access, ..) => access.atomic || access.exclusive,
        Inst::Call(routine, _) => {
            let called = &program.functions[routine.0 as usize];
            called.device || called.values.iter().any(|value| order_counts(program, &value.inst))
        }
        _ => false,
    }
}

/// Locals in the order of the parameters.
const BASE: u32 = 0;
const PASS: u32 = 1;

/// What one group does of a region, or several side by side.
struct Section<'a> {
    graph: &'a Graph,
    /// Places where it may part, in the order of their labels.
    partings: Vec<&'a Parting>,
    kept: HashSet<Value>,
    loaded: Vec<Value>,
    plan: Plan,
}

impl<'a> Section<'a> {
    fn new(
        parts: &Parts<'_>,
        frames: &Frames,
        lockstep: &'a Lockstep,
        region: &Wide,
        graph: &'a Graph,
        passing: &Passing,
    ) -> Self {
        let body = &lockstep.body;
        let kept = kept(body, frames, region.head, graph);
        let partings: Vec<&Parting> = lockstep
            .partings
            .iter()
            .filter(|parting| !parting.always && graph.position[parting.block as usize].is_some())
            .collect();
        let saved = saved(body, parts, frames, graph, &kept, &partings, passing);
        let mut read: HashSet<Value> = saved.iter().copied().collect();
        for block in &graph.order {
            read.extend(reads(body, *block));
        }
        let needed = frames.needed[&region.head].iter().copied();
        let loaded: Vec<Value> = needed.filter(|value| read.contains(value)).collect();
        let plan = Plan::for_lockstep(body, graph, parts.uniform, [&loaded, &saved]);
        Self { graph, partings, kept, loaded, plan }
    }

    fn labels(&self) -> HashMap<(u32, usize), u32> {
        let places = self.partings.iter().map(|parting| (parting.block, parting.index));
        places.zip(0..).collect()
    }

    /// Writes what is done once everything is loaded. Behind it there are `labels` up to the end of the turn, that of a failed beginning being the first.
    fn write(&self, unit: &mut Unit<'_>, exits: &LockstepExits<'_>, labels: u32) {
        for _ in &self.partings {
            unit.sink().block(BlockType::Empty);
        }
        structure::write(unit, self.graph, exits.parts.uniform, exits);
        for (left, parting) in (0..self.partings.len() as u32).rev().zip(&self.partings) {
            unit.sink().end();
            exits.part(unit, parting.rest);
            unit.sink().br(left + labels);
        }
    }
}

/// Locals of a region's function.
struct Locals {
    packed: u32,
    lane: u32,
    /// Which lanes of a group are to run.
    here: u32,
}

fn add_one<'a>(
    functions: &mut Functions,
    parts: &'a Parts<'a>,
    frames: &'a Frames,
    lockstep: &'a Lockstep,
    region: &'a Wide,
    exchanges: &'a HashMap<u32, u32>,
) {
    let body = &lockstep.body;
    let rests: HashMap<u32, u32> = parts
        .regions
        .regions
        .iter()
        .filter(|own| parts.regions.number[own.head as usize].is_none())
        .map(|own| (own.head, own.number))
        .collect();
    let nowhere = Passing::default();
    let section = Section::new(parts, frames, lockstep, region, &region.graph, &nowhere);
    let several = region.several.as_ref().map(|several| {
        let section = Section::new(parts, frames, lockstep, region, &several.graph, &several.passing);
        (several, section)
    });
    let mut code = Code::new(2);
    let outcome = Outcome::new(&mut code);
    let [linear, packed, lane, frame, here, together] = [0; 6].map(|_| code.fresh(ValType::I32));
    let locals = Locals { packed, lane, here };
    let alone = parts.first_region + region.number;
    code.sink().global_get(GROUPED).i32_eqz().if_(BlockType::Empty);
    code.sink().local_get(BASE).local_get(PASS).call(alone).return_().end();
    let labels = section.labels();
    let Section { kept, loaded, .. } = &section;
    let mut unit = Unit::new(body, section.plan.clone(), code, parts);
    unit.thread.linear = linear;
    unit.thread.packed = Some(packed);
    unit.thread.frame = Some(frame);
    unit.lanes = Some(Lanes::parting(&lockstep.found, labels));
    if let Some((_, section)) = &several {
        unit.plan.first.clone_from(&section.plan.first);
    }
    unit.preamble();
    let warps = Warps { more: unit.code.fresh(ValType::I32), several: unit.code.fresh(ValType::I32) };
    let mut sink = unit.sink();
    sink.global_get(MORE_WARPS).local_tee(warps.more).local_set(warps.several);
    // For this region and not for those that it calls.
    sink.i32_const(0).global_set(MORE_WARPS);
    let exits = LockstepExits {
        parts,
        frames,
        head: region.head,
        rests: &rests,
        frame,
        lane,
        together,
        outcome: &outcome,
        kept: kept.clone(),
        labels: section.partings.len() as u32 + 1,
        exchanges,
        made: &RefCell::default(),
        passing: &nowhere,
    };
    let mut sink = unit.sink();
    sink.loop_(BlockType::Empty).loop_(BlockType::Empty).block(BlockType::Empty);
    sink.local_get(PASS).i32_ctz().i32_const(-(LANES as i32)).i32_and().local_set(lane);
    sink.i32_const((1 << LANES) - 1).local_get(lane).i32_shl().local_tee(outcome.running);
    sink.local_get(PASS).i32_and().local_set(here);
    sink.local_get(PASS).local_get(outcome.running).i32_const(-1).i32_xor().i32_and().local_set(PASS);
    sink.local_get(BASE).local_get(lane).i32_add().local_set(linear);
    place(&mut sink, parts.frames, linear);
    sink.i32_const(parts.layout.frames as i32).i32_add().local_set(frame);
    if let (Some((several, section)), Some(side_by_side)) = (&several, &lockstep.side_by_side) {
        let labels = section.partings.len() as u32 + 2;
        let kept = section.kept.clone();
        let exits = LockstepExits { kept, labels, passing: &several.passing, ..exits.clone() };
        turn_of_several(&mut unit, &exits, section, side_by_side, &locals, region.number);
    }
    unit.sink().block(BlockType::Empty);
    unit.sink().local_get(here).local_get(outcome.running).i32_ne().br_if(0);
    exits.enter(&mut unit, packed, region.number, loaded);
    outcome.note(&mut unit.code, outcome.executed);
    section.write(&mut unit, &exits, 1);
    let mut sink = unit.sink();
    sink.end();
    sink.local_get(BASE).local_get(here).call(alone);
    sink.local_get(outcome.executed).i32_or().local_set(outcome.executed);
    sink.end().local_get(PASS).br_if(0).end();
    exits.exchange(&mut unit.code);
    end_of_warp(&mut unit.code, &exits, &warps);
    functions.add(&[ValType::I32, ValType::I32], &[ValType::I32], unit.code);
}

/// Locals with how many warps are to run behind the present one, and behind the first: 0 if it is only one.
struct Warps {
    more: u32,
    several: u32,
}

/// Tells the scheduler what became of a warp, and begins again for the next one if it is to run too; else puts on the stack which lanes of this one ran. If all warps of the block have come to
/// one barrier and nobody need wait there, that is 0, and the scheduler is told nothing.
fn end_of_warp(code: &mut Code, exits: &LockstepExits<'_>, warps: &Warps) {
    let (parts, outcome) = (exits.parts, exits.outcome);
    let barrier = outcome.only_barrier().filter(|_| parts.lets_all_go);
    let come = code.fresh(ValType::I32);
    if let Some((lanes, _)) = barrier {
        let mut sink = code.sink();
        sink.local_get(warps.several).i32_const(0).local_get(lanes).i32_const(-1).i32_eq().select();
        sink.if_(BlockType::Empty);
        sink.local_get(come).i32_const(1).local_get(BASE).i32_const(5).i32_shr_u().i32_shl().i32_or().local_set(come);
        sink.else_();
    }
    outcome.tell(code, parts, BASE);
    if barrier.is_some() {
        code.sink().end();
    }
    next_warp(code, exits, warps.more);
    let mut sink = code.sink();
    if let Some((_, arguments)) = barrier {
        sink.local_get(come).if_(BlockType::Empty);
        // All, up to the last one.
        sink.local_get(come).i32_const(-1).i32_const(31).local_get(BASE).i32_const(5).i32_shr_u().i32_sub().i32_shr_u();
        sink.i32_eq().if_(BlockType::Empty).i32_const(0).return_().end();
        arrive_late(&mut sink, parts, come, arguments);
        sink.end();
    }
    sink.local_get(outcome.executed);
}

/// The warps with a bit in `come` wait at a barrier, all their lanes.
fn arrive_late(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, come: u32, [barrier, threads]: [u32; 2]) {
    let ready = MemArg { offset: u64::from(parts.layout.warps + frame::READY), align: 2, memory_index: PRIVATE };
    sink.loop_(BlockType::Empty);
    sink.local_get(come).i32_ctz().i32_const(-1).i32_const(barrier as i32).i32_const(threads as i32);
    sink.call(schedule::ARRIVE);
    sink.local_get(come).i32_ctz().i32_const(4).i32_shl().i32_const(0).i32_store(ready);
    sink.local_get(come).local_get(come).i32_const(1).i32_sub().i32_and().local_tee(come).br_if(0).end();
}

fn next_warp(code: &mut Code, exits: &LockstepExits<'_>, more: u32) {
    let mut sink = code.sink();
    sink.local_get(more).if_(BlockType::Empty).local_get(more).i32_const(1).i32_sub().local_set(more);
    sink.local_get(BASE).i32_const(WARP as i32).i32_add().local_set(BASE).i32_const(-1).local_set(PASS);
    exits.outcome.forget(code);
    for lanes in exits.made.borrow().values() {
        code.sink().i32_const(0).local_set(*lanes);
    }
    code.sink().br(1).end().end();
}

/// If so many groups begin here that are all to run, and their threads all go on in this region with values that fit: their turn.
fn turn_of_several<'a>(
    unit: &mut Unit<'a>,
    exits: &LockstepExits<'_>,
    section: &Section<'_>,
    side_by_side: &'a SideBySide,
    locals: &Locals,
    number: u32,
) {
    let lanes = side_by_side.groups * LANES;
    let one = unit.lanes.replace(Lanes::side_by_side_parting(side_by_side, section.labels()));
    let all = unit.all_lanes();
    let mut sink = unit.sink();
    // The first group's lanes have been taken out of `pass`.
    sink.local_get(PASS).local_get(locals.here).i32_or().local_get(locals.lane).i32_shr_u();
    sink.i32_const(all as i32).i32_and().i32_const(all as i32).i32_eq();
    sink.local_get(locals.lane).i32_const(lanes as i32 - 1).i32_and().i32_eqz().i32_and();
    sink.global_get(SIDE_BY_SIDE).i32_and().if_(BlockType::Empty).block(BlockType::Empty);
    let plan = std::mem::replace(&mut unit.plan, section.plan.clone());
    let common = unit.common_locals(exits.parts.uniform);
    let common = unit.swap_locals(common);
    exits.enter(unit, locals.packed, number, &section.loaded);
    let running = exits.outcome.running;
    let mut sink = unit.sink();
    sink.i32_const(all as i32).local_get(locals.lane).i32_shl().local_tee(running);
    sink.i32_const(-1).i32_xor().local_get(PASS).i32_and().local_set(PASS);
    exits.outcome.note(&mut unit.code, exits.outcome.executed);
    section.write(unit, exits, 2);
    unit.swap_locals(common);
    unit.lanes = one;
    unit.plan = plan;
    unit.sink().end().end();
}

/// Values that are written to the frame where the region ends or the group parts.
fn saved(
    body: &Function,
    parts: &Parts<'_>,
    frames: &Frames,
    graph: &Graph,
    kept: &HashSet<Value>,
    partings: &[&Parting],
    passing: &Passing,
) -> Vec<Value> {
    let mut targets: Vec<u32> = partings.iter().map(|parting| parting.rest).collect();
    for block in graph.order.iter().filter(|block| !passing.exchanges.contains_key(block)) {
        let terminator = &body.blocks[*block as usize].terminator;
        let suspends = matches!(terminator, Terminator::Suspend(..));
        let leaves = |edge: &&Edge| {
            suspends
                || graph.position[edge.block as usize].is_none()
                || parts.regions.number[edge.block as usize].is_some()
        };
        targets.extend(terminator.edges().filter(leaves).map(|edge| edge.block));
    }
    let mut saved = BTreeSet::new();
    for target in targets.into_iter().filter(|target| frames.needed.contains_key(target)) {
        let parameters = &body.blocks[target as usize].parameters;
        let values = frames.needed[&target].iter();
        saved.extend(values.filter(|value| !kept.contains(value) && !parameters.contains(value)));
    }
    saved.into_iter().collect()
}

/// An immediate for a vector of the private memory.
pub fn vector_at(offset: u64) -> MemArg {
    MemArg { offset, align: 4, memory_index: PRIVATE }
}
