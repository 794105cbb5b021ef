//! The values of a unit that runs four threads at once, or several times four, in the shapes that [`crate::translate::lanes`] gives them.
//!
//! What an operation reads of its operands is a [`Part`]: so the code for one thread serves the lines (their base), and lane by lane everything that vectors lack.

use std::collections::HashMap;

use wasm_encoder::ValType;

use super::exchange::Received;
use super::unit::{Locals, Unit};
use crate::translate::ir::{Inst, Kind, Value};
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
    /// Of a function whose arguments are vectors, the first local of each.
    arguments: Vec<u32>,
}

impl<'a> Lanes<'a> {
    /// Before anything is written.
    pub fn new(found: &'a Shapes) -> Self {
        Self::parting(found, HashMap::new())
    }

    /// For a function whose arguments are vectors, with the first local of each.
    pub fn of_arguments(found: &'a Shapes, arguments: Vec<u32>) -> Self {
        Self { arguments, ..Self::new(found) }
    }

    /// The first local of an argument.
    pub fn argument(&self, index: u32) -> u32 {
        self.arguments.get(index as usize).copied().unwrap_or(index)
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
            arguments: Vec::new(),
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

    /// Does something for each group.
    pub fn each_group(&mut self, mut each: impl FnMut(&mut Self)) {
        for group in 0..self.group_count() {
            self.turn_to(group);
            each(self);
        }
        self.turn_to(0);
    }

    /// Notes the locals where all of a value's lanes of the present group belong.
    pub fn targets(&mut self, value: Value, targets: &mut Vec<u32>) {
        targets.push(self.local_of(value));
        if self.locals_of(value) > 1 {
            targets.push(self.second_of(value));
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
            let local = match (self.function.inst(value), &self.lanes) {
                (Inst::Argument(index), Some(lanes)) => lanes.argument(*index) + half,
                _ if half == 0 => self.local_of(value),
                _ => self.second_of(value),
            };
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

    /// Makes a value of what the code for one thread computes for each lane.
    pub fn each_lane(&mut self, value: Value) {
        self.lane_by_lane(value, |unit, lane| unit.with_part(Part::Lane(lane), |unit| unit.expression(value)));
    }

    /// Makes a value of what is put on the stack for each lane, if it has one.
    pub fn lane_by_lane(&mut self, value: Value, mut write: impl FnMut(&mut Self, u32)) {
        let Some(kind) = self.function.values[value.0 as usize].kind else {
            (0..LANES).for_each(|lane| write(self, lane));
            return;
        };
        for lane in 0..LANES {
            write(self, lane);
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
