//! Integer arithmetic and its carry chains.

use super::modifiers::Table;
use super::reader::Reader;
use crate::module::{Carry, IntegerOp, IntegerUnary, Op, Operand, RegisterId, Type};
use crate::parse::error::Result;

/// The integers of arithmetic, and two halves at once.
const ALL: &[Type] = &[Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64, Type::U16x2, Type::S16x2];
/// Those that stand alone.
const INTEGERS: &[Type] = ALL.split_at(6).0;
/// Those that can be in a carry chain.
const CHAINED: &[Type] = &[Type::U32, Type::S32, Type::U64, Type::S64];
const SIGNED: &[Type] = &[Type::S16, Type::S32, Type::S64];
const WORDS: &[Type] = &[Type::U32, Type::S32];
/// Those whose product can be twice as wide.
const WIDENED: &[Type] = &[Type::U16, Type::U32, Type::S16, Type::S32];

const HALVES: &Table<IntegerOp> = &[("lo", IntegerOp::MulLo), ("hi", IntegerOp::MulHi), ("wide", IntegerOp::MulWide)];
const HALVES_24: &Table<IntegerOp> = &[("lo", IntegerOp::Mul24Lo), ("hi", IntegerOp::Mul24Hi)];

/// `.cc`, beside what the opcode says of the flag.
fn carry(reader: &mut Reader, reads: bool) -> Carry {
    Carry { reads, writes: reader.modifiers.flag("cc") }
}

/// The type that a product has.
fn product(op: IntegerOp, ty: Type) -> Type {
    match (op, ty) {
        (IntegerOp::MulWide, Type::U16) => Type::U32,
        (IntegerOp::MulWide, Type::S16) => Type::S32,
        (IntegerOp::MulWide, Type::U32) => Type::U64,
        (IntegerOp::MulWide, Type::S32) => Type::S64,
        _ => ty,
    }
}

/// `add`, `sub`, `addc`, `subc`.
pub(super) fn sum(reader: &mut Reader, op: IntegerOp, reads: bool) -> Result<Op> {
    let carry = carry(reader, reads);
    let ty = reader.ty(match op {
        _ if carry != Carry::default() => CHAINED,
        IntegerOp::Add => ALL,
        _ => INTEGERS,
    })?;
    let saturate = ty == Type::S32 && carry == Carry::default() && reader.modifiers.flag("sat");
    Ok(Op::Integer { op, ty, saturate, carry, dst: reader.dst(ty)?, a: reader.src(ty)?, b: reader.src(ty)? })
}

pub(super) fn addc(reader: &mut Reader) -> Result<Op> {
    sum(reader, IntegerOp::Add, true)
}

pub(super) fn subc(reader: &mut Reader) -> Result<Op> {
    sum(reader, IntegerOp::Sub, true)
}

/// Operations with nothing but a type.
pub(super) fn plain(reader: &mut Reader, op: IntegerOp) -> Result<Op> {
    let ty = reader.ty(INTEGERS)?;
    two_operands(reader, op, ty)
}

/// `min` and `max`.
pub(super) fn extreme(reader: &mut Reader, op: IntegerOp) -> Result<Op> {
    let ty = reader.ty(ALL)?;
    let saturate = matches!(ty, Type::S32 | Type::S16x2) && reader.modifiers.flag("relu");
    let (dst, a, b) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?);
    Ok(Op::Integer { op, ty, saturate, carry: Carry::default(), dst, a, b })
}

fn two_operands(reader: &mut Reader, op: IntegerOp, ty: Type) -> Result<Op> {
    let (dst, a, b) = (reader.dst(product(op, ty))?, reader.src(ty)?, reader.src(ty)?);
    Ok(Op::Integer { op, ty, saturate: false, carry: Carry::default(), dst, a, b })
}

pub(super) fn rem(reader: &mut Reader) -> Result<Op> {
    plain(reader, IntegerOp::Rem)
}

pub(super) fn mul(reader: &mut Reader) -> Result<Op> {
    let op = reader.choice(HALVES, "`.lo`, `.hi` or `.wide`")?;
    let ty = reader.ty(if op == IntegerOp::MulWide { WIDENED } else { INTEGERS })?;
    two_operands(reader, op, ty)
}

pub(super) fn mul24(reader: &mut Reader) -> Result<Op> {
    let op = reader.choice(HALVES_24, "`.lo` or `.hi`")?;
    let ty = reader.ty(WORDS)?;
    two_operands(reader, op, ty)
}

pub(super) fn mad(reader: &mut Reader, reads: bool) -> Result<Op> {
    let op = reader.choice(HALVES, "`.lo`, `.hi` or `.wide`")?;
    let carry = carry(reader, reads);
    let chained = carry != Carry::default();
    if chained && op == IntegerOp::MulWide {
        return Err(reader.wrong("has no carry in its form `.wide`"));
    }
    let ty = reader.ty(match op {
        _ if chained => CHAINED,
        IntegerOp::MulWide => WIDENED,
        _ => INTEGERS,
    })?;
    let saturate = op == IntegerOp::MulHi && ty == Type::S32 && !chained && reader.modifiers.flag("sat");
    multiply_add(reader, op, ty, saturate, carry)
}

pub(super) fn madc(reader: &mut Reader) -> Result<Op> {
    mad(reader, true)
}

pub(super) fn mad24(reader: &mut Reader) -> Result<Op> {
    let op = reader.choice(HALVES_24, "`.lo` or `.hi`")?;
    let ty = reader.ty(WORDS)?;
    let saturate = op == IntegerOp::Mul24Hi && ty == Type::S32 && reader.modifiers.flag("sat");
    multiply_add(reader, op, ty, saturate, Carry::default())
}

fn multiply_add(reader: &mut Reader, op: IntegerOp, ty: Type, saturate: bool, carry: Carry) -> Result<Op> {
    let sum = product(op, ty);
    let (dst, a, b, c) = (reader.dst(sum)?, reader.src(ty)?, reader.src(ty)?, reader.src(sum)?);
    Ok(Op::MultiplyAdd { op, ty, saturate, carry, dst, a, b, c })
}

pub(super) fn sad(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(INTEGERS)?;
    let (dst, a, b, c) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?, reader.src(ty)?);
    Ok(Op::SumAbsoluteDifference { ty, dst, a, b, c })
}

/// `abs` and `neg`.
pub(super) fn sign(reader: &mut Reader, op: IntegerUnary) -> Result<Op> {
    let ty = reader.ty(SIGNED)?;
    Ok(Op::IntegerUnary { op, ty, dst: reader.dst(ty)?, a: reader.src(ty)? })
}

pub(super) fn dp4a(reader: &mut Reader) -> Result<Op> {
    let (a_ty, b_ty) = (reader.ty(WORDS)?, reader.ty(WORDS)?);
    let (dst, a, b, c) = dot(reader)?;
    Ok(Op::Dot4 { a_ty, b_ty, dst, a, b, c })
}

pub(super) fn dp2a(reader: &mut Reader) -> Result<Op> {
    let upper = reader.choice(&[("lo", false), ("hi", true)], "`.lo` or `.hi`")?;
    let (a_ty, b_ty) = (reader.ty(WORDS)?, reader.ty(WORDS)?);
    let (dst, a, b, c) = dot(reader)?;
    Ok(Op::Dot2 { upper, a_ty, b_ty, dst, a, b, c })
}

/// The operands of a dot product: where it goes, its factors and what is added.
fn dot(reader: &mut Reader) -> Result<(RegisterId, Operand, Operand, Operand)> {
    Ok((reader.dst(Type::B32)?, reader.src(Type::B32)?, reader.src(Type::B32)?, reader.src(Type::B32)?))
}
