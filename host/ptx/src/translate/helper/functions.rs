//! The functions that a GPU approximates, for `f32`: more exact than the 22 or so bits that PTX promises, and the same on every machine. But for powers of 2,
//! which kernels are full of, they are short polynomials in `f64`, rounded once.

use crate::translate::build::ssa::Builder;
use crate::translate::ir::{Binary, Kind, Unary, Value};

/// A polynomial, its coefficients from the constant on. Neighbours are joined first, then pairs of them: a chain a third as long as from one to the next.
fn polynomial(b: &mut Builder, x: Value, coefficients: &[f64]) -> Value {
    let mut terms: Vec<Value> = coefficients.iter().map(|coefficient| b.f64(*coefficient)).collect();
    let mut power = x;
    while terms.len() > 1 {
        let mut joined = Vec::new();
        for pair in terms.chunks(2) {
            joined.push(match *pair {
                [low, high] => {
                    let product = b.mul(high, power);
                    b.add(low, product)
                }
                _ => pair[0],
            });
        }
        terms = joined;
        if terms.len() > 1 {
            power = b.mul(power, power);
        }
    }
    terms.first().copied().unwrap_or(x)
}

/// Coefficients of 2ˣ between -½ and ½: a polynomial of `f32` that, with its roundings, is less than one unit in the last place away.
const POWER: [f32; 7] =
    [1.0, std::f32::consts::LN_2, 0.240_226_45, 0.055_503_592, 0.009_618_841, 0.001_339_113_7, 0.000_152_380_06];

/// In this sum the last place is worth 1: its lower bits are the nearest integer.
const MAGIC: f32 = 12_582_912.0;

/// 2 to the power of an `f32`: that of the rest which the nearest integer leaves, and this integer added to [`MAGIC`].
fn parts_of_power(b: &mut Builder, x: Value) -> (Value, Value) {
    let single = |b: &mut Builder, number: f32| b.constant(Kind::F32, u64::from(number.to_bits()));
    // Beyond these an `f32` is infinite or 0, and the exponent below stays in range. A NaN stays one.
    let (least, most) = (single(b, -200.0), single(b, 200.0));
    let x = b.binary(Binary::Max, x, least);
    let x = b.binary(Binary::Min, x, most);
    let magic = single(b, MAGIC);
    let shifted = b.add(x, magic);
    let whole = b.sub(shifted, magic);
    let rest = b.sub(x, whole);
    let [lower @ .., last] = POWER;
    let mut fraction = single(b, last);
    for coefficient in lower.into_iter().rev() {
        let coefficient = single(b, coefficient);
        fraction = b.fma(fraction, rest, coefficient);
    }
    (fraction, shifted)
}

/// The same as an `f64`, in whose range it always is.
fn power_of_two(b: &mut Builder, x: Value) -> Value {
    let (fraction, shifted) = parts_of_power(b, x);
    let (place, one) = (b.i64(52), b.i64(1_f64.to_bits()));
    let exponent = b.reinterpret(shifted, Kind::I32);
    let exponent = b.unary(Unary::Widen { signed: false }, exponent);
    let exponent = b.shl(exponent, place);
    let power = b.add(exponent, one);
    let power = b.reinterpret(power, Kind::F64);
    let fraction = b.unary(Unary::Promote, fraction);
    b.mul(fraction, power)
}

/// The power of 2 of an `f32`. So short that it stands where it is needed. The integer is halved: the product with one half's power is exact, and that with the other's the only one to be rounded,
/// to infinity or a denormal number too.
pub fn exp2(b: &mut Builder, x: Value) -> Value {
    let (fraction, shifted) = parts_of_power(b, x);
    let (zero, one, place, bias) = (b.i32(MAGIC.to_bits()), b.i32(1), b.i32(23), b.i32(127));
    let exponent = b.reinterpret(shifted, Kind::I32);
    let exponent = b.sub(exponent, zero);
    let half = b.shr_s(exponent, one);
    let other = b.sub(exponent, half);
    let mut value = fraction;
    for exponent in [half, other] {
        let biased = b.add(exponent, bias);
        let power = b.shl(biased, place);
        let power = b.reinterpret(power, Kind::F32);
        value = b.mul(value, power);
    }
    value
}

pub fn log2(b: &mut Builder) -> Value {
    let x = b.argument(0);
    let wide = b.unary(Unary::Promote, x);
    let bits = b.reinterpret(wide, Kind::I64);
    // x = 2ⁿ · m with m between √½ and √2.
    let (base, place) = (b.i64(std::f64::consts::FRAC_1_SQRT_2.to_bits()), b.i64(52));
    let distance = b.sub(bits, base);
    let exponent = b.shr_s(distance, place);
    let shift = b.shl(exponent, place);
    let mantissa = b.sub(bits, shift);
    let mantissa = b.reinterpret(mantissa, Kind::F64);
    let (one, zero) = (b.f64(1.0), b.f64(0.0));
    let (above, below) = (b.sub(mantissa, one), b.add(mantissa, one));
    let s = b.div(above, below);
    let square = b.mul(s, s);
    let scale = 2.0 / std::f64::consts::LN_2;
    let coefficients: Vec<f64> = (0..9).map(|index| scale / f64::from(2 * index + 1)).collect();
    let series = polynomial(b, square, &coefficients);
    let fraction = b.mul(s, series);
    let exponent = b.unary(Unary::ToFloat { to: Kind::F64, signed: true }, exponent);
    let number = b.add(exponent, fraction);
    let (nan, infinity, minus_infinity) = (b.f64(f64::NAN), b.f64(f64::INFINITY), b.f64(f64::NEG_INFINITY));
    let finite = b.lt(wide, infinity);
    // Infinity and NaN are their own logarithms.
    let value = b.select(finite, number, wide);
    let (negative, is_zero) = (b.lt(wide, zero), b.eq(wide, zero));
    let value = b.select(negative, nan, value);
    let value = b.select(is_zero, minus_infinity, value);
    b.unary(Unary::Demote, value)
}

/// 2/π in binary, 32 digits a word, with 32 zeros before the point.
const TWO_OVER_PI: [u64; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// A large angle as quarters of a turn and a rest, by whole numbers (Payne, Hanek): of 2/π only those digits are multiplied that don't make whole turns.
fn far_angle(b: &mut Builder, x: Value) -> (Value, Value) {
    let bits = b.reinterpret(x, Kind::I32);
    let (fraction, unit, place, bias) = (b.i32(0x7f_ffff), b.i32(0x80_0000), b.i32(23), b.i32(120));
    let mantissa = b.and(bits, fraction);
    let mantissa = b.or(mantissa, unit);
    let mantissa = b.unary(Unary::Widen { signed: false }, mantissa);
    let exponent = b.shr_u(bits, place);
    let exponent_mask = b.i32(0xff);
    let exponent = b.and(exponent, exponent_mask);
    // x = mantissa · 2ᵏ with k from 1 on: the digits of 2/π that count begin with the one before the k-th behind the point.
    let first = b.sub(exponent, bias);
    let (five, last) = (b.i32(5), b.i32(31));
    let (word, shift) = (b.shr_u(first, five), b.and(first, last));
    let shift = b.unary(Unary::Widen { signed: false }, shift);
    let mut high = b.i64(0);
    let mut low = b.i64(0);
    for index in (0..TWO_OVER_PI.len() - 2).rev() {
        let number = b.i32(index as u32);
        let here = b.eq(word, number);
        let upper = b.i64(TWO_OVER_PI[index] << 32 | TWO_OVER_PI[index + 1]);
        let lower = b.i64(TWO_OVER_PI[index + 2]);
        (high, low) = (b.select(here, upper, high), b.select(here, lower, low));
    }
    let half = b.i64(32);
    let spare = b.sub(half, shift);
    let (high, low) = (b.shl(high, shift), b.shr_u(low, spare));
    let digits = b.or(high, low);
    // In units of 2⁻⁶² quarters; what is left out at the top are whole turns.
    let angle = b.mul(digits, mantissa);
    let (round, place) = (b.i64(1 << 61), b.i64(62));
    let rounded = b.add(angle, round);
    let quadrant = b.shr_u(rounded, place);
    let whole = b.shl(quadrant, place);
    let rest = b.sub(angle, whole);
    let rest = b.unary(Unary::ToFloat { to: Kind::F64, signed: true }, rest);
    let scale = b.f64(std::f64::consts::FRAC_PI_2 / (1_u64 << 62) as f64);
    let rest = b.mul(rest, scale);
    // The other way round for a negative angle.
    let zero = b.i32(0);
    let negative = b.lt_s(bits, zero);
    let (zero, flipped) = (b.i64(0), b.unary(Unary::Neg, rest));
    let back = b.sub(zero, quadrant);
    (b.select(negative, flipped, rest), b.select(negative, back, quadrant))
}

/// The sine, or with a quarter of a turn more the cosine.
pub fn sine(b: &mut Builder, shifted: bool) -> Value {
    let x = b.argument(0);
    let wide = b.unary(Unary::Promote, x);
    let (size, zero) = (b.unary(Unary::Abs, wide), b.f64(0.0));
    let turns = b.f64(std::f64::consts::FRAC_2_PI);
    let quarters = b.mul(wide, turns);
    let quarters = b.unary(Unary::Nearest, quarters);
    let negated = b.unary(Unary::Neg, quarters);
    // π/2 in two parts.
    let (first, second) = (b.f64(std::f64::consts::FRAC_PI_2), b.f64(6.123_233_995_736_766e-17));
    let rest = b.fma(negated, first, wide);
    let rest = b.fma(negated, second, rest);
    let quadrant = b.unary(Unary::ToInteger { to: Kind::I64, signed: true }, quarters);
    let (rest_variable, quadrant_variable) = (b.variable(Kind::F64), b.variable(Kind::I64));
    b.write(rest_variable, rest);
    b.write(quadrant_variable, quadrant);
    let (far, behind) = (b.block(), b.block());
    let limit = b.f64(16_777_216.0);
    let is_far = b.lt(limit, size);
    b.branch(is_far, far, behind);
    b.start(far);
    let (rest, quadrant) = far_angle(b, x);
    b.write(rest_variable, rest);
    b.write(quadrant_variable, quadrant);
    b.jump(behind);
    b.start(behind);
    let (rest, quadrant) = (b.read(rest_variable), b.read(quadrant_variable));
    let square = b.mul(rest, rest);
    let sine = polynomial(
        b,
        square,
        &[1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5_040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0],
    );
    let sine = b.mul(sine, rest);
    let cosine = polynomial(
        b,
        square,
        &[1.0, -0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0, 1.0 / 479_001_600.0],
    );
    let (one, two) = (b.i64(1), b.i64(2));
    let quadrant = if shifted { b.add(quadrant, one) } else { quadrant };
    let (odd, back) = (b.and(quadrant, one), b.and(quadrant, two));
    let (odd, back) = (b.unary(Unary::Wrap, odd), b.unary(Unary::Wrap, back));
    let value = b.select(odd, cosine, sine);
    let flipped = b.unary(Unary::Neg, value);
    let value = b.select(back, flipped, value);
    // Of infinity (and NaN) there is no sine.
    let infinity = b.f64(f64::INFINITY);
    let finite = b.lt(size, infinity);
    let nan = b.f64(f64::NAN);
    let value = b.select(finite, value, nan);
    // A zero keeps its sign, which the sums above lose.
    let is_zero = b.eq(wide, zero);
    let value = if shifted { value } else { b.select(is_zero, wide, value) };
    b.unary(Unary::Demote, value)
}

/// 1 - 2 / (e²ˣ + 1), and near 0, where that cancels, the series.
pub fn tanh(b: &mut Builder) -> Value {
    let x = b.argument(0);
    let wide = b.unary(Unary::Promote, x);
    let factor = b.constant(Kind::F32, u64::from((2.0 * std::f32::consts::LOG2_E).to_bits()));
    let exponent = b.mul(x, factor);
    let power = power_of_two(b, exponent);
    let (one, two, limit) = (b.f64(1.0), b.f64(2.0), b.f64(0.02));
    let below = b.add(power, one);
    let quotient = b.div(two, below);
    let far = b.sub(one, quotient);
    let square = b.mul(wide, wide);
    let series = polynomial(b, square, &[1.0, -1.0 / 3.0, 2.0 / 15.0]);
    let near = b.mul(series, wide);
    let size = b.unary(Unary::Abs, wide);
    let small = b.lt(size, limit);
    let value = b.select(small, near, far);
    b.unary(Unary::Demote, value)
}
