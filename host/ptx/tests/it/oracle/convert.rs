//! `cvt`: between all integers and floats.

use steadfast_ptx::module::{FloatMode, Rounding, Type};

use super::exact::{Exact, Format, Number};
use super::float::finished;
use super::integer::{clamped, signed_value, truncated};

pub(crate) fn convert(to: Type, from: Type, mode: FloatMode, bits: u64) -> u64 {
    match (to.is_float(), from.is_float()) {
        (false, false) => {
            let value = signed_value(from, bits);
            if mode.saturate { clamped(to, value) } else { truncated(to, value) }
        }
        (true, false) => {
            let format = Format::of(to);
            let number = Number::Finite(Exact::integer(signed_value(from, bits)));
            finished(format, mode, format.encode(number, mode.rounding))
        }
        (false, true) => to_integer(to, from, mode, bits),
        (true, true) => between_floats(to, from, mode, bits),
    }
}

/// Saturates. A NaN is 0 unless either side has 64 bits: then only the highest bit is set.
fn to_integer(to: Type, from: Type, mode: FloatMode, bits: u64) -> u64 {
    let format = Format::of(from);
    let bits = if mode.flush && from == Type::F32 { format.flushed(bits) } else { bits };
    match format.decode(bits) {
        Number::Nan if from == Type::F64 || to.bits() == 64 => 1 << (to.bits() - 1),
        Number::Nan => 0,
        Number::Infinite { negative } => clamped(to, if negative { i128::MIN } else { i128::MAX }),
        Number::Finite(exact) => clamped(to, whole(exact, mode.rounding)),
    }
}

/// Rounded to an integer. What is far out of every type's range stays so.
fn whole(exact: Exact, rounding: Rounding) -> i128 {
    let magnitude =
        if exact.exponent > 64 && exact.mantissa != 0 { 1 << 100 } else { exact.in_units_of(0, rounding) as i128 };
    if exact.negative { -magnitude } else { magnitude }
}

fn between_floats(to: Type, from: Type, mode: FloatMode, bits: u64) -> u64 {
    let (source, target) = (Format::of(from), Format::of(to));
    // `.ftz` is about single precision only, on either side.
    let bits = if mode.flush && from == Type::F32 { source.flushed(bits) } else { bits };
    let mode = FloatMode { flush: mode.flush && to == Type::F32, ..mode };
    let mut number = source.decode(bits);
    if let Number::Finite(exact) = number
        && is_to_integer(mode.rounding)
        && exact.exponent < 0
    {
        let mantissa = exact.in_units_of(0, mode.rounding);
        number = Number::Finite(Exact { mantissa, exponent: 0, ..exact });
    }
    finished(target, mode, target.encode(number, mode.rounding))
}

fn is_to_integer(rounding: Rounding) -> bool {
    matches!(
        rounding,
        Rounding::IntegerNearestEven | Rounding::IntegerZero | Rounding::IntegerDown | Rounding::IntegerUp
    )
}

/// `cvt.pack`: both saturated and side by side, `a` above; bytes are put below those of `c`.
pub(crate) fn pack(to: Type, from: Type, a: u64, b: u64, c: u64) -> u64 {
    let [a, b] = [a, b].map(|bits| clamped(to, signed_value(from, bits)));
    let width = to.bits();
    let pair = a << width | b;
    if width == 16 { pair } else { (c << (2 * width) | pair) & 0xffff_ffff }
}
