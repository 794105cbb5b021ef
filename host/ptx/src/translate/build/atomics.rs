//! Atomic operations.
//!
//! Threads of one block never run at the same moment, so an operation on shared memory needs no atomic instruction. On global memory, sums, minima, maxima and
//! logic on integers give the same memory in whatever order blocks come to them: they become atomic instructions, and blocks may run side by side. All
//! others depend on the order (a sum of floats by its rounding): a kernel with one of them, or one that uses what an operation found, runs its blocks in order.
//! So does one with two kinds of them: a sum and a maximum that meet at one address give what their order says, and whether they meet nobody knows before.

use super::body::Body;
use super::memory::Target;
use super::operand::kind;
use crate::module::{AtomicOp, Op, Operand, RegisterId, Space, Type};
use crate::translate::error::Result;
use crate::translate::helper::Helper;
use crate::translate::ir::{Access, Binary, Inst, Memory, Rmw, Unary, Value};

impl Body<'_, '_> {
    pub(super) fn atomic(&mut self, op: &Op) -> Result<()> {
        let Op::Atomic { op, space, ty, dst, address, b, c } = op else { return Ok(()) };
        let target = self.target_of(*space, address)?;
        let first = self.operand(b, *ty)?;
        let concurrent = matches!(space, Space::Global | Space::Generic);
        if dst.is_some() || matches!(op, AtomicOp::Cas | AtomicOp::Exch) {
            self.asks();
        }
        if concurrent && let Some(reduction) = Reduction::of(*op, *ty) {
            let known = *self.shop.reduction.get_or_insert(reduction);
            self.shop.sequential |= known != reduction;
            return self.concurrent(*op, *ty, *dst, target, first);
        }
        self.shop.sequential |= concurrent;
        let target = target.exclusive();
        let old = self.load(target, 0, *ty, false)?;
        let new = self.replacement(*op, *ty, old, first, c.as_ref())?;
        self.store(target, 0, *ty, new, false);
        if let Some(register) = dst {
            self.write(*register, *ty, old);
        }
        Ok(())
    }

    /// Also right if blocks run side by side.
    fn concurrent(
        &mut self,
        op: AtomicOp,
        ty: Type,
        dst: Option<RegisterId>,
        target: Target,
        operand: Value,
    ) -> Result<()> {
        let access = Access {
            memory: Memory::Device,
            bytes: ty.bytes(),
            signed: false,
            offset: target.offset,
            atomic: true,
            exclusive: false,
            constant: false,
        };
        let old = match op {
            AtomicOp::Min | AtomicOp::Max => {
                let offset = self.b.i64(target.offset);
                let address = self.b.add(target.base, offset);
                let helper = Helper::AtomicExtreme {
                    larger: op == AtomicOp::Max,
                    signed: ty.is_signed(),
                    wide: ty.bits() == 64,
                };
                self.shop.call(&mut self.b, helper, &[address, operand])
            }
            _ => {
                let rmw = match op {
                    AtomicOp::And => Rmw::And,
                    AtomicOp::Or => Rmw::Or,
                    AtomicOp::Xor => Rmw::Xor,
                    _ => Rmw::Add,
                };
                self.b.push(Inst::Rmw(rmw, access, target.base, operand), Some(kind(ty)))
            }
        };
        if let Some(register) = dst {
            self.ordered.push(old);
            self.write(register, ty, old);
        }
        Ok(())
    }

    /// What takes the place of the old value.
    fn replacement(
        &mut self,
        op: AtomicOp,
        ty: Type,
        old: Value,
        operand: Value,
        third: Option<&Operand>,
    ) -> Result<Value> {
        if ty.is_float() && !matches!(op, AtomicOp::Exch | AtomicOp::Cas | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor)
        {
            return self.float_replacement(op, ty, old, operand);
        }
        Ok(match op {
            AtomicOp::Exch => operand,
            AtomicOp::Cas => {
                let third = third.ok_or_else(|| self.error("a compare-and-swap takes two values"))?;
                let new = self.operand(third, ty)?;
                let (found, expected) = (self.bits_of(old), self.bits_of(operand));
                let same = self.b.eq(found, expected);
                self.b.select(same, new, old)
            }
            AtomicOp::Inc => {
                let (zero, one) = (self.b.i32(0), self.b.i32(1));
                let (at_end, next) = (self.b.le_u(operand, old), self.b.add(old, one));
                self.b.select(at_end, zero, next)
            }
            AtomicOp::Dec => {
                let one = self.b.i32(1);
                let (empty, beyond) = (self.b.unary(Unary::IsZero, old), self.b.lt_u(operand, old));
                let (restart, next) = (self.b.or(empty, beyond), self.b.sub(old, one));
                self.b.select(restart, operand, next)
            }
            AtomicOp::Min | AtomicOp::Max => self.extreme(op == AtomicOp::Max, ty.is_signed(), old, operand),
            AtomicOp::Add => self.b.add(old, operand),
            AtomicOp::And => self.b.and(old, operand),
            AtomicOp::Or => self.b.or(old, operand),
            AtomicOp::Xor => self.b.xor(old, operand),
        })
    }

    fn float_replacement(&mut self, op: AtomicOp, ty: Type, old: Value, operand: Value) -> Result<Value> {
        let op = match op {
            AtomicOp::Add => Binary::Add,
            AtomicOp::Min => Binary::MinNumber,
            AtomicOp::Max => Binary::MaxNumber,
            _ => return Err(self.error("this atomic operation is not defined for floats")),
        };
        self.atomic_float(op, ty, old, operand)
    }
}

/// An operation that leaves the same memory in whatever order it comes, among others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reduction {
    op: AtomicOp,
    bits: u32,
    /// Only extremes depend on it.
    signed: bool,
}

impl Reduction {
    fn of(op: AtomicOp, ty: Type) -> Option<Self> {
        let of_integers = !ty.is_float() && ty.bits() >= 32;
        let signed = match op {
            AtomicOp::Min | AtomicOp::Max => ty.is_signed(),
            AtomicOp::Add | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => false,
            AtomicOp::Exch | AtomicOp::Cas | AtomicOp::Inc | AtomicOp::Dec => return None,
        };
        of_integers.then_some(Self { op, bits: ty.bits(), signed })
    }
}
