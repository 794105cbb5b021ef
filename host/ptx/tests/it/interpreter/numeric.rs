//! What one operation makes of its operands.

use wasmparser::Operator as O;

fn i32_of(value: u32) -> u128 {
    value.into()
}

fn flag(value: bool) -> u128 {
    value.into()
}

fn f64_of(value: u128) -> f64 {
    f64::from_bits(value as u64)
}

fn f32_of(value: u128) -> f32 {
    f32::from_bits(value as u32)
}

fn bits64(value: f64) -> u128 {
    value.to_bits().into()
}

fn bits32(value: f32) -> u128 {
    value.to_bits().into()
}

/// The smaller, of numbers of different sign also where both are zeros; a NaN wins.
pub(super) fn least32(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ if a == b => f32::from_bits(a.to_bits() | b.to_bits()),
        _ if a < b => a,
        _ => b,
    }
}

pub(super) fn least64(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => a,
        (_, true) => b,
        _ if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
        _ if a < b => a,
        _ => b,
    }
}

/// One operand; nothing if it is no such operation.
pub(super) fn unary(operator: &O, a: u128) -> Option<u128> {
    let (word, double) = (a as u32, a as u64);
    Some(match operator {
        O::I32Eqz => flag(word == 0),
        O::I64Eqz => flag(double == 0),
        O::I32Clz => i32_of(word.leading_zeros()),
        O::I32Ctz => i32_of(word.trailing_zeros()),
        O::I32Popcnt => i32_of(word.count_ones()),
        O::I64Clz => i32_of(double.leading_zeros()),
        O::I64Popcnt => i32_of(double.count_ones()),
        O::I32Extend8S => i32_of(word as i8 as u32),
        O::I32Extend16S => i32_of(word as i16 as u32),
        O::I32WrapI64 => i32_of(word),
        O::I64ExtendI32S => u128::from(word as i32 as i64 as u64),
        O::I64ExtendI32U => word.into(),
        O::F64ReinterpretI64 | O::I64ReinterpretF64 => double.into(),
        O::F64PromoteF32 => bits64(f32_of(a).into()),
        O::F32DemoteF64 => bits32(f64_of(a) as f32),
        O::I32TruncSatF32S => i32_of(f32_of(a) as i32 as u32),
        O::I32TruncSatF32U => i32_of(f32_of(a) as u32),
        O::I32TruncSatF64S => i32_of(f64_of(a) as i32 as u32),
        O::I32TruncSatF64U => i32_of(f64_of(a) as u32),
        O::I64TruncSatF32S => u128::from(f32_of(a) as i64 as u64),
        O::I64TruncSatF32U => u128::from(f32_of(a) as u64),
        O::I64TruncSatF64S => u128::from(f64_of(a) as i64 as u64),
        O::I64TruncSatF64U => u128::from(f64_of(a) as u64),
        O::F32ConvertI32S => bits32(word as i32 as f32),
        O::F32ConvertI32U => bits32(word as f32),
        O::F32ConvertI64S => bits32(double as i64 as f32),
        O::F32ConvertI64U => bits32(double as f32),
        O::F64ConvertI32S => bits64((word as i32).into()),
        O::F64ConvertI32U => bits64(word.into()),
        O::F64ConvertI64S => bits64(double as i64 as f64),
        O::F64ConvertI64U => bits64(double as f64),
        O::F64Neg => u128::from(double ^ 1 << 63),
        O::F64Abs => u128::from(double & !(1 << 63)),
        O::F64Sqrt => bits64(f64_of(a).sqrt()),
        O::F64Ceil => bits64(f64_of(a).ceil()),
        O::F64Floor => bits64(f64_of(a).floor()),
        O::F64Trunc => bits64(f64_of(a).trunc()),
        O::F64Nearest => bits64(f64_of(a).round_ties_even()),
        _ => return None,
    })
}

/// Two operands, the second from the top of the stack.
pub(super) fn binary(operator: &O, a: u128, b: u128) -> Option<Result<u128, String>> {
    if let Some(result) = integers(operator, a, b) {
        return Some(Ok(result));
    }
    if let Some(result) = floats(operator, a, b) {
        return Some(Ok(result));
    }
    quotients(operator, a, b)
}

fn integers(operator: &O, a: u128, b: u128) -> Option<u128> {
    let (x, y, p, q) = (a as u32, b as u32, a as u64, b as u64);
    let (sx, sy, sp, sq) = (x as i32, y as i32, p as i64, q as i64);
    Some(match operator {
        O::I32Add => i32_of(x.wrapping_add(y)),
        O::I32Sub => i32_of(x.wrapping_sub(y)),
        O::I32Mul => i32_of(x.wrapping_mul(y)),
        O::I32And => i32_of(x & y),
        O::I32Or => i32_of(x | y),
        O::I32Xor => i32_of(x ^ y),
        O::I32Shl => i32_of(x << (y % 32)),
        O::I32ShrU => i32_of(x >> (y % 32)),
        O::I32ShrS => i32_of((sx >> (y % 32)) as u32),
        O::I32Rotl => i32_of(x.rotate_left(y % 32)),
        O::I32Eq => flag(x == y),
        O::I32Ne => flag(x != y),
        O::I32LtU => flag(x < y),
        O::I32LeU => flag(x <= y),
        O::I32GtU => flag(x > y),
        O::I32GeU => flag(x >= y),
        O::I32LtS => flag(sx < sy),
        O::I32LeS => flag(sx <= sy),
        O::I32GtS => flag(sx > sy),
        O::I64Add => p.wrapping_add(q).into(),
        O::I64Sub => p.wrapping_sub(q).into(),
        O::I64Mul => p.wrapping_mul(q).into(),
        O::I64And => (p & q).into(),
        O::I64Or => (p | q).into(),
        O::I64Xor => (p ^ q).into(),
        O::I64Shl => (p << (q % 64)).into(),
        O::I64ShrU => (p >> (q % 64)).into(),
        O::I64ShrS => u128::from((sp >> (q % 64)) as u64),
        O::I64Rotl => p.rotate_left(q as u32 % 64).into(),
        O::I64Eq => flag(p == q),
        O::I64Ne => flag(p != q),
        O::I64LtU => flag(p < q),
        O::I64LeU => flag(p <= q),
        O::I64GeU => flag(p >= q),
        O::I64LtS => flag(sp < sq),
        O::I64LeS => flag(sp <= sq),
        _ => return None,
    })
}

fn floats(operator: &O, a: u128, b: u128) -> Option<u128> {
    let (x, y, p, q) = (f32_of(a), f32_of(b), f64_of(a), f64_of(b));
    Some(match operator {
        O::F32Eq => flag(x == y),
        O::F32Ne => flag(x != y),
        O::F32Lt => flag(x < y),
        O::F32Le => flag(x <= y),
        O::F64Eq => flag(p == q),
        O::F64Ne => flag(p != q),
        O::F64Lt => flag(p < q),
        O::F64Le => flag(p <= q),
        O::F64Add => bits64(p + q),
        O::F64Sub => bits64(p - q),
        O::F64Mul => bits64(p * q),
        O::F64Div => bits64(p / q),
        O::F64Min => bits64(least64(p, q)),
        O::F64Max => bits64(-least64(-p, -q)),
        O::F64Copysign => bits64(p.copysign(q)),
        _ => return None,
    })
}

/// What has no result for some operands.
fn quotients(operator: &O, a: u128, b: u128) -> Option<Result<u128, String>> {
    let (x, y, p, q) = (a as u32, b as u32, a as u64, b as u64);
    let result = match operator {
        O::I32DivU => x.checked_div(y).map(u128::from),
        O::I32RemU => x.checked_rem(y).map(u128::from),
        O::I32DivS => (x as i32).checked_div(y as i32).map(|result| i32_of(result as u32)),
        O::I32RemS => (y != 0).then(|| i32_of((x as i32).wrapping_rem(y as i32) as u32)),
        O::I64DivU => p.checked_div(q).map(u128::from),
        O::I64RemU => p.checked_rem(q).map(u128::from),
        O::I64DivS => (p as i64).checked_div(q as i64).map(|result| u128::from(result as u64)),
        O::I64RemS => (q != 0).then(|| u128::from((p as i64).wrapping_rem(q as i64) as u64)),
        _ => return None,
    };
    Some(result.ok_or_else(|| format!("{operator:?} has no result")))
}
