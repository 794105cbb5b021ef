//! What one operation on vectors makes of its operands: the same for each lane, in a few shapes.

use wasmparser::Operator as O;

use super::numeric::{least32, least64};

/// Lanes of 32 bits, the lowest first.
pub(super) fn lanes(value: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (value >> shift) as u32)
}

pub(super) fn vector(lanes: [u32; 4]) -> u128 {
    lanes.into_iter().rev().fold(0, |value, lane| value << 32 | u128::from(lane))
}

/// Lanes of 64 bits.
fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn splat(lane: u32) -> u128 {
    vector([lane; 4])
}

/// Of each lane.
fn each(a: u128, operation: impl Fn(u32) -> u32) -> u128 {
    vector(lanes(a).map(operation))
}

fn each64(a: u128, operation: impl Fn(u64) -> u64) -> u128 {
    whole(halves(a).map(operation))
}

fn singles(a: u128, operation: impl Fn(f32) -> f32) -> u128 {
    each(a, |lane| operation(f32::from_bits(lane)).to_bits())
}

fn doubles(a: u128, operation: impl Fn(f64) -> f64) -> u128 {
    each64(a, |lane| operation(f64::from_bits(lane)).to_bits())
}

/// Of each pair of lanes.
fn both(a: u128, b: u128, operation: impl Fn(u32, u32) -> u32) -> u128 {
    let (a, b) = (lanes(a), lanes(b));
    vector([0, 1, 2, 3].map(|lane| operation(a[lane], b[lane])))
}

fn both64(a: u128, b: u128, operation: impl Fn(u64, u64) -> u64) -> u128 {
    let (a, b) = (halves(a), halves(b));
    whole([0, 1].map(|lane| operation(a[lane], b[lane])))
}

fn both_singles(a: u128, b: u128, operation: impl Fn(f32, f32) -> f32) -> u128 {
    both(a, b, |x, y| operation(f32::from_bits(x), f32::from_bits(y)).to_bits())
}

fn both_doubles(a: u128, b: u128, operation: impl Fn(f64, f64) -> f64) -> u128 {
    both64(a, b, |x, y| operation(f64::from_bits(x), f64::from_bits(y)).to_bits())
}

fn which(a: u128, b: u128, holds: impl Fn(u32, u32) -> bool) -> u128 {
    both(a, b, |x, y| if holds(x, y) { u32::MAX } else { 0 })
}

fn which64(a: u128, b: u128, holds: impl Fn(u64, u64) -> bool) -> u128 {
    both64(a, b, |x, y| if holds(x, y) { u64::MAX } else { 0 })
}

fn which_singles(a: u128, b: u128, holds: impl Fn(f32, f32) -> bool) -> u128 {
    which(a, b, |x, y| holds(f32::from_bits(x), f32::from_bits(y)))
}

fn which_doubles(a: u128, b: u128, holds: impl Fn(f64, f64) -> bool) -> u128 {
    which64(a, b, |x, y| holds(f64::from_bits(x), f64::from_bits(y)))
}

/// Two lanes of 32 bits from `first` on, made wide.
fn widened(a: u128, first: usize, wide: impl Fn(u32) -> u64) -> u128 {
    let lanes = lanes(a);
    whole([wide(lanes[first]), wide(lanes[first + 1])])
}

/// Four lanes of 16 bits, made wide.
pub(super) fn widened16(a: u64, wide: impl Fn(u16) -> u32) -> u128 {
    vector([0, 16, 32, 48].map(|shift| wide((a >> shift) as u16)))
}

fn with_lane(a: u128, bits: u32, lane: u8, new: u64) -> u128 {
    let shift = bits * u32::from(lane);
    let mask = (u128::MAX >> (128 - bits)) << shift;
    a & !mask | u128::from(new) << shift & mask
}

/// One operand; nothing if it is no such operation.
pub(super) fn unary(operator: &O, a: u128) -> Option<u128> {
    const SIGN: u32 = 1 << 31;
    Some(match operator {
        O::I32x4Splat | O::F32x4Splat => splat(a as u32),
        O::I64x2Splat | O::F64x2Splat => whole([a as u64; 2]),
        O::I32x4ExtractLane { lane } | O::F32x4ExtractLane { lane } => lanes(a)[usize::from(*lane)].into(),
        O::I64x2ExtractLane { lane } | O::F64x2ExtractLane { lane } => halves(a)[usize::from(*lane)].into(),
        O::V128Not => !a,
        O::V128AnyTrue => u128::from(a != 0),
        O::I32x4AllTrue => u128::from(lanes(a).iter().all(|lane| *lane != 0)),
        O::I64x2AllTrue => u128::from(halves(a).iter().all(|lane| *lane != 0)),
        O::I32x4Bitmask => lanes(a).iter().rev().fold(0, |mask, lane| mask << 1 | u128::from(lane >> 31)),
        O::I64x2Bitmask => halves(a).iter().rev().fold(0, |mask, lane| mask << 1 | u128::from(lane >> 63)),
        O::I32x4Neg => each(a, u32::wrapping_neg),
        O::I64x2Neg => each64(a, u64::wrapping_neg),
        O::I32x4Abs => each(a, |lane| (lane as i32).unsigned_abs()),
        O::F32x4Neg => each(a, |lane| lane ^ SIGN),
        O::F32x4Abs => each(a, |lane| lane & !SIGN),
        O::F32x4Sqrt => singles(a, f32::sqrt),
        O::F32x4Ceil => singles(a, f32::ceil),
        O::F32x4Floor => singles(a, f32::floor),
        O::F32x4Trunc => singles(a, f32::trunc),
        O::F32x4Nearest => singles(a, f32::round_ties_even),
        O::F64x2Neg => each64(a, |lane| lane ^ 1 << 63),
        O::F64x2Abs => each64(a, |lane| lane & !(1 << 63)),
        O::F64x2Sqrt => doubles(a, f64::sqrt),
        O::F64x2Ceil => doubles(a, f64::ceil),
        O::F64x2Floor => doubles(a, f64::floor),
        O::F64x2Trunc => doubles(a, f64::trunc),
        O::F64x2Nearest => doubles(a, f64::round_ties_even),
        O::F32x4ConvertI32x4S => each(a, |lane| (lane as i32 as f32).to_bits()),
        O::F32x4ConvertI32x4U => each(a, |lane| (lane as f32).to_bits()),
        O::I32x4TruncSatF32x4S => each(a, |lane| f32::from_bits(lane) as i32 as u32),
        O::I32x4TruncSatF32x4U => each(a, |lane| f32::from_bits(lane) as u32),
        O::F64x2ConvertLowI32x4S => whole([0, 1].map(|lane| f64::from(lanes(a)[lane] as i32).to_bits())),
        O::F64x2ConvertLowI32x4U => whole([0, 1].map(|lane| f64::from(lanes(a)[lane]).to_bits())),
        O::I32x4TruncSatF64x2SZero => {
            let [low, high] = halves(a).map(|lane| f64::from_bits(lane) as i32 as u32);
            vector([low, high, 0, 0])
        }
        O::I32x4TruncSatF64x2UZero => {
            let [low, high] = halves(a).map(|lane| f64::from_bits(lane) as u32);
            vector([low, high, 0, 0])
        }
        O::F32x4DemoteF64x2Zero => {
            let [low, high] = halves(a).map(|lane| (f64::from_bits(lane) as f32).to_bits());
            vector([low, high, 0, 0])
        }
        O::F64x2PromoteLowF32x4 => widened(a, 0, |lane| f64::from(f32::from_bits(lane)).to_bits()),
        O::I64x2ExtendLowI32x4S => widened(a, 0, |lane| lane as i32 as i64 as u64),
        O::I64x2ExtendHighI32x4S => widened(a, 2, |lane| lane as i32 as i64 as u64),
        O::I64x2ExtendLowI32x4U => widened(a, 0, u64::from),
        O::I64x2ExtendHighI32x4U => widened(a, 2, u64::from),
        _ => return None,
    })
}

/// Two operands, the second from the top of the stack.
pub(super) fn binary(operator: &O, a: u128, b: u128) -> Option<u128> {
    integers(operator, a, b).or_else(|| floats(operator, a, b))
}

fn integers(operator: &O, a: u128, b: u128) -> Option<u128> {
    let signed = |lane: u32| lane as i32;
    let signed64 = |lane: u64| lane as i64;
    let count = b as u32;
    Some(match operator {
        O::V128And => a & b,
        O::V128AndNot => a & !b,
        O::V128Or => a | b,
        O::V128Xor => a ^ b,
        O::I8x16Shuffle { lanes } => {
            let bytes: Vec<u8> = [a.to_le_bytes(), b.to_le_bytes()].concat();
            u128::from_le_bytes(lanes.map(|lane| bytes[usize::from(lane)]))
        }
        O::I8x16Swizzle => {
            let bytes = a.to_le_bytes();
            u128::from_le_bytes(b.to_le_bytes().map(|lane| bytes.get(usize::from(lane)).copied().unwrap_or_default()))
        }
        O::I32x4ReplaceLane { lane } | O::F32x4ReplaceLane { lane } => with_lane(a, 32, *lane, u64::from(b as u32)),
        O::I64x2ReplaceLane { lane } | O::F64x2ReplaceLane { lane } => with_lane(a, 64, *lane, b as u64),
        O::I32x4Add => both(a, b, u32::wrapping_add),
        O::I32x4Sub => both(a, b, u32::wrapping_sub),
        O::I32x4Mul => both(a, b, u32::wrapping_mul),
        O::I32x4MinS => both(a, b, |x, y| signed(x).min(signed(y)) as u32),
        O::I32x4MaxS => both(a, b, |x, y| signed(x).max(signed(y)) as u32),
        O::I32x4MinU => both(a, b, u32::min),
        O::I32x4MaxU => both(a, b, u32::max),
        O::I32x4Shl => each(a, |lane| lane << (count % 32)),
        O::I32x4ShrS => each(a, |lane| (signed(lane) >> (count % 32)) as u32),
        O::I32x4ShrU => each(a, |lane| lane >> (count % 32)),
        O::I32x4Eq => which(a, b, |x, y| x == y),
        O::I32x4Ne => which(a, b, |x, y| x != y),
        O::I32x4LtS => which(a, b, |x, y| signed(x) < signed(y)),
        O::I32x4LeS => which(a, b, |x, y| signed(x) <= signed(y)),
        O::I32x4GtS => which(a, b, |x, y| signed(x) > signed(y)),
        O::I32x4GeS => which(a, b, |x, y| signed(x) >= signed(y)),
        O::I32x4LtU => which(a, b, |x, y| x < y),
        O::I32x4LeU => which(a, b, |x, y| x <= y),
        O::I32x4GtU => which(a, b, |x, y| x > y),
        O::I32x4GeU => which(a, b, |x, y| x >= y),
        O::I64x2Add => both64(a, b, u64::wrapping_add),
        O::I64x2Sub => both64(a, b, u64::wrapping_sub),
        O::I64x2Mul => both64(a, b, u64::wrapping_mul),
        O::I64x2Shl => each64(a, |lane| lane << (count % 64)),
        O::I64x2ShrS => each64(a, |lane| (signed64(lane) >> (count % 64)) as u64),
        O::I64x2ShrU => each64(a, |lane| lane >> (count % 64)),
        O::I64x2Eq => which64(a, b, |x, y| x == y),
        O::I64x2Ne => which64(a, b, |x, y| x != y),
        O::I64x2LtS => which64(a, b, |x, y| signed64(x) < signed64(y)),
        O::I64x2LeS => which64(a, b, |x, y| signed64(x) <= signed64(y)),
        O::I64x2GtS => which64(a, b, |x, y| signed64(x) > signed64(y)),
        O::I64x2GeS => which64(a, b, |x, y| signed64(x) >= signed64(y)),
        _ => return None,
    })
}

fn floats(operator: &O, a: u128, b: u128) -> Option<u128> {
    Some(match operator {
        O::F32x4Add => both_singles(a, b, |x, y| x + y),
        O::F32x4Sub => both_singles(a, b, |x, y| x - y),
        O::F32x4Mul => both_singles(a, b, |x, y| x * y),
        O::F32x4Div => both_singles(a, b, |x, y| x / y),
        O::F32x4Min => both_singles(a, b, least32),
        O::F32x4Max => both_singles(a, b, |x, y| -least32(-x, -y)),
        // The second where it is the smaller (larger), else the first.
        O::F32x4PMin => both_singles(a, b, |x, y| if y < x { y } else { x }),
        O::F32x4PMax => both_singles(a, b, |x, y| if x < y { y } else { x }),
        O::F32x4Eq => which_singles(a, b, |x, y| x == y),
        O::F32x4Ne => which_singles(a, b, |x, y| x != y),
        O::F32x4Lt => which_singles(a, b, |x, y| x < y),
        O::F32x4Le => which_singles(a, b, |x, y| x <= y),
        O::F32x4Gt => which_singles(a, b, |x, y| x > y),
        O::F32x4Ge => which_singles(a, b, |x, y| x >= y),
        O::F64x2Add => both_doubles(a, b, |x, y| x + y),
        O::F64x2Sub => both_doubles(a, b, |x, y| x - y),
        O::F64x2Mul => both_doubles(a, b, |x, y| x * y),
        O::F64x2Div => both_doubles(a, b, |x, y| x / y),
        O::F64x2Min => both_doubles(a, b, least64),
        O::F64x2Max => both_doubles(a, b, |x, y| -least64(-x, -y)),
        O::F64x2PMin => both_doubles(a, b, |x, y| if y < x { y } else { x }),
        O::F64x2PMax => both_doubles(a, b, |x, y| if x < y { y } else { x }),
        O::F64x2Eq => which_doubles(a, b, |x, y| x == y),
        O::F64x2Ne => which_doubles(a, b, |x, y| x != y),
        O::F64x2Lt => which_doubles(a, b, |x, y| x < y),
        O::F64x2Le => which_doubles(a, b, |x, y| x <= y),
        O::F64x2Gt => which_doubles(a, b, |x, y| x > y),
        O::F64x2Ge => which_doubles(a, b, |x, y| x >= y),
        _ => return None,
    })
}

/// Three operands, the last from the top of the stack.
pub(super) fn ternary(operator: &O, a: u128, b: u128, c: u128) -> Option<u128> {
    Some(match operator {
        O::V128Bitselect => a & c | b & !c,
        O::F32x4RelaxedMadd => {
            let (a, b, c) = (lanes(a), lanes(b), lanes(c));
            let of = |lane: usize| [a, b, c].map(|vector| f32::from_bits(vector[lane]));
            vector([0, 1, 2, 3].map(|lane| of(lane)[0].mul_add(of(lane)[1], of(lane)[2]).to_bits()))
        }
        O::F64x2RelaxedMadd => {
            let (a, b, c) = (halves(a), halves(b), halves(c));
            let of = |lane: usize| [a, b, c].map(|vector| f64::from_bits(vector[lane]));
            whole([0, 1].map(|lane| of(lane)[0].mul_add(of(lane)[1], of(lane)[2]).to_bits()))
        }
        _ => return None,
    })
}
