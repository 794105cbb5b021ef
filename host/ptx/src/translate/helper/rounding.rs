//! Results rounded in other directions than to the nearest, and in other formats than WebAssembly's.
//!
//! The error of a sum, product, quotient or root of `f64` that was rounded to the nearest can be computed exactly; its sign says whether the result is already on
//! the asked side of the exact one, or whether its neighbour is.

use super::{Direction, Format};
use crate::translate::build::ssa::Builder;
use crate::translate::ir::{Binary, Kind, Unary, Value};

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;

/// `f16` to `f32`: the exponent is moved by a product with a power of 2, which is exact and puts denormals right too.
pub fn widen(b: &mut Builder) -> Value {
    let bits = b.argument(0);
    let (magnitude_mask, sign_mask, thirteen, sixteen) = (b.i32(0x7fff), b.i32(0x8000), b.i32(13), b.i32(16));
    let magnitude = b.and(bits, magnitude_mask);
    let sign = b.and(bits, sign_mask);
    let sign = b.shl(sign, sixteen);
    let moved = b.shl(magnitude, thirteen);
    let small = b.reinterpret(moved, Kind::F32);
    let power = b.constant(Kind::F32, u64::from((127_u32 + 112) << 23));
    let number = b.mul(small, power);
    let number = b.reinterpret(number, Kind::I32);
    let infinity = b.i32(0x7f80_0000);
    let special = b.or(moved, infinity);
    let most = b.i32(0x7bff);
    let is_special = b.lt_u(most, magnitude);
    let value = b.select(is_special, special, number);
    let value = b.or(value, sign);
    b.reinterpret(value, Kind::F32)
}

/// An `f64` to the bits of a format: the magnitude is counted in units of its last place, which makes the bits of the result but for the exponent.
pub fn round(b: &mut Builder, format: Format, direction: Direction) -> Value {
    // Bits of fraction, the least exponent, the bits of infinity, of NaN and of the sign.
    let (fraction, least, infinity, nan, sign_bit) = match format {
        Format::F16 => (10, -14_i64, 0x7c00_u32, 0x7fff_u32, 15),
        Format::Bf16 => (7, -126, 0x7f80, 0x7fff, 15),
        Format::F32 => (23, -126, 0x7f80_0000, 0x7fff_ffff, 31),
        Format::Tf32 => (10, -126, 0x3fc00, 0x3ffff, 18),
    };
    let x = b.argument(0);
    let bits = b.reinterpret(x, Kind::I64);
    let (fifty_two, sixty_three, all_but_sign) = (b.i64(52), b.i64(63), b.i64(SIGN - 1));
    let magnitude_bits = b.and(bits, all_but_sign);
    let sign = b.shr_u(bits, sixty_three);
    let sign = b.unary(Unary::Wrap, sign);
    let biased = b.shr_u(magnitude_bits, fifty_two);
    // Within what the format has; larger numbers become so many units that they overflow below.
    let (lowest, highest) = (b.i64((1023 + least) as u64), b.i64((1023 - least + 1) as u64));
    let below = b.lt_s(biased, lowest);
    let exponent = b.select(below, lowest, biased);
    let above = b.lt_s(highest, exponent);
    let exponent = b.select(above, highest, exponent);
    let offset = b.i64((2 * 1023 + fraction) as u64);
    let scale = b.sub(offset, exponent);
    let scale = b.shl(scale, fifty_two);
    let scale = b.reinterpret(scale, Kind::F64);
    let magnitude = b.reinterpret(magnitude_bits, Kind::F64);
    let units = b.mul(magnitude, scale);
    let units = whole(b, units, direction, sign);
    // The largest is not so large that the exponent, added to it, would come round to 0.
    let units = b.unary(Unary::ToInteger { to: Kind::I64, signed: true }, units);
    let steps = b.sub(exponent, lowest);
    let fraction = b.i64(fraction as u64);
    let steps = b.shl(steps, fraction);
    let number = b.add(units, steps);
    let limit = b.i64(u64::from(infinity));
    let overflow = b.le_u(limit, number);
    let number = b.unary(Unary::Wrap, number);
    let beyond = beyond(b, infinity, direction, sign);
    let number = b.select(overflow, beyond, number);
    let is_infinite = b.i64(INFINITY);
    let (exact_infinity, is_nan) = (b.eq(magnitude_bits, is_infinite), b.lt_u(is_infinite, magnitude_bits));
    let infinity = b.i32(infinity);
    let number = b.select(exact_infinity, infinity, number);
    let place = b.i32(sign_bit);
    let sign = b.shl(sign, place);
    let number = b.or(number, sign);
    let nan = b.i32(nan);
    b.select(is_nan, nan, number)
}

/// A positive number rounded to an integer, in a direction that depends on the sign it will get.
fn whole(b: &mut Builder, x: Value, direction: Direction, negative: Value) -> Value {
    match direction {
        Direction::Nearest => b.unary(Unary::Nearest, x),
        Direction::Away => {
            let half = b.f64(0.5);
            let more = b.add(x, half);
            b.unary(Unary::Floor, more)
        }
        Direction::Zero => b.unary(Unary::Floor, x),
        Direction::Down | Direction::Up => {
            let (less, more) = (b.unary(Unary::Floor, x), b.unary(Unary::Ceil, x));
            if direction == Direction::Down { b.select(negative, more, less) } else { b.select(negative, less, more) }
        }
    }
}

/// What a finite number becomes that is larger than all of the format.
fn beyond(b: &mut Builder, infinity: u32, direction: Direction, negative: Value) -> Value {
    let (largest, infinity) = (b.i32(infinity - 1), b.i32(infinity));
    match direction {
        Direction::Nearest | Direction::Away => infinity,
        Direction::Zero => largest,
        Direction::Down => b.select(negative, infinity, largest),
        Direction::Up => b.select(negative, largest, infinity),
    }
}

/// A sum rounded to the nearest, and what is missing (Knuth's two-sum).
fn two_sum(b: &mut Builder, x: Value, y: Value) -> (Value, Value) {
    let sum = b.add(x, y);
    let y_part = b.sub(sum, x);
    let x_part = b.sub(sum, y_part);
    let y_rest = b.sub(y, y_part);
    let x_rest = b.sub(x, x_part);
    (sum, b.add(x_rest, y_rest))
}

/// Makes the last bit of an inexact result odd: exact − `rounded` has the sign of `error`.
fn odd(b: &mut Builder, rounded: Value, error: Value) -> Value {
    let zero = b.f64(0.0);
    let bits = b.reinterpret(rounded, Kind::I64);
    let (one, minus_one) = (b.i64(1), b.i64(u64::MAX));
    let last = b.and(bits, one);
    let (more, less) = (b.lt(zero, error), b.lt(error, zero));
    let inexact = b.or(more, less);
    let even = b.unary(Unary::IsZero, last);
    let change = b.and(inexact, even);
    // Away from 0 if the error has the sign of the result, else towards it.
    let sign_of_error = b.reinterpret(error, Kind::I64);
    let difference = b.xor(sign_of_error, bits);
    let zero_bits = b.i64(0);
    let against = b.lt_s(difference, zero_bits);
    let step = b.select(against, minus_one, one);
    let neighbour = b.add(bits, step);
    let value = b.select(change, neighbour, bits);
    let value = b.reinterpret(value, Kind::F64);
    finite_or(b, rounded, value)
}

/// The second where the first is finite, else the first.
fn finite_or(b: &mut Builder, rounded: Value, value: Value) -> Value {
    let (magnitude, infinity) = (b.unary(Unary::Abs, rounded), b.f64(f64::INFINITY));
    let finite = b.lt(magnitude, infinity);
    b.select(finite, value, rounded)
}

pub fn add_odd(b: &mut Builder) -> Value {
    let (x, y) = (b.argument(0), b.argument(1));
    let (sum, error) = two_sum(b, x, y);
    odd(b, sum, error)
}

/// A sum of `f64`, rounded once to an `f32` upwards, downwards or towards 0. So short that it stands where it is needed.
pub fn sum_32(b: &mut Builder, direction: Direction, mut operands: [Value; 2]) -> Value {
    let (direction, flipped) = mirrored(b, direction, &mut operands);
    let (sum, error) = two_sum(b, operands[0], operands[1]);
    // Rounding twice to the nearest gives one of the two numbers between which the exact sum lies, or the sum itself.
    let single = b.unary(Unary::Demote, sum);
    let wide = b.unary(Unary::Promote, single);
    // Of exact − single, the first summand is exact and in units larger than the second, or 0.
    let (rest, against) = (b.sub(sum, wide), b.unary(Unary::Neg, error));
    let below = b.lt(against, rest);
    let bits = b.reinterpret(single, Kind::I32);
    let no_bits = b.i32(0);
    let negative = b.lt_s(bits, no_bits);
    // A zero has the sign of the sum: no step leads through it to the other side.
    let stepped = if direction == Direction::Up {
        let (up, down) = (b.add(bits, below), b.sub(bits, below));
        b.select(negative, down, up)
    } else {
        let above = b.lt(rest, against);
        let beyond = b.select(negative, below, above);
        b.sub(bits, beyond)
    };
    let value = b.reinterpret(stepped, Kind::F32);
    unmirrored(b, flipped, value)
}

/// `x · y + z` in `f32`, rounded down, where the operands are such that the result is an integer whose last bit counts ones: `x` lies between 0 and 1, and for `y` and `z` see
/// [`gives_integers`].
pub fn integer_below(b: &mut Builder, [x, y, z]: [Value; 3]) -> Value {
    let nearest = b.fma(x, y, z);
    // An integer too, and so exact; the sign of what is left is that of exact − nearest.
    let less = b.sub(z, nearest);
    let rest = b.fma(x, y, less);
    let zero = b.constant(Kind::F32, 0);
    let above = b.lt(rest, zero);
    let bits = b.reinterpret(nearest, Kind::I32);
    let bits = b.sub(bits, above);
    b.reinterpret(bits, Kind::F32)
}

/// Whether all sums of `z` and of numbers between 0 and `y` are between 2²³ and 2²⁴, where the `f32` are the integers.
pub fn gives_integers(y: f32, z: f32) -> bool {
    const LEAST: f32 = (1 << 23) as f32;
    (1.0..LEAST).contains(&y) && z >= LEAST && f64::from(z) + f64::from(y) < f64::from(2.0 * LEAST)
}

/// The remainder of a quotient, with the sign that tells on which side the quotient is.
fn division_error(b: &mut Builder, x: Value, y: Value, quotient: Value) -> Value {
    let negated = b.unary(Unary::Neg, quotient);
    let rest = b.fma(negated, y, x);
    // Divided by a negative number, a positive rest means that the quotient is too large.
    let flipped = b.unary(Unary::Neg, rest);
    let zero = b.f64(0.0);
    let negative = b.lt(y, zero);
    b.select(negative, flipped, rest)
}

pub fn div_odd(b: &mut Builder) -> Value {
    let (x, y) = (b.argument(0), b.argument(1));
    let quotient = b.div(x, y);
    let error = division_error(b, x, y, quotient);
    odd(b, quotient, error)
}

fn root_error(b: &mut Builder, x: Value, root: Value) -> Value {
    let negated = b.unary(Unary::Neg, root);
    b.fma(negated, root, x)
}

pub fn sqrt_odd(b: &mut Builder) -> Value {
    let x = b.argument(0);
    let root = b.unary(Unary::Sqrt, x);
    let error = root_error(b, x, root);
    odd(b, root, error)
}

/// The neighbour of a result if the exact one lies on the other side: exact − `rounded` has the sign of `error`.
fn directed(b: &mut Builder, rounded: Value, error: Value, direction: Direction) -> Value {
    let zero = b.f64(0.0);
    let bits = b.reinterpret(rounded, Kind::I64);
    let (more, less) = (b.lt(zero, error), b.lt(error, zero));
    let (up, down) = (neighbour(b, bits, true), neighbour(b, bits, false));
    let value = match direction {
        Direction::Up => b.select(more, up, bits),
        Direction::Down => b.select(less, down, bits),
        Direction::Zero => {
            let zero_bits = b.i64(0);
            let negative = b.lt_s(bits, zero_bits);
            let (when_negative, when_positive) = (b.select(more, up, bits), b.select(less, down, bits));
            b.select(negative, when_negative, when_positive)
        }
        Direction::Nearest | Direction::Away => bits,
    };
    let value = b.reinterpret(value, Kind::F64);
    finite_or(b, rounded, value)
}

/// The next number above or below.
fn neighbour(b: &mut Builder, bits: Value, above: bool) -> Value {
    let (zero, one, minus_one) = (b.i64(0), b.i64(1), b.i64(u64::MAX));
    let negative = b.lt_s(bits, zero);
    let step = if above { b.select(negative, minus_one, one) } else { b.select(negative, one, minus_one) };
    let next = b.add(bits, step);
    // From a zero of either sign it is the smallest denormal.
    let all_but_sign = b.i64(SIGN - 1);
    let magnitude = b.and(bits, all_but_sign);
    let is_zero = b.unary(Unary::IsZero, magnitude);
    let smallest = b.i64(if above { 1 } else { SIGN | 1 });
    b.select(is_zero, smallest, next)
}

/// A finite result that overflowed becomes the largest number where the direction forbids infinity; `exact` says that an operand was infinite.
fn without_overflow(b: &mut Builder, rounded: Value, exact: Value, direction: Direction) -> Value {
    let (magnitude, infinity) = (b.unary(Unary::Abs, rounded), b.f64(f64::INFINITY));
    let infinite = b.eq(magnitude, infinity);
    let finite_operands = b.unary(Unary::IsZero, exact);
    let overflow = b.and(infinite, finite_operands);
    let zero = b.f64(0.0);
    let (largest, smallest) = (b.f64(f64::MAX), b.f64(f64::MIN));
    let negative = b.lt(rounded, zero);
    let limit = match direction {
        Direction::Zero => b.select(negative, smallest, largest),
        Direction::Down => b.select(negative, rounded, largest),
        Direction::Up => b.select(negative, smallest, rounded),
        Direction::Nearest | Direction::Away => rounded,
    };
    b.select(overflow, limit, rounded)
}

/// Whether one of them is infinite (or NaN, which no result hides).
fn any_infinite(b: &mut Builder, values: &[Value]) -> Value {
    let mut any = b.i32(0);
    for value in values {
        let (magnitude, infinity) = (b.unary(Unary::Abs, *value), b.f64(f64::INFINITY));
        let finite = b.lt(magnitude, infinity);
        let infinite = b.unary(Unary::IsZero, finite);
        any = b.or(any, infinite);
    }
    any
}

/// -(-x rounded up): so that an exact 0 gets the sign that the direction asks for.
fn mirrored(b: &mut Builder, direction: Direction, operands: &mut [Value]) -> (Direction, bool) {
    if direction != Direction::Down {
        return (direction, false);
    }
    for operand in operands {
        *operand = b.unary(Unary::Neg, *operand);
    }
    (Direction::Up, true)
}

fn unmirrored(b: &mut Builder, mirrored: bool, value: Value) -> Value {
    if mirrored { b.unary(Unary::Neg, value) } else { value }
}

pub fn add(b: &mut Builder, direction: Direction) -> Value {
    let mut operands = [b.argument(0), b.argument(1)];
    let exact = any_infinite(b, &operands);
    let (direction, flipped) = mirrored(b, direction, &mut operands);
    let (sum, error) = two_sum(b, operands[0], operands[1]);
    let value = directed(b, sum, error, direction);
    let value = without_overflow(b, value, exact, direction);
    unmirrored(b, flipped, value)
}

/// 1 with the sign of a product.
fn product_sign(b: &mut Builder, x: Value, y: Value) -> Value {
    let (sign_x, sign_y, one) = (b.reinterpret(x, Kind::I64), b.reinterpret(y, Kind::I64), b.f64(1.0));
    let sign = b.xor(sign_x, sign_y);
    let sign = b.reinterpret(sign, Kind::F64);
    b.binary(Binary::Copysign, one, sign)
}

/// Exact − product. Where the product is tiny, its last bits are beyond what a float holds: then the smaller factor is scaled up first.
fn product_error(b: &mut Builder, x: Value, y: Value, product: Value) -> Value {
    let negated = b.unary(Unary::Neg, product);
    let plain = b.fma(x, y, negated);
    let scale = power(b, 600);
    let (x_size, y_size) = (b.unary(Unary::Abs, x), b.unary(Unary::Abs, y));
    let x_smaller = b.lt(x_size, y_size);
    let (small, large) = (b.select(x_smaller, x, y), b.select(x_smaller, y, x));
    let (scaled, scaled_product) = (b.mul(small, scale), b.mul(negated, scale));
    let precise = b.fma(scaled, large, scaled_product);
    // A product that vanished: what is missing is all of it, and has its sign.
    let (sign_x, sign_y, one, zero) =
        (b.reinterpret(x, Kind::I64), b.reinterpret(y, Kind::I64), b.f64(1.0), b.f64(0.0));
    let sign = b.xor(sign_x, sign_y);
    let sign = b.reinterpret(sign, Kind::F64);
    let missing = b.binary(Binary::Copysign, one, sign);
    let (x_some, y_some, vanished) = (b.lt(zero, x_size), b.lt(zero, y_size), b.eq(product, zero));
    let some = b.and(x_some, y_some);
    let vanished = b.and(some, vanished);
    let precise = b.select(vanished, missing, precise);
    let (size, limit) = (b.unary(Unary::Abs, product), power(b, -900));
    let tiny = b.lt(size, limit);
    b.select(tiny, precise, plain)
}

pub fn mul(b: &mut Builder, direction: Direction) -> Value {
    let (x, y) = (b.argument(0), b.argument(1));
    let exact = any_infinite(b, &[x, y]);
    let product = b.mul(x, y);
    let error = product_error(b, x, y, product);
    let value = directed(b, product, error, direction);
    without_overflow(b, value, exact, direction)
}

pub fn div(b: &mut Builder, direction: Direction) -> Value {
    let (x, y) = (b.argument(0), b.argument(1));
    let zero = b.f64(0.0);
    let (infinite, by_zero) = (any_infinite(b, &[x, y]), b.eq(y, zero));
    let exact = b.or(infinite, by_zero);
    let quotient = b.div(x, y);
    // The rest of a small dividend is beyond what a float holds: both operands are scaled, which leaves the quotient.
    let (size, limit, scale, one) = (b.unary(Unary::Abs, x), power(b, -900), power(b, 200), b.f64(1.0));
    let small = b.lt(size, limit);
    let scale = b.select(small, scale, one);
    let (scaled_x, scaled_y) = (b.mul(x, scale), b.mul(y, scale));
    let error = division_error(b, scaled_x, scaled_y, quotient);
    let (x_size, q_size) = (b.lt(zero, size), b.eq(quotient, zero));
    let vanished = b.and(x_size, q_size);
    let missing = product_sign(b, x, y);
    let error = b.select(vanished, missing, error);
    let error = b.select(infinite, zero, error);
    let value = directed(b, quotient, error, direction);
    without_overflow(b, value, exact, direction)
}

pub fn sqrt(b: &mut Builder, direction: Direction) -> Value {
    let x = b.argument(0);
    // Scaled by an even power of 2 where the rest would be beyond what a float holds.
    let (limit, zero, one) = (power(b, -900), b.f64(0.0), b.f64(1.0));
    let small = b.lt(x, limit);
    let (up, root_up) = (power(b, 200), power(b, 100));
    let (scale, root_scale) = (b.select(small, up, one), b.select(small, root_up, one));
    let root = b.unary(Unary::Sqrt, x);
    let (scaled, scaled_root) = (b.mul(x, scale), b.mul(root, root_scale));
    let error = root_error(b, scaled, scaled_root);
    let positive = b.lt(zero, x);
    let error = b.select(positive, error, zero);
    directed(b, root, error, direction)
}

/// The error of a fused product and sum: the product's own error and the sum's, added to what rounding took away.
fn fused_error(b: &mut Builder, x: Value, y: Value, z: Value, result: Value) -> Value {
    let product = b.mul(x, y);
    let negated = b.unary(Unary::Neg, product);
    let product_error = b.fma(x, y, negated);
    let (sum, sum_error) = two_sum(b, product, z);
    let taken = b.sub(sum, result);
    let (rest, last) = two_sum(b, sum_error, product_error);
    let first = b.add(taken, rest);
    let zero = b.f64(0.0);
    let decided = b.ne(first, zero);
    b.select(decided, first, last)
}

/// 2 to this power.
fn power(b: &mut Builder, exponent: i64) -> Value {
    b.f64(f64::from_bits(((1023 + exponent) as u64) << 52))
}

/// The error is computed on operands that are scaled to where nothing of it is lost. Where the product is so small that the result is the third operand, its sign is
/// all that counts.
pub fn fma(b: &mut Builder, direction: Direction) -> Value {
    let mut operands = [b.argument(0), b.argument(1), b.argument(2)];
    let exact = any_infinite(b, &operands);
    let [x, y, z] = &mut operands;
    let mut turned = [*x, *z];
    let (direction, flipped) = mirrored(b, direction, &mut turned);
    (*x, *z) = (turned[0], turned[1]);
    let (x, y, z) = (*x, *y, *z);
    let result = b.fma(x, y, z);
    let product = b.mul(x, y);
    let (x_size, y_size, z_size, size) =
        (b.unary(Unary::Abs, x), b.unary(Unary::Abs, y), b.unary(Unary::Abs, z), b.unary(Unary::Abs, product));
    let x_smaller = b.lt(x_size, y_size);
    let (small, large) = (b.select(x_smaller, x, y), b.select(x_smaller, y, x));
    let (low, high) = (power(b, -900), power(b, 1000));
    let (tiny, huge_product, huge_sum) = (b.lt(size, low), b.lt(high, size), b.lt(high, z_size));
    let huge = b.or(huge_product, huge_sum);
    let (up, down, one) = (power(b, 600), power(b, -200), b.f64(1.0));
    let scale = b.select(huge, down, one);
    let scale = b.select(tiny, up, scale);
    let shrinks = b.lt(scale, one);
    let (moved, other) = (b.select(shrinks, large, small), b.select(shrinks, small, large));
    let moved = b.mul(moved, scale);
    // Of a summand that scaling would lose, only the sign counts.
    let (least, zero) = (power(b, -700), b.f64(0.0));
    let (some, little) = (b.lt(zero, z_size), b.lt(z_size, least));
    let lost = b.and(some, little);
    let lost = b.and(lost, shrinks);
    let stand_in = b.binary(Binary::Copysign, least, z);
    let summand = b.mul(z, scale);
    let summand = b.select(lost, stand_in, summand);
    let scaled_result = b.mul(result, scale);
    let error = fused_error(b, moved, other, summand, scaled_result);
    let (beside, vanishing, between) = (power(b, -800), power(b, -500), power(b, 800));
    let scaled_product = b.mul(moved, other);
    let scaled_size = b.unary(Unary::Abs, scaled_product);
    let (next_to, gone) = (b.lt(beside, z_size), b.lt(scaled_size, vanishing));
    let without_trace = b.or(next_to, gone);
    let without_trace = b.and(tiny, without_trace);
    let far_below = b.lt(size, between);
    let far_below = b.and(far_below, huge_sum);
    let only_sign = b.or(without_trace, far_below);
    let (x_some, y_some) = (b.lt(zero, x_size), b.lt(zero, y_size));
    let product_some = b.and(x_some, y_some);
    let missing = product_sign(b, x, y);
    let missing = b.select(product_some, missing, zero);
    let error = b.select(only_sign, missing, error);
    let value = directed(b, result, error, direction);
    let value = without_overflow(b, value, exact, direction);
    unmirrored(b, flipped, value)
}
