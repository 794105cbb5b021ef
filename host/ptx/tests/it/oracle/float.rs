//! Instructions on floats, in the bits of their format.

use std::cmp::Ordering;

use steadfast_ptx::module::{Comparison, FloatMode, FloatOp, FloatTest, FloatUnary, Rounding, Type};

use super::exact::{Exact, Format, Number};

/// A packed type as the type of its halves.
pub(crate) fn half(ty: Type) -> Option<Type> {
    match ty {
        Type::F16x2 => Some(Type::F16),
        Type::Bf16x2 => Some(Type::Bf16),
        Type::U16x2 => Some(Type::U16),
        Type::S16x2 => Some(Type::S16),
        _ => None,
    }
}

/// `operation` on each half of packed operands, or on the whole of others.
pub(crate) fn by_halves<const N: usize>(
    ty: Type,
    operands: [u64; N],
    operation: impl Fn(Type, [u64; N]) -> u64,
) -> u64 {
    match half(ty) {
        Some(half) => {
            let lower = operation(half, operands.map(|bits| bits & 0xffff));
            let upper = operation(half, operands.map(|bits| bits >> 16 & 0xffff));
            upper << 16 | lower
        }
        None => operation(ty, operands),
    }
}

pub(crate) fn binary(op: FloatOp, ty: Type, mode: FloatMode, a: u64, b: u64) -> u64 {
    by_halves(ty, [a, b], |ty, [a, b]| {
        let format = Format::of(ty);
        if op == FloatOp::Copysign {
            return a & format.sign() | b & !format.sign();
        }
        let [a, b] = [a, b].map(|bits| if mode.flush { format.flushed(bits) } else { bits });
        let result = match op {
            FloatOp::Min | FloatOp::Max | FloatOp::MinNan | FloatOp::MaxNan => return extreme(op, format, a, b),
            FloatOp::Add => sum(format.decode(a), format.decode(b), mode.rounding),
            FloatOp::Sub => sum(format.decode(a), format.decode(b ^ format.sign()), mode.rounding),
            FloatOp::Mul => product(format.decode(a), format.decode(b)),
            _ => quotient(format.decode(a), format.decode(b)),
        };
        finished(format, mode, format.encode(result, mode.rounding))
    })
}

pub(crate) fn fused(ty: Type, mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    by_halves(ty, [a, b, c], |ty, operands| {
        let format = Format::of(ty);
        let [a, b, c] = operands.map(|bits| format.decode(if mode.flush { format.flushed(bits) } else { bits }));
        finished(format, mode, format.encode(sum(product(a, b), c, mode.rounding), mode.rounding))
    })
}

pub(crate) fn unary(op: FloatUnary, ty: Type, mode: FloatMode, a: u64) -> u64 {
    by_halves(ty, [a], |ty, [a]| {
        let format = Format::of(ty);
        let a = if mode.flush { format.flushed(a) } else { a };
        match op {
            FloatUnary::Neg => return a ^ format.sign(),
            FloatUnary::Abs => return a & !format.sign(),
            _ => {}
        }
        let number = format.decode(a);
        let result = match op {
            FloatUnary::Sqrt => root(number),
            FloatUnary::Rcp => quotient(Number::Finite(Exact::integer(1)), number),
            _ => approximation(op, value(format, a)),
        };
        finished(format, mode, format.encode(result, mode.rounding))
    })
}

/// What follows the rounding: `.ftz`, `.sat`, `.relu`.
pub(crate) fn finished(format: Format, mode: FloatMode, bits: u64) -> u64 {
    let bits = if mode.flush { format.flushed(bits) } else { bits };
    let negative = bits & format.sign() != 0;
    match (mode.saturate, mode.relu) {
        (true, _) if format.is_nan(bits) || negative => 0,
        (true, _) => bits.min(format.one()),
        (_, true) if format.is_nan(bits) => format.nan,
        (_, true) if negative => 0,
        _ => bits,
    }
}

fn extreme(op: FloatOp, format: Format, a: u64, b: u64) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (false, false) => {}
        (true, true) => return format.nan,
        _ if matches!(op, FloatOp::MinNan | FloatOp::MaxNan) => return format.nan,
        (true, false) => return b,
        (false, true) => return a,
    }
    let least = match order(format, a, b) {
        Some(Ordering::Less) => a,
        Some(Ordering::Greater) => b,
        // Equal: -0 is less than +0.
        _ => a | b,
    };
    match op {
        FloatOp::Min | FloatOp::MinNan => least,
        _ if least == a => b,
        _ => a,
    }
}

fn sum(a: Number, b: Number, rounding: Rounding) -> Number {
    match (a, b) {
        (Number::Finite(a), Number::Finite(b)) => Number::Finite(a.plus(b, rounding)),
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) if a == b => {
            Number::Infinite { negative: a }
        }
        (Number::Infinite { negative }, Number::Finite(_)) | (Number::Finite(_), Number::Infinite { negative }) => {
            Number::Infinite { negative }
        }
        _ => Number::Nan,
    }
}

fn product(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Finite(a), Number::Finite(b)) => Number::Finite(a.times(b)),
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) => Number::Infinite { negative: a != b },
        (Number::Infinite { negative }, Number::Finite(x)) | (Number::Finite(x), Number::Infinite { negative })
            if x.mantissa != 0 =>
        {
            Number::Infinite { negative: negative != x.negative }
        }
        _ => Number::Nan,
    }
}

fn quotient(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Finite(a), Number::Finite(b)) => {
            let negative = a.negative != b.negative;
            match (a.mantissa, b.mantissa) {
                (0, 0) => Number::Nan,
                (_, 0) => Number::Infinite { negative },
                (0, _) => Number::Finite(Exact { negative, ..a }),
                _ => Number::Finite(a.over(b)),
            }
        }
        (Number::Infinite { negative }, Number::Finite(b)) => Number::Infinite { negative: negative != b.negative },
        (Number::Finite(a), Number::Infinite { negative }) => {
            Number::Finite(Exact { negative: negative != a.negative, ..Exact::integer(0) })
        }
        _ => Number::Nan,
    }
}

fn root(a: Number) -> Number {
    match a {
        Number::Finite(a) if a.mantissa == 0 => Number::Finite(a),
        Number::Finite(a) if !a.negative => Number::Finite(a.root()),
        Number::Infinite { negative: false } => a,
        _ => Number::Nan,
    }
}

/// What the hardware only approximates, as precisely as f64 has it.
fn approximation(op: FloatUnary, x: f64) -> Number {
    let result = match op {
        FloatUnary::Rsqrt => 1.0 / x.sqrt(),
        FloatUnary::Sin => x.sin(),
        FloatUnary::Cos => x.cos(),
        FloatUnary::Lg2 => x.log2(),
        FloatUnary::Ex2 => x.exp2(),
        _ => x.tanh(),
    };
    Format::of(Type::F64).decode(result.to_bits())
}

/// As an f64, which holds every number of the other formats.
pub(crate) fn value(format: Format, bits: u64) -> f64 {
    f64::from_bits(Format::of(Type::F64).encode(format.decode(bits), Rounding::NearestEven))
}

/// Nothing where one is NaN.
fn order(format: Format, a: u64, b: u64) -> Option<Ordering> {
    let infinite = |negative| if negative { -1 } else { 1 };
    match (format.decode(a), format.decode(b)) {
        (Number::Nan, _) | (_, Number::Nan) => None,
        (Number::Finite(a), Number::Finite(b)) => Some(a.compare(b)),
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) => Some(infinite(a).cmp(&infinite(b))),
        (Number::Infinite { negative }, _) => Some(infinite(negative).cmp(&0)),
        (_, Number::Infinite { negative }) => Some(0.cmp(&infinite(negative))),
    }
}

/// Whether a comparison holds for two numbers in this order, or for a pair with a NaN in it.
pub(crate) fn holds(comparison: Comparison, order: Option<Ordering>) -> bool {
    let Some(order) = order else {
        return matches!(
            comparison,
            Comparison::Equ
                | Comparison::Neu
                | Comparison::Ltu
                | Comparison::Leu
                | Comparison::Gtu
                | Comparison::Geu
                | Comparison::Nan
        );
    };
    match comparison {
        Comparison::Eq | Comparison::Equ => order.is_eq(),
        Comparison::Ne | Comparison::Neu => order.is_ne(),
        Comparison::Lt | Comparison::Ltu => order.is_lt(),
        Comparison::Le | Comparison::Leu => order.is_le(),
        Comparison::Gt | Comparison::Gtu => order.is_gt(),
        Comparison::Ge | Comparison::Geu => order.is_ge(),
        Comparison::Num => true,
        Comparison::Nan => false,
    }
}

pub(crate) fn compare(comparison: Comparison, ty: Type, flush: bool, a: u64, b: u64) -> bool {
    let format = Format::of(ty);
    let [a, b] = [a, b].map(|bits| if flush { format.flushed(bits) } else { bits });
    holds(comparison, order(format, a, b))
}

pub(crate) fn test(test: FloatTest, ty: Type, a: u64) -> bool {
    let format = Format::of(ty);
    let (nan, infinite) = (format.is_nan(a), a & !format.sign() == format.infinity());
    match test {
        FloatTest::Finite => !nan && !infinite,
        FloatTest::Infinite => infinite,
        FloatTest::Number => !nan,
        FloatTest::NotANumber => nan,
        FloatTest::Normal => !nan && !infinite && !format.is_subnormal(a) && a & !format.sign() != 0,
        FloatTest::Subnormal => format.is_subnormal(a),
    }
}
