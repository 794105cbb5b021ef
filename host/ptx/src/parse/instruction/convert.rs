//! `cvt`: conversions between numbers.

use super::modifiers::{ROUNDINGS, Table};
use super::reader::Reader;
use crate::module::{FloatMode, Op, Rounding, Type};
use crate::parse::error::Result;

const NUMBERS: &[Type] = &[
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
];
/// What a conversion can make: any number, or two halves at once.
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
];
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
    let (to, from) = (reader.ty(RESULTS)?, reader.ty(NUMBERS)?);
    let packed = is_packed(to);
    if packed && from != Type::F32 {
        return Err(reader.unsupported());
    }
    let given = rounding(reader, to, from)?;
    let halves = packed || matches!(to, Type::F16 | Type::Bf16);
    let mode = FloatMode {
        rounding: given.unwrap_or(Rounding::NearestEven),
        flush: (to == Type::F32 || from == Type::F32)
            && (to.is_float() || from.is_float())
            && reader.modifiers.flag("ftz"),
        saturate: !packed && to != Type::Bf16 && reader.modifiers.flag("sat"),
        relu: halves && from == Type::F32 && reader.modifiers.flag("relu"),
    };
    let (dst, src) = (reader.wide_dst(to)?, reader.wide_src(from)?);
    let second = if packed { Some(reader.wide_src(from)?) } else { None };
    Ok(Op::Convert { to, from, mode, rounding_given: given.is_some(), dst, src, second })
}

/// The roundings of two halves at once.
const PACKED: &Table<Rounding> = &[("rn", Rounding::NearestEven), ("rz", Rounding::Zero)];

/// The rounding, which has to be given exactly where the result can be inexact.
fn rounding(reader: &mut Reader, to: Type, from: Type) -> Result<Option<Rounding>> {
    match (to.is_float(), from.is_float()) {
        (false, false) => Ok(None),
        (false, true) => reader.choice(TO_INTEGER, "a rounding to an integer such as `.rzi`").map(Some),
        (true, false) => reader.choice(ROUNDINGS, "a rounding such as `.rn`").map(Some),
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
