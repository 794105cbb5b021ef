//! A region of a body whose threads wait, for groups of four threads of a warp as the lanes of vectors.
//!
//! ```text
//! lockstep(base: linear index of the warp's first thread, pass: lanes to run) -> lanes that were run
//!   what is the same for all threads
//!   for each group with a lane in `pass`:
//!     if all four go on in this region, and what should be lines in their frames is:
//!       load the vectors that they kept; run; keep the vectors that are needed later; note where they go on and why they wait
//!       where they part (see `parting`): keep, and call the region of threads that begins there
//!     else: call the region of threads for them
//!   update the warp's record
//! ```
//!
//! Threads that part go on at once, one by one, until they wait. So whatever has an effect that depends on the order happens in the same order as if all threads ran alone.
//!
//! A value is held here in the shape that it has as long as threads do not part (see [`crate::translate::lanes`]). That threads which parted come back with values that have none,
//! because they went different ways, is seen when they are loaded: lines are compared with what all four kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use wasm_encoder::{BlockType, MemArg, ValType};

use super::exchange::{self, Chain};
use super::frames::{Frames, place};
use super::module::{Functions, GROUPED, Parts, YIELDED};
use super::outcome::Outcome;
use super::plan::Plan;
use super::region::{at, kept};
use super::schedule;
use super::structure::{self, Exits};
use super::unit::{Code, PRIVATE, Unit};
use super::vector::{EVEN_WORDS, Lanes, ODD_WORDS};
use crate::translate::frame;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Kind, Suspension, Terminator, Value};
use crate::translate::lanes::{LANES, Shape};
use crate::translate::liveness::reads;
use crate::translate::meeting;
use crate::translate::parting::Lockstep;
use crate::translate::regions::{Regions, inside};

/// A region as groups run it.
pub struct Wide {
    /// Its number.
    pub number: u32,
    head: u32,
    /// Its blocks.
    pub graph: Graph,
}

/// The regions that groups run: those where all threads begin or go on, and those where threads meet again that parted.
pub fn regions(lockstep: &Lockstep, regions: &Regions, chains: &[Chain]) -> Vec<Wide> {
    let body = &lockstep.body;
    let rests: HashSet<u32> = lockstep.partings.iter().map(|parting| parting.rest).collect();
    // A whole warp never goes on within a chain of exchanges.
    let passed: HashSet<u32> = chains.iter().flat_map(Chain::passed).collect();
    let begins =
        regions.regions.iter().filter(|region| !passed.contains(&region.head) && !rests.contains(&region.head));
    let wide = begins.map(|region| {
        let leaves = |block: u32| rests.contains(&block) || regions.leaves(region.head, false, block);
        let graph = Graph::new(body.blocks.len(), region.head, |from| inside(body, from, leaves));
        Wide { number: region.number, head: region.head, graph }
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

/// What is done where a region ends.
struct LockstepExits<'a> {
    parts: &'a Parts<'a>,
    frames: &'a Frames,
    head: u32,
    /// By block, the number of the region of threads behind a parting.
    rests: &'a HashMap<u32, u32>,
    /// Local with the address of the group's frame.
    frame: u32,
    /// Local with the first lane.
    lane: u32,
    outcome: Outcome,
    /// Values that still are in the frame as they were when the group came here.
    kept: HashSet<Value>,
    /// Labels between the unit and the end of the group's turn.
    labels: u32,
    /// By where threads go on after an exchange that whole warps do at once: its function.
    exchanges: &'a HashMap<u32, u32>,
    /// Of those that are made here, the function and a local with the lanes that have come.
    made: RefCell<BTreeMap<u32, u32>>,
}

/// Locals in the order of the parameters.
const BASE: u32 = 0;
const PASS: u32 = 1;

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
    let kept = kept(body, frames, region.head, &region.graph);
    // Where it may part, in the order of the labels.
    let partings: Vec<_> = lockstep
        .partings
        .iter()
        .filter(|parting| !parting.always && region.graph.position[parting.block as usize].is_some())
        .collect();
    let labels: HashMap<(u32, usize), u32> =
        partings.iter().enumerate().map(|(label, parting)| ((parting.block, parting.index), label as u32)).collect();
    let saved = saved(lockstep, parts, frames, region, &kept, partings.iter().map(|parting| parting.rest));
    let mut read: HashSet<Value> = saved.iter().copied().collect();
    for block in &region.graph.order {
        read.extend(reads(body, *block));
    }
    let loaded: Vec<Value> = frames.needed[&region.head].iter().copied().filter(|value| read.contains(value)).collect();
    let plan = Plan::for_lockstep(body, &region.graph, parts.uniform, [&loaded, &saved]);
    let mut code = Code::new(2);
    let outcome = Outcome::new(&mut code);
    let [linear, packed, lane, frame, here] = [0; 5].map(|_| code.fresh(ValType::I32));
    let alone = parts.first_region + region.number;
    code.sink().global_get(GROUPED).i32_eqz().if_(BlockType::Empty);
    code.sink().local_get(BASE).local_get(PASS).call(alone).return_().end();
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.packed = Some(packed);
    unit.thread.frame = Some(frame);
    unit.lanes = Some(Lanes::parting(&lockstep.found, labels));
    unit.preamble();
    let exits = LockstepExits {
        parts,
        frames,
        head: region.head,
        rests: &rests,
        frame,
        lane,
        outcome,
        kept,
        labels: partings.len() as u32 + 1,
        exchanges,
        made: RefCell::default(),
    };
    let mut sink = unit.sink();
    sink.loop_(BlockType::Empty).block(BlockType::Empty);
    sink.local_get(PASS).i32_ctz().i32_const(-(LANES as i32)).i32_and().local_set(lane);
    sink.i32_const((1 << LANES) - 1).local_get(lane).i32_shl().local_tee(exits.outcome.running);
    sink.local_get(PASS).i32_and().local_set(here);
    sink.local_get(PASS).local_get(exits.outcome.running).i32_const(-1).i32_xor().i32_and().local_set(PASS);
    sink.local_get(BASE).local_get(lane).i32_add().local_set(linear);
    place(&mut sink, parts.frames, linear);
    sink.i32_const(parts.layout.frames as i32).i32_add().local_set(frame);
    sink.block(BlockType::Empty);
    sink.local_get(here).local_get(exits.outcome.running).i32_ne().br_if(0);
    exits.enter(&mut unit, packed, region.number, &loaded);
    exits.outcome.note(&mut unit.code, exits.outcome.executed);
    for _ in &partings {
        unit.sink().block(BlockType::Empty);
    }
    structure::write(&mut unit, &region.graph, parts.uniform, &exits);
    for (label, parting) in partings.iter().enumerate() {
        unit.sink().end();
        exits.part(&mut unit, parting.rest);
        unit.sink().br((partings.len() - label) as u32);
    }
    let mut sink = unit.sink();
    sink.end();
    sink.local_get(BASE).local_get(here).call(alone);
    sink.local_get(exits.outcome.executed).i32_or().local_set(exits.outcome.executed);
    sink.end().local_get(PASS).br_if(0).end();
    exits.exchange(&mut unit.code);
    exits.outcome.tell(&mut unit.code, parts, BASE);
    functions.add(&[ValType::I32, ValType::I32], &[ValType::I32], unit.code);
}

/// Values that are written to the frame where the region ends or the group parts.
fn saved(
    lockstep: &Lockstep,
    parts: &Parts<'_>,
    frames: &Frames,
    region: &Wide,
    kept: &HashSet<Value>,
    rests: impl Iterator<Item = u32>,
) -> Vec<Value> {
    let body = &lockstep.body;
    let mut targets: Vec<u32> = rests.collect();
    for block in &region.graph.order {
        let terminator = &body.blocks[*block as usize].terminator;
        let suspends = matches!(terminator, Terminator::Suspend(..));
        let leaves = |edge: &&Edge| {
            suspends
                || region.graph.position[edge.block as usize].is_none()
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

impl LockstepExits<'_> {
    fn of_frame(&self, field: u32) -> MemArg {
        vector_at(u64::from(self.parts.frames.offset(field)))
    }

    /// Loads what the group kept; jumps out of the label round it if its threads do not go on here, or not as one.
    fn enter(&self, unit: &mut Unit<'_>, packed: u32, number: u32, loaded: &[Value]) {
        let resume = self.of_frame(frame::RESUME);
        let mut sink = unit.sink();
        sink.local_get(self.frame).v128_load(resume).i32_const(number as i32).i32x4_splat().i32x4_eq();
        sink.i32x4_all_true().i32_eqz().br_if(0);
        let place = at(self.parts.frames.offset(frame::PLACE));
        sink.local_get(self.frame).i32_load(place).local_set(packed);
        for value in loaded {
            self.load(unit, *value);
        }
        let lines: Vec<Value> =
            loaded.iter().copied().filter(|value| matches!(unit.shape(*value), Shape::Line(_))).collect();
        for (index, value) in lines.iter().enumerate() {
            self.compare(unit, *value);
            if index > 0 {
                unit.sink().v128_and();
            }
        }
        if !lines.is_empty() {
            unit.sink().i32x4_all_true().i32_eqz().br_if(0);
        }
    }

    fn load(&self, unit: &mut Unit<'_>, value: Value) {
        let kind = unit.function.kind(value);
        let offset = self.frames.access(value, kind).offset;
        let at = MemArg { offset, align: kind.bytes().trailing_zeros(), memory_index: PRIVATE };
        let shape = unit.shape(value);
        let local = unit.local_of(value);
        let second = if shape == Shape::Pair { Some(unit.second_of(value)) } else { None };
        let mut sink = unit.sink();
        sink.local_get(self.frame);
        match (shape, kind) {
            (Shape::Line(_), Kind::I32) => sink.i32_load(at),
            (Shape::Line(_), Kind::I64) => sink.i64_load(at),
            (Shape::Line(_), Kind::F32) => sink.v128_load32_zero(at),
            (Shape::Line(_), Kind::F64) => sink.f64_load(at),
            (Shape::Mask, _) => sink.v128_load(vector_at(offset)).i32x4_neg(),
            _ => sink.v128_load(vector_at(offset)),
        };
        sink.local_set(local);
        if let Some(second) = second {
            sink.local_get(self.frame).v128_load(vector_at(offset + 16)).local_set(second);
        }
    }

    /// Puts all ones on the stack where what is kept is the line that was loaded.
    fn compare(&self, unit: &mut Unit<'_>, value: Value) {
        let kind = unit.function.kind(value);
        let offset = self.frames.access(value, kind).offset;
        if kind.bytes() == 4 {
            unit.sink().local_get(self.frame).v128_load(vector_at(offset));
            unit.words(value);
            unit.sink().i32x4_eq();
            return;
        }
        for half in 0..2 {
            unit.sink().local_get(self.frame).v128_load(vector_at(offset + 16 * u64::from(half)));
            unit.half(value, half);
            // Of floats too, their bits.
            unit.sink().i64x2_eq();
        }
        unit.sink().v128_and();
    }

    /// Keeps a value, or what becomes a parameter, at its place in the frame.
    fn save(&self, unit: &mut Unit<'_>, slot: Value, value: Value) {
        let kind = unit.function.kind(slot);
        let offset = self.frames.access(slot, kind).offset;
        if kind.bytes() == 4 {
            unit.sink().local_get(self.frame);
            unit.words(value);
            unit.sink().v128_store(vector_at(offset));
            return;
        }
        for half in 0..2 {
            unit.sink().local_get(self.frame);
            unit.half(value, half);
            unit.sink().v128_store(vector_at(offset + 16 * u64::from(half)));
        }
    }

    /// Writes a word of the frames' header for all four.
    fn put(&self, unit: &mut Unit<'_>, field: u32, words: impl FnOnce(&mut Unit<'_>)) {
        unit.sink().local_get(self.frame);
        words(unit);
        let at = self.of_frame(field);
        unit.sink().v128_store(at);
    }

    fn put_number(&self, unit: &mut Unit<'_>, field: u32, number: u32) {
        self.put(unit, field, |unit| {
            let bits = (0..4).fold(0_u128, |bits, lane| bits | u128::from(number) << (32 * lane));
            unit.sink().v128_const(bits as i128);
        });
    }

    /// Keeps what is needed where the threads go on, and notes where that is.
    fn keep(&self, unit: &mut Unit<'_>, block: u32, arguments: &[Value], number: u32) {
        let parameters = &unit.function.blocks[block as usize].parameters;
        for value in &self.frames.needed[&block] {
            match parameters.iter().position(|parameter| parameter == value) {
                Some(index) => self.save(unit, *value, arguments[index]),
                None if self.kept.contains(value) => {}
                None => self.save(unit, *value, *value),
            }
        }
        self.put_number(unit, frame::RESUME, number);
    }

    /// The threads go on one by one, at once.
    fn part(&self, unit: &mut Unit<'_>, rest: u32) {
        let number = self.rests.get(&rest).copied().unwrap_or(0);
        self.keep(unit, rest, &[], number);
        let region = self.parts.first_region + number;
        unit.sink().local_get(BASE).local_get(self.outcome.running).call(region).drop();
    }

    fn arrive(&self, unit: &mut Unit<'_>, barrier: Value, threads: Value, predicate: Option<Value>, waits: bool) {
        let said = if waits { schedule::WAITS } else { 0 } | if predicate.is_some() { schedule::REDUCES } else { 0 };
        let Some(predicate) = predicate else {
            if !self.outcome.arrives(unit, barrier, threads, said) {
                self.call_arrive(unit, barrier, threads, said, self.outcome.running);
            }
            return;
        };
        // Those for whom the predicate holds, and the others.
        unit.mask(predicate);
        let lanes = unit.code.local(ValType::I32);
        unit.sink().i32x4_bitmask().local_get(self.lane).i32_shl().local_set(lanes);
        self.call_arrive(unit, barrier, threads, said | schedule::HOLDS, lanes);
        unit.sink().local_get(lanes).local_get(self.outcome.running).i32_xor().local_set(lanes);
        self.call_arrive(unit, barrier, threads, said, lanes);
        unit.code.release(lanes);
    }

    fn call_arrive(&self, unit: &mut Unit<'_>, barrier: Value, threads: Value, said: u32, lanes: u32) {
        unit.sink().local_get(BASE).i32_const(5).i32_shr_u().local_get(lanes);
        unit.base(barrier);
        unit.base(threads);
        unit.sink().i32_const(0xffff).i32_and().i32_const((said << 16) as i32).i32_or().call(schedule::ARRIVE);
    }

    /// What the lanes bring to a meeting: words, and for matches their upper halves.
    fn bring(&self, unit: &mut Unit<'_>, purpose: u32, value: Value) {
        if unit.function.kind(value).bytes() == 4 {
            self.put(unit, frame::VALUE, |unit| unit.words(value));
            return;
        }
        for (field, which) in [(frame::VALUE, EVEN_WORDS), (frame::VALUE + 4, ODD_WORDS)] {
            if field == frame::VALUE || purpose == meeting::MATCH {
                self.put(unit, field, |unit| {
                    unit.half(value, 0);
                    unit.half(value, 1);
                    unit.sink().i8x16_shuffle(which);
                });
            }
        }
    }

    fn meet(&self, unit: &mut Unit<'_>, suspension: &Suspension, number: u32) {
        let Suspension::Meeting { purpose, mask, value, source } = suspension else { return };
        self.outcome.purpose(unit, *purpose, *mask, number);
        self.put_number(unit, frame::PURPOSE, *purpose);
        match mask {
            Some(mask) => self.put(unit, frame::MASK, |unit| unit.words(*mask)),
            // Those who come to the same place find each other by its number.
            None => self.put_number(unit, frame::MASK, number),
        }
        if let Some(value) = value {
            self.bring(unit, *purpose, *value);
        }
        if let Some(source) = source {
            self.put(unit, frame::SOURCE, |unit| unit.words(*source));
        }
    }

    /// Whole warps that have come to an exchange do it now; others wait for those that are missing.
    fn exchange(&self, code: &mut Code) {
        let mut sink = code.sink();
        for (function, lanes) in &*self.made.borrow() {
            sink.local_get(*lanes).i32_const(-1).i32_eq().if_(BlockType::Empty).local_get(BASE).call(*function);
            sink.else_()
                .local_get(*lanes)
                .local_get(self.outcome.meeting)
                .i32_or()
                .local_set(self.outcome.meeting)
                .end();
        }
    }
}

impl Exits for LockstepExits<'_> {
    fn leaves(&self, block: u32) -> bool {
        self.rests.contains_key(&block) || self.parts.regions.leaves(self.head, false, block)
    }

    fn hop(&self, unit: &mut Unit<'_>, edge: &Edge, depth: u32) {
        match self.parts.regions.number[edge.block as usize] {
            Some(number) => self.keep(unit, edge.block, &edge.arguments, number),
            None => self.part(unit, edge.block),
        }
        unit.sink().br(depth + self.labels);
    }

    fn suspend(&self, unit: &mut Unit<'_>, suspension: &Suspension, edge: &Edge, depth: u32) {
        let number = self.parts.regions.number[edge.block as usize].unwrap_or(0);
        match suspension {
            Suspension::Yield => {
                unit.sink().i32_const(1).global_set(YIELDED);
            }
            Suspension::Barrier { barrier, threads, predicate } => {
                self.arrive(unit, *barrier, *threads, *predicate, true);
                self.outcome.note(&mut unit.code, self.outcome.waiting);
            }
            Suspension::Arrival { barrier, threads } => self.arrive(unit, *barrier, *threads, None, false),
            Suspension::Meeting { .. } => {
                self.meet(unit, suspension, number);
                let lanes = match self.exchanges.get(&edge.block) {
                    Some(function) => {
                        *self.made.borrow_mut().entry(*function).or_insert_with(|| unit.code.fresh(ValType::I32))
                    }
                    None => self.outcome.meeting,
                };
                self.outcome.note(&mut unit.code, lanes);
            }
        }
        self.keep(unit, edge.block, &edge.arguments, number);
        unit.sink().br(depth + self.labels);
    }

    fn finish(&self, unit: &mut Unit<'_>, _: Option<Value>, depth: u32) {
        self.outcome.note(&mut unit.code, self.outcome.exited);
        unit.sink().br(depth + self.labels);
    }
}
