//! A region of a body whose threads wait, as a function that runs it for lanes of one warp.
//!
//! ```text
//! region(base: linear index of the warp's first thread, pass: lanes to run) -> lanes that were run
//!   what is the same for all threads
//!   for each lane of `pass` that goes on in this region:
//!     load the values that it kept; run; keep the values that are needed later; note where it goes on and why it waits
//!   update the warp's record
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use wasm_encoder::{BlockType, InstructionSink, MemArg, ValType};

use super::module::{Functions, Parts, YIELDED};
use super::plan::Plan;
use super::schedule;
use super::structure::{self, Exits};
use super::unit::{Area, Code, PRIVATE, Unit};
use crate::translate::frame;
use crate::translate::graph::Graph;
use crate::translate::ir::{Access, Edge, Function, Inst, Kind, Memory, Suspension, Terminator, Value};
use crate::translate::liveness::{live_in, reads};
use crate::translate::regions::{Region, Regions};

/// Which values threads keep while they wait, and where in their frames.
pub struct Frames {
    /// Bytes of a frame.
    pub bytes: u32,
    /// By block, for heads of regions: the values that are needed from there on, parameters included.
    needed: HashMap<u32, Vec<Value>>,
    offsets: HashMap<Value, u32>,
}

impl Frames {
    /// Values that are never needed at the same head may lie at the same place.
    pub fn new(body: &Function, exchange: u32, regions: &Regions, uniform: &[bool]) -> Self {
        let whole = Graph::of(body);
        let live = live_in(body, &whole, |value| !uniform[value.0 as usize]);
        let mut needed = HashMap::new();
        let mut heads_of: HashMap<Value, Vec<u32>> = HashMap::new();
        for region in &regions.regions {
            let parameters = &body.blocks[region.head as usize].parameters;
            let values: Vec<Value> = live[region.head as usize].iter().chain(parameters).copied().collect();
            for value in &values {
                heads_of.entry(*value).or_default().push(region.head);
            }
            needed.insert(region.head, values);
        }
        let mut values: Vec<Value> = heads_of.keys().copied().collect();
        // Those of 8 bytes first, so that all lie at multiples of their size.
        values.sort_unstable_by_key(|value| (std::cmp::Reverse(body.kind(*value).bytes()), *value));
        let mut taken: HashMap<u32, HashSet<u32>> = HashMap::new();
        let mut offsets = HashMap::new();
        let start = (call_area(exchange) + body.call_area).next_multiple_of(8);
        let mut end = start;
        for value in values {
            let bytes = body.kind(value).bytes();
            let free = |offset: u32| {
                let words = [offset, offset + bytes - 4];
                heads_of[&value]
                    .iter()
                    .all(|head| taken.get(head).is_none_or(|taken| words.iter().all(|word| !taken.contains(word))))
            };
            let mut offset = start;
            while !free(offset) {
                offset += bytes;
            }
            for head in &heads_of[&value] {
                taken.entry(*head).or_default().extend([offset, offset + bytes - 4]);
            }
            end = end.max(offset + bytes);
            offsets.insert(value, offset);
        }
        Self { bytes: end.next_multiple_of(16), needed, offsets }
    }

    fn access(&self, value: Value, kind: Kind) -> Access {
        let offset = u64::from(self.offsets.get(&value).copied().unwrap_or(frame::VALUE));
        Access {
            memory: Memory::Private,
            bytes: kind.bytes(),
            signed: false,
            offset,
            atomic: false,
            exclusive: false,
            constant: false,
        }
    }
}

/// Where in a frame the call area begins.
fn call_area(exchange: u32) -> u32 {
    (frame::EXCHANGE + exchange).next_multiple_of(16)
}

/// Locals of a region's function.
#[derive(Clone, Copy)]
struct Locals {
    frame: u32,
    lane: u32,
    bit: u32,
    executed: u32,
    exited: u32,
    meeting: u32,
    waiting: u32,
}

/// What is done where a region ends.
struct RegionExits<'a> {
    parts: &'a Parts<'a>,
    frames: &'a Frames,
    region: &'a Region,
    locals: Locals,
    /// Values that still are in the frame as they were when the thread came here.
    kept: HashSet<Value>,
    /// By barrier and what is said of those who come, the local with their lanes.
    arrivals: RefCell<BTreeMap<(u32, u32), u32>>,
    /// For what lanes meet others; none where it is known only when they do.
    purposes: RefCell<HashSet<Option<(u32, u64)>>>,
}

/// Adds the function of each region.
pub fn add<'a>(functions: &mut Functions, parts: &'a Parts<'a>, frames: &'a Frames) {
    for region in &parts.regions.regions {
        add_one(functions, parts, frames, region);
    }
}

/// What of the frame a region reads, and what may be left there as it is when it ends.
fn loads(body: &Function, frames: &Frames, regions: &Regions, region: &Region) -> (Vec<Value>, HashSet<Value>) {
    let needed = &frames.needed[&region.head];
    let defined: HashSet<Value> = region
        .graph
        .order
        .iter()
        .flat_map(|block| body.blocks[*block as usize].insts.iter().chain(&body.blocks[*block as usize].parameters))
        .copied()
        .collect();
    // A loop may come by the definition of such a value again.
    let kept: HashSet<Value> = needed.iter().copied().filter(|value| !defined.contains(value)).collect();
    let mut read: HashSet<Value> = HashSet::new();
    for block in &region.graph.order {
        read.extend(reads(body, *block));
        for edge in body.blocks[*block as usize].terminator.edges() {
            let suspends = matches!(body.blocks[*block as usize].terminator, Terminator::Suspend(..));
            let leaves = suspends || (regions.number[edge.block as usize].is_some() && edge.block != region.head);
            if leaves {
                read.extend(frames.needed[&edge.block].iter().filter(|value| !kept.contains(value)));
            }
        }
    }
    (needed.iter().copied().filter(|value| read.contains(value)).collect(), kept)
}

/// Values that are kept when the region ends and that it does not read otherwise in their own block.
fn saved(body: &Function, frames: &Frames, regions: &Regions, region: &Region, kept: &HashSet<Value>) -> Vec<Value> {
    let mut saved = HashSet::new();
    for block in &region.graph.order {
        let terminator = &body.blocks[*block as usize].terminator;
        let suspends = matches!(terminator, Terminator::Suspend(..));
        for edge in terminator.edges() {
            if suspends || (regions.number[edge.block as usize].is_some() && edge.block != region.head) {
                let parameters = &body.blocks[edge.block as usize].parameters;
                saved.extend(
                    frames.needed[&edge.block]
                        .iter()
                        .filter(|value| !kept.contains(value) && !parameters.contains(value)),
                );
            }
        }
    }
    let mut saved: Vec<Value> = saved.into_iter().collect();
    saved.sort_unstable();
    saved
}

fn add_one<'a>(functions: &mut Functions, parts: &'a Parts<'a>, frames: &'a Frames, region: &'a Region) {
    let body = &parts.program.body;
    let (loaded, kept) = loads(body, frames, parts.regions, region);
    let saved = saved(body, frames, parts.regions, region, &kept);
    let plan = Plan::new(body, &region.graph, parts.uniform, &loaded, &saved);
    let number = parts.regions.number[region.head as usize].unwrap_or(0);
    let (base, pass) = (0, 1);
    let mut code = Code::new(2);
    let mut local = || code.local(ValType::I32);
    let linear = local();
    let packed = local();
    let locals = Locals {
        frame: local(),
        lane: local(),
        bit: local(),
        executed: local(),
        exited: local(),
        meeting: local(),
        waiting: local(),
    };
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.packed = Some(packed);
    unit.thread.frame = Some(locals.frame);
    unit.thread.call_area = Area { local: Some(locals.frame), offset: call_area(parts.program.exchange) };
    unit.thread.next_call_area = Area { local: None, offset: parts.layout.calls };
    unit.preamble();
    let mut sink = unit.sink();
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(pass).i32_eqz().br_if(1);
    sink.local_get(pass).i32_ctz().local_set(locals.lane);
    sink.local_get(pass).local_get(pass).i32_const(1).i32_sub().i32_and().local_set(pass);
    sink.local_get(base).local_get(locals.lane).i32_add().local_tee(linear);
    sink.i32_const(parts.frame_bytes as i32)
        .i32_mul()
        .i32_const(parts.layout.frames as i32)
        .i32_add()
        .local_tee(locals.frame);
    sink.i32_load(at(frame::RESUME)).i32_const(number as i32).i32_ne().br_if(0);
    sink.i32_const(1).local_get(locals.lane).i32_shl().local_tee(locals.bit);
    sink.local_get(locals.executed).i32_or().local_set(locals.executed);
    sink.local_get(locals.frame).i32_load(at(frame::PLACE)).local_set(packed);
    for value in loaded {
        load(&mut unit, frames, locals.frame, value);
    }
    let exits =
        RegionExits { parts, frames, region, locals, kept, arrivals: RefCell::default(), purposes: RefCell::default() };
    structure::write(&mut unit, &region.graph, parts.uniform, &exits);
    let alike = exits.purposes.borrow().len() == 1 && !exits.purposes.borrow().contains(&None);
    let mut sink = unit.sink();
    sink.end().end();
    for ((barrier, threads), lanes) in exits.arrivals.into_inner() {
        sink.local_get(lanes).if_(BlockType::Empty);
        sink.local_get(base)
            .i32_const(5)
            .i32_shr_u()
            .local_get(lanes)
            .i32_const(barrier as i32)
            .i32_const(threads as i32);
        sink.call(schedule::ARRIVE).end();
    }
    let record = |sink: &mut InstructionSink<'_>| {
        sink.local_get(base).i32_const(5).i32_shr_u().i32_const(4).i32_shl();
    };
    let of_warp = |offset: u32| at(parts.layout.warps + offset);
    for (offset, local) in [(frame::EXITED, locals.exited), (frame::MEETING, locals.meeting)] {
        record(&mut sink);
        record(&mut sink);
        sink.i32_load(of_warp(offset)).local_get(local).i32_or().i32_store(of_warp(offset));
    }
    if !exits.purposes.borrow().is_empty() {
        record(&mut sink);
        if alike {
            // Those who were there before may have come for something else.
            sink.local_get(locals.meeting).i32_const(0).local_get(locals.meeting);
            record(&mut sink);
            sink.i32_load(of_warp(frame::MEETING)).i32_eq().select();
        } else {
            sink.i32_const(0);
        }
        sink.i32_store(of_warp(frame::ALIKE));
    }
    record(&mut sink);
    record(&mut sink);
    sink.i32_load(of_warp(frame::READY));
    sink.local_get(locals.exited).local_get(locals.meeting).i32_or().local_get(locals.waiting).i32_or();
    sink.i32_const(-1).i32_xor().i32_and().i32_store(of_warp(frame::READY));
    sink.local_get(locals.executed);
    functions.add(&[ValType::I32, ValType::I32], &[ValType::I32], unit.code);
}

fn load(unit: &mut Unit<'_>, frames: &Frames, frame: u32, value: Value) {
    let kind = unit.function.kind(value);
    let access = frames.access(value, kind);
    let local = unit.local_of(value);
    let at = super::ops::memarg(access);
    let mut sink = unit.sink();
    sink.local_get(frame);
    match kind {
        Kind::I32 => sink.i32_load(at),
        Kind::I64 => sink.i64_load(at),
        Kind::F32 => sink.v128_load32_zero(at),
        Kind::F64 => sink.f64_load(at),
    };
    sink.local_set(local);
}

/// An immediate for 4 bytes in the private memory.
pub fn at(offset: u32) -> MemArg {
    MemArg { offset: u64::from(offset), align: 2, memory_index: PRIVATE }
}

impl RegionExits<'_> {
    /// Keeps what is needed where the thread goes on, and notes where that is.
    fn keep(&self, unit: &mut Unit<'_>, edge: &Edge) {
        let body = unit.function;
        let parameters = &body.blocks[edge.block as usize].parameters;
        for value in &self.frames.needed[&edge.block] {
            let argument = match parameters.iter().position(|parameter| parameter == value) {
                Some(index) => edge.arguments[index],
                None if self.kept.contains(value) => continue,
                None => *value,
            };
            let kind = body.kind(*value);
            unit.sink().local_get(self.locals.frame);
            unit.value(argument);
            unit.store(self.frames.access(*value, kind), kind);
        }
        let number = self.parts.regions.number[edge.block as usize].unwrap_or(0);
        unit.sink().local_get(self.locals.frame).i32_const(number as i32).i32_store(at(frame::RESUME));
    }

    fn note(&self, unit: &mut Unit<'_>, local: u32) {
        unit.sink().local_get(local).local_get(self.locals.bit).i32_or().local_set(local);
    }

    fn put(&self, unit: &mut Unit<'_>, offset: u32, value: Value) {
        unit.sink().local_get(self.locals.frame);
        unit.value(value);
        unit.sink().i32_store(at(offset));
    }

    /// Counts the thread at a barrier. Where all is known beforehand, only its lane is noted: the region counts such lanes together.
    fn arrive(&self, unit: &mut Unit<'_>, barrier: Value, threads: Value, predicate: Option<Value>, waits: bool) {
        let said = if waits { schedule::WAITS } else { 0 } | if predicate.is_some() { schedule::REDUCES } else { 0 };
        let known = |value: Value| match unit.function.inst(value) {
            Inst::Const(bits) => Some(*bits as u32),
            _ => None,
        };
        if let (Some(barrier), Some(threads), None) = (known(barrier), known(threads), predicate) {
            let key = (barrier, threads & 0xffff | said << 16);
            let local = *self.arrivals.borrow_mut().entry(key).or_insert_with(|| unit.code.fresh(ValType::I32));
            self.note(unit, local);
            return;
        }
        let (linear, bit) = (unit.thread.linear, self.locals.bit);
        unit.sink().local_get(linear).i32_const(5).i32_shr_u().local_get(bit);
        unit.value(barrier);
        unit.value(threads);
        unit.sink().i32_const(0xffff).i32_and().i32_const((said << 16) as i32).i32_or();
        if let Some(predicate) = predicate {
            unit.value(predicate);
            unit.sink().i32_const(schedule::HOLDS.trailing_zeros() as i32 + 16).i32_shl().i32_or();
        }
        unit.sink().call(schedule::ARRIVE);
    }

    /// Notes for what a lane meets others: if all come alike, nobody need compare them.
    fn purpose(&self, unit: &Unit<'_>, purpose: u32, mask: Option<Value>, number: u32) {
        let mask = match mask {
            None => Some(u64::from(number)),
            Some(mask) => match unit.function.inst(mask) {
                Inst::Const(bits) => Some(*bits),
                _ => None,
            },
        };
        self.purposes.borrow_mut().insert(mask.map(|mask| (purpose, mask)));
    }
}

impl Exits for RegionExits<'_> {
    fn leaves(&self, block: u32) -> bool {
        self.parts.regions.number[block as usize].is_some() && block != self.region.head
    }

    fn hop(&self, unit: &mut Unit<'_>, edge: &Edge, depth: u32) {
        self.keep(unit, edge);
        unit.sink().br(depth);
    }

    fn suspend(&self, unit: &mut Unit<'_>, suspension: &Suspension, edge: &Edge, depth: u32) {
        match suspension {
            Suspension::Yield => {
                unit.sink().i32_const(1).global_set(YIELDED);
            }
            Suspension::Barrier { barrier, threads, predicate } => {
                self.arrive(unit, *barrier, *threads, *predicate, true);
                self.note(unit, self.locals.waiting);
            }
            Suspension::Arrival { barrier, threads } => self.arrive(unit, *barrier, *threads, None, false),
            Suspension::Meeting { purpose, mask, value, source } => {
                let number = self.parts.regions.number[edge.block as usize].unwrap_or(0);
                self.purpose(unit, *purpose, *mask, number);
                unit.sink().local_get(self.locals.frame).i32_const(*purpose as i32).i32_store(at(frame::PURPOSE));
                match mask {
                    Some(mask) => self.put(unit, frame::MASK, *mask),
                    None => {
                        // Those who come to the same place find each other by its number.
                        unit.sink().local_get(self.locals.frame).i32_const(number as i32).i32_store(at(frame::MASK));
                    }
                }
                if let Some(value) = value {
                    unit.sink().local_get(self.locals.frame);
                    unit.value(*value);
                    unit.sink().i64_store(MemArg { offset: u64::from(frame::VALUE), align: 3, memory_index: PRIVATE });
                }
                if let Some(source) = source {
                    self.put(unit, frame::SOURCE, *source);
                }
                self.note(unit, self.locals.meeting);
            }
        }
        self.keep(unit, edge);
        unit.sink().br(depth);
    }

    fn finish(&self, unit: &mut Unit<'_>, _: Option<Value>, depth: u32) {
        self.note(unit, self.locals.exited);
        unit.sink().br(depth);
    }
}
