//! Comparisons and selections.

use std::ops::Range;

use super::modifiers::Table;
use super::reader::Reader;
use crate::module::{Comparison, Logic, Op, Predicate, Type};
use crate::parse::error::Result;

/// What can be compared; what can be selected stands first.
const COMPARED: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
    Type::F16,
    Type::F16x2,
    Type::Bf16,
    Type::Bf16x2,
];
const SELECTED: Range<usize> = 0..11;

/// All comparisons, in such an order that those of each kind of type are neighbours.
const COMPARISONS: &Table<Comparison> = &[
    ("lo", Comparison::Lt),
    ("ls", Comparison::Le),
    ("hi", Comparison::Gt),
    ("hs", Comparison::Ge),
    ("eq", Comparison::Eq),
    ("ne", Comparison::Ne),
    ("lt", Comparison::Lt),
    ("le", Comparison::Le),
    ("gt", Comparison::Gt),
    ("ge", Comparison::Ge),
    ("equ", Comparison::Equ),
    ("neu", Comparison::Neu),
    ("ltu", Comparison::Ltu),
    ("leu", Comparison::Leu),
    ("gtu", Comparison::Gtu),
    ("geu", Comparison::Geu),
    ("num", Comparison::Num),
    ("nan", Comparison::Nan),
];
const UNSIGNED: Range<usize> = 0..10;
const SIGNED: Range<usize> = 4..10;
const EQUALITY: Range<usize> = 4..6;
const FLOATS: Range<usize> = 4..18;
const COMBINATIONS: &Table<Logic> = &[("and", Logic::And), ("or", Logic::Or), ("xor", Logic::Xor)];

/// What is asked of operands of type `ty`, how the answer is combined, and `.ftz`.
fn question(reader: &mut Reader, ty: Type) -> Result<(Comparison, Option<Logic>, bool)> {
    let known = match ty {
        Type::B16 | Type::B32 | Type::B64 => EQUALITY,
        _ if ty.is_float() => FLOATS,
        _ if ty.is_signed() => SIGNED,
        _ => UNSIGNED,
    };
    let comparison = reader.choice(&COMPARISONS[known], "a comparison that its type has, such as `.eq`")?;
    let combination = reader.modifiers.take(COMBINATIONS);
    let flushes = matches!(ty, Type::F32 | Type::F16 | Type::F16x2);
    Ok((comparison, combination, flushes && reader.modifiers.flag("ftz")))
}

/// The predicate that an answer is combined with.
fn combine(reader: &mut Reader, logic: Option<Logic>) -> Result<Option<(Logic, Predicate)>> {
    logic.map(|logic| Ok((logic, reader.predicate()?))).transpose()
}

pub(super) fn setp(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(COMPARED)?;
    let (comparison, logic, flush) = question(reader, ty)?;
    let [dst, inverse] = reader.dst_pair(Type::Pred, Type::Pred)?;
    let (a, b) = (reader.src(ty)?, reader.src(ty)?);
    let combine = combine(reader, logic)?;
    Ok(Op::SetPredicate { comparison, ty, flush, dst, inverse, a, b, combine })
}

pub(super) fn set(reader: &mut Reader) -> Result<Op> {
    let to = reader.ty(&[
        Type::U32,
        Type::S32,
        Type::F32,
        Type::U16,
        Type::S16,
        Type::F16,
        Type::F16x2,
        Type::Bf16,
        Type::Bf16x2,
    ])?;
    let ty = reader.ty(COMPARED)?;
    let matches = match to {
        Type::U32 | Type::S32 => true,
        Type::F32 => !matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2),
        Type::U16 | Type::S16 => matches!(ty, Type::F16 | Type::Bf16),
        _ => ty == to,
    };
    if !matches {
        return Err(reader.wrong("combines types that do not go together"));
    }
    let (comparison, logic, flush) = question(reader, ty)?;
    let (dst, a, b) = (reader.dst(to)?, reader.src(ty)?, reader.src(ty)?);
    let combine = combine(reader, logic)?;
    Ok(Op::Set { comparison, to, ty, flush, dst, a, b, combine })
}

pub(super) fn selp(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&COMPARED[SELECTED])?;
    let (dst, a, b, predicate) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?, reader.src(Type::Pred)?);
    Ok(Op::Select { ty, dst, a, b, predicate })
}

pub(super) fn slct(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&COMPARED[SELECTED])?;
    let c_ty = reader.ty(&[Type::S32, Type::F32])?;
    let flush = c_ty == Type::F32 && reader.modifiers.flag("ftz");
    let (dst, a, b, c) = (reader.dst(ty)?, reader.src(ty)?, reader.src(ty)?, reader.src(c_ty)?);
    Ok(Op::SelectBySign { ty, c_ty, flush, dst, a, b, c })
}
