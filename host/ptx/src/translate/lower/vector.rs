//! The values of a unit that runs four threads at once, in the shapes that [`crate::translate::lanes`] gives them.
//!
//! What an operation reads of its operands is a [`Part`]: so the code for one thread serves the lines (their base), and lane by lane everything that vectors lack.

use std::collections::HashMap;

use wasm_encoder::ValType;

use super::exchange::Received;
use super::unit::{Locals, Unit};
use crate::translate::ir::{Binary, Inst, Kind, Unary, Value};
use crate::translate::lanes::{LANES, Shape, Shapes};
use crate::translate::lazy::Decision;
use crate::translate::masking::Masked;
use crate::translate::parting::SideBySide;

/// What of a value is put on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Of a line: the first lane's.
    Base,
    /// All four lanes, of 32 bits each.
    Words,
    /// Two lanes of 64 bits: the first two or the last two.
    Half(u32),
    /// One lane's, as a thread by itself would have it.
    Lane(u32),
}

/// What a unit needs to run four threads at once, or several times four side by side.
pub struct Lanes<'a> {
    /// How each value is held.
    pub shapes: &'a [Shape],
    /// Branches whose side is run for some lanes only, where they do not agree.
    masked: &'a [Masked],
    /// While that is written, a local with a bit for each lane that runs.
    pub running: Option<u32>,
    /// How many groups stand side by side; a line is that of all their lanes.
    groups: u32,
    /// For which of them code is written.
    group: u32,
    /// By block, what decides the branch at its end without vectors.
    decisions: &'a [Option<Decision>],
    /// Whether what runs can be given up where only some lanes run.
    pub gives_up: bool,
    /// What is read of values at present.
    pub part: Part,
    /// Labels open within the unit; behind them are those of the places where the group parts.
    pub depth: u32,
    /// Where it parts: in front of which instruction of which block, and which label. Where none is named, it is the first.
    labels: HashMap<(u32, usize), u32>,
    /// Which instruction is written.
    pub at: (u32, usize),
    /// By group, what lanes got from each other where it does not come from their frames.
    pub received: Vec<Received>,
    /// The same for blocks that are still to be written.
    pub received_at: HashMap<u32, Vec<Received>>,
    /// The second locals of values of 64 bits.
    pub seconds: Locals,
}

impl<'a> Lanes<'a> {
    /// Before anything is written.
    pub fn new(found: &'a Shapes) -> Self {
        Self::parting(found, HashMap::new())
    }

    /// For so many groups side by side.
    pub fn side_by_side(side_by_side: &'a SideBySide) -> Self {
        Self { gives_up: true, ..Self::side_by_side_parting(side_by_side, HashMap::new()) }
    }

    /// What decides the branch at the end of a block without vectors.
    pub fn decision(&self, block: u32) -> Option<&'a Decision> {
        self.decisions.get(block as usize).and_then(Option::as_ref)
    }

    /// For several groups of a warp, with a label for each place where they part.
    pub fn side_by_side_parting(side_by_side: &'a SideBySide, labels: HashMap<(u32, usize), u32>) -> Self {
        let SideBySide { groups, found, decisions } = side_by_side;
        Self { groups: *groups, decisions, ..Self::parting(found, labels) }
    }

    /// With a label for each place where the group parts.
    pub fn parting(found: &'a Shapes, labels: HashMap<(u32, usize), u32>) -> Self {
        let (shapes, masked) = (&found.shapes, &found.masked);
        Self {
            shapes,
            masked,
            running: None,
            groups: 1,
            group: 0,
            decisions: &[],
            gives_up: false,
            part: Part::Base,
            depth: 0,
            labels,
            at: (0, 0),
            received: Vec::new(),
            received_at: HashMap::new(),
            seconds: HashMap::new(),
        }
    }

    /// The group for which code is written.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Whether a block ends with a branch whose side is run for some lanes only.
    pub fn masked(&self, block: u32) -> Option<Masked> {
        self.masked.iter().find(|masked| masked.branch == block).copied()
    }

    /// The label to jump to where the group parts in front of what is written.
    pub fn away(&self) -> u32 {
        self.depth + self.labels.get(&self.at).copied().unwrap_or(0)
    }

    /// Whether one scalar stands for all lanes.
    pub fn is_line(&self, value: Value) -> bool {
        matches!(self.shapes[value.0 as usize], Shape::Line(_))
    }
}

/// Four lanes of 32 bits as an immediate.
fn quad(lanes: impl Fn(u32) -> u32) -> i128 {
    (0..LANES).fold(0_u128, |bits, lane| bits | u128::from(lanes(lane)) << (32 * lane)) as i128
}

/// Two of 64.
fn double(lanes: impl Fn(u64) -> u64) -> i128 {
    (u128::from(lanes(0)) | u128::from(lanes(1)) << 64) as i128
}

/// The even words of two vectors, one behind the other.
pub const EVEN_WORDS: [u8; 16] = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
/// The odd ones.
pub const ODD_WORDS: [u8; 16] = [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31];
/// The lower halves of two vectors.
pub const LOWER_HALVES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
/// The upper half of a vector, twice.
pub const UPPER_HALF: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15];

impl<'a> Unit<'a> {
    /// How a value is held.
    pub fn shape(&self, value: Value) -> Shape {
        self.lanes.as_ref().map_or(Shape::SAME, |lanes| lanes.shapes[value.0 as usize])
    }

    /// How many groups stand side by side.
    pub fn group_count(&self) -> u32 {
        self.lanes.as_ref().map_or(1, |lanes| lanes.groups)
    }

    /// How many threads run at once.
    pub fn lane_count(&self) -> u32 {
        self.group_count() * LANES
    }

    /// Goes on writing for this group.
    pub fn turn_to(&mut self, group: u32) {
        if let Some(lanes) = &mut self.lanes {
            lanes.group = group;
        }
    }

    /// A value, and whose it is.
    pub fn slot(&self, value: Value) -> (Value, u32) {
        let group = self.lanes.as_ref().filter(|lanes| !lanes.is_line(value)).map_or(0, |lanes| lanes.group);
        (value, group)
    }

    /// How far a lane of the present group is behind the first of all.
    pub fn place(&self, lane: u32) -> u32 {
        self.lanes.as_ref().map_or(0, |lanes| lanes.group) * LANES + lane
    }

    /// How many locals a value has.
    pub fn locals_of(&self, value: Value) -> u32 {
        if self.shape(value) == Shape::Pair { 2 } else { 1 }
    }

    /// The local with the last two lanes of a pair.
    pub fn second_of(&mut self, value: Value) -> u32 {
        let slot = self.slot(value);
        let code = &mut self.code;
        let second =
            self.lanes.as_mut().map(|lanes| *lanes.seconds.entry(slot).or_insert_with(|| code.local(ValType::V128)));
        second.unwrap_or(0)
    }

    /// Does something with another part of the operands.
    pub fn with_part<T>(&mut self, part: Part, write: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.lanes.as_mut().map(|lanes| std::mem::replace(&mut lanes.part, part));
        let result = write(self);
        if let (Some(lanes), Some(before)) = (&mut self.lanes, before) {
            lanes.part = before;
        }
        result
    }

    /// Puts a part of a value on the stack.
    pub fn part_of(&mut self, value: Value, part: Part) {
        match part {
            Part::Base => self.scalar_value(value),
            Part::Words => self.words(value),
            Part::Half(half) => self.half(value, half),
            Part::Lane(lane) => self.lane(value, lane),
        }
    }

    /// The number that all lanes have, or the first lane's.
    pub fn base(&mut self, value: Value) {
        self.with_part(Part::Base, |unit| unit.scalar_value(value));
    }

    /// Four lanes of 32 bits; of predicates, 0 or 1.
    pub fn words(&mut self, value: Value) {
        match (self.shape(value), self.function.inst(value)) {
            (Shape::Line(_), Inst::Const(bits)) => {
                let bits = *bits as u32;
                self.sink().v128_const(quad(|_| bits));
            }
            (Shape::Line(stride), _) => {
                self.base(value);
                if self.function.kind(value) == Kind::F32 {
                    self.sink().f32x4_extract_lane(0).f32x4_splat();
                } else {
                    self.sink().i32x4_splat();
                }
                if stride != 0 {
                    let first = self.place(0);
                    self.sink().v128_const(quad(|lane| (stride as u32).wrapping_mul(first + lane))).i32x4_add();
                }
            }
            (Shape::Mask, _) => {
                self.base(value);
                self.sink().i32_const(31).i32x4_shr_u();
            }
            _ => self.base(value),
        }
    }

    /// Two lanes of 64 bits.
    pub fn half(&mut self, value: Value, half: u32) {
        let Shape::Line(stride) = self.shape(value) else {
            let local = if half == 0 { self.local_of(value) } else { self.second_of(value) };
            self.sink().local_get(local);
            return;
        };
        self.base(value);
        if self.function.kind(value) == Kind::F64 {
            self.sink().f64x2_splat();
        } else {
            self.sink().i64x2_splat();
        }
        if stride != 0 {
            let first = u64::from(self.place(2 * half));
            self.sink().v128_const(double(|lane| (stride as u64).wrapping_mul(first + lane))).i64x2_add();
        }
    }

    /// Four predicates as all ones or zeros: where a value is not 0.
    pub fn mask(&mut self, value: Value) {
        if self.shape(value) == Shape::Mask {
            self.base(value);
        } else {
            self.words(value);
            self.sink().v128_const(0).i32x4_ne();
        }
    }

    /// What a thread by itself would have on the stack.
    fn lane(&mut self, value: Value, lane: u32) {
        let kind = self.function.kind(value);
        let place = lane as u8;
        match (self.shape(value), kind) {
            (Shape::Line(stride), _) => {
                self.base(value);
                let distance = stride.wrapping_mul(i64::from(self.place(lane)));
                match kind {
                    _ if distance == 0 => {}
                    Kind::I64 => {
                        self.sink().i64_const(distance).i64_add();
                    }
                    _ => {
                        self.sink().i32_const(distance as i32).i32_add();
                    }
                }
            }
            (Shape::Pair, _) => {
                self.half(value, lane / 2);
                let mut sink = self.sink();
                if kind == Kind::F64 {
                    sink.f64x2_extract_lane(place % 2)
                } else {
                    sink.i64x2_extract_lane(place % 2)
                };
            }
            (_, Kind::F32) => {
                self.base(value);
                if lane > 0 {
                    self.sink().f32x4_extract_lane(place).f32x4_splat();
                }
            }
            _ => {
                self.words(value);
                self.sink().i32x4_extract_lane(place);
            }
        }
    }

    /// What a parameter of a block becomes, in the shape that it has.
    pub fn vector_argument(&mut self, parameter: Value, argument: Value) {
        match self.shape(parameter) {
            Shape::Line(_) => self.base(argument),
            Shape::Mask | Shape::Words => self.words(argument),
            Shape::Pair => {
                self.half(argument, 0);
                self.half(argument, 1);
            }
        }
    }

    /// The condition of a branch, the same for all lanes: if they do not agree, the group parts, or is given up.
    pub fn agreed(&mut self, condition: Value) {
        let away = self.lanes.as_ref().map_or(0, Lanes::away);
        if self.shape(condition) == Shape::SAME {
            self.base(condition);
            return;
        }
        if let Some(decision) = self.decision() {
            if self.splits(decision) {
                self.leave_undecided(condition, decision, away);
            }
            self.decided(condition);
            return;
        }
        if self.group_count() > 1 {
            self.agreed_by_groups(condition, away);
            return;
        }
        self.mask(condition);
        let bits = self.code.local(ValType::I32);
        // Neither none nor all of them.
        let mixed = (1 << LANES) - 2;
        self.sink().i32x4_bitmask().local_tee(bits).i32_const(1).i32_sub().i32_const(mixed).i32_lt_u().br_if(away);
        self.sink().local_get(bits);
        self.code.release(bits);
    }

    /// Puts a bit for each lane on the stack: where a value is not 0.
    pub fn lanes_where(&mut self, value: Value) {
        for group in 0..self.group_count() {
            self.turn_to(group);
            self.mask(value);
            self.sink().i32x4_bitmask();
            if group > 0 {
                self.sink().i32_const((group * LANES) as i32).i32_shl().i32_or();
            }
        }
        self.turn_to(0);
    }

    /// All lanes as such bits.
    pub fn all_lanes(&self) -> u32 {
        u32::MAX >> (u32::BITS - self.lane_count())
    }

    fn agreed_by_groups(&mut self, condition: Value, away: u32) {
        let [all, any] = [0; 2].map(|_| self.code.local(ValType::V128));
        for group in 0..self.group_count() {
            self.turn_to(group);
            for (local, is_first) in [(all, true), (any, false)] {
                self.mask(condition);
                if group > 0 {
                    let mut sink = self.sink();
                    sink.local_get(local);
                    if is_first {
                        sink.v128_and()
                    } else {
                        sink.v128_or()
                    };
                }
                self.sink().local_set(local);
            }
        }
        self.turn_to(0);
        let mut sink = self.sink();
        sink.local_get(all).i32x4_all_true().local_get(any).v128_any_true().i32_ne().br_if(away);
        sink.local_get(any).v128_any_true();
        [all, any].into_iter().for_each(|local| self.code.release(local));
    }

    /// Before a line is computed: lets the group part, or gives it up, where what it is made of would not be a line of its lanes after all.
    pub fn is_one(&mut self, line: Value) {
        if let Inst::Unary(Unary::Widen { signed }, operand) = self.function.inst(line)
            && self.wraps(*operand, *signed)
        {
            let away = self.lanes.as_ref().map_or(0, Lanes::away);
            self.sink().br_if(away);
        }
    }

    /// Where what is on the stack says so: to a label. What threads find who go on there one by one is computed before.
    fn leave_undecided(&mut self, condition: Value, decision: &Decision, away: u32) {
        if !self.plan.global[condition.0 as usize] {
            self.sink().br_if(away);
            return;
        }
        let block = self.lanes.as_ref().map_or(0, |lanes| lanes.at.0);
        self.sink().if_(wasm_encoder::BlockType::Empty);
        self.define_for_each_group(block, &decision.indices);
        self.sink().br(away + 1).end();
    }

    /// What decides the branch behind the block that is written, if no vectors do.
    pub fn decision(&self) -> Option<&'a Decision> {
        self.lanes.as_ref().and_then(|lanes| lanes.decision(lanes.at.0))
    }

    /// Puts on the stack whether lanes may disagree on one of the comparisons that decide a branch; nothing if they cannot.
    pub fn splits(&mut self, decision: &Decision) -> bool {
        let block = self.lanes.as_ref().map_or(0, |lanes| lanes.at.0);
        let mut any = false;
        for index in &decision.indices {
            let asked = match self.function.inst(self.function.blocks[block as usize].insts[*index]) {
                Inst::Binary(Binary::Eq | Binary::Ne, a, b) => self.meets(*a, *b),
                Inst::Binary(op, a, b) if op.compares() => self.changes(*op, *a, *b),
                _ => false,
            };
            if asked && any {
                self.sink().i32_or();
            }
            any |= asked;
        }
        any
    }

    /// Puts on the stack what a decision comes to if all lanes agree on all that it is made of.
    pub fn decided(&mut self, value: Value) {
        if self.shape(value) == Shape::SAME {
            self.base(value);
            return;
        }
        match self.function.inst(value) {
            Inst::Unary(_, a) => {
                self.decided(*a);
                self.sink().i32_eqz();
            }
            Inst::Binary(op @ (Binary::And | Binary::Or | Binary::Xor), a, b) => {
                self.decided(*a);
                self.decided(*b);
                let mut sink = self.sink();
                match op {
                    Binary::And => sink.i32_and(),
                    Binary::Or => sink.i32_or(),
                    _ => sink.i32_xor(),
                };
            }
            Inst::Binary(op, a, b) => self.with_part(Part::Base, |unit| unit.binary(*op, *a, *b)),
            _ => self.base(value),
        }
    }

    fn stride(&self, value: Value) -> i64 {
        if let Shape::Line(stride) = self.shape(value) { stride } else { 0 }
    }

    /// Puts on the stack whether a line wraps round, as a signed number or an unsigned one; nothing if it cannot.
    fn wraps(&mut self, line: Value, signed: bool) -> bool {
        let stride = self.stride(line);
        if stride == 0 {
            return false;
        }
        let reach = stride * i64::from(self.lane_count() - 1);
        self.base(line);
        if self.function.kind(line) == Kind::I64 {
            let (least, most) = if signed { (i64::MIN, i64::MAX) } else { (0, -1) };
            let mut sink = self.sink();
            match (reach > 0, signed) {
                (true, true) => sink.i64_const(most - reach).i64_gt_s(),
                (true, false) => sink.i64_const(most.wrapping_sub(reach)).i64_gt_u(),
                (false, true) => sink.i64_const(least - reach).i64_lt_s(),
                (false, false) => sink.i64_const(least - reach).i64_lt_u(),
            };
            return true;
        }
        let (least, most) = if signed { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (0, i64::from(u32::MAX)) };
        let mut sink = self.sink();
        match (reach > 0, signed) {
            (true, true) => sink.i32_const((most - reach) as i32).i32_gt_s(),
            (true, false) => sink.i32_const((most - reach) as u32 as i32).i32_gt_u(),
            (false, true) => sink.i32_const((least - reach) as i32).i32_lt_s(),
            (false, false) => sink.i32_const((least - reach) as u32 as i32).i32_lt_u(),
        };
        true
    }

    /// Puts on the stack whether two lines may be the same in some lane; nothing if their distance is the same in all.
    fn meets(&mut self, a: Value, b: Value) -> bool {
        let closer = self.stride(a) - self.stride(b);
        if closer == 0 {
            return false;
        }
        let (ahead, behind) = if closer > 0 { (b, a) } else { (a, b) };
        self.base(ahead);
        self.base(behind);
        let most = closer.abs() * i64::from(self.lane_count());
        let wide = self.function.kind(a) == Kind::I64;
        let mut sink = self.sink();
        if wide {
            sink.i64_sub().i64_const(most).i64_lt_u();
        } else {
            sink.i32_sub().i32_const(most as i32).i32_lt_u();
        }
        true
    }

    /// Puts on the stack whether a comparison may come out differently in two lanes: it does so in the first and the last, or a line wraps round. Nothing if it cannot.
    fn changes(&mut self, op: Binary, a: Value, b: Value) -> bool {
        if self.stride(a) == 0 && self.stride(b) == 0 {
            return false;
        }
        let last = Part::Lane(self.lane_count() - 1);
        for part in [Part::Base, last] {
            self.with_part(part, |unit| unit.binary(op, a, b));
        }
        self.sink().i32_ne();
        for line in [a, b] {
            if self.wraps(line, matches!(op, Binary::LtS | Binary::LeS)) {
                self.sink().i32_or();
            }
        }
        true
    }

    /// Makes a value of what the code for one thread computes for each lane.
    pub fn each_lane(&mut self, value: Value) {
        let Some(kind) = self.function.values[value.0 as usize].kind else {
            for lane in 0..LANES {
                self.with_part(Part::Lane(lane), |unit| unit.expression(value));
            }
            return;
        };
        for lane in 0..LANES {
            self.with_part(Part::Lane(lane), |unit| unit.expression(value));
            let place = lane as u8;
            let mut sink = self.sink();
            match (kind, place) {
                (Kind::I32, 0) => sink.i32x4_splat(),
                (Kind::I32, _) => sink.i32x4_replace_lane(place),
                (Kind::F32, 0) => &mut sink,
                (Kind::F32, _) => sink.f32x4_extract_lane(0).f32x4_replace_lane(place),
                (Kind::I64, 0 | 2) => sink.i64x2_splat(),
                (Kind::I64, _) => sink.i64x2_replace_lane(1),
                (Kind::F64, 0 | 2) => sink.f64x2_splat(),
                (Kind::F64, _) => sink.f64x2_replace_lane(1),
            };
        }
        if self.shape(value) == Shape::Mask {
            self.sink().i32x4_neg();
        }
    }
}
