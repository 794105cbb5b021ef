//! Arithmetic on floats.
//!
//! `.f16` and `.bf16` are computed in 64 bits and rounded once at the end: 53 bits are more than twice 11 (or 8) and two more, so that sums, products and their
//! like come out as if they had been rounded once; a fused product and sum is made odd before (see [`Helper::AddOdd`]).

use super::body::Body;
use crate::module::{FloatMode, FloatOp, FloatTest, FloatUnary, Op, Operand, Rounding, Type};
use crate::translate::error::Result;
use crate::translate::helper::{self, Direction, Format, Helper};
use crate::translate::ir::{Binary, Inst, Kind, Unary, Value};

impl Body<'_, '_> {
    pub(super) fn float(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Float { op, ty, mode, dst, a, b } => {
                let value = self.by_halves(*ty, &[a, b], |body, ty, values| {
                    body.float_binary(*op, ty, *mode, values[0], values[1])
                })?;
                self.write(*dst, *ty, value);
            }
            Op::Fma { ty, mode, dst, a, b, c } => {
                let value = self.by_halves(*ty, &[a, b, c], |body, ty, values| body.fused(ty, *mode, values))?;
                self.write(*dst, *ty, value);
            }
            Op::FloatUnary { op, ty, mode, dst, a } => {
                let value =
                    self.by_halves(*ty, &[a], |body, ty, values| body.float_unary(*op, ty, *mode, values[0]))?;
                self.write(*dst, *ty, value);
            }
            Op::Test { test, ty, dst, a } => {
                let a = self.operand(a, *ty)?;
                let value = self.test(*test, a);
                self.write(*dst, Type::Pred, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies an operation to the operands, or for packed types to their halves.
    pub(super) fn by_halves(
        &mut self,
        ty: Type,
        operands: &[&Operand],
        mut apply: impl FnMut(&mut Self, Type, &[Value]) -> Result<Value>,
    ) -> Result<Value> {
        let mut values = Vec::new();
        for operand in operands {
            values.push(self.operand(operand, ty)?);
        }
        let Some(half) = half_of(ty) else { return apply(self, ty, &values) };
        let sixteen = self.b.i32(16);
        let lower: Vec<Value> = values.iter().map(|value| self.narrow(*value, half)).collect();
        let upper: Vec<Value> = values
            .iter()
            .map(|value| if half.is_signed() { self.b.shr_s(*value, sixteen) } else { self.b.shr_u(*value, sixteen) })
            .collect();
        let (lower, upper) = (apply(self, half, &lower)?, apply(self, half, &upper)?);
        Ok(self.packed(lower, upper))
    }

    /// What an atomic operation makes of two floats, or of two pairs of them.
    pub(super) fn atomic_float(&mut self, op: Binary, ty: Type, a: Value, b: Value) -> Result<Value> {
        let apply = |body: &mut Self, ty: Type, a: Value, b: Value| {
            if !is_half(ty) {
                let value = body.b.binary(op, a, b);
                return body.b.canonical(value);
            }
            let (a, b) = (body.half_to_f64(ty, a), body.half_to_f64(ty, b));
            let exact = body.b.binary(op, a, b);
            body.f64_to_half(ty, exact, Rounding::NearestEven)
        };
        let Some(half) = half_of(ty) else { return Ok(apply(self, ty, a, b)) };
        let sixteen = self.b.i32(16);
        let (a_low, b_low) = (self.narrow(a, Type::B16), self.narrow(b, Type::B16));
        let (a_high, b_high) = (self.b.shr_u(a, sixteen), self.b.shr_u(b, sixteen));
        let (lower, upper) = (apply(self, half, a_low, b_low), apply(self, half, a_high, b_high));
        Ok(self.packed(lower, upper))
    }

    /// Two halves as one.
    pub(super) fn packed(&mut self, lower: Value, upper: Value) -> Value {
        let sixteen = self.b.i32(16);
        let upper = self.b.shl(upper, sixteen);
        let lower = self.narrow(lower, Type::B16);
        self.b.or(upper, lower)
    }

    /// A denormal becomes 0 if the instruction says `.ftz`.
    pub(super) fn flushed(&mut self, ty: Type, flush: bool, value: Value) -> Value {
        if !flush {
            return value;
        }
        match ty {
            Type::F32 | Type::F64 => self.b.unary(Unary::Flush, value),
            Type::F16 | Type::Bf16 => {
                let (exponent, sign) = (self.b.i32(if ty == Type::F16 { 0x7c00 } else { 0x7f80 }), self.b.i32(0x8000));
                let (exponent, sign) = (self.b.and(value, exponent), self.b.and(value, sign));
                self.b.select(exponent, value, sign)
            }
            _ => value,
        }
    }

    /// What `.ftz`, `.sat` and `.relu` make of a result.
    pub(super) fn finished(&mut self, ty: Type, mode: FloatMode, value: Value) -> Value {
        let value = self.flushed(ty, mode.flush, value);
        let value = if mode.saturate { self.saturated(ty, value) } else { value };
        if mode.relu { self.rectified(ty, value) } else { value }
    }

    fn saturated(&mut self, ty: Type, value: Value) -> Value {
        if is_half(ty) {
            let wide = self.half_to_f64(ty, value);
            let wide = self.b.unary(Unary::Saturate, wide);
            return self.f64_to_half(ty, wide, Rounding::NearestEven);
        }
        self.b.unary(Unary::Saturate, value)
    }

    /// What is negative becomes 0; a NaN stays.
    fn rectified(&mut self, ty: Type, value: Value) -> Value {
        if is_half(ty) {
            let (sign, most) = (self.b.i32(0x8000), self.b.i32(if ty == Type::F16 { 0xfc00 } else { 0xff80 }));
            let (negative, number) = (self.b.and(value, sign), self.b.le_u(value, most));
            let zero = self.b.i32(0);
            let flag = self.b.ne(negative, zero);
            let drop = self.b.and(flag, number);
            return self.b.select(drop, zero, value);
        }
        let zero = self.b.constant(self.b.kind(value), 0);
        self.b.binary(Binary::Max, value, zero)
    }

    /// `f16` or `bf16` to 64 bits, exactly.
    pub(super) fn half_to_f64(&mut self, ty: Type, value: Value) -> Value {
        let single = self.half_to_f32(ty, value);
        self.b.unary(Unary::Promote, single)
    }

    /// `f16` or `bf16` to 32 bits, exactly.
    pub(super) fn half_to_f32(&mut self, ty: Type, value: Value) -> Value {
        let sixteen = self.b.i32(16);
        if ty == Type::Bf16 {
            let bits = self.b.shl(value, sixteen);
            return self.b.reinterpret(bits, Kind::F32);
        }
        self.shop.call(&mut self.b, Helper::Widen, &[value])
    }

    /// 64 bits to `f16` or `bf16`.
    pub(super) fn f64_to_half(&mut self, ty: Type, value: Value, rounding: Rounding) -> Value {
        let format = if ty == Type::F16 { Format::F16 } else { Format::Bf16 };
        self.shop.call(&mut self.b, Helper::Round(format, direction(rounding)), &[value])
    }

    /// 64 bits to 32.
    pub(super) fn f64_to_f32(&mut self, value: Value, rounding: Rounding) -> Value {
        match direction(rounding) {
            Direction::Nearest => self.b.unary(Unary::Demote, value),
            direction => {
                let bits = self.shop.call(&mut self.b, Helper::Round(Format::F32, direction), &[value]);
                self.b.reinterpret(bits, Kind::F32)
            }
        }
    }

    fn float_binary(&mut self, op: FloatOp, ty: Type, mode: FloatMode, a: Value, b: Value) -> Result<Value> {
        if op == FloatOp::Copysign {
            // The sign of the first, the magnitude of the second.
            return Ok(self.b.binary(Binary::Copysign, b, a));
        }
        let (a, b) = (self.flushed(ty, mode.flush, a), self.flushed(ty, mode.flush, b));
        let value =
            if is_half(ty) { self.half_binary(op, ty, a, b) } else { self.wide_binary(op, ty, mode.rounding, a, b) };
        Ok(self.finished(ty, mode, value))
    }

    fn half_binary(&mut self, op: FloatOp, ty: Type, a: Value, b: Value) -> Value {
        let (a, b) = (self.half_to_f64(ty, a), self.half_to_f64(ty, b));
        let exact = self.b.binary(float_op(op), a, b);
        self.f64_to_half(ty, exact, Rounding::NearestEven)
    }

    fn wide_binary(&mut self, op: FloatOp, ty: Type, rounding: Rounding, a: Value, b: Value) -> Value {
        let direction = direction(rounding);
        let arithmetic = matches!(op, FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div);
        if direction == Direction::Nearest || !arithmetic {
            let value = self.b.binary(float_op(op), a, b);
            return self.b.canonical(value);
        }
        let b = if op == FloatOp::Sub { self.b.unary(Unary::Neg, b) } else { b };
        if ty == Type::F64 {
            let helper = match op {
                FloatOp::Mul => Helper::Mul64(direction),
                FloatOp::Div => Helper::Div64(direction),
                _ => Helper::Add64(direction),
            };
            let value = self.shop.call(&mut self.b, helper, &[a, b]);
            return self.b.canonical(value);
        }
        let (x, y) = (self.b.unary(Unary::Promote, a), self.b.unary(Unary::Promote, b));
        let odd = match op {
            FloatOp::Mul => self.b.mul(x, y),
            FloatOp::Div => self.shop.call(&mut self.b, Helper::DivOdd, &[x, y]),
            _ => {
                let value = helper::sum_32(&mut self.b, direction, [x, y]);
                return self.b.canonical(value);
            }
        };
        let value = self.f64_to_f32(odd, rounding);
        self.b.canonical(value)
    }

    fn fused(&mut self, ty: Type, mode: FloatMode, values: &[Value]) -> Result<Value> {
        let [a, b, c] = [0, 1, 2].map(|index| self.flushed(ty, mode.flush, values[index]));
        let direction = direction(mode.rounding);
        let value = match ty {
            // NVCC's `expf` finds the whole part of an exponent with it.
            Type::F32 if matches!(direction, Direction::Down | Direction::Zero) && self.is_integer(a, b, c) => {
                helper::integer_below(&mut self.b, [a, b, c])
            }
            Type::F32 if direction != Direction::Nearest => {
                let [a, b, c] = [a, b, c].map(|value| self.b.unary(Unary::Promote, value));
                let product = self.b.mul(a, b);
                let value = helper::sum_32(&mut self.b, direction, [product, c]);
                self.b.canonical(value)
            }
            Type::F64 if direction != Direction::Nearest => {
                let value = self.shop.call(&mut self.b, Helper::Fma64(direction), &[a, b, c]);
                self.b.canonical(value)
            }
            Type::F32 | Type::F64 => {
                let value = self.b.fma(a, b, c);
                self.b.canonical(value)
            }
            _ => {
                let [a, b, c] = [a, b, c].map(|value| self.half_to_f64(ty, value));
                let product = self.b.mul(a, b);
                let odd = self.shop.call(&mut self.b, Helper::AddOdd, &[product, c]);
                self.f64_to_half(ty, odd, Rounding::NearestEven)
            }
        };
        Ok(self.finished(ty, mode, value))
    }

    /// Whether it is seen from the operands that `a · b + c` is a positive integer, and as large as they get without leaving any out.
    fn is_integer(&self, a: Value, b: Value, c: Value) -> bool {
        let number = |value: Value| self.b.known(value).map(|bits| f32::from_bits(bits as u32));
        let mut fraction = a;
        while let Inst::Unary(Unary::Flush, value) = self.b.inst(fraction) {
            fraction = *value;
        }
        let fraction = matches!(self.b.inst(fraction), Inst::Unary(Unary::Saturate, _));
        fraction && number(b).zip(number(c)).is_some_and(|(factor, summand)| helper::gives_integers(factor, summand))
    }

    fn float_unary(&mut self, op: FloatUnary, ty: Type, mode: FloatMode, a: Value) -> Result<Value> {
        // The power of 2 of a denormal number is that of 0.
        let flush = mode.flush && !(op == FloatUnary::Ex2 && ty == Type::F32);
        let a = self.flushed(ty, flush, a);
        if matches!(op, FloatUnary::Neg | FloatUnary::Abs) {
            let value = self.signed(op == FloatUnary::Neg, ty, a);
            return Ok(self.finished(ty, mode, value));
        }
        let value = match ty {
            Type::F64 => self.unary_64(op, mode.rounding, a)?,
            Type::F32 => self.unary_32(op, mode.rounding, a)?,
            _ => {
                let single = self.half_to_f32(ty, a);
                let single = self.unary_32(op, Rounding::Approximate, single)?;
                let wide = self.b.unary(Unary::Promote, single);
                self.f64_to_half(ty, wide, Rounding::NearestEven)
            }
        };
        Ok(self.finished(ty, mode, value))
    }

    fn signed(&mut self, flip: bool, ty: Type, a: Value) -> Value {
        if is_half(ty) {
            let mask = self.b.i32(if flip { 0x8000 } else { 0x7fff });
            return if flip { self.b.xor(a, mask) } else { self.b.and(a, mask) };
        }
        self.b.unary(if flip { Unary::Neg } else { Unary::Abs }, a)
    }

    fn unary_64(&mut self, op: FloatUnary, rounding: Rounding, a: Value) -> Result<Value> {
        let direction = direction(rounding);
        let one = self.b.f64(1.0);
        let value = match op {
            FloatUnary::Sqrt if direction == Direction::Nearest => self.b.unary(Unary::Sqrt, a),
            FloatUnary::Sqrt => self.shop.call(&mut self.b, Helper::Sqrt64(direction), &[a]),
            FloatUnary::Rcp if direction == Direction::Nearest => self.b.div(one, a),
            FloatUnary::Rcp => self.shop.call(&mut self.b, Helper::Div64(direction), &[one, a]),
            FloatUnary::Rsqrt => {
                let root = self.b.unary(Unary::Sqrt, a);
                self.b.div(one, root)
            }
            _ => return Err(self.error("this function is not defined for .f64")),
        };
        Ok(self.b.canonical(value))
    }

    fn unary_32(&mut self, op: FloatUnary, rounding: Rounding, a: Value) -> Result<Value> {
        let nearest = direction(rounding) == Direction::Nearest;
        let value = match op {
            FloatUnary::Sqrt if nearest => self.b.unary(Unary::Sqrt, a),
            FloatUnary::Sqrt => {
                let wide = self.b.unary(Unary::Promote, a);
                let odd = self.shop.call(&mut self.b, Helper::SqrtOdd, &[wide]);
                self.f64_to_f32(odd, rounding)
            }
            FloatUnary::Rcp => {
                let one = self.b.constant(Kind::F32, u64::from(1_f32.to_bits()));
                return Ok(self.wide_binary(FloatOp::Div, Type::F32, rounding, one, a));
            }
            FloatUnary::Rsqrt => {
                let wide = self.b.unary(Unary::Promote, a);
                let (root, one) = (self.b.unary(Unary::Sqrt, wide), self.b.f64(1.0));
                let quotient = self.b.div(one, root);
                self.b.unary(Unary::Demote, quotient)
            }
            FloatUnary::Sin => self.shop.call(&mut self.b, Helper::Sine { shifted: false }, &[a]),
            FloatUnary::Cos => self.shop.call(&mut self.b, Helper::Sine { shifted: true }, &[a]),
            FloatUnary::Lg2 => self.shop.call(&mut self.b, Helper::Log2, &[a]),
            FloatUnary::Ex2 => helper::exp2(&mut self.b, a),
            FloatUnary::Tanh => self.shop.call(&mut self.b, Helper::Tanh, &[a]),
            FloatUnary::Neg | FloatUnary::Abs => a,
        };
        Ok(self.b.canonical(value))
    }

    fn test(&mut self, test: FloatTest, a: Value) -> Value {
        let bits = self.bits_of(a);
        let kind = self.b.kind(bits);
        let (exponent, unit) =
            if kind == Kind::I64 { (0x7ff0_0000_0000_0000, 1 << 52) } else { (0x7f80_0000, 1 << 23) };
        let (infinity, unit) = (self.b.int(kind, exponent), self.b.int(kind, unit));
        let all_but_sign = self.b.int(kind, if kind == Kind::I64 { u64::MAX >> 1 } else { 0x7fff_ffff });
        let zero = self.b.int(kind, 0);
        let magnitude = self.b.and(bits, all_but_sign);
        match test {
            FloatTest::Finite => self.b.lt_u(magnitude, infinity),
            FloatTest::Infinite => self.b.eq(magnitude, infinity),
            FloatTest::Number => self.b.le_u(magnitude, infinity),
            FloatTest::NotANumber => self.b.lt_u(infinity, magnitude),
            FloatTest::Normal => {
                let (large, finite) = (self.b.le_u(unit, magnitude), self.b.lt_u(magnitude, infinity));
                self.b.and(large, finite)
            }
            FloatTest::Subnormal => {
                let (small, some) = (self.b.lt_u(magnitude, unit), self.b.ne(magnitude, zero));
                self.b.and(small, some)
            }
        }
    }
}

/// Whether it is `f16` or `bf16`.
pub(super) fn is_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::Bf16)
}

/// What a packed type holds two of.
pub(super) fn half_of(ty: Type) -> Option<Type> {
    match ty {
        Type::F16x2 => Some(Type::F16),
        Type::Bf16x2 => Some(Type::Bf16),
        Type::U16x2 => Some(Type::U16),
        Type::S16x2 => Some(Type::S16),
        _ => None,
    }
}

/// The direction of a rounding; approximations round to the nearest.
pub(super) fn direction(rounding: Rounding) -> Direction {
    match rounding {
        Rounding::Zero | Rounding::IntegerZero => Direction::Zero,
        Rounding::Down | Rounding::IntegerDown => Direction::Down,
        Rounding::Up | Rounding::IntegerUp => Direction::Up,
        Rounding::NearestAway => Direction::Away,
        Rounding::NearestEven | Rounding::IntegerNearestEven | Rounding::Approximate | Rounding::Full => {
            Direction::Nearest
        }
    }
}

fn float_op(op: FloatOp) -> Binary {
    match op {
        FloatOp::Add => Binary::Add,
        FloatOp::Sub => Binary::Sub,
        FloatOp::Mul => Binary::Mul,
        FloatOp::Div => Binary::Div,
        FloatOp::Min => Binary::MinNumber,
        FloatOp::Max => Binary::MaxNumber,
        FloatOp::MinNan => Binary::Min,
        FloatOp::MaxNan => Binary::Max,
        FloatOp::Copysign => Binary::Copysign,
    }
}
