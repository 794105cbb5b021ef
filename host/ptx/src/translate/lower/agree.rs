//! Whether lanes agree: on a branch, and on whether a line is one.

use wasm_encoder::{BlockType, ValType};

use super::unit::Unit;
use super::vector::{Lanes, Part};
use crate::translate::ir::{Binary, Inst, Kind, Unary, Value};
use crate::translate::lanes::{LANES, Shape};
use crate::translate::lazy::Decision;

impl<'a> Unit<'a> {
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
        self.each_group(|unit| {
            unit.mask(value);
            unit.sink().i32x4_bitmask();
            let place = unit.place(0);
            if place > 0 {
                unit.sink().i32_const(place as i32).i32_shl().i32_or();
            }
        });
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

    /// Whether threads may part in front of a line, and do not begin again.
    pub fn may_part(&self, line: Value) -> bool {
        let asked =
            matches!(self.function.inst(line), Inst::Unary(Unary::Widen { .. }, operand) if self.stride(*operand) != 0);
        asked && self.lanes.as_ref().is_some_and(|lanes| !lanes.gives_up)
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
        self.sink().if_(BlockType::Empty);
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
}
