//! Comparisons and selections.

use super::bits::logic;
use super::body::Body;
use super::float::{half_of, is_half};
use crate::module::{Comparison, Logic, Op, Predicate, Type};
use crate::translate::error::Result;
use crate::translate::ir::{Binary, Value};

impl Body<'_, '_> {
    pub(super) fn compare(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::SetPredicate { comparison, ty, flush, dst, inverse, a, b, combine } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let (first, second) = if let Some(half) = half_of(*ty) {
                    self.each_half(*comparison, half, *flush, a, b)
                } else {
                    let holds = self.holds(*comparison, *ty, *flush, a, b);
                    (holds, self.not(holds))
                };
                let combined = [first, second].map(|value| self.combined(value, combine.as_ref()));
                for (register, value) in [*dst, *inverse].into_iter().zip(combined) {
                    if let Some(register) = register {
                        self.write(register, Type::Pred, value);
                    }
                }
            }
            Op::Set { comparison, to, ty, flush, dst, a, b, combine } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let value = if let Some(half) = half_of(*ty) {
                    let (lower, upper) = self.each_half(*comparison, half, *flush, a, b);
                    let [lower, upper] = [lower, upper].map(|value| {
                        let value = self.combined(value, combine.as_ref());
                        self.truth(value, half_of(*to).unwrap_or(Type::U16))
                    });
                    self.packed(lower, upper)
                } else {
                    let holds = self.holds(*comparison, *ty, *flush, a, b);
                    let holds = self.combined(holds, combine.as_ref());
                    self.truth(holds, *to)
                };
                self.write(*dst, *to, value);
            }
            Op::Select { ty, dst, a, b, predicate } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let predicate = self.operand(predicate, Type::Pred)?;
                let value = self.b.select(predicate, a, b);
                self.write(*dst, *ty, value);
            }
            Op::SelectBySign { ty, c_ty, flush, dst, a, b, c } => {
                let (a, b) = (self.operand(a, *ty)?, self.operand(b, *ty)?);
                let c = self.operand(c, *c_ty)?;
                let c = self.flushed(*c_ty, *flush, c);
                let zero = self.b.constant(self.b.kind(c), 0);
                let condition = if *c_ty == Type::F32 { self.b.le(zero, c) } else { self.b.le_s(zero, c) };
                let value = self.b.select(condition, a, b);
                self.write(*dst, *ty, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn combined(&mut self, value: Value, with: Option<&(Logic, Predicate)>) -> Value {
        let Some((op, predicate)) = with else { return value };
        let predicate = self.predicate(predicate);
        self.b.binary(logic(*op), value, predicate)
    }

    /// What `set` makes of a truth value.
    fn truth(&mut self, holds: Value, to: Type) -> Value {
        let one = match to {
            Type::F32 => u64::from(1_f32.to_bits()),
            Type::F64 => 1_f64.to_bits(),
            Type::F16 => 0x3c00,
            Type::Bf16 => 0x3f80,
            _ => u64::MAX,
        };
        let kind = super::operand::kind(to);
        let (yes, no) = (self.b.constant(kind, one), self.b.constant(kind, 0));
        self.b.select(holds, yes, no)
    }

    fn each_half(&mut self, comparison: Comparison, half: Type, flush: bool, a: Value, b: Value) -> (Value, Value) {
        let sixteen = self.b.i32(16);
        let (a_low, b_low) = (self.narrow(a, Type::B16), self.narrow(b, Type::B16));
        let (a_high, b_high) = (self.b.shr_u(a, sixteen), self.b.shr_u(b, sixteen));
        let lower = self.holds(comparison, half, flush, a_low, b_low);
        (lower, self.holds(comparison, half, flush, a_high, b_high))
    }

    /// Whether a comparison holds.
    fn holds(&mut self, comparison: Comparison, ty: Type, flush: bool, a: Value, b: Value) -> Value {
        if !ty.is_float() {
            return self.integers(comparison, ty.is_signed(), a, b);
        }
        let (mut a, mut b) = (self.flushed(ty, flush, a), self.flushed(ty, flush, b));
        if is_half(ty) {
            (a, b) = (self.half_to_f32(ty, a), self.half_to_f32(ty, b));
        }
        let (negated, comparison) = match comparison {
            // Unordered comparisons hold where the opposite ordered one does not.
            Comparison::Equ => return self.ordered_unequal(true, a, b),
            Comparison::Ne => return self.ordered_unequal(false, a, b),
            Comparison::Ltu => (true, Comparison::Ge),
            Comparison::Leu => (true, Comparison::Gt),
            Comparison::Gtu => (true, Comparison::Le),
            Comparison::Geu => (true, Comparison::Lt),
            other => (false, other),
        };
        let holds = match comparison {
            Comparison::Lt => self.b.lt(a, b),
            Comparison::Le => self.b.le(a, b),
            Comparison::Gt => self.b.lt(b, a),
            Comparison::Ge => self.b.le(b, a),
            Comparison::Neu => self.b.ne(a, b),
            Comparison::Num => {
                let (first, second) = (self.b.eq(a, a), self.b.eq(b, b));
                self.b.and(first, second)
            }
            Comparison::Nan => {
                let (first, second) = (self.b.ne(a, a), self.b.ne(b, b));
                self.b.or(first, second)
            }
            _ => self.b.eq(a, b),
        };
        if negated { self.not(holds) } else { holds }
    }

    /// Whether one is less than the other.
    fn ordered_unequal(&mut self, negated: bool, a: Value, b: Value) -> Value {
        let (less, more) = (self.b.lt(a, b), self.b.lt(b, a));
        let unequal = self.b.or(less, more);
        if negated { self.not(unequal) } else { unequal }
    }

    fn integers(&mut self, comparison: Comparison, signed: bool, a: Value, b: Value) -> Value {
        let (less, at_most) = if signed { (Binary::LtS, Binary::LeS) } else { (Binary::LtU, Binary::LeU) };
        match comparison {
            Comparison::Ne | Comparison::Neu => self.b.ne(a, b),
            Comparison::Lt | Comparison::Ltu => self.b.binary(less, a, b),
            Comparison::Le | Comparison::Leu => self.b.binary(at_most, a, b),
            Comparison::Gt | Comparison::Gtu => self.b.binary(less, b, a),
            Comparison::Ge | Comparison::Geu => self.b.binary(at_most, b, a),
            _ => self.b.eq(a, b),
        }
    }
}
