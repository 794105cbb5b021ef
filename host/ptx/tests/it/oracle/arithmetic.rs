//! The oracle's own arithmetic against the processor's, where that has the operation.

use steadfast_ptx::module::{FloatMode, FloatOp, FloatUnary, Rounding, Type};

use super::exact::{Exact, Format, Number};
use super::{convert, float};
use crate::random::Random;

const NEAREST: FloatMode = FloatMode { rounding: Rounding::NearestEven, flush: false, saturate: false, relu: false };

/// With the one NaN of PTX. Told by bits: what an optimiser does with the payload of a float that it knows to be NaN is its own affair.
fn canonical(ty: Type, bits: u64) -> u64 {
    let format = Format::of(ty);
    if format.is_nan(bits) { format.nan } else { bits }
}

fn canonical32(x: f32) -> u64 {
    canonical(Type::F32, x.to_bits().into())
}

fn canonical64(x: f64) -> u64 {
    canonical(Type::F64, x.to_bits())
}

/// Bits of all kinds: half of them with exponents near one another, so that sums cancel.
fn bits32(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => random.edge(Type::F32) as u32,
        1 => random.next() as u32,
        _ => (random.next() as u32 & 0x807f_ffff) | (120 + random.below(12) as u32) << 23,
    }
}

fn bits64(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.edge(Type::F64),
        1 => random.next(),
        _ => (random.next() & 0x800f_ffff_ffff_ffff) | (1000 + random.below(40)) << 52,
    }
}

#[test]
fn single_precision_is_the_processors() {
    let mut random = Random::new(1);
    for _ in 0..200_000 {
        let [a, b, c] = [(); 3].map(|()| bits32(&mut random));
        let [x, y, z] = [a, b, c].map(f32::from_bits);
        let binary = |op| float::binary(op, Type::F32, NEAREST, a.into(), b.into());
        assert_eq!(binary(FloatOp::Add), canonical32(x + y), "{x:e} + {y:e}");
        assert_eq!(binary(FloatOp::Sub), canonical32(x - y), "{x:e} - {y:e}");
        assert_eq!(binary(FloatOp::Mul), canonical32(x * y), "{x:e} * {y:e}");
        assert_eq!(binary(FloatOp::Div), canonical32(x / y), "{x:e} / {y:e}");
        assert_eq!(float::unary(FloatUnary::Sqrt, Type::F32, NEAREST, a.into()), canonical32(x.sqrt()), "sqrt {x:e}");
        let fused = float::fused(Type::F32, NEAREST, a.into(), b.into(), c.into());
        assert_eq!(fused, canonical32(x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
    }
}

#[test]
fn double_precision_is_the_processors() {
    let mut random = Random::new(2);
    for _ in 0..200_000 {
        let [a, b, c] = [(); 3].map(|()| bits64(&mut random));
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let binary = |op| float::binary(op, Type::F64, NEAREST, a, b);
        assert_eq!(binary(FloatOp::Add), canonical64(x + y), "{x:e} + {y:e}");
        assert_eq!(binary(FloatOp::Mul), canonical64(x * y), "{x:e} * {y:e}");
        assert_eq!(binary(FloatOp::Div), canonical64(x / y), "{x:e} / {y:e}");
        assert_eq!(float::unary(FloatUnary::Sqrt, Type::F64, NEAREST, a), canonical64(x.sqrt()), "sqrt {x:e}");
        assert_eq!(float::fused(Type::F64, NEAREST, a, b, c), canonical64(x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
        let narrow = convert::convert(Type::F32, Type::F64, NEAREST, a);
        assert_eq!(narrow, canonical32(x as f32), "{x:e} as f32");
        let whole = FloatMode { rounding: Rounding::IntegerZero, ..NEAREST };
        if !x.is_nan() {
            assert_eq!(convert::convert(Type::S32, Type::F64, whole, a), u64::from(x as i32 as u32), "{x:e} as i32");
            assert_eq!(convert::convert(Type::U64, Type::F64, whole, a), x as u64, "{x:e} as u64");
        }
        assert_eq!(convert::convert(Type::F32, Type::S64, NEAREST, a), canonical32(a as i64 as f32), "{a} as f32");
        assert_eq!(convert::convert(Type::F64, Type::U64, NEAREST, a), canonical64(a as f64), "{a} as f64");
    }
}

/// Between the two directed results there is no number of the format, and the nearest is one of them.
#[test]
fn directed_roundings_enclose_the_result() {
    let format = Format::of(Type::F32);
    let ordered = |bits: u64| float::value(format, bits);
    let mut random = Random::new(3);
    for _ in 0..100_000 {
        let [a, b, c] = [(); 3].map(|()| u64::from(bits32(&mut random)));
        let rounded = |rounding| float::fused(Type::F32, FloatMode { rounding, ..NEAREST }, a, b, c);
        let [down, nearest, up, zero] =
            [Rounding::Down, Rounding::NearestEven, Rounding::Up, Rounding::Zero].map(rounded);
        // The zero of a sum that cancels has a sign of its own.
        if format.is_nan(nearest) || ordered(down) == ordered(up) {
            continue;
        }
        assert!(nearest == down || nearest == up, "{a:x} {b:x} {c:x}");
        assert!(zero == if nearest & format.sign() == 0 { down } else { up }, "{a:x} {b:x} {c:x}");
        assert_eq!(f32::from_bits(down as u32).next_up(), f32::from_bits(up as u32), "{a:x} {b:x} {c:x}");
    }
}

#[test]
fn half_precision_rounds_ties_to_even() {
    let f16 = |numerator: i128, exponent: i32| {
        let exact = Exact { exponent, ..Exact::integer(numerator) };
        Format::of(Type::F16).encode(Number::Finite(exact), Rounding::NearestEven)
    };
    assert_eq!(f16(1, 0), 0x3c00);
    assert_eq!(f16(2049, -11), 0x3c00, "1 + half a unit");
    assert_eq!(f16(2051, -11), 0x3c02, "1 + one and a half units");
    assert_eq!(f16(65504, 0), 0x7bff, "the largest");
    assert_eq!(f16(65519, 0), 0x7bff);
    assert_eq!(f16(65520, 0), 0x7c00, "a tie above the largest");
    assert_eq!(f16(1, -24), 1, "the smallest");
    assert_eq!(f16(1, -25), 0, "a tie with zero");
    assert_eq!(f16(3, -26), 1);
    assert_eq!(f16(-1023, -24), 0x83ff, "the largest denormal number");
}
