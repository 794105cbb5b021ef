//! Conversions between types.

use super::body::Body;
use super::float::{direction, half_of, is_half};
use super::operand::kind;
use crate::module::{FloatMode, Op, Operand, Rounding, Type};
use crate::translate::error::Result;
use crate::translate::helper::{Direction, Format, Helper};
use crate::translate::ir::{Kind, Unary, Value};

impl Body<'_, '_> {
    pub(super) fn convert(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Convert { to, from, mode, rounding_given: _, dst, src, second } => {
                let value = match (half_of(*to), second) {
                    (Some(half), Some(second)) => {
                        let upper = self.converted(half, *from, *mode, src)?;
                        let lower = self.converted(half, *from, *mode, second)?;
                        self.packed(lower, upper)
                    }
                    _ => self.converted(*to, *from, *mode, src)?,
                };
                self.write(*dst, *to, value);
            }
            Op::ConvertPack { to, from, dst, a, b, c } => {
                let (a, b) = (self.operand(a, *from)?, self.operand(b, *from)?);
                let [a, b] = [a, b].map(|value| {
                    let value = self.saturated_integer(value, *from, *to);
                    self.narrow(value, super::operand::unsigned(*to))
                });
                let bits = self.b.i32(to.bits());
                let upper = self.b.shl(a, bits);
                let mut value = self.b.or(upper, b);
                if let Some(c) = c.as_ref().filter(|_| to.bits() == 8) {
                    let (c, sixteen) = (self.operand(c, Type::B32)?, self.b.i32(16));
                    let c = self.b.shl(c, sixteen);
                    value = self.b.or(c, value);
                }
                self.write(*dst, Type::B32, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn converted(&mut self, to: Type, from: Type, mode: FloatMode, src: &Operand) -> Result<Value> {
        let value = self.operand(src, from)?;
        Ok(match (from.is_float(), to.is_float()) {
            (false, false) => self.between_integers(value, from, to, mode.saturate),
            (false, true) => {
                let value = self.integer_to_float(value, from, to, mode.rounding);
                self.finished(to, mode, value)
            }
            (true, false) => self.float_to_integer(value, from, to, mode),
            (true, true) => self.between_floats(value, from, to, mode),
        })
    }

    fn between_integers(&mut self, value: Value, from: Type, to: Type, saturate: bool) -> Value {
        let value = if saturate { self.saturated_integer(value, from, to) } else { value };
        match (self.b.kind(value), kind(to)) {
            (Kind::I32, Kind::I64) => self.widen(value, from.is_signed()),
            (Kind::I64, Kind::I32) => self.b.unary(Unary::Wrap, value),
            _ => value,
        }
    }

    /// The nearest number of another integer type, in the kind of the first.
    fn saturated_integer(&mut self, value: Value, from: Type, to: Type) -> Value {
        let (least, most) = bounds(to);
        let (own_least, own_most) = bounds(from);
        let mut value = value;
        let kind = self.b.kind(value);
        if least > own_least {
            let bound = self.b.int(kind, least as u64);
            value = self.extreme(true, from.is_signed(), value, bound);
        }
        if most < own_most {
            let bound = self.b.int(kind, most as u64);
            value = self.extreme(false, from.is_signed(), value, bound);
        }
        value
    }

    fn integer_to_float(&mut self, value: Value, from: Type, to: Type, rounding: Rounding) -> Value {
        let signed = from.is_signed();
        let exact = from.bits() <= 32;
        let direction = direction(rounding);
        match to {
            Type::F32 | Type::F64 if direction == Direction::Nearest || (exact && to == Type::F64) => {
                self.b.unary(Unary::ToFloat { to: kind(to), signed }, value)
            }
            Type::F64 => {
                let (high, low) = self.parts(value, signed);
                self.shop.call(&mut self.b, Helper::Add64(direction), &[high, low])
            }
            _ => {
                let wide = if exact {
                    self.b.unary(Unary::ToFloat { to: Kind::F64, signed }, value)
                } else {
                    let (high, low) = self.parts(value, signed);
                    self.shop.call(&mut self.b, Helper::AddOdd, &[high, low])
                };
                if to == Type::F32 { self.f64_to_f32(wide, rounding) } else { self.f64_to_half(to, wide, rounding) }
            }
        }
    }

    /// Two floats whose sum is a 64-bit integer.
    fn parts(&mut self, value: Value, signed: bool) -> (Value, Value) {
        let (half, mask, scale) = (self.b.i64(32), self.b.i64(0xffff_ffff), self.b.f64(4_294_967_296.0));
        let high = if signed { self.b.shr_s(value, half) } else { self.b.shr_u(value, half) };
        let low = self.b.and(value, mask);
        let high = self.b.unary(Unary::ToFloat { to: Kind::F64, signed }, high);
        let high = self.b.mul(high, scale);
        (high, self.b.unary(Unary::ToFloat { to: Kind::F64, signed: false }, low))
    }

    /// Rounded in the asked direction, then to the nearest number that the type has. NaN becomes 0, or where one of the types has 64 bits, the number with the
    /// highest bit.
    fn float_to_integer(&mut self, value: Value, from: Type, to: Type, mode: FloatMode) -> Value {
        let value = self.flushed(from, mode.flush, value);
        let value = if is_half(from) { self.half_to_f32(from, value) } else { value };
        let value = self.rounded(value, mode.rounding);
        let signed = to.is_signed();
        let mut integer = self.b.unary(Unary::ToInteger { to: kind(to), signed }, value);
        if to.bits() < 32 {
            let (least, most) = bounds(to);
            integer = self.clamp(integer, least as u64, most as u64, signed);
        }
        if from.bits() < 64 && to.bits() < 64 {
            return integer;
        }
        let (is_number, highest) = (self.b.eq(value, value), self.b.int(kind(to), 1 << (to.bits() - 1)));
        self.b.select(is_number, integer, highest)
    }

    /// A float rounded to an integer.
    fn rounded(&mut self, value: Value, rounding: Rounding) -> Value {
        let op = match direction(rounding) {
            Direction::Nearest | Direction::Away => Unary::Nearest,
            Direction::Zero => Unary::Trunc,
            Direction::Down => Unary::Floor,
            Direction::Up => Unary::Ceil,
        };
        self.b.unary(op, value)
    }

    fn between_floats(&mut self, value: Value, from: Type, to: Type, mode: FloatMode) -> Value {
        // `.ftz` is about 32-bit floats only.
        let mut value = self.flushed(from, mode.flush && from == Type::F32, value);
        let mode = FloatMode { flush: mode.flush && to == Type::F32, ..mode };
        let to_integer = matches!(
            mode.rounding,
            Rounding::IntegerNearestEven | Rounding::IntegerZero | Rounding::IntegerDown | Rounding::IntegerUp
        );
        if from == to && !to_integer {
            let value = if is_half(to) { value } else { self.b.canonical(value) };
            return self.finished(to, mode, value);
        }
        if is_half(from) {
            value = self.half_to_f32(from, value);
        }
        if to_integer {
            value = self.rounded(value, mode.rounding);
        }
        let rounding = if to_integer { Rounding::NearestEven } else { mode.rounding };
        let value = match (self.b.kind(value), to) {
            (Kind::F32, Type::F64) => self.b.unary(Unary::Promote, value),
            (Kind::F64, Type::F32) => self.f64_to_f32(value, rounding),
            (Kind::F32, Type::F16 | Type::Bf16) => {
                let wide = self.b.unary(Unary::Promote, value);
                self.f64_to_half(to, wide, rounding)
            }
            (Kind::F64, Type::F16 | Type::Bf16) => self.f64_to_half(to, value, rounding),
            (Kind::F32, Type::Tf32) => return self.f32_to_tf32(value, mode),
            _ => value,
        };
        let value = if is_half(to) { value } else { self.b.canonical(value) };
        self.finished(to, mode, value)
    }
}

impl Body<'_, '_> {
    /// The upper bits of an `f32`, its lower ones 0.
    fn f32_to_tf32(&mut self, value: Value, mode: FloatMode) -> Value {
        let wide = self.b.unary(Unary::Promote, value);
        let rounding = Helper::Round(Format::Tf32, direction(mode.rounding));
        let short = self.shop.call(&mut self.b, rounding, &[wide]);
        let place = self.b.i32(TF32_PLACE);
        let bits = self.b.shl(short, place);
        if !mode.relu {
            return bits;
        }
        // A NaN has no sign here.
        let zero = self.b.i32(0);
        let negative = self.b.lt_s(bits, zero);
        self.b.select(negative, zero, bits)
    }
}

/// Bits of an `f32` that `tf32` lacks.
const TF32_PLACE: u32 = 13;

/// The least and the largest number of an integer type.
fn bounds(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}
