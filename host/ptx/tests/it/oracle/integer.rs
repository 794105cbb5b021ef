//! Instructions on integers and bits: values are taken out of their bits as wide integers, and the result is cut to its type.

use steadfast_ptx::module::{
    AtomicOp, Comparison, FloatMode, FloatOp, IntegerOp, IntegerUnary, PermuteMode, Rounding, Type,
};

use super::float;

/// All ones in the width of a type.
pub(crate) fn mask(ty: Type) -> u128 {
    match ty {
        Type::Pred => 1,
        Type::B128 => u128::MAX,
        _ => (1 << ty.bits()) - 1,
    }
}

/// The number that bits stand for.
pub(crate) fn signed_value(ty: Type, bits: u64) -> i128 {
    let unused = 128 - ty.bits();
    let value = i128::from(bits) << unused;
    if ty.is_signed() { value >> unused } else { (value as u128 >> unused) as i128 }
}

/// The lower bits.
pub(crate) fn truncated(ty: Type, value: i128) -> u64 {
    (value as u128 & mask(ty)) as u64
}

/// The nearest number that the type has.
pub(crate) fn clamped(ty: Type, value: i128) -> u64 {
    let (least, most) =
        if ty.is_signed() { (-1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1) } else { (0, mask(ty) as i128) };
    truncated(ty, value.clamp(least, most))
}

/// A type of the same kind and twice the width.
fn wide(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        other => unreachable!("mul.wide of {other:?}"),
    }
}

/// The type of the result.
pub(crate) fn result_type(op: IntegerOp, ty: Type) -> Type {
    if op == IntegerOp::MulWide { wide(ty) } else { ty }
}

/// The result, and the carry or borrow out of it. `carry` is what comes in.
pub(crate) fn binary(op: IntegerOp, ty: Type, saturate: bool, carry: bool, a: u64, b: u64) -> (u64, bool) {
    let (x, y) = (signed_value(ty, a), signed_value(ty, b));
    match op {
        IntegerOp::Add => added(ty, saturate, carry, a, b),
        IntegerOp::Sub if saturate => (clamped(ty, x - y), false),
        IntegerOp::Sub => {
            let (a, b) = (i128::from(a), i128::from(b) + i128::from(carry));
            (truncated(ty, a - b), b > a)
        }
        IntegerOp::Div | IntegerOp::Rem => (division(op, ty, x, y), false),
        // What saturates here is what `.relu` says: nothing is below 0.
        IntegerOp::Min => (truncated(ty, if saturate { x.min(y).max(0) } else { x.min(y) }), false),
        IntegerOp::Max => (truncated(ty, if saturate { x.max(y).max(0) } else { x.max(y) }), false),
        IntegerOp::Shl => (truncated(ty, (i128::from(a)) << (b & 0xffff_ffff).min(64)), false),
        IntegerOp::Shr => (truncated(ty, x >> (b & 0xffff_ffff).min(64)), false),
        _ => (product(op, ty, a, b), false),
    }
}

/// `carry` goes in as well.
fn added(ty: Type, saturate: bool, carry: bool, a: u64, b: u64) -> (u64, bool) {
    if saturate {
        return (clamped(ty, signed_value(ty, a) + signed_value(ty, b)), false);
    }
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    ((sum & mask(ty)) as u64, sum > mask(ty))
}

fn division(op: IntegerOp, ty: Type, x: i128, y: i128) -> u64 {
    match (op, y) {
        (IntegerOp::Div, 0) => mask(ty) as u64,
        (_, 0) => truncated(ty, x),
        (IntegerOp::Div, _) => truncated(ty, x / y),
        _ => truncated(ty, x % y),
    }
}

fn product(op: IntegerOp, ty: Type, a: u64, b: u64) -> u64 {
    let narrow = |bits: u64| {
        let value = i128::from(bits & 0xff_ffff);
        if ty.is_signed() && value >> 23 == 1 { value - (1 << 24) } else { value }
    };
    match op {
        IntegerOp::MulLo => truncated(ty, signed_value(ty, a).wrapping_mul(signed_value(ty, b))),
        IntegerOp::MulHi if ty == Type::U64 => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        IntegerOp::MulHi => truncated(ty, (signed_value(ty, a) * signed_value(ty, b)) >> ty.bits()),
        IntegerOp::MulWide => truncated(wide(ty), signed_value(ty, a) * signed_value(ty, b)),
        IntegerOp::Mul24Lo => truncated(ty, narrow(a) * narrow(b)),
        IntegerOp::Mul24Hi => truncated(ty, (narrow(a) * narrow(b)) >> 16),
        other => unreachable!("{other:?} is no product"),
    }
}

/// `mad`: the product, then the sum, which saturates or carries.
pub(crate) fn multiply_add(op: IntegerOp, ty: Type, saturate: bool, carry: bool, [a, b, c]: [u64; 3]) -> (u64, bool) {
    added(result_type(op, ty), saturate, carry, product(op, ty, a, b), c)
}

/// `c + |a - b|`.
pub(crate) fn sum_of_absolute_difference(ty: Type, a: u64, b: u64, c: u64) -> u64 {
    truncated(ty, signed_value(ty, c) + (signed_value(ty, a) - signed_value(ty, b)).abs())
}

/// The bits of the result; those that count or search give 32 of them.
pub(crate) fn unary(op: IntegerUnary, ty: Type, a: u64) -> u64 {
    let width = ty.bits();
    let value = signed_value(ty, a);
    let bit = |index: u32| a >> index & 1;
    match op {
        IntegerUnary::Neg => truncated(ty, -value),
        IntegerUnary::Abs => truncated(ty, value.abs()),
        IntegerUnary::Not => !a & mask(ty) as u64,
        IntegerUnary::Cnot => u64::from(a == 0),
        IntegerUnary::Popc => (0..width).map(bit).sum(),
        IntegerUnary::Clz => (0..width).rev().take_while(|&index| bit(index) == 0).count() as u64,
        IntegerUnary::Brev => (0..width).map(|index| bit(index) << (width - 1 - index)).sum(),
        IntegerUnary::Bfind { shift_amount } => {
            let magnitude = if value < 0 { truncated(ty, !value) } else { a };
            match (0..width).rev().find(|index| magnitude >> index & 1 == 1) {
                None => 0xffff_ffff,
                Some(found) if shift_amount => u64::from(width - 1 - found),
                Some(found) => found.into(),
            }
        }
    }
}

pub(crate) fn compare(comparison: Comparison, ty: Type, a: u64, b: u64) -> bool {
    float::holds(comparison, Some(signed_value(ty, a).cmp(&signed_value(ty, b))))
}

/// Each bit looked up in the table by the bits of the three operands.
pub(crate) fn logic3(table: u8, a: u64, b: u64, c: u64) -> u64 {
    (0..32)
        .map(|index| {
            let row = (a >> index & 1) << 2 | (b >> index & 1) << 1 | c >> index & 1;
            u64::from(table >> row & 1) << index
        })
        .sum()
}

pub(crate) fn funnel_shift(left: bool, wrap: bool, a: u64, b: u64, c: u64) -> u64 {
    let both = b << 32 | a;
    let by = if wrap { c & 31 } else { c.min(32) };
    if left { (u128::from(both) << by >> 32) as u64 & 0xffff_ffff } else { both >> by & 0xffff_ffff }
}

pub(crate) fn bit_extract(ty: Type, a: u64, pos: u64, len: u64) -> u64 {
    let (pos, len, last) = (pos & 0xff, len & 0xff, u64::from(ty.bits()) - 1);
    let sign = if ty.is_signed() && len != 0 { a >> (pos + len - 1).min(last) & 1 } else { 0 };
    (0..=last)
        .map(|index| (if index < len && pos + index <= last { a >> (pos + index) & 1 } else { sign }) << index)
        .sum()
}

pub(crate) fn bit_insert(ty: Type, a: u64, b: u64, pos: u64, len: u64) -> u64 {
    let (pos, len, last) = (pos & 0xff, len & 0xff, u64::from(ty.bits()) - 1);
    (0..len).take_while(|index| pos + index <= last).fold(b, |f, index| {
        let at = pos + index;
        f & !(1 << at) | (a >> index & 1) << at
    })
}

pub(crate) fn bit_mask(wrap: bool, pos: u64, len: u64) -> u64 {
    let (pos, len) = if wrap { (pos & 31, len & 31) } else { (pos, len) };
    (0..32).filter(|bit| *bit >= pos && *bit - pos < len).map(|bit| 1 << bit).sum()
}

pub(crate) fn extend_from(wrap: bool, ty: Type, a: u64, n: u64) -> u64 {
    if n >= 32 && !wrap {
        return a;
    }
    let n = n & 31;
    let lower = a & ((1 << n) - 1);
    let negative = ty.is_signed() && n > 0 && a >> (n - 1) & 1 == 1;
    if negative { lower | 0xffff_ffff & !((1 << n) - 1) } else { lower }
}

pub(crate) fn find_nth_set(bits: u64, base: u64, offset: u64) -> u64 {
    let offset = offset as u32 as i32;
    let is_set = |position: i64| bits >> position & 1 == 1;
    let base = base as i64;
    let found = match offset {
        0 => Some(base).filter(|position| (0..32).contains(position) && is_set(*position)),
        1.. => (base..32).filter(|position| is_set(*position)).nth(offset as usize - 1),
        _ => (0..=base)
            .rev()
            .filter(|position| *position < 32 && is_set(*position))
            .nth(offset.unsigned_abs() as usize - 1),
    };
    found.map_or(0xffff_ffff, |position| position as u64)
}

pub(crate) fn permute(mode: PermuteMode, a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (b << 32 | a).to_le_bytes();
    let s = selector as usize & 3;
    // From the lowest byte of the result on.
    let picks: [usize; 4] = match mode {
        PermuteMode::Default => {
            return (0..4)
                .map(|index| {
                    let nibble = selector >> (4 * index) & 15;
                    let byte = bytes[nibble as usize & 7];
                    let byte = if nibble < 8 { byte } else { (byte as i8 >> 7) as u8 };
                    u64::from(byte) << (8 * index)
                })
                .sum();
        }
        PermuteMode::F4e => [s, s + 1, s + 2, s + 3],
        PermuteMode::B4e => [s, s + 7, s + 6, s + 5],
        PermuteMode::Rc8 => [s; 4],
        PermuteMode::Ecl => [0, 1, 2, 3].map(|index: usize| index.max(s)),
        PermuteMode::Ecr => [0, 1, 2, 3].map(|index: usize| index.min(s)),
        PermuteMode::Rc16 => [0, 1, 0, 1].map(|index| index + 2 * (s & 1)),
    };
    u32::from_le_bytes(picks.map(|index| bytes[index & 7])).into()
}

/// `c` plus the products of the elements of `a` and `b`; both of 8 bits, or those of `a` of 16.
pub(crate) fn dot(a_bits: u32, (a_ty, a): (Type, u64), (b_ty, b): (Type, u64), count: u32, c: u64) -> u64 {
    let element = |ty: Type, bits: u32, value: u64, index: u32| {
        let element = (value >> (bits * index) & ((1 << bits) - 1)) as i128;
        if ty.is_signed() && element >> (bits - 1) == 1 { element - (1 << bits) } else { element }
    };
    let sum: i128 = (0..count).map(|index| element(a_ty, a_bits, a, index) * element(b_ty, 8, b, index)).sum();
    truncated(Type::U32, i128::from(c) + sum)
}

/// What an atomic operation leaves behind.
pub(crate) fn atomic(op: AtomicOp, ty: Type, old: u64, b: u64, c: u64) -> u64 {
    let plain = FloatMode { rounding: Rounding::NearestEven, flush: false, saturate: false, relu: false };
    let less = || signed_value(ty, old) < signed_value(ty, b);
    match op {
        AtomicOp::Exch => b,
        AtomicOp::Cas if old == b => c,
        AtomicOp::Cas => old,
        AtomicOp::Add if ty.is_float() => float::binary(FloatOp::Add, ty, plain, old, b),
        AtomicOp::Add => truncated(ty, i128::from(old) + i128::from(b)),
        AtomicOp::Inc if old >= b => 0,
        AtomicOp::Inc => old + 1,
        AtomicOp::Dec if old == 0 || old > b => b,
        AtomicOp::Dec => old - 1,
        AtomicOp::Min if less() => old,
        AtomicOp::Min => b,
        AtomicOp::Max if less() => b,
        AtomicOp::Max => old,
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
    }
}
