//! Logic, shifts and bit fields.

use super::modifiers::Table;
use super::reader::Reader;
use crate::module::{Carry, IntegerOp, IntegerUnary, Logic, Op, PermuteMode, Type};
use crate::parse::error::Result;

const LOGIC: &[Type] = &[Type::Pred, Type::B16, Type::B32, Type::B64];
const BITS: &[Type] = &[Type::B16, Type::B32, Type::B64];
const WORDS: &[Type] = &[Type::B32, Type::B64];
const FIELDS: &[Type] = &[Type::U32, Type::U64, Type::S32, Type::S64];
/// Shift amounts and positions, whatever the type of what is shifted.
const AMOUNT: Type = Type::U32;
/// Whether an amount beyond the width wraps around; else it counts as the width.
const WRAP: &Table<bool> = &[("clamp", false), ("wrap", true)];

pub(super) fn and(reader: &mut Reader) -> Result<Op> {
    logic(reader, Logic::And)
}

pub(super) fn or(reader: &mut Reader) -> Result<Op> {
    logic(reader, Logic::Or)
}

pub(super) fn xor(reader: &mut Reader) -> Result<Op> {
    logic(reader, Logic::Xor)
}

fn logic(reader: &mut Reader, op: Logic) -> Result<Op> {
    let ty = reader.ty(LOGIC)?;
    Ok(Op::Logic { op, ty, dst: reader.dst(ty)?, a: reader.src(ty)?, b: reader.src(ty)? })
}

pub(super) fn not(reader: &mut Reader) -> Result<Op> {
    unary(reader, IntegerUnary::Not, LOGIC)
}

pub(super) fn cnot(reader: &mut Reader) -> Result<Op> {
    unary(reader, IntegerUnary::Cnot, BITS)
}

pub(super) fn brev(reader: &mut Reader) -> Result<Op> {
    unary(reader, IntegerUnary::Brev, WORDS)
}

fn unary(reader: &mut Reader, op: IntegerUnary, types: &[Type]) -> Result<Op> {
    let ty = reader.ty(types)?;
    Ok(Op::IntegerUnary { op, ty, dst: reader.dst(ty)?, a: reader.src(ty)? })
}

pub(super) fn popc(reader: &mut Reader) -> Result<Op> {
    count(reader, IntegerUnary::Popc, WORDS)
}

pub(super) fn clz(reader: &mut Reader) -> Result<Op> {
    count(reader, IntegerUnary::Clz, WORDS)
}

pub(super) fn bfind(reader: &mut Reader) -> Result<Op> {
    let shift_amount = reader.modifiers.flag("shiftamt");
    count(reader, IntegerUnary::Bfind { shift_amount }, FIELDS)
}

/// Operations whose result is a 32-bit number.
fn count(reader: &mut Reader, op: IntegerUnary, types: &[Type]) -> Result<Op> {
    let ty = reader.ty(types)?;
    Ok(Op::IntegerUnary { op, ty, dst: reader.dst(Type::U32)?, a: reader.src(ty)? })
}

pub(super) fn lop3(reader: &mut Reader) -> Result<Op> {
    let logic = reader.modifiers.take(&[("and", Logic::And), ("or", Logic::Or)]);
    let ty = reader.ty(&[Type::B32])?;
    let [dst, truth] = if logic.is_some() { reader.dst_pair(ty, Type::Pred)? } else { [Some(reader.dst(ty)?), None] };
    let (a, b, c) = (reader.src(ty)?, reader.src(ty)?, reader.src(ty)?);
    let table = reader.constant("the truth table", 0..=255)? as u8;
    let truth = match (logic, truth) {
        (None, _) => None,
        (Some(logic), Some(truth)) => Some((logic, truth, reader.predicate()?)),
        (Some(_), None) => return Err(reader.wrong("needs a predicate behind `|`, which its operation is for")),
    };
    Ok(Op::Logic3 { dst, a, b, c, table, truth })
}

pub(super) fn shl(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(BITS)?;
    shift(reader, IntegerOp::Shl, ty)
}

pub(super) fn shr(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&[
        Type::B16,
        Type::B32,
        Type::B64,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::S16,
        Type::S32,
        Type::S64,
    ])?;
    shift(reader, IntegerOp::Shr, ty)
}

fn shift(reader: &mut Reader, op: IntegerOp, ty: Type) -> Result<Op> {
    let (dst, a, b) = (reader.dst(ty)?, reader.src(ty)?, reader.src(AMOUNT)?);
    Ok(Op::Integer { op, ty, saturate: false, carry: Carry::default(), dst, a, b })
}

pub(super) fn shf(reader: &mut Reader) -> Result<Op> {
    let left = reader.choice(&[("l", true), ("r", false)], "`.l` or `.r`")?;
    let wrap = reader.choice(WRAP, "`.clamp` or `.wrap`")?;
    let ty = reader.ty(&[Type::B32])?;
    let (dst, a, b, c) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?, reader.src(AMOUNT)?);
    Ok(Op::FunnelShift { left, wrap, dst, a, b, c })
}

pub(super) fn bfe(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(FIELDS)?;
    let (dst, a, pos, len) = (reader.dst(ty)?, reader.src(ty)?, reader.src(AMOUNT)?, reader.src(AMOUNT)?);
    Ok(Op::BitExtract { ty, dst, a, pos, len })
}

pub(super) fn bfi(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(WORDS)?;
    let (dst, a, b) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?);
    Ok(Op::BitInsert { ty, dst, a, b, pos: reader.src(AMOUNT)?, len: reader.src(AMOUNT)? })
}

pub(super) fn bmsk(reader: &mut Reader) -> Result<Op> {
    let wrap = reader.choice(WRAP, "`.clamp` or `.wrap`")?;
    reader.ty(&[Type::B32])?;
    Ok(Op::BitMask { wrap, dst: reader.dst(Type::B32)?, pos: reader.src(AMOUNT)?, len: reader.src(AMOUNT)? })
}

pub(super) fn szext(reader: &mut Reader) -> Result<Op> {
    let wrap = reader.choice(WRAP, "`.clamp` or `.wrap`")?;
    let ty = reader.ty(&[Type::U32, Type::S32])?;
    Ok(Op::ExtendFrom { wrap, ty, dst: reader.dst(ty)?, a: reader.src(ty)?, n: reader.src(AMOUNT)? })
}

pub(super) fn fns(reader: &mut Reader) -> Result<Op> {
    reader.ty(&[Type::B32])?;
    let (dst, mask) = (reader.dst(Type::B32)?, reader.src(Type::B32)?);
    Ok(Op::FindNthSet { dst, mask, base: reader.src(Type::B32)?, offset: reader.src(Type::S32)? })
}

pub(super) fn prmt(reader: &mut Reader) -> Result<Op> {
    const MODES: &Table<PermuteMode> = &[
        ("f4e", PermuteMode::F4e),
        ("b4e", PermuteMode::B4e),
        ("rc8", PermuteMode::Rc8),
        ("ecl", PermuteMode::Ecl),
        ("ecr", PermuteMode::Ecr),
        ("rc16", PermuteMode::Rc16),
    ];
    let ty = reader.ty(&[Type::B32])?;
    let mode = reader.modifiers.take(MODES).unwrap_or(PermuteMode::Default);
    let (dst, a, b, selector) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?, reader.src(ty)?);
    Ok(Op::Permute { mode, dst, a, b, selector })
}
