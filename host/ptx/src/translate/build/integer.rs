//! Integer arithmetic: sums with carry and saturation, products, quotients, shifts.

use super::body::Body;
use super::operand::kind;
use crate::module::{Carry, IntegerOp, IntegerUnary, Op, Operand, Type};
use crate::translate::error::Result;
use crate::translate::helper::Helper;
use crate::translate::ir::{Binary, Kind, Unary, Value};

impl Body<'_, '_> {
    pub(super) fn integer(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Integer { op: op @ (IntegerOp::Min | IntegerOp::Max), ty, saturate, dst, a, b, .. } => {
                let value = self.by_halves(*ty, &[a, b], |body, ty, values| {
                    let value = body.extreme(*op == IntegerOp::Max, ty.is_signed(), values[0], values[1]);
                    if !saturate {
                        return Ok(value);
                    }
                    let zero = body.b.i32(0);
                    Ok(body.extreme(true, true, value, zero))
                })?;
                self.write(*dst, *ty, value);
            }
            Op::Integer { op: IntegerOp::Add, ty: ty @ (Type::U16x2 | Type::S16x2), dst, a, b, .. } => {
                let value = self.by_halves(*ty, &[a, b], |body, _, values| Ok(body.b.add(values[0], values[1])))?;
                self.write(*dst, *ty, value);
            }
            Op::Integer { op: op @ (IntegerOp::Add | IntegerOp::Sub), ty, saturate, carry, dst, a, b } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let value = self.sum(*op == IntegerOp::Sub, *ty, *saturate, *carry, a, b);
                self.write(*dst, *ty, value);
            }
            Op::Integer { op: op @ (IntegerOp::Shl | IntegerOp::Shr), ty, dst, a, b, .. } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, Type::U32)?);
                let value = self.shift(*op == IntegerOp::Shl, *ty, a, b);
                self.write(*dst, *ty, value);
            }
            Op::Integer { op, ty, dst, a, b, .. } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let (value, ty) = match op {
                    IntegerOp::Div => (self.divide(*ty, a, b), *ty),
                    IntegerOp::Rem => (self.remainder(*ty, a, b), *ty),
                    _ => self.product(*op, *ty, a, b),
                };
                self.write(*dst, ty, value);
            }
            Op::MultiplyAdd { op, ty, saturate, carry, dst, a, b, c } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let (product, ty) = self.product(*op, *ty, a, b);
                let c = self.operand(c, ty)?;
                let value = self.sum(false, ty, *saturate, *carry, product, c);
                self.write(*dst, ty, value);
            }
            Op::SumAbsoluteDifference { ty, dst, a, b, c } => {
                let (a, b, c) = (self.operand(a, *ty)?, self.operand(b, *ty)?, self.operand(c, *ty)?);
                let high = self.extreme(true, ty.is_signed(), a, b);
                let low = self.extreme(false, ty.is_signed(), a, b);
                let difference = self.b.sub(high, low);
                let value = self.b.add(c, difference);
                self.write(*dst, *ty, value);
            }
            Op::IntegerUnary { op, ty, dst, a } => {
                let (value, ty) = self.integer_unary(*op, *ty, a)?;
                self.write(*dst, ty, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn sum(&mut self, subtract: bool, ty: Type, saturate: bool, carry: Carry, a: Value, b: Value) -> Value {
        if saturate {
            return self.saturated_sum(subtract, a, b);
        }
        let first = if subtract { self.b.sub(a, b) } else { self.b.add(a, b) };
        if !carry.reads && !carry.writes {
            return first;
        }
        // What leaves at the top: of a sum, it is smaller than a summand; of a difference, what is taken was larger.
        let mut out = if subtract { self.b.lt_u(a, b) } else { self.b.lt_u(first, a) };
        let flag = self.carry();
        let mut result = first;
        if carry.reads {
            let carried = self.b.read(flag);
            let carried = if kind(ty) == Kind::I64 { self.widen(carried, false) } else { carried };
            result = if subtract { self.b.sub(first, carried) } else { self.b.add(first, carried) };
            let more = if subtract { self.b.lt_u(first, carried) } else { self.b.lt_u(result, first) };
            out = self.b.or(out, more);
        }
        if carry.writes {
            self.b.write(flag, out);
        }
        result
    }

    /// Of signed 32 bits, the only type that saturates.
    fn saturated_sum(&mut self, subtract: bool, a: Value, b: Value) -> Value {
        let (a, b) = (self.widen(a, true), self.widen(b, true));
        let exact = if subtract { self.b.sub(a, b) } else { self.b.add(a, b) };
        let clamped = self.clamp(exact, i64::from(i32::MIN) as u64, i64::from(i32::MAX) as u64, true);
        self.b.unary(Unary::Wrap, clamped)
    }

    /// The nearest number within these bounds.
    pub(super) fn clamp(&mut self, value: Value, least: u64, most: u64, signed: bool) -> Value {
        let kind = self.b.kind(value);
        let (least, most) = (self.b.int(kind, least), self.b.int(kind, most));
        let value = self.extreme(true, signed, value, least);
        self.extreme(false, signed, value, most)
    }

    /// The larger or the smaller of two integers.
    pub(super) fn extreme(&mut self, larger: bool, signed: bool, a: Value, b: Value) -> Value {
        let op = if signed { Binary::LtS } else { Binary::LtU };
        let less = if larger { self.b.binary(op, b, a) } else { self.b.binary(op, a, b) };
        self.b.select(less, a, b)
    }

    /// A product, and its type.
    fn product(&mut self, op: IntegerOp, ty: Type, a: Value, b: Value) -> (Value, Type) {
        let signed = ty.is_signed();
        match (op, ty.bits()) {
            (IntegerOp::MulWide, 16) => (self.b.mul(a, b), if signed { Type::S32 } else { Type::U32 }),
            (IntegerOp::MulWide, _) => {
                let (a, b) = (self.widen(a, signed), self.widen(b, signed));
                (self.b.mul(a, b), if signed { Type::S64 } else { Type::U64 })
            }
            (IntegerOp::MulHi, 16) => {
                let (product, half) = (self.b.mul(a, b), self.b.i32(16));
                (self.b.shr_u(product, half), ty)
            }
            (IntegerOp::MulHi, 32) => {
                let (a, b) = (self.widen(a, signed), self.widen(b, signed));
                let (product, half) = (self.b.mul(a, b), self.b.i64(32));
                let high = self.b.shr_u(product, half);
                (self.b.unary(Unary::Wrap, high), ty)
            }
            (IntegerOp::MulHi, _) => (self.shop.call(&mut self.b, Helper::MulHigh { signed }, &[a, b]), ty),
            (IntegerOp::Mul24Lo | IntegerOp::Mul24Hi, _) => {
                let (a, b) = (self.lower_24(a, signed), self.lower_24(b, signed));
                if op == IntegerOp::Mul24Lo {
                    return (self.b.mul(a, b), ty);
                }
                let (a, b) = (self.widen(a, signed), self.widen(b, signed));
                let (product, sixteen) = (self.b.mul(a, b), self.b.i64(16));
                let high = self.b.shr_u(product, sixteen);
                (self.b.unary(Unary::Wrap, high), ty)
            }
            _ => (self.b.mul(a, b), ty),
        }
    }

    fn lower_24(&mut self, value: Value, signed: bool) -> Value {
        let eight = self.b.i32(8);
        let shifted = self.b.shl(value, eight);
        if signed { self.b.shr_s(shifted, eight) } else { self.b.shr_u(shifted, eight) }
    }

    /// By zero: all ones. The smallest integer by -1 is itself.
    fn divide(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let kind = self.b.kind(a);
        let all = self.b.int(kind, u64::MAX);
        if !ty.is_signed() {
            let (divisor, by_zero) = self.divisor(b);
            let quotient = self.b.binary(Binary::DivU, a, divisor);
            return self.b.select(by_zero, all, quotient);
        }
        let (by_minus_one, zero, one) = (self.b.eq(b, all), self.b.int(kind, 0), self.b.int(kind, 1));
        let positive = self.b.select(by_minus_one, one, b);
        let (divisor, by_zero) = self.divisor(positive);
        let quotient = self.b.binary(Binary::DivS, a, divisor);
        let negated = self.b.sub(zero, a);
        let quotient = self.b.select(by_minus_one, negated, quotient);
        self.b.select(by_zero, all, quotient)
    }

    /// By zero: the dividend.
    fn remainder(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let (divisor, by_zero) = self.divisor(b);
        let op = if ty.is_signed() { Binary::RemS } else { Binary::RemU };
        let remainder = self.b.binary(op, a, divisor);
        self.b.select(by_zero, a, remainder)
    }

    /// A divisor that is not 0, and whether it was.
    fn divisor(&mut self, b: Value) -> (Value, Value) {
        let (zero, one) = (self.b.int(self.b.kind(b), 0), self.b.int(self.b.kind(b), 1));
        let by_zero = self.b.eq(b, zero);
        (self.b.select(by_zero, one, b), by_zero)
    }

    /// `amount` is 32 bits and not cut; what is shifted beyond the width is 0 or the sign.
    pub(super) fn shift(&mut self, left: bool, ty: Type, a: Value, amount: Value) -> Value {
        let kind = self.b.kind(a);
        let width = kind.bytes() * 8;
        let (limit, last) = (self.b.i32(width), self.b.i32(width - 1));
        let within = self.b.lt_u(amount, limit);
        let arithmetic = !left && ty.is_signed();
        let amount = if arithmetic { self.b.select(within, amount, last) } else { amount };
        let by = if kind == Kind::I64 { self.widen(amount, false) } else { amount };
        if arithmetic {
            return self.b.shr_s(a, by);
        }
        let shifted = if left { self.b.shl(a, by) } else { self.b.shr_u(a, by) };
        let zero = self.b.int(kind, 0);
        self.b.select(within, shifted, zero)
    }

    fn integer_unary(&mut self, op: IntegerUnary, ty: Type, a: &Operand) -> Result<(Value, Type)> {
        let a = self.operand(a, ty)?;
        let kind = self.b.kind(a);
        let (zero, all) = (self.b.int(kind, 0), self.b.int(kind, u64::MAX));
        let width = kind.bytes() * 8;
        Ok(match op {
            IntegerUnary::Neg => (self.b.sub(zero, a), ty),
            IntegerUnary::Abs => {
                let (negative, negated) = (self.b.lt_s(a, zero), self.b.sub(zero, a));
                (self.b.select(negative, negated, a), ty)
            }
            IntegerUnary::Not if ty == Type::Pred => (self.not(a), ty),
            IntegerUnary::Not => (self.b.xor(a, all), ty),
            IntegerUnary::Cnot => {
                let is_zero = self.b.unary(Unary::IsZero, a);
                (self.fit(is_zero, ty), ty)
            }
            IntegerUnary::Popc => (self.counted(Unary::Popcnt, a), Type::U32),
            IntegerUnary::Clz => (self.counted(Unary::Clz, a), Type::U32),
            IntegerUnary::Brev => (self.shop.call(&mut self.b, Helper::Reverse { wide: kind == Kind::I64 }, &[a]), ty),
            IntegerUnary::Bfind { shift_amount } => {
                let mut bits = a;
                if ty.is_signed() {
                    let last = self.b.int(kind, u64::from(width - 1));
                    let sign = self.b.shr_s(a, last);
                    bits = self.b.xor(a, sign);
                }
                let leading = self.counted(Unary::Clz, bits);
                let last = self.b.i32(width - 1);
                // Of 0 there are as many leading zeros as bits: then the position is -1 as asked.
                let position = self.b.sub(last, leading);
                if !shift_amount {
                    return Ok((position, Type::U32));
                }
                let (none, all) = (self.b.unary(Unary::IsZero, bits), self.b.i32(u32::MAX));
                (self.b.select(none, all, leading), Type::U32)
            }
        })
    }

    /// A count of bits, in 32 bits.
    fn counted(&mut self, op: Unary, a: Value) -> Value {
        let count = self.b.unary(op, a);
        if self.b.kind(count) == Kind::I64 { self.b.unary(Unary::Wrap, count) } else { count }
    }
}
