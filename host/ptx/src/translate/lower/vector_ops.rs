//! One operation of the intermediate form for four lanes.
//!
//! Operations on `F32` are vector instructions for one thread already, so their code is the same; what has no vector instruction, or one that might differ in
//! the bits of a NaN, is done lane by lane with the code for one thread.

use super::ops::memarg;
use super::unit::Unit;
use super::vector::{EVEN_WORDS, LOWER_HALVES, ODD_WORDS, Part, UPPER_HALF};
use crate::translate::frame;
use crate::translate::ir::{Access, Binary, Input, Inst, Kind, Memory, Unary, Value};
use crate::translate::lanes::{LANES, Shape};

impl Unit<'_> {
    /// Puts the result of an instruction on the stack, if it has one: a scalar, a vector or two.
    pub fn vector(&mut self, value: Value) {
        let definition = &self.function.values[value.0 as usize];
        let line = definition.kind.is_some() && matches!(self.shape(value), Shape::Line(_));
        let written = match &definition.inst {
            Inst::Store(..) if self.some_run() => {
                self.masked_store(value);
                true
            }
            Inst::Load(..) if self.some_run() && !line => {
                self.masked_load(value);
                true
            }
            _ if line => {
                self.is_one(value);
                self.expression(value);
                true
            }
            Inst::Unary(op, a) => self.vector_unary(*op, *a),
            Inst::Binary(op, a, b) => self.vector_binary(value, *op, *a, *b),
            Inst::Fma(a, b, c) => self.vector_fma(value, [*a, *b, *c]),
            Inst::Select(condition, yes, no) => self.vector_select(value, *condition, [*yes, *no]),
            Inst::Call(routine, arguments) => self.vector_call(*routine, arguments),
            Inst::Load(access, address) => {
                self.vector_load(value, *access, *address) || self.scattered(value, *access, *address, None)
            }
            Inst::Store(access, address, stored) => {
                self.vector_store(value, *access, *address, *stored)
                    || self.scattered(value, *access, *address, Some(*stored))
            }
            _ => false,
        };
        if !written {
            self.each_lane(value);
        }
    }

    /// Both halves of a value of 64 bits, each computed by what `write` puts behind its operands.
    fn halves(&mut self, operands: &[Value], write: fn(&mut wasm_encoder::InstructionSink<'_>)) {
        for half in 0..2 {
            operands.iter().for_each(|operand| self.half(*operand, half));
            write(&mut self.sink());
        }
    }

    fn vector_unary(&mut self, op: Unary, a: Value) -> bool {
        match (op, self.function.kind(a)) {
            (
                Unary::Neg | Unary::Abs | Unary::Sqrt | Unary::Ceil | Unary::Floor | Unary::Trunc | Unary::Nearest,
                Kind::F32,
            )
            | (Unary::Flush | Unary::Canonical | Unary::Saturate, Kind::F32) => {
                self.with_part(Part::Words, |unit| unit.unary(op, a));
            }
            (Unary::Reinterpret, Kind::I32 | Kind::F32) => self.words(a),
            (Unary::Reinterpret, _) => self.halves(&[a], |_| {}),
            (Unary::IsZero, Kind::I32) => {
                self.mask(a);
                self.sink().v128_not();
            }
            (Unary::Extend8 | Unary::Extend16, _) => {
                let places = if op == Unary::Extend8 { 24 } else { 16 };
                self.words(a);
                self.sink().i32_const(places).i32x4_shl().i32_const(places).i32x4_shr_s();
            }
            (Unary::Widen { signed }, _) => {
                self.words(a);
                self.words(a);
                // Both stay on the stack: the second is extended first.
                self.extend(signed, true);
                let upper = self.code.local(wasm_encoder::ValType::V128);
                self.sink().local_set(upper);
                self.extend(signed, false);
                self.sink().local_get(upper);
                self.code.release(upper);
            }
            (Unary::Wrap, _) => {
                self.half(a, 0);
                self.half(a, 1);
                self.sink().i8x16_shuffle(EVEN_WORDS);
            }
            (Unary::Promote, _) => {
                self.words(a);
                self.sink().f64x2_promote_low_f32x4();
                self.words(a);
                self.words(a);
                self.sink().i8x16_shuffle(UPPER_HALF).f64x2_promote_low_f32x4();
            }
            (Unary::Demote, _) => {
                self.halves(&[a], |sink| {
                    sink.f32x4_demote_f64x2_zero();
                });
                self.sink().i8x16_shuffle(LOWER_HALVES);
            }
            (Unary::ToFloat { to: Kind::F32, signed }, Kind::I32) => {
                self.words(a);
                let mut sink = self.sink();
                if signed {
                    sink.f32x4_convert_i32x4_s()
                } else {
                    sink.f32x4_convert_i32x4_u()
                };
            }
            (Unary::ToInteger { to: Kind::I32, signed }, Kind::F32) => {
                self.words(a);
                let mut sink = self.sink();
                if signed {
                    sink.i32x4_trunc_sat_f32x4_s()
                } else {
                    sink.i32x4_trunc_sat_f32x4_u()
                };
            }
            (Unary::Neg, Kind::F64) => self.halves(&[a], |sink| {
                sink.f64x2_neg();
            }),
            (Unary::Abs, Kind::F64) => self.halves(&[a], |sink| {
                sink.f64x2_abs();
            }),
            (Unary::Sqrt, Kind::F64) => self.halves(&[a], |sink| {
                sink.f64x2_sqrt();
            }),
            _ => return false,
        }
        true
    }

    fn extend(&mut self, signed: bool, upper: bool) {
        let mut sink = self.sink();
        match (signed, upper) {
            (true, false) => sink.i64x2_extend_low_i32x4_s(),
            (true, true) => sink.i64x2_extend_high_i32x4_s(),
            (false, false) => sink.i64x2_extend_low_i32x4_u(),
            (false, true) => sink.i64x2_extend_high_i32x4_u(),
        };
    }

    fn vector_binary(&mut self, value: Value, op: Binary, a: Value, b: Value) -> bool {
        let kind = self.function.kind(a);
        match kind {
            Kind::F32 if op.compares() => {
                self.words(a);
                self.words(b);
                let mut sink = self.sink();
                match op {
                    Binary::Ne => sink.f32x4_ne(),
                    Binary::Lt => sink.f32x4_lt(),
                    Binary::Le => sink.f32x4_le(),
                    _ => sink.f32x4_eq(),
                };
                true
            }
            Kind::F32 => {
                self.with_part(Part::Words, |unit| unit.binary(op, a, b));
                true
            }
            Kind::I32 if self.shape(value) == Shape::Mask && !op.compares() => {
                self.mask(a);
                self.mask(b);
                let mut sink = self.sink();
                match op {
                    Binary::And => sink.v128_and(),
                    Binary::Or => sink.v128_or(),
                    _ => sink.v128_xor(),
                };
                true
            }
            Kind::I32 => self.words_binary(op, a, b),
            Kind::I64 => self.longs_binary(op, a, b),
            Kind::F64 => self.doubles_binary(op, a, b),
        }
    }

    fn words_binary(&mut self, op: Binary, a: Value, b: Value) -> bool {
        let shifts = matches!(op, Binary::Shl | Binary::ShrS | Binary::ShrU | Binary::Rotl);
        if shifts {
            return self.words_shift(op, a, b);
        }
        if matches!(op, Binary::DivS | Binary::DivU | Binary::RemS | Binary::RemU) {
            self.words_divided(op, a, b);
            return true;
        }
        self.words(a);
        self.words(b);
        let mut sink = self.sink();
        match op {
            Binary::Add => sink.i32x4_add(),
            Binary::Sub => sink.i32x4_sub(),
            Binary::Mul => sink.i32x4_mul(),
            Binary::And => sink.v128_and(),
            Binary::Or => sink.v128_or(),
            Binary::Xor => sink.v128_xor(),
            Binary::Ne => sink.i32x4_ne(),
            Binary::LtS => sink.i32x4_lt_s(),
            Binary::LtU => sink.i32x4_lt_u(),
            Binary::LeS => sink.i32x4_le_s(),
            Binary::LeU => sink.i32x4_le_u(),
            _ => sink.i32x4_eq(),
        };
        true
    }

    /// Divides as numbers of 64 bits with a fraction, two at a time. A quotient that is not whole is further from the next whole number than it is rounded: by 1 of at most 2³² parts, and not of
    /// 2⁵³. Nothing is divided by 0, and a quotient by -1 is not asked for; for a rest, the divisor's sign does not count.
    fn words_divided(&mut self, op: Binary, a: Value, b: Value) {
        let signed = matches!(op, Binary::DivS | Binary::RemS);
        let rest = matches!(op, Binary::RemS | Binary::RemU);
        let divisor = self.code.local(wasm_encoder::ValType::V128);
        self.words(b);
        if op == Binary::RemS {
            self.sink().i32x4_abs();
        }
        self.sink().local_set(divisor);
        if rest {
            self.words(a);
        }
        for upper in [false, true] {
            for dividend in [true, false] {
                for _ in 0..if upper { 2 } else { 1 } {
                    if dividend {
                        self.words(a);
                    } else {
                        self.sink().local_get(divisor);
                    }
                }
                if upper {
                    self.sink().i8x16_shuffle(UPPER_HALF);
                }
                let mut sink = self.sink();
                if signed {
                    sink.f64x2_convert_low_i32x4_s()
                } else {
                    sink.f64x2_convert_low_i32x4_u()
                };
            }
            let mut sink = self.sink();
            sink.f64x2_div();
            if signed {
                sink.i32x4_trunc_sat_f64x2_s_zero()
            } else {
                sink.i32x4_trunc_sat_f64x2_u_zero()
            };
        }
        self.sink().i8x16_shuffle(LOWER_HALVES);
        if rest {
            self.sink().local_get(divisor).i32x4_mul().i32x4_sub();
        }
        self.code.release(divisor);
    }

    /// Vectors are shifted by one number for all lanes.
    fn words_shift(&mut self, op: Binary, a: Value, places: Value) -> bool {
        if self.shape(places) != Shape::SAME {
            return false;
        }
        self.words(a);
        self.base(places);
        let mut sink = self.sink();
        match op {
            Binary::ShrS => sink.i32x4_shr_s(),
            Binary::ShrU => sink.i32x4_shr_u(),
            _ => sink.i32x4_shl(),
        };
        if op == Binary::Rotl {
            // What comes in from the other end. Amounts are taken modulo the width.
            self.words(a);
            self.sink().i32_const(0);
            self.base(places);
            self.sink().i32_sub().i32x4_shr_u().v128_or();
        }
        true
    }

    fn longs_binary(&mut self, op: Binary, a: Value, b: Value) -> bool {
        match op {
            Binary::Add => self.halves(&[a, b], |sink| {
                sink.i64x2_add();
            }),
            Binary::Sub => self.halves(&[a, b], |sink| {
                sink.i64x2_sub();
            }),
            Binary::Mul => self.halves(&[a, b], |sink| {
                sink.i64x2_mul();
            }),
            Binary::And => self.halves(&[a, b], |sink| {
                sink.v128_and();
            }),
            Binary::Or => self.halves(&[a, b], |sink| {
                sink.v128_or();
            }),
            Binary::Xor => self.halves(&[a, b], |sink| {
                sink.v128_xor();
            }),
            Binary::Shl | Binary::ShrS | Binary::ShrU if self.shape(b) == Shape::SAME => {
                for half in 0..2 {
                    self.half(a, half);
                    self.base(b);
                    let mut sink = self.sink();
                    sink.i32_wrap_i64();
                    match op {
                        Binary::Shl => sink.i64x2_shl(),
                        Binary::ShrS => sink.i64x2_shr_s(),
                        _ => sink.i64x2_shr_u(),
                    };
                }
            }
            Binary::Eq => self.compared(a, b, |sink| {
                sink.i64x2_eq();
            }),
            Binary::Ne => self.compared(a, b, |sink| {
                sink.i64x2_ne();
            }),
            Binary::LtS => self.compared(a, b, |sink| {
                sink.i64x2_lt_s();
            }),
            Binary::LeS => self.compared(a, b, |sink| {
                sink.i64x2_le_s();
            }),
            _ => return false,
        }
        true
    }

    fn doubles_binary(&mut self, op: Binary, a: Value, b: Value) -> bool {
        match op {
            Binary::Add => self.halves(&[a, b], |sink| {
                sink.f64x2_add();
            }),
            Binary::Sub => self.halves(&[a, b], |sink| {
                sink.f64x2_sub();
            }),
            Binary::Mul => self.halves(&[a, b], |sink| {
                sink.f64x2_mul();
            }),
            Binary::Div => self.halves(&[a, b], |sink| {
                sink.f64x2_div();
            }),
            Binary::Eq => self.compared(a, b, |sink| {
                sink.f64x2_eq();
            }),
            Binary::Ne => self.compared(a, b, |sink| {
                sink.f64x2_ne();
            }),
            Binary::Lt => self.compared(a, b, |sink| {
                sink.f64x2_lt();
            }),
            Binary::Le => self.compared(a, b, |sink| {
                sink.f64x2_le();
            }),
            _ => return false,
        }
        true
    }

    /// A mask from comparisons of 64 bits.
    fn compared(&mut self, a: Value, b: Value, write: fn(&mut wasm_encoder::InstructionSink<'_>)) {
        self.halves(&[a, b], write);
        self.sink().i8x16_shuffle(EVEN_WORDS);
    }

    fn vector_fma(&mut self, value: Value, operands: [Value; 3]) -> bool {
        if self.function.kind(value) == Kind::F32 {
            operands.into_iter().for_each(|operand| self.words(operand));
            self.sink().f32x4_relaxed_madd();
        } else {
            self.halves(&operands, |sink| {
                sink.f64x2_relaxed_madd();
            });
        }
        true
    }

    pub fn vector_select(&mut self, value: Value, condition: Value, [yes, no]: [Value; 2]) -> bool {
        let parts: &[Part] =
            if self.shape(value) == Shape::Pair { &[Part::Half(0), Part::Half(1)] } else { &[Part::Words] };
        for part in parts {
            self.part_of(yes, *part);
            self.part_of(no, *part);
            if self.shape(condition) == Shape::SAME {
                self.base(condition);
                self.sink().typed_select(wasm_encoder::ValType::V128);
                continue;
            }
            self.mask(condition);
            if let Part::Half(half) = part {
                self.extend(true, *half == 1);
            }
            self.sink().v128_bitselect();
        }
        true
    }

    /// Neighbouring elements in one access. It lies within what the lanes would have read; an address that wraps round is that of a first lane far beyond the
    /// memory.
    pub fn vector_load(&mut self, value: Value, access: Access, address: Value) -> bool {
        if let Some(received) = self.received(access, address) {
            self.sink().local_get(received);
            return true;
        }
        let Shape::Line(stride) = self.shape(address) else { return false };
        if stride != i64::from(access.bytes) {
            return false;
        }
        let position = self.function.values[value.0 as usize].position;
        let kind = self.function.kind(value);
        let at = self.of_group(access, address);
        match (kind, access.bytes) {
            (Kind::I32 | Kind::F32, 4) => {
                self.base(address);
                self.index(access);
                self.code.mark(position);
                self.sink().v128_load(at);
            }
            (Kind::I32, 2) => {
                self.base(address);
                self.index(access);
                self.code.mark(position);
                let mut sink = self.sink();
                if access.signed {
                    sink.v128_load16x4_s(at)
                } else {
                    sink.v128_load16x4_u(at)
                };
            }
            (Kind::I64 | Kind::F64, 8) => {
                for half in 0..2 {
                    self.base(address);
                    self.index(access);
                    self.code.mark(position);
                    let at = wasm_encoder::MemArg { offset: at.offset + 16 * half, ..at };
                    self.sink().v128_load(at);
                }
            }
            _ => return false,
        }
        true
    }

    /// Elements anywhere in a memory with addresses of 32 bits: what [`Self::index`] makes of an address, for all lanes at once.
    fn scattered(&mut self, value: Value, access: Access, address: Value, stored: Option<Value>) -> bool {
        if access.memory != Memory::Device || self.parts.wide || self.shape(address) != Shape::Pair {
            return false;
        }
        let definition = &self.function.values[value.0 as usize];
        let kind = stored.map_or(definition.kind, |stored| Some(self.function.kind(stored)));
        let indices = self.code.local(wasm_encoder::ValType::V128);
        for words in [EVEN_WORDS, ODD_WORDS] {
            self.half(address, 0);
            self.half(address, 1);
            self.sink().i8x16_shuffle(words);
        }
        self.sink().v128_const(0).i32x4_ne().v128_or().local_set(indices);
        self.lane_by_lane(value, |unit, lane| {
            unit.sink().local_get(indices).i32x4_extract_lane(lane as u8);
            if let Some(stored) = stored {
                unit.part_of(stored, Part::Lane(lane));
            }
            unit.code.mark(definition.position);
            match stored {
                Some(_) => unit.store(access, kind.unwrap_or(Kind::I32)),
                None => unit.load(access, kind.unwrap_or(Kind::I32)),
            }
        });
        self.code.release(indices);
        true
    }

    /// Where the present group's part of neighbouring elements begins.
    fn of_group(&self, access: Access, address: Value) -> wasm_encoder::MemArg {
        let at = memarg(access);
        let from_first = match self.function.inst(address) {
            Inst::Input(Input::Frame) => self.place(0) / LANES * self.parts.frames.group_bytes(),
            _ => self.place(0) * access.bytes,
        };
        wasm_encoder::MemArg { offset: at.offset + u64::from(from_first), ..at }
    }

    /// The local with what lanes got from each other, where it is read from their frames otherwise.
    fn received(&self, access: Access, address: Value) -> Option<u32> {
        let lanes = self.lanes.as_ref()?;
        if !matches!(self.function.inst(address), Inst::Input(Input::Frame)) {
            return None;
        }
        let result = u64::from(self.parts.frames.offset(frame::RESULT));
        lanes.received.get(lanes.group() as usize)?[usize::from(access.offset != result)]
    }

    pub fn vector_store(&mut self, value: Value, access: Access, address: Value, stored: Value) -> bool {
        let Shape::Line(stride) = self.shape(address) else { return false };
        if stride != i64::from(access.bytes) {
            return false;
        }
        let position = self.function.values[value.0 as usize].position;
        let kind = self.function.kind(stored);
        let at = self.of_group(access, address);
        match (kind, access.bytes) {
            (Kind::I32 | Kind::F32, 4) => {
                self.base(address);
                self.index(access);
                self.words(stored);
                self.code.mark(position);
                self.sink().v128_store(at);
            }
            (Kind::I64 | Kind::F64, 8) => {
                for half in 0..2 {
                    self.base(address);
                    self.index(access);
                    self.half(stored, half);
                    self.code.mark(position);
                    let at = wasm_encoder::MemArg { offset: at.offset + 16 * u64::from(half), ..at };
                    self.sink().v128_store(at);
                }
            }
            _ => return false,
        }
        true
    }
}
