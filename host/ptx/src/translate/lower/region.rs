//! A region of a body whose threads wait, as a function that runs it for lanes of one warp.
//!
//! ```text
//! region(base: linear index of the warp's first thread, pass: lanes to run) -> lanes that were run
//!   what is the same for all threads
//!   for each lane of `pass` that goes on in this region:
//!     load the values that it kept; run; keep the values that are needed later; note where it goes on and why it waits
//!   update the warp's record
//! ```

use std::collections::HashSet;

use wasm_encoder::{BlockType, MemArg, ValType};

use super::frames::{Frames, call_area, place};
use super::module::{Functions, Parts, YIELDED};
use super::outcome::Outcome;
use super::plan::Plan;
use super::schedule;
use super::structure::{self, Exits};
use super::unit::{Area, Code, PRIVATE, Unit};
use crate::translate::frame;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Kind, Suspension, Terminator, Value};
use crate::translate::liveness::reads;
use crate::translate::meeting;
use crate::translate::regions::{Region, Regions};

/// Where a thread's values lie: locals with addresses.
#[derive(Clone, Copy)]
struct Places {
    /// Its frame: of what has four bytes.
    frame: u32,
    /// The same of what has eight bytes.
    wide: u32,
}

impl Places {
    fn of(self, kind: Kind) -> u32 {
        if kind.bytes() == 8 { self.wide } else { self.frame }
    }
}

/// What is done where a region ends.
struct RegionExits<'a> {
    parts: &'a Parts<'a>,
    frames: &'a Frames,
    region: &'a Region,
    places: Places,
    outcome: Outcome,
    /// Values that still are in the frame as they were when the thread came here.
    kept: HashSet<Value>,
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
    let kept = kept(body, frames, region.head, &region.graph);
    let mut read: HashSet<Value> = HashSet::new();
    for block in &region.graph.order {
        read.extend(reads(body, *block));
        for edge in body.blocks[*block as usize].terminator.edges() {
            let suspends = matches!(body.blocks[*block as usize].terminator, Terminator::Suspend(..));
            let leaves = suspends || regions.leaves(region.head, region.parted, edge.block);
            if leaves {
                read.extend(frames.needed[&edge.block].iter().filter(|value| !kept.contains(value)));
            }
        }
    }
    (needed.iter().copied().filter(|value| read.contains(value)).collect(), kept)
}

/// Values of the frame that stay there as they are while a region runs.
pub fn kept(body: &Function, frames: &Frames, head: u32, graph: &Graph) -> HashSet<Value> {
    let blocks = graph.order.iter().map(|block| &body.blocks[*block as usize]);
    let defined: HashSet<Value> =
        blocks.flat_map(|block| block.insts.iter().chain(&block.parameters)).copied().collect();
    // A loop may come by the definition of such a value again.
    frames.needed[&head].iter().copied().filter(|value| !defined.contains(value)).collect()
}

/// Values that are kept when the region ends and that it does not read otherwise in their own block.
fn saved(body: &Function, frames: &Frames, regions: &Regions, region: &Region, kept: &HashSet<Value>) -> Vec<Value> {
    let mut saved = HashSet::new();
    for block in &region.graph.order {
        let terminator = &body.blocks[*block as usize].terminator;
        let suspends = matches!(terminator, Terminator::Suspend(..));
        for edge in terminator.edges() {
            if suspends || regions.leaves(region.head, region.parted, edge.block) {
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
    let (base, pass) = (0, 1);
    let mut code = Code::new(2);
    let outcome = Outcome::new(&mut code);
    let [linear, packed, lane, frame] = [0; 4].map(|_| code.fresh(ValType::I32));
    let wide = if parts.frames.grouped { code.fresh(ValType::I32) } else { frame };
    let places = Places { frame, wide };
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.packed = Some(packed);
    unit.thread.frame = Some(frame);
    unit.thread.call_area = Area { local: Some(frame), offset: call_area(parts.program.exchange) };
    unit.thread.next_call_area = Area { local: None, offset: parts.layout.calls };
    unit.preamble();
    let of_frame = |offset: u32| at(parts.frames.offset(offset));
    let mut sink = unit.sink();
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(pass).i32_eqz().br_if(1);
    sink.local_get(pass).i32_ctz().local_set(lane);
    sink.local_get(pass).local_get(pass).i32_const(1).i32_sub().i32_and().local_set(pass);
    sink.local_get(base).local_get(lane).i32_add().local_set(linear);
    place(&mut sink, parts.frames, linear);
    sink.i32_const(parts.layout.frames as i32).i32_add().local_tee(frame);
    sink.i32_load(of_frame(frame::RESUME)).i32_const(frame::NUMBER as i32).i32_and();
    sink.i32_const(region.number as i32).i32_ne().br_if(0);
    sink.i32_const(1).local_get(lane).i32_shl().local_tee(outcome.running);
    sink.local_get(outcome.executed).i32_or().local_set(outcome.executed);
    sink.local_get(frame).i32_load(of_frame(frame::PLACE)).local_set(packed);
    if wide != frame {
        sink.local_get(linear).i32_const(3).i32_and().i32_const(2).i32_shl();
        sink.local_get(frame).i32_add().local_set(wide);
    }
    for value in loaded {
        load(&mut unit, frames, places, value);
    }
    let exits = RegionExits { parts, frames, region, places, outcome, kept };
    structure::write(&mut unit, &region.graph, parts.uniform, &exits);
    unit.sink().end().end();
    exits.outcome.tell(&mut unit.code, parts, base);
    unit.sink().local_get(exits.outcome.executed);
    functions.add(&[ValType::I32, ValType::I32], &[ValType::I32], unit.code);
}

fn load(unit: &mut Unit<'_>, frames: &Frames, places: Places, value: Value) {
    let kind = unit.function.kind(value);
    let access = frames.access(value, kind);
    let local = unit.local_of(value);
    let at = super::ops::memarg(access);
    let mut sink = unit.sink();
    sink.local_get(places.of(kind));
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
            unit.sink().local_get(self.places.of(kind));
            unit.value(argument);
            unit.store(self.frames.access(*value, kind), kind);
        }
        let number = self.parts.regions.number[edge.block as usize].unwrap_or(0);
        self.put(unit, frame::RESUME, |unit| {
            unit.sink().i32_const(number as i32);
        });
    }

    /// Writes four bytes of the frame's header.
    fn put(&self, unit: &mut Unit<'_>, offset: u32, value: impl FnOnce(&mut Unit<'_>)) {
        unit.sink().local_get(self.places.frame);
        value(unit);
        let offset = self.parts.frames.offset(offset);
        unit.sink().i32_store(at(offset));
    }

    /// Counts the thread at a barrier. Where all is known beforehand, only its lane is noted: the region counts such lanes together.
    fn arrive(&self, unit: &mut Unit<'_>, barrier: Value, threads: Value, predicate: Option<Value>, waits: bool) {
        let said = if waits { schedule::WAITS } else { 0 } | if predicate.is_some() { schedule::REDUCES } else { 0 };
        if predicate.is_none() && self.outcome.arrives(unit, barrier, threads, said) {
            return;
        }
        let linear = unit.thread.linear;
        unit.sink().local_get(linear).i32_const(5).i32_shr_u().local_get(self.outcome.running);
        unit.value(barrier);
        unit.value(threads);
        unit.sink().i32_const(0xffff).i32_and().i32_const((said << 16) as i32).i32_or();
        if let Some(predicate) = predicate {
            unit.value(predicate);
            unit.sink().i32_const(schedule::HOLDS.trailing_zeros() as i32 + 16).i32_shl().i32_or();
        }
        unit.sink().call(schedule::ARRIVE);
    }

    /// What a lane brings to a meeting.
    fn bring(&self, unit: &mut Unit<'_>, purpose: u32, value: Value) {
        let offset = frame::VALUE;
        if !self.parts.frames.grouped {
            unit.sink().local_get(self.places.frame);
            unit.value(value);
            unit.sink().i64_store(MemArg { offset: u64::from(offset), align: 3, memory_index: PRIVATE });
            return;
        }
        self.put(unit, offset, |unit| {
            unit.value(value);
            unit.sink().i32_wrap_i64();
        });
        if purpose == meeting::MATCH {
            self.put(unit, offset + 4, |unit| {
                unit.value(value);
                unit.sink().i64_const(32).i64_shr_u().i32_wrap_i64();
            });
        }
    }
}

impl Exits for RegionExits<'_> {
    fn leaves(&self, block: u32) -> bool {
        self.parts.regions.leaves(self.region.head, self.region.parted, block)
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
                self.outcome.note(&mut unit.code, self.outcome.waiting);
            }
            Suspension::Arrival { barrier, threads } => self.arrive(unit, *barrier, *threads, None, false),
            Suspension::Meeting { purpose, mask, value, source } => {
                let number = self.parts.regions.number[edge.block as usize].unwrap_or(0);
                self.outcome.purpose(unit, *purpose, *mask, number);
                self.put(unit, frame::PURPOSE, |unit| {
                    unit.sink().i32_const(*purpose as i32);
                });
                self.put(unit, frame::MASK, |unit| match mask {
                    Some(mask) => unit.value(*mask),
                    // Those who come to the same place find each other by its number.
                    None => {
                        unit.sink().i32_const(number as i32);
                    }
                });
                if let Some(value) = value {
                    self.bring(unit, *purpose, *value);
                }
                if let Some(source) = source {
                    self.put(unit, frame::SOURCE, |unit| unit.value(*source));
                }
                self.outcome.note(&mut unit.code, self.outcome.meeting);
            }
        }
        self.keep(unit, edge);
        unit.sink().br(depth);
    }

    fn finish(&self, unit: &mut Unit<'_>, _: Option<Value>, depth: u32) {
        self.outcome.note(&mut unit.code, self.outcome.exited);
        unit.sink().br(depth);
    }
}
