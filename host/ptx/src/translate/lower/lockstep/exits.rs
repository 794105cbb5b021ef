//! What is done where groups of a region begin and end.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use wasm_encoder::{BlockType, MemArg, ValType};

use super::super::exchange::Received;
use super::super::frames::Frames;
use super::super::module::{Parts, YIELDED};
use super::super::outcome::Outcome;
use super::super::region::at;
use super::super::schedule;
use super::super::structure::Exits;
use super::super::unit::{Code, PRIVATE, Unit};
use super::super::vector::{EVEN_WORDS, ODD_WORDS};
use super::{BASE, Passing, vector_at};
use crate::translate::frame;
use crate::translate::ir::{Edge, Kind, Suspension, Value};
use crate::translate::lanes::{LANES, Shape};
use crate::translate::meeting;

/// What is done where a region ends.
#[derive(Clone)]
pub struct LockstepExits<'a> {
    pub parts: &'a Parts<'a>,
    pub frames: &'a Frames,
    pub head: u32,
    /// By block, the number of the region of threads behind a parting.
    pub rests: &'a HashMap<u32, u32>,
    /// Local with the address of the first group's frame.
    pub frame: u32,
    /// Local with the first lane.
    pub lane: u32,
    /// Local with what is noted of threads that go on elsewhere: that they ran together.
    pub together: u32,
    pub outcome: &'a Outcome,
    /// Values that still are in the frame as they were when the groups came here.
    pub kept: HashSet<Value>,
    /// Labels between the unit and the end of the turn.
    pub labels: u32,
    /// By where threads go on after an exchange that whole warps do at once: its function.
    pub exchanges: &'a HashMap<u32, u32>,
    /// Of those that are made here, the function and a local with the lanes that have come.
    pub made: &'a RefCell<BTreeMap<u32, u32>>,
    /// Where those that run side by side exchange something and go on at once.
    pub passing: &'a Passing,
}

impl LockstepExits<'_> {
    /// How far the present group's frame is behind the first one's.
    fn group_offset(&self, unit: &Unit<'_>) -> u64 {
        u64::from(unit.place(0) / LANES * self.parts.frames.group_bytes())
    }

    fn of_frame(&self, unit: &Unit<'_>, field: u32) -> MemArg {
        vector_at(u64::from(self.parts.frames.offset(field)) + self.group_offset(unit))
    }

    /// Loads what the groups kept; jumps out of the label round it if their threads do not go on here, or not as one.
    pub fn enter(&self, unit: &mut Unit<'_>, packed: u32, number: u32, loaded: &[Value]) {
        let (group, all) = (frame::TOGETHER, frame::TOGETHER | frame::SIDE_BY_SIDE);
        let side_by_side = unit.group_count() > 1;
        // Groups that ran side by side before ran as groups too.
        let (read, expected) = if side_by_side { (u32::MAX, all) } else { (!frame::SIDE_BY_SIDE, group) };
        self.go_on_at(unit, read, number | expected);
        unit.sink().if_(BlockType::Empty).i32_const(expected as i32).local_set(self.together).else_();
        self.go_on_at(unit, frame::NUMBER, number);
        unit.sink().i32_eqz().br_if(1);
        self.compare_all(unit);
        if side_by_side {
            // Of what is a line of each group and not of all, nothing was compared.
            self.go_on_at(unit, frame::NUMBER | group, number | group);
            unit.sink().i32_const(group.trailing_zeros() as i32).i32_shl();
            unit.sink().i32_const(frame::SIDE_BY_SIDE as i32).i32_or();
        } else {
            unit.sink().i32_const(group as i32);
        }
        let mut sink = unit.sink();
        sink.local_set(self.together).end();
        let place = at(self.parts.frames.offset(frame::PLACE));
        sink.local_get(self.frame).i32_load(place).local_set(packed);
        for value in loaded {
            if matches!(unit.shape(*value), Shape::Line(_)) {
                self.load(unit, *value);
            } else {
                unit.each_group(|unit| self.load(unit, *value));
            }
        }
    }

    /// Puts on the stack whether these bits of where all threads go on are such.
    fn go_on_at(&self, unit: &mut Unit<'_>, bits: u32, expected: u32) {
        unit.each_group(|unit| {
            let resume = self.of_frame(unit, frame::RESUME);
            let first = unit.place(0) == 0;
            let mut sink = unit.sink();
            sink.local_get(self.frame).v128_load(resume);
            if bits != u32::MAX {
                sink.i32_const(bits as i32).i32x4_splat().v128_and();
            }
            sink.i32_const(expected as i32).i32x4_splat().i32x4_eq();
            if !first {
                sink.v128_and();
            }
        });
        unit.sink().i32x4_all_true();
    }

    /// Jumps out of the second label where threads, some of which came here by themselves, kept something that is no line as it should be: of all that is needed from here on.
    fn compare_all(&self, unit: &mut Unit<'_>) {
        let needed = self.frames.needed[&self.head].iter();
        let lines: Vec<Value> = needed.copied().filter(|value| matches!(unit.shape(*value), Shape::Line(_))).collect();
        let mut compared = false;
        for value in lines {
            self.load(unit, value);
            unit.each_group(|unit| {
                self.compare(unit, value);
                if std::mem::replace(&mut compared, true) {
                    unit.sink().v128_and();
                }
            });
        }
        if compared {
            unit.sink().i32x4_all_true().i32_eqz().br_if(1);
        }
    }

    fn load(&self, unit: &mut Unit<'_>, value: Value) {
        let kind = unit.function.kind(value);
        let offset = self.frames.access(value, kind).offset + self.group_offset(unit);
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
        let offset = self.frames.access(value, kind).offset + self.group_offset(unit);
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
        unit.each_group(|unit| self.save_group(unit, slot, value));
    }

    fn save_group(&self, unit: &mut Unit<'_>, slot: Value, value: Value) {
        let kind = unit.function.kind(slot);
        let offset = self.frames.access(slot, kind).offset + self.group_offset(unit);
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

    /// Writes a word of the frames' header for all.
    fn put(&self, unit: &mut Unit<'_>, field: u32, mut words: impl FnMut(&mut Unit<'_>)) {
        unit.each_group(|unit| {
            unit.sink().local_get(self.frame);
            words(unit);
            let at = self.of_frame(unit, field);
            unit.sink().v128_store(at);
        });
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
        self.put(unit, frame::RESUME, |unit| {
            unit.sink().local_get(self.together).i32_const(number as i32).i32_or().i32x4_splat();
        });
    }

    /// The threads go on at once, one by one or, if several groups part, as groups where there is code for that.
    pub fn part(&self, unit: &mut Unit<'_>, rest: u32) {
        let number = self.rests.get(&rest).copied().unwrap_or(0);
        self.keep(unit, rest, &[], number);
        let of_groups = self.parts.lockstep.iter().position(|own| *own == number).filter(|_| unit.group_count() > 1);
        let region = of_groups.map_or(self.parts.first_region + number, |own| self.parts.first_lockstep + own as u32);
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
        let lanes = unit.code.local(ValType::I32);
        unit.lanes_where(predicate);
        unit.sink().local_get(self.lane).i32_shl().local_set(lanes);
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
    pub fn exchange(&self, code: &mut Code) {
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
        let head = self.parts.regions.leaves(self.head, false, block) && !self.passing.behind.contains(&block);
        self.rests.contains_key(&block) || head
    }

    fn passes(&self, block: u32) -> bool {
        self.passing.exchanges.contains_key(&block)
    }

    fn pass(&self, unit: &mut Unit<'_>, block: u32) {
        let (exchange, value) = &self.passing.exchanges[&block];
        let mut words = Vec::new();
        unit.each_group(|unit| {
            let word = unit.code.local(ValType::V128);
            unit.words(*value);
            unit.sink().local_set(word);
            words.push(word);
        });
        let received: Vec<Received> = exchange.add(&mut unit.code, &words);
        words.into_iter().for_each(|word| unit.code.release(word));
        let next = unit.function.blocks[block as usize].terminator.edges().next();
        if let (Some(next), Some(lanes)) = (next, &mut unit.lanes) {
            lanes.received_at.insert(next.block, received);
        }
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
