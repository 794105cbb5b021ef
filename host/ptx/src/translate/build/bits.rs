//! Logic, bit fields, bytes.

use super::body::Body;
use super::operand::kind;
use crate::module::{Logic, Op, Operand, PermuteMode, Type};
use crate::translate::error::Result;
use crate::translate::helper::Helper;
use crate::translate::ir::{Binary, Kind, Unary, Value};

impl Body<'_, '_> {
    pub(super) fn bits(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Logic { op, ty, dst, a, b } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let value = self.b.binary(logic(*op), a, b);
                self.write(*dst, *ty, value);
            }
            Op::Logic3 { dst, a, b, c, table, truth } => {
                let [a, b, c] = self.three(a, b, c, Type::B32)?;
                let value = self.logic3(a, b, c, *table);
                let truth = truth.as_ref().map(|(op, register, with)| {
                    let (zero, with) = (self.b.i32(0), self.predicate(with));
                    let some = self.b.ne(value, zero);
                    (*register, self.b.binary(logic(*op), some, with))
                });
                if let Some(dst) = dst {
                    self.write(*dst, Type::B32, value);
                }
                if let Some((register, holds)) = truth {
                    self.write(register, Type::Pred, holds);
                }
            }
            Op::FunnelShift { left, wrap, dst, a, b, c } => {
                let [low, high, amount] = self.three(a, b, c, Type::U32)?;
                let value = self.funnel(*left, *wrap, low, high, amount);
                self.write(*dst, Type::B32, value);
            }
            Op::BitExtract { ty, dst, a, pos, len } => {
                let a = self.operand(a, *ty)?;
                let (pos, len) = (self.byte_of(pos)?, self.byte_of(len)?);
                let value = self.extract(*ty, a, pos, len);
                self.write(*dst, *ty, value);
            }
            Op::BitInsert { ty, dst, a, b, pos, len } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let (pos, len) = (self.byte_of(pos)?, self.byte_of(len)?);
                let ones = self.low_ones(kind(*ty), len);
                let mask = self.shift(true, *ty, ones, pos);
                let field = self.shift(true, *ty, a, pos);
                let value = self.mixed(mask, field, b);
                self.write(*dst, *ty, value);
            }
            Op::BitMask { wrap, dst, pos, len } => {
                let (mut pos, mut len) = (self.operand(pos, Type::U32)?, self.operand(len, Type::U32)?);
                if *wrap {
                    let last = self.b.i32(31);
                    (pos, len) = (self.b.and(pos, last), self.b.and(len, last));
                }
                let ones = self.low_ones(Kind::I32, len);
                let value = self.shift(true, Type::U32, ones, pos);
                self.write(*dst, Type::B32, value);
            }
            Op::ExtendFrom { wrap, ty, dst, a, n } => {
                let (a, n) = (self.operand(a, *ty)?, self.operand(n, Type::U32)?);
                let value = self.extend_from(*wrap, *ty, a, n);
                self.write(*dst, *ty, value);
            }
            Op::FindNthSet { dst, mask, base, offset } => {
                let arguments =
                    [self.operand(mask, Type::B32)?, self.operand(base, Type::B32)?, self.operand(offset, Type::S32)?];
                let value = self.shop.call(&mut self.b, Helper::FindNthSet, &arguments);
                self.write(*dst, Type::B32, value);
            }
            Op::Permute { mode, dst, a, b, selector } => {
                let [a, b, selector] = self.three(a, b, selector, Type::B32)?;
                let value = self.permute(*mode, a, b, selector);
                self.write(*dst, Type::B32, value);
            }
            Op::Dot4 { a_ty, b_ty, dst, a, b, c } => {
                let [a, b, c] = self.three(a, b, c, Type::B32)?;
                let mut sum = c;
                for index in 0..4 {
                    let left = self.piece(a, 8 * index, 8, a_ty.is_signed());
                    let right = self.piece(b, 8 * index, 8, b_ty.is_signed());
                    let product = self.b.mul(left, right);
                    sum = self.b.add(sum, product);
                }
                self.write(*dst, Type::B32, sum);
            }
            Op::Dot2 { upper, a_ty, b_ty, dst, a, b, c } => {
                let [a, b, c] = self.three(a, b, c, Type::B32)?;
                let first = if *upper { 16 } else { 0 };
                let mut sum = c;
                for index in 0..2 {
                    let left = self.piece(a, 16 * index, 16, a_ty.is_signed());
                    let right = self.piece(b, first + 8 * index, 8, b_ty.is_signed());
                    let product = self.b.mul(left, right);
                    sum = self.b.add(sum, product);
                }
                self.write(*dst, Type::B32, sum);
            }
            _ => {}
        }
        Ok(())
    }

    fn three(&mut self, a: &Operand, b: &Operand, c: &Operand, ty: Type) -> Result<[Value; 3]> {
        Ok([self.operand(a, ty)?, self.operand(b, ty)?, self.operand(c, ty)?])
    }

    /// The lower 8 bits of an operand.
    fn byte_of(&mut self, operand: &Operand) -> Result<Value> {
        let (value, mask) = (self.operand(operand, Type::U32)?, self.b.i32(0xff));
        Ok(self.b.and(value, mask))
    }

    /// `bits` bits of a 32-bit number from `at` on, extended.
    fn piece(&mut self, value: Value, at: u32, bits: u32, signed: bool) -> Value {
        let (up, down) = (self.b.i32(32 - bits - at), self.b.i32(32 - bits));
        let top = self.b.shl(value, up);
        if signed { self.b.shr_s(top, down) } else { self.b.shr_u(top, down) }
    }

    /// The lower `len` bits set; from the width on all.
    fn low_ones(&mut self, kind: Kind, len: Value) -> Value {
        let (one, all) = (self.b.int(kind, 1), self.b.int(kind, u64::MAX));
        let limit = self.b.i32(kind.bytes() * 8);
        let by = if kind == Kind::I64 { self.widen(len, false) } else { len };
        let power = self.b.shl(one, by);
        let ones = self.b.sub(power, one);
        let within = self.b.lt_u(len, limit);
        self.b.select(within, ones, all)
    }

    /// `a` where the mask has ones, else `b`.
    fn mixed(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let difference = self.b.xor(a, b);
        let taken = self.b.and(difference, mask);
        self.b.xor(taken, b)
    }

    /// A truth table of three inputs: what `b` and `c` give where `a` is 0, and how that differs where it is 1.
    fn logic3(&mut self, a: Value, b: Value, c: Value, table: u8) -> Value {
        let (without, with) = (table & 15, table >> 4);
        let base = self.logic2(b, c, without);
        let difference = self.logic2(b, c, with ^ without);
        let all = self.b.known(difference) == Some(0xffff_ffff);
        let change = if all { a } else { self.b.and(difference, a) };
        self.b.xor(base, change)
    }

    /// A truth table of two inputs, bit `2 · b + c`, as a sum of products modulo 2.
    fn logic2(&mut self, b: Value, c: Value, table: u8) -> Value {
        let bit = |index: u8| table >> index & 1;
        let mut value = self.b.i32(if bit(0) == 1 { u32::MAX } else { 0 });
        if bit(0) ^ bit(1) == 1 {
            value = self.b.xor(value, c);
        }
        if bit(0) ^ bit(2) == 1 {
            value = self.b.xor(value, b);
        }
        if bit(0) ^ bit(1) ^ bit(2) ^ bit(3) == 1 {
            let both = self.b.and(b, c);
            value = self.b.xor(value, both);
        }
        value
    }

    fn funnel(&mut self, left: bool, wrap: bool, low: Value, high: Value, amount: Value) -> Value {
        let amount = if wrap {
            let last = self.b.i32(31);
            self.b.and(amount, last)
        } else {
            let limit = self.b.i32(32);
            self.extreme(false, false, amount, limit)
        };
        let half = self.b.i64(32);
        let (low, high, amount) = (self.widen(low, false), self.widen(high, false), self.widen(amount, false));
        let upper = self.b.shl(high, half);
        let both = self.b.or(upper, low);
        let result = if left {
            let shifted = self.b.shl(both, amount);
            self.b.shr_u(shifted, half)
        } else {
            self.b.shr_u(both, amount)
        };
        self.b.unary(Unary::Wrap, result)
    }

    fn extract(&mut self, ty: Type, a: Value, pos: Value, len: Value) -> Value {
        let kind = kind(ty);
        let moved = self.shift(false, ty, a, pos);
        if !ty.is_signed() {
            let mask = self.low_ones(kind, len);
            return self.b.and(moved, mask);
        }
        // Bits beyond the top are the sign already: the arithmetic shift filled them in.
        let width = self.b.i32(kind.bytes() * 8);
        let within = self.b.lt_u(len, width);
        let spare = self.b.sub(width, len);
        let up = if kind == Kind::I64 { self.widen(spare, false) } else { spare };
        let top = self.b.shl(moved, up);
        let extended = self.b.shr_s(top, up);
        let value = self.b.select(within, extended, moved);
        let zero = self.b.int(kind, 0);
        let empty = self.b.unary(Unary::IsZero, len);
        self.b.select(empty, zero, value)
    }

    fn extend_from(&mut self, wrap: bool, ty: Type, a: Value, n: Value) -> Value {
        let last = self.b.i32(31);
        let bits = if wrap { self.b.and(n, last) } else { n };
        if ty.is_signed() {
            let zero = self.b.i32(0);
            return self.extract(Type::S32, a, zero, bits);
        }
        let mask = self.low_ones(Kind::I32, bits);
        self.b.and(a, mask)
    }

    fn permute(&mut self, mode: PermuteMode, a: Value, b: Value, selector: Value) -> Value {
        let half = self.b.i64(32);
        let (low, high) = (self.widen(a, false), self.widen(b, false));
        let upper = self.b.shl(high, half);
        let source = self.b.or(upper, low);
        let mut result = self.b.i32(0);
        for index in 0..4 {
            let byte = if mode == PermuteMode::Default {
                let at = self.b.i32(4 * index);
                let nibble = self.b.shr_u(selector, at);
                self.selected_byte(source, nibble)
            } else {
                let at = self.byte_index(mode, selector, index);
                self.byte_at(source, at)
            };
            let place = self.b.i32(8 * index);
            let byte = self.b.shl(byte, place);
            result = self.b.or(result, byte);
        }
        result
    }

    /// A byte of eight.
    fn byte_at(&mut self, source: Value, index: Value) -> Value {
        let (three, mask) = (self.b.i32(3), self.b.i32(0xff));
        let bits = self.b.shl(index, three);
        let bits = self.widen(bits, false);
        let moved = self.b.shr_u(source, bits);
        let moved = self.b.unary(Unary::Wrap, moved);
        self.b.and(moved, mask)
    }

    /// A byte of eight by the lower 3 bits of a selector; with its fourth bit, eight copies of the byte's sign.
    fn selected_byte(&mut self, source: Value, nibble: Value) -> Value {
        let (seven, eight) = (self.b.i32(7), self.b.i32(8));
        let index = self.b.and(nibble, seven);
        let byte = self.byte_at(source, index);
        let by_sign = self.b.and(nibble, eight);
        let sign = self.b.shr_u(byte, seven);
        let (zero, all) = (self.b.i32(0), self.b.i32(0xff));
        let copies = self.b.select(sign, all, zero);
        self.b.select(by_sign, copies, byte)
    }

    /// Which byte goes to place `index` in the other modes.
    fn byte_index(&mut self, mode: PermuteMode, selector: Value, index: u32) -> Value {
        let (three, seven, place) = (self.b.i32(3), self.b.i32(7), self.b.i32(index));
        let n = self.b.and(selector, three);
        match mode {
            PermuteMode::F4e => self.b.add(n, place),
            PermuteMode::B4e => {
                let before = self.b.sub(n, place);
                self.b.and(before, seven)
            }
            PermuteMode::Ecl => self.extreme(true, false, n, place),
            PermuteMode::Ecr => self.extreme(false, false, n, place),
            PermuteMode::Rc16 => {
                let one = self.b.i32(1);
                let (half, lower) = (self.b.and(n, one), self.b.i32(index & 1));
                let first = self.b.shl(half, one);
                self.b.or(first, lower)
            }
            PermuteMode::Rc8 | PermuteMode::Default => n,
        }
    }
}

/// The operation on bits.
pub(super) fn logic(op: Logic) -> Binary {
    match op {
        Logic::And => Binary::And,
        Logic::Or => Binary::Or,
        Logic::Xor => Binary::Xor,
    }
}
