//! Integer operations.

use crate::translate::build::ssa::Builder;
use crate::translate::ir::{Access, Binary, Inst, Kind, Memory, Unary, Value};

/// By halves: the products that carry into the upper half.
pub fn mul_high(b: &mut Builder, signed: bool) -> Value {
    let (x, y) = (b.argument(0), b.argument(1));
    let (half, mask) = (b.i64(32), b.i64(0xffff_ffff));
    let (x_low, x_high) = (b.and(x, mask), b.shr_u(x, half));
    let (y_low, y_high) = (b.and(y, mask), b.shr_u(y, half));
    let low = b.mul(x_low, y_low);
    let carried = b.shr_u(low, half);
    let first = b.mul(x_high, y_low);
    let first = b.add(first, carried);
    let second = b.mul(x_low, y_high);
    let lower = b.and(first, mask);
    let middle = b.add(lower, second);
    let (from_first, from_middle) = (b.shr_u(first, half), b.shr_u(middle, half));
    let top = b.mul(x_high, y_high);
    let top = b.add(top, from_first);
    let top = b.add(top, from_middle);
    if !signed {
        return top;
    }
    // A negative factor was taken for one that is larger by 2⁶⁴.
    let sign = b.i64(63);
    let (x_sign, y_sign) = (b.shr_s(x, sign), b.shr_s(y, sign));
    let (too_much, more) = (b.and(x_sign, y), b.and(y_sign, x));
    let top = b.sub(top, too_much);
    b.sub(top, more)
}

/// Swaps neighbours, pairs, nibbles, bytes and so on.
pub fn reverse(b: &mut Builder, wide: bool) -> Value {
    let kind = if wide { Kind::I64 } else { Kind::I32 };
    let masks = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
    ];
    let mut value = b.argument(0);
    for (step, mask) in masks.into_iter().enumerate().take(if wide { 5 } else { 4 }) {
        let (mask, by) = (b.int(kind, mask), b.int(kind, 1 << step));
        let upper = b.shr_u(value, by);
        let (upper, lower) = (b.and(upper, mask), b.and(value, mask));
        let lower = b.shl(lower, by);
        value = b.or(upper, lower);
    }
    let half = b.int(kind, if wide { 32 } else { 16 });
    b.binary(Binary::Rotl, value, half)
}

/// The position of the n-th set bit from `base` on, upwards or downwards.
pub fn find_nth_set(b: &mut Builder) -> Value {
    let (mask, base, offset) = (b.argument(0), b.argument(1), b.argument(2));
    let (zero, one, limit, none) = (b.i32(0), b.i32(1), b.i32(32), b.i32(u32::MAX));
    let negative = b.lt_s(offset, zero);
    let step = b.select(negative, none, one);
    let negated = b.sub(zero, offset);
    let magnitude = b.select(negative, negated, offset);
    // With an offset of 0 only `base` itself is looked at.
    let is_base = b.unary(Unary::IsZero, offset);
    let wanted = b.select(is_base, one, magnitude);
    let (position, left, found) = (b.variable(Kind::I32), b.variable(Kind::I32), b.variable(Kind::I32));
    b.write(position, base);
    b.write(left, wanted);
    b.write(found, none);
    let (head, inside, next, hit, behind) = (b.block(), b.block(), b.block(), b.block(), b.block());
    b.jump(head);
    b.start(head);
    let at = b.read(position);
    let within = b.lt_u(at, limit);
    b.branch(within, inside, behind);
    b.start(inside);
    let moved = b.shr_u(mask, at);
    let bit = b.and(moved, one);
    let before = b.read(left);
    let after = b.sub(before, bit);
    b.write(left, after);
    let last = b.unary(Unary::IsZero, after);
    b.branch(last, hit, next);
    b.start(hit);
    b.write(found, at);
    b.jump(behind);
    b.start(next);
    let moved = b.add(at, step);
    let stay = b.select(is_base, none, moved);
    b.write(position, stay);
    b.jump(head);
    b.start(behind);
    b.read(found)
}

/// Tries until nobody else came between.
pub fn atomic_extreme(b: &mut Builder, larger: bool, signed: bool, wide: bool) -> Value {
    let (address, operand) = (b.argument(0), b.argument(1));
    let kind = b.kind(operand);
    let bytes = if wide { 8 } else { 4 };
    let access = Access {
        memory: Memory::Device,
        bytes,
        signed: false,
        offset: 0,
        atomic: true,
        exclusive: false,
        constant: false,
    };
    let expected = b.variable(kind);
    let first = b.push(Inst::Load(access, address), Some(kind));
    b.write(expected, first);
    let (head, done) = (b.block(), b.block());
    b.jump(head);
    b.start(head);
    let old = b.read(expected);
    let op = if signed { Binary::LtS } else { Binary::LtU };
    let keep = if larger { b.binary(op, operand, old) } else { b.binary(op, old, operand) };
    let new = b.select(keep, old, operand);
    let found = b.push(Inst::CompareExchange(access, address, old, new), Some(kind));
    b.write(expected, found);
    let same = b.eq(found, old);
    b.branch(same, done, head);
    b.start(done);
    b.read(expected)
}
