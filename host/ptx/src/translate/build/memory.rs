//! Loads, stores and questions about addresses.

use super::body::Body;
use super::operand::{kind, unsigned};
use crate::kernel::Launch;
use crate::module::{Address, Op, Operand, Order, RegisterId, Space, Type};
use crate::translate::error::Result;
use crate::translate::helper::Helper;
use crate::translate::ir::{Access, Inst, Kind, Memory, Value};

/// Where an access goes: a base, what is added to it, and in which memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub base: Value,
    pub offset: u64,
    memory: Memory,
    exclusive: bool,
    constant: bool,
}

impl Target {
    /// For an operation that reads and writes there: no other thread of the block may come between.
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }
}

impl Body<'_, '_> {
    pub(super) fn memory(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Load { space, order, ty, dst, address } => {
                let target = self.target_of(*space, address)?;
                let atomic = self.shared_with_others(*space, *order);
                for (index, register) in dst.iter().enumerate() {
                    let Some(register) = register else { continue };
                    let offset = index as u64 * u64::from(ty.bytes());
                    let value = self.load(target, offset, *ty, atomic)?;
                    self.write(*register, *ty, value);
                }
                if *order == Order::Strong {
                    self.asks();
                }
            }
            Op::Store { space, order, ty, address, src } => {
                let target = self.target_of(*space, address)?;
                let atomic = self.shared_with_others(*space, *order);
                let mut values = Vec::new();
                for operand in src {
                    values.push(self.operand(operand, *ty)?);
                }
                for (index, value) in values.into_iter().enumerate() {
                    let offset = index as u64 * u64::from(ty.bytes());
                    self.store(target, offset, *ty, value, atomic);
                }
            }
            Op::AsyncCopy { bytes, to, from, given, ignored } => {
                let (to, from) = (self.target_of(Space::Shared, to)?, self.target_of(Space::Global, from)?);
                let nothing = self.b.i32(0);
                let given = match (given, ignored) {
                    (Some(given), _) => Some(self.operand(given, Type::U32)?),
                    (None, Some(ignored)) => {
                        let (ignored, all) = (self.predicate(ignored), self.b.i32(*bytes));
                        Some(self.b.select(ignored, nothing, all))
                    }
                    (None, None) => None,
                };
                match given {
                    None => self.copy(to, from, *bytes)?,
                    Some(given) => self.copy_some(to, from, *bytes, given)?,
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// So many bytes, read before any is written.
    fn copy(&mut self, to: Target, from: Target, bytes: u32) -> Result<()> {
        let (ty, step) = if bytes == 4 { (Type::B32, 4) } else { (Type::B64, 8) };
        let mut values = Vec::new();
        for offset in (0..u64::from(bytes)).step_by(step) {
            values.push((offset, self.load(from, offset, ty, false)?));
        }
        for (offset, value) in values {
            self.store(to, offset, ty, value, false);
        }
        Ok(())
    }

    /// The first `given` bytes, and zeros for the others.
    fn copy_some(&mut self, to: Target, from: Target, bytes: u32, given: Value) -> Result<()> {
        let all = self.b.i32(bytes);
        let (whole, part, behind) = (self.b.block(), self.b.block(), self.b.block());
        let complete = self.b.le_u(all, given);
        self.b.branch(complete, whole, part);
        self.b.start(whole);
        self.copy(to, from, bytes)?;
        self.b.jump(behind);
        self.b.start(part);
        let [to, from] = [to, from].map(|target| {
            let offset = self.b.i64(target.offset);
            self.b.add(target.base, offset)
        });
        self.shop.call(&mut self.b, Helper::CopyPart, &[to, from, given, all]);
        self.b.jump(behind);
        self.b.start(behind);
        Ok(())
    }

    /// Whether an access must be atomic: blocks that run elsewhere see what is in global memory.
    fn shared_with_others(&self, space: Space, order: Order) -> bool {
        order == Order::Strong && matches!(space, Space::Global | Space::Generic)
    }

    /// Reads a value of a type.
    pub(super) fn load(&mut self, target: Target, offset: u64, ty: Type, atomic: bool) -> Result<Value> {
        if ty == Type::B128 {
            return Err(self.error("128-bit loads are not supported; use two 64-bit registers"));
        }
        let access = access(target, offset, ty, atomic);
        if target.constant {
            return Ok(self.b.launch(access.offset, kind(ty), access.bytes, access.signed));
        }
        let inst = |kind: Kind| (Inst::Load(Access { signed: false, ..access }, target.base), Some(kind));
        if atomic {
            // Atomic loads are of integers, and extend by zeros.
            let bits = kind(unsigned(ty));
            let (inst, of) = inst(bits);
            let value = self.b.push(inst, of);
            let value = if ty.bits() < 32 { self.narrow(value, ty) } else { value };
            return Ok(self.fit(value, ty));
        }
        Ok(self.b.push(Inst::Load(access, target.base), Some(kind(ty))))
    }

    /// Writes a value of a type.
    pub(super) fn store(&mut self, target: Target, offset: u64, ty: Type, value: Value, atomic: bool) {
        let value = if atomic { self.bits_of(value) } else { value };
        self.b.push(Inst::Store(access(target, offset, ty, atomic), target.base, value), None);
    }

    /// Where an address of a space points.
    pub(super) fn target_of(&mut self, space: Space, address: &Address) -> Result<Target> {
        if space == Space::Param {
            return self.parameter_target(address);
        }
        if let Operand::Address(symbol, own) = address.base {
            let location = self.symbol(symbol)?;
            if self.b.kind(location.base) != Kind::I64 {
                return Err(self.error("a parameter has no address outside of parameter space"));
            }
            let offset = i128::from(location.offset) + i128::from(own) + i128::from(address.offset);
            return Ok(self.at(location.base, offset));
        }
        let base = match address.base {
            Operand::Register(register) => self.address_in(register),
            other => self.operand(&other, Type::U64)?,
        };
        Ok(self.at(base, i128::from(address.offset)))
    }

    /// A register as an address of 64 bits; spaces within a block may be addressed by 32.
    fn address_in(&mut self, register: RegisterId) -> Value {
        let ty = unsigned(self.function().ty(register));
        let value = self.read(register, ty);
        self.fit(value, Type::U64)
    }

    /// An offset is part of the access if it is not negative, else of the address.
    fn at(&mut self, base: Value, offset: i128) -> Target {
        if let Some(known) = self.b.known(base) {
            let address = self.b.i64((i128::from(known) + offset) as u64);
            return Target { base: address, offset: 0, memory: Memory::Device, exclusive: false, constant: false };
        }
        if (0..=i128::from(u32::MAX)).contains(&offset) {
            return Target { base, offset: offset as u64, memory: Memory::Device, exclusive: false, constant: false };
        }
        let distance = self.b.i64(offset as u64);
        let base = self.b.add(base, distance);
        Target { base, offset: 0, memory: Memory::Device, exclusive: false, constant: false }
    }

    /// Parameters, arguments and results of calls lie in the private memory.
    fn parameter_target(&mut self, address: &Address) -> Result<Target> {
        let (base, offset, constant) = match address.base {
            Operand::Address(symbol, own) => {
                let location = self.symbol(symbol)?;
                (location.base, i128::from(location.offset) + i128::from(own), location.constant)
            }
            Operand::Register(register) => {
                let value = self.address_in(register);
                (self.b.unary(crate::translate::ir::Unary::Wrap, value), 0, false)
            }
            _ => return Err(self.error("a parameter is addressed by its name")),
        };
        let offset = offset + i128::from(address.offset);
        match u32::try_from(offset) {
            Ok(offset) if self.b.kind(base) == Kind::I32 => {
                Ok(Target { base, offset: u64::from(offset), memory: Memory::Private, exclusive: false, constant })
            }
            _ => Err(self.error("an address outside of the parameters")),
        }
    }

    /// Whether a generic address is in a space.
    pub(super) fn is_space(&mut self, space: Space, dst: RegisterId, src: &Operand) -> Result<()> {
        let address = self.operand(src, Type::U64)?;
        let value = match space {
            Space::Generic => self.b.i32(1),
            Space::Param => self.b.i32(0),
            Space::Shared | Space::Local | Space::Const => self.within(space, address),
            Space::Global => {
                let mut elsewhere = self.b.i32(0);
                for space in [Space::Shared, Space::Local, Space::Const] {
                    let there = self.within(space, address);
                    elsewhere = self.b.or(elsewhere, there);
                }
                self.not(elsewhere)
            }
        };
        self.write(dst, Type::Pred, value);
        Ok(())
    }

    fn within(&mut self, space: Space, address: Value) -> Value {
        let mut record = |at: u32| self.b.launch(u64::from(at), Kind::I64, 8, false);
        let (start, end) = match space {
            Space::Shared => (record(Launch::SHARED), record(Launch::SHARED_END)),
            Space::Local => (record(Launch::LOCAL), record(Launch::LOCAL_END)),
            _ => {
                let start = record(Launch::CONSTANTS);
                let bytes = self.shop.const_bytes();
                let bytes = self.b.i64(bytes);
                (start, self.b.add(start, bytes))
            }
        };
        let (behind, before) = (self.b.le_u(start, address), self.b.lt_u(address, end));
        self.b.and(behind, before)
    }
}

fn access(target: Target, offset: u64, ty: Type, atomic: bool) -> Access {
    Access {
        memory: target.memory,
        bytes: ty.bytes(),
        signed: ty.is_signed() && ty.bits() < 32,
        offset: target.offset + offset,
        atomic,
        exclusive: target.exclusive,
        constant: target.constant,
    }
}
