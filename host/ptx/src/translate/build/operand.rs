//! Operands as values, results into registers.
//!
//! A register narrower than 32 bits holds its bits zero-extended. An operand of a narrow type comes extended by that type's sign; results of narrow types may
//! have anything above: [`Body::write`] cuts them.

use super::body::{Body, register_kind};
use crate::kernel::Launch;
use crate::module::{Axis, Comparison, Op, Operand, RegisterId, Special, Symbol, Type};
use crate::translate::error::Result;
use crate::translate::ir::{Input, Kind, Unary, Value};

/// The kind in which values of a type are computed.
pub(super) fn kind(ty: Type) -> Kind {
    register_kind(ty)
}

impl Body<'_, '_> {
    /// An operand, as a value of its type.
    pub(super) fn operand(&mut self, operand: &Operand, ty: Type) -> Result<Value> {
        if ty == Type::B128 {
            return Err(self.error("128-bit operands are not supported; use two 64-bit registers"));
        }
        match operand {
            Operand::Register(register) => Ok(self.read(*register, ty)),
            Operand::Immediate(bits) => {
                let bits = match ty.bytes() {
                    1 if ty.is_signed() => *bits as i8 as u64,
                    2 if ty.is_signed() => *bits as i16 as u64,
                    1 if ty != Type::Pred => *bits & 0xff,
                    2 => *bits & 0xffff,
                    _ => *bits,
                };
                Ok(self.b.constant(kind(ty), bits))
            }
            Operand::Special(special) => {
                let value = self.special(*special);
                Ok(self.fit(value, ty))
            }
            Operand::Address(symbol, offset) => {
                let address = self.address_of(*symbol, *offset)?;
                Ok(self.fit(address, ty))
            }
        }
    }

    /// The address of a symbol as a 64-bit number.
    fn address_of(&mut self, symbol: Symbol, offset: i64) -> Result<Value> {
        let location = self.symbol(symbol)?;
        let offset = self.b.i64(location.offset.wrapping_add_signed(offset));
        let base =
            if self.b.kind(location.base) == Kind::I32 { self.widen(location.base, false) } else { location.base };
        Ok(self.b.add(base, offset))
    }

    /// A register's bits, as a value of this type.
    pub(super) fn read(&mut self, register: RegisterId, ty: Type) -> Value {
        let variable = self.variable(register);
        let value = self.b.read(variable);
        let own = self.function().ty(register);
        if ty.bits() >= 32 || ty == Type::Pred || own == Type::Pred {
            return self.fit(value, ty);
        }
        let value = self.bits_of(value);
        let value = if self.b.kind(value) == Kind::I64 { self.b.unary(Unary::Wrap, value) } else { value };
        if ty.is_signed() || own.bits() > ty.bits() { self.narrow(value, ty) } else { value }
    }

    /// Puts a result of this type into a register, extended by the type's sign where the register is wider.
    pub(super) fn write(&mut self, register: RegisterId, ty: Type, value: Value) {
        let variable = self.variable(register);
        let own = self.function().ty(register);
        let mut value = value;
        if ty.bits() < 32 && ty != Type::Pred {
            // A register of the type's own width holds its bits zero-extended, a wider one extended by the sign.
            let cut = if own.bits() <= ty.bits() { unsigned(own) } else { ty };
            value = self.narrow(value, cut);
        } else if own.bits() < 32 && own != Type::Pred {
            value = self.fit(value, Type::B32);
            value = self.narrow(value, unsigned(own));
        }
        let kind = register_kind(own);
        let value = if kind == Kind::I64 && self.b.kind(value) == Kind::I32 {
            self.widen(value, ty.is_signed())
        } else {
            self.fit_kind(value, kind)
        };
        self.b.write(variable, value);
    }

    /// The same bits as the kind of a type; cut or zero-extended where the sizes differ.
    pub(super) fn fit(&mut self, value: Value, ty: Type) -> Value {
        self.fit_kind(value, kind(ty))
    }

    fn fit_kind(&mut self, value: Value, kind: Kind) -> Value {
        let from = self.b.kind(value);
        if from == kind {
            return value;
        }
        if from.bytes() == kind.bytes() {
            return self.b.reinterpret(value, kind);
        }
        let bits = self.bits_of(value);
        let sized = if kind.bytes() == 8 { self.widen(bits, false) } else { self.b.unary(Unary::Wrap, bits) };
        self.b.reinterpret(sized, kind)
    }

    /// A float's bits; an integer as it is.
    pub(super) fn bits_of(&mut self, value: Value) -> Value {
        match self.b.kind(value) {
            Kind::F32 => self.b.reinterpret(value, Kind::I32),
            Kind::F64 => self.b.reinterpret(value, Kind::I64),
            _ => value,
        }
    }

    /// The lower bits of an `I32`, extended by the sign of a type of 8 or 16 bits.
    pub(super) fn narrow(&mut self, value: Value, ty: Type) -> Value {
        match (ty.bits(), ty.is_signed()) {
            (8, true) => self.b.unary(Unary::Extend8, value),
            (16, true) => self.b.unary(Unary::Extend16, value),
            (8, false) => self.masked(value, 0xff),
            (16, false) => self.masked(value, 0xffff),
            _ => value,
        }
    }

    /// Cut by a mask, unless what made it has cut it already.
    fn masked(&mut self, value: Value, mask: u32) -> Value {
        use crate::translate::ir::{Binary, Inst};
        let within = match self.b.inst(value) {
            Inst::Load(access, _) => !access.signed && access.bytes < 4 && (1_u32 << (8 * access.bytes)) - 1 <= mask,
            Inst::Binary(Binary::And, _, by) => self.b.known(*by).is_some_and(|by| by <= u64::from(mask)),
            Inst::Binary(op, ..) => op.compares(),
            _ => false,
        };
        if within {
            return value;
        }
        let mask = self.b.i32(mask);
        self.b.and(value, mask)
    }

    /// An `I32` to `I64`.
    pub(super) fn widen(&mut self, value: Value, signed: bool) -> Value {
        self.b.unary(Unary::Widen { signed }, value)
    }

    /// The negation of a predicate.
    pub(super) fn not(&mut self, predicate: Value) -> Value {
        self.b.unary(Unary::IsZero, predicate)
    }

    /// `mov` in its forms.
    pub(super) fn moves(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Mov { ty, dst, src } => {
                let value = self.operand(src, *ty)?;
                self.write(*dst, *ty, value);
            }
            Op::Pack { ty, dst, parts } => {
                let width = self.whole(*ty)?.bits() / parts.len().max(1) as u32;
                let part = bits_type(width);
                let mut whole = self.b.int(kind(*ty), 0);
                for (index, operand) in parts.iter().enumerate() {
                    let value = self.operand(operand, part)?;
                    let value = self.fit_kind(value, kind(unsigned(*ty)));
                    let shift = self.b.int(self.b.kind(value), u64::from(width) * index as u64);
                    let value = self.b.shl(value, shift);
                    whole = self.b.or(whole, value);
                }
                self.write(*dst, unsigned(*ty), whole);
            }
            Op::Unpack { ty, dst, src } => {
                let ty = unsigned(self.whole(*ty)?);
                let width = ty.bits() / dst.len().max(1) as u32;
                let whole = self.operand(src, ty)?;
                for (index, register) in dst.iter().enumerate() {
                    let Some(register) = register else { continue };
                    let shift = self.b.int(kind(ty), u64::from(width) * index as u64);
                    let value = self.b.shr_u(whole, shift);
                    let part = bits_type(width);
                    let value = self.fit(value, part);
                    self.write(*register, part, value);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The type of something that is packed, which must fit a register.
    fn whole(&self, ty: Type) -> Result<Type> {
        if ty == Type::B128 {
            Err(self.error("128-bit operands are not supported; use two 64-bit registers"))
        } else {
            Ok(ty)
        }
    }

    /// A special register.
    pub(super) fn special(&mut self, special: Special) -> Value {
        let record = |axis: Axis, base: u32| u64::from(base + 4 * axis_index(axis));
        match special {
            Special::Thread(axis) => self.input(Input::Thread(axis)),
            Special::BlockSize(axis) => self.b.launch(record(axis, Launch::BLOCK), Kind::I32, 4, false),
            Special::Block(axis) => self.b.launch(record(axis, Launch::BLOCK_INDEX), Kind::I32, 4, false),
            Special::GridSize(axis) => self.b.launch(record(axis, Launch::GRID), Kind::I32, 4, false),
            Special::Lane => self.lane(),
            Special::Warp => {
                let (linear, five) = (self.input(Input::Linear), self.b.i32(5));
                self.b.shr_u(linear, five)
            }
            Special::WarpCount => {
                let mut threads = self.special(Special::BlockSize(Axis::X));
                for axis in [Axis::Y, Axis::Z] {
                    let size = self.special(Special::BlockSize(axis));
                    threads = self.b.mul(threads, size);
                }
                let (rest, five) = (self.b.i32(31), self.b.i32(5));
                let threads = self.b.add(threads, rest);
                self.b.shr_u(threads, five)
            }
            Special::ProcessorCount => self.b.i32(1),
            Special::Processor | Special::Grid | Special::Clock => self.b.i32(0),
            Special::LaneMask(comparison) => self.lane_mask(comparison),
            Special::DynamicSharedBytes => self.b.launch(u64::from(Launch::DYNAMIC_SHARED), Kind::I32, 4, false),
            Special::TotalSharedBytes => {
                let end = self.b.launch(u64::from(Launch::SHARED_END), Kind::I64, 8, false);
                let start = self.b.launch(u64::from(Launch::SHARED), Kind::I64, 8, false);
                let bytes = self.b.sub(end, start);
                self.b.unary(Unary::Wrap, bytes)
            }
        }
    }

    /// The thread's place in its warp.
    pub(super) fn lane(&mut self) -> Value {
        let (linear, last) = (self.input(Input::Linear), self.b.i32(31));
        self.b.and(linear, last)
    }

    fn lane_mask(&mut self, comparison: Comparison) -> Value {
        let lane = self.lane();
        let (one, all) = (self.b.i32(1), self.b.i32(u32::MAX));
        let own = self.b.shl(one, lane);
        let below = self.b.sub(own, one);
        match comparison {
            Comparison::Lt => below,
            Comparison::Le => self.b.or(below, own),
            Comparison::Ge => self.b.xor(below, all),
            Comparison::Gt => {
                let up_to = self.b.or(below, own);
                self.b.xor(up_to, all)
            }
            _ => own,
        }
    }
}

fn axis_index(axis: Axis) -> u32 {
    match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

/// Bits of this width.
pub(super) fn bits_type(width: u32) -> Type {
    match width {
        8 => Type::B8,
        16 => Type::B16,
        32 => Type::B32,
        _ => Type::B64,
    }
}

/// Bits of the width of a type.
pub(super) fn unsigned(ty: Type) -> Type {
    if ty == Type::Pred { ty } else { bits_type(ty.bits()) }
}
