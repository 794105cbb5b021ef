//! `cvt`: conversions between numbers.

use std::ops::Range;

use super::modifiers::{ROUNDINGS, Table};
use super::reader::Reader;
use crate::module::{FloatMode, Op, Rounding, Type};
use crate::parse::error::Result;

/// What a conversion can make: any number, which it can also be given, or two halves at once.
const RESULTS: &[Type] = &[
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
    Type::F16x2,
    Type::Bf16x2,
    Type::Tf32,
];
const NUMBERS: Range<usize> = 0..12;
const TO_INTEGER: &Table<Rounding> = &[
    ("rni", Rounding::IntegerNearestEven),
    ("rzi", Rounding::IntegerZero),
    ("rmi", Rounding::IntegerDown),
    ("rpi", Rounding::IntegerUp),
];

pub(super) fn cvt(reader: &mut Reader) -> Result<Op> {
    if reader.modifiers.flag("pack") {
        return pack(reader);
    }
    let (to, from) = (reader.ty(RESULTS)?, reader.ty(&RESULTS[NUMBERS])?);
    let packed = is_packed(to);
    if (packed || to == Type::Tf32) && from != Type::F32 {
        return Err(reader.unsupported());
    }
    let given = rounding(reader, to, from)?;
    let narrow = packed || matches!(to, Type::F16 | Type::Bf16 | Type::Tf32);
    let mode = FloatMode {
        rounding: given.unwrap_or(Rounding::NearestEven),
        flush: to != Type::Tf32
            && (to == Type::F32 || from == Type::F32)
            && (to.is_float() || from.is_float())
            && reader.modifiers.flag("ftz"),
        saturate: !packed && !matches!(to, Type::Bf16 | Type::Tf32) && reader.modifiers.flag("sat"),
        relu: narrow && given != Some(Rounding::NearestAway) && from == Type::F32 && reader.modifiers.flag("relu"),
    };
    let (dst, src) = (reader.wide_dst(to)?, reader.wide_src(from)?);
    let second = if packed { Some(reader.wide_src(from)?) } else { None };
    Ok(Op::Convert { to, from, mode, rounding_given: given.is_some(), dst, src, second })
}

/// The roundings to `.tf32`.
const TO_TF32: &Table<Rounding> =
    &[("rna", Rounding::NearestAway), ("rn", Rounding::NearestEven), ("rz", Rounding::Zero)];
/// The roundings of two halves at once.
const PACKED: &Table<Rounding> = &[("rn", Rounding::NearestEven), ("rz", Rounding::Zero)];

/// The rounding, which has to be given exactly where the result can be inexact.
fn rounding(reader: &mut Reader, to: Type, from: Type) -> Result<Option<Rounding>> {
    match (to.is_float(), from.is_float()) {
        (false, false) => Ok(None),
        (false, true) => reader.choice(TO_INTEGER, "a rounding to an integer such as `.rzi`").map(Some),
        (true, false) => reader.choice(ROUNDINGS, "a rounding such as `.rn`").map(Some),
        (true, true) if to == Type::Tf32 => reader.choice(TO_TF32, "`.rna`, `.rn` or `.rz`").map(Some),
        (true, true) if is_packed(to) => reader.choice(PACKED, "`.rn` or `.rz`").map(Some),
        (true, true) if to == from => Ok(reader.modifiers.take(TO_INTEGER)),
        (true, true) if loses(to, from) => reader.choice(ROUNDINGS, "a rounding such as `.rn`").map(Some),
        (true, true) => Ok(None),
    }
}

fn is_packed(ty: Type) -> bool {
    matches!(ty, Type::F16x2 | Type::Bf16x2)
}

/// Whether a conversion between two different types of floats can be inexact.
fn loses(to: Type, from: Type) -> bool {
    !matches!((to, from), (Type::F64, _) | (Type::F32, Type::F16 | Type::Bf16))
}

/// `cvt.pack.sat`.
fn pack(reader: &mut Reader) -> Result<Op> {
    if !reader.modifiers.flag("sat") {
        return Err(reader.needs("`.sat`"));
    }
    let to = reader.ty(&[Type::U16, Type::S16, Type::U8, Type::S8])?;
    let from = reader.ty(&[Type::S32])?;
    let bytes = to.bytes() == 1;
    if bytes {
        reader.ty(&[Type::B32])?;
    }
    let (dst, a, b) = (reader.dst(Type::B32)?, reader.src(from)?, reader.src(from)?);
    let c = if bytes { Some(reader.src(Type::B32)?) } else { None };
    Ok(Op::ConvertPack { to, from, dst, a, b, c })
}
