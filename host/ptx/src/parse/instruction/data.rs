//! Moves, addresses, loads and stores.

use super::modifiers::{Modifiers, Table};
use super::reader::Reader;
use super::rules::Fit;
use crate::module::{Address, Op, Operand, Order, Space, Symbol, Type};
use crate::parse::error::Result;

pub(super) const SPACES: &Table<Space> = &[
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("local", Space::Local),
    ("const", Space::Const),
    ("param", Space::Param),
    ("param::entry", Space::Param),
    ("param::func", Space::Param),
];
const ORDERS: &Table<Order> = &[
    ("weak", Order::Weak),
    ("volatile", Order::Strong),
    ("relaxed", Order::Strong),
    ("acquire", Order::Strong),
    ("release", Order::Strong),
    ("acq_rel", Order::Strong),
    ("mmio", Order::Strong),
];
/// Who a strong operation is ordered with. All threads of a launch see one memory here, in one order.
pub(super) const SCOPES: &Table<()> = &[("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())];
const MEMORY: &[Type] = &[
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];
const MOVED: &[Type] = &[
    Type::Pred,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];
/// The most bytes that one load or store moves.
const MOST_BYTES: u32 = 16;

/// How a memory operation is ordered; its scope is read and has no effect.
pub(super) fn order(modifiers: &mut Modifiers) -> Order {
    let order = modifiers.take(ORDERS).unwrap_or_default();
    if order == Order::Strong {
        modifiers.take(SCOPES);
    }
    order
}

/// Passes what is said about caches. Whether an operand with a policy follows.
pub(super) fn caches(modifiers: &mut Modifiers, operators: &[&str]) -> bool {
    let policy = modifiers.flag("L2::cache_hint");
    modifiers.ignore(|word| operators.contains(&word) || word.starts_with("L1::") || word.starts_with("L2::"));
    policy
}

/// Passes the policy of `.L2::cache_hint`.
pub(super) fn policy(reader: &mut Reader, given: bool) -> Result<()> {
    if given {
        reader.src(Type::B64)?;
    }
    Ok(())
}

pub(super) fn mov(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(MOVED)?;
    if let Some(count) = reader.vector_length(0) {
        let part = part(reader, ty, count)?;
        let dst = reader.dst_vector(count, part, Fit::Exact)?;
        return Ok(Op::Unpack { ty, dst, src: reader.src(ty)? });
    }
    if let Some(count) = reader.vector_length(1) {
        let (part, dst) = (part(reader, ty, count)?, reader.dst(ty)?);
        return Ok(Op::Pack { ty, dst, parts: reader.src_vector(count, part, Fit::Exact)? });
    }
    Ok(Op::Mov { ty, dst: reader.dst(ty)?, src: reader.src(ty)? })
}

/// The type of each of `count` parts of a `ty`.
fn part(reader: &Reader, ty: Type, count: usize) -> Result<Type> {
    let part = match (ty, count) {
        (Type::B16, 2) | (Type::B32, 4) => Type::B8,
        (Type::B32, 2) | (Type::B64, 4) => Type::B16,
        (Type::B64, 2) | (Type::B128, 4) => Type::B32,
        (Type::B128, 2) => Type::B64,
        _ => return Err(reader.wrong(&format!("cannot be split into {count} parts"))),
    };
    Ok(part)
}

pub(super) fn cvta(reader: &mut Reader) -> Result<Op> {
    let from_generic = reader.modifiers.flag("to");
    let space = reader.choice(SPACES, "a state space")?;
    let ty = reader.ty(&[Type::U64, Type::U32])?;
    let (dst, position) = (reader.dst(ty)?, reader.operand_position());
    let src = reader.src(ty)?;
    if let Operand::Address(symbol, _) = src {
        reader.space_of(symbol, space, position)?;
    }
    Ok(if from_generic { Op::FromGeneric { space, ty, dst, src } } else { Op::ToGeneric { space, ty, dst, src } })
}

pub(super) fn isspacep(reader: &mut Reader) -> Result<Op> {
    let space = reader.choice(SPACES, "a state space")?;
    Ok(Op::IsSpace { space, dst: reader.dst(Type::Pred)?, src: reader.src(Type::U64)? })
}

pub(super) fn ld(reader: &mut Reader) -> Result<Op> {
    let order = order(&mut reader.modifiers);
    let space = reader.modifiers.take(SPACES).unwrap_or(Space::Generic);
    if space == Space::Global {
        reader.modifiers.flag("nc");
    }
    load(reader, space, order)
}

pub(super) fn ldu(reader: &mut Reader) -> Result<Op> {
    let space = reader.modifiers.take(&[("global", Space::Global)]).unwrap_or(Space::Generic);
    load(reader, space, Order::Weak)
}

fn load(reader: &mut Reader, space: Space, order: Order) -> Result<Op> {
    let hinted = caches(&mut reader.modifiers, &["ca", "cg", "cs", "lu", "cv", "unified"]);
    let (count, ty) = shape(reader)?;
    let dst = reader.dst_vector(count, ty, Fit::Wide)?;
    let (space, address) = reader.address(space)?;
    policy(reader, hinted)?;
    Ok(Op::Load { space, order, ty, dst, address })
}

pub(super) fn st(reader: &mut Reader) -> Result<Op> {
    let order = order(&mut reader.modifiers);
    let space = reader.modifiers.take(SPACES).unwrap_or(Space::Generic);
    let hinted = caches(&mut reader.modifiers, &["wb", "cg", "cs", "wt"]);
    let (count, ty) = shape(reader)?;
    let (space, address) = reader.address(space)?;
    writable(reader, space, address)?;
    let src = reader.src_vector(count, ty, Fit::Wide)?;
    policy(reader, hinted)?;
    Ok(Op::Store { space, order, ty, address, src })
}

/// Constants and the parameters of an entry are there to be read.
fn writable(reader: &Reader, space: Space, address: Address) -> Result<()> {
    let parameter = matches!(address.base, Operand::Address(Symbol::Parameter(_), _));
    if space == Space::Const || (parameter && reader.body.function.entry) {
        return Err(reader.wrong("writes to memory that can only be read"));
    }
    Ok(())
}

/// How many values of which type are moved.
fn shape(reader: &mut Reader) -> Result<(usize, Type)> {
    let count = reader.modifiers.take(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = reader.ty(MEMORY)?;
    if ty.bytes() * count > MOST_BYTES {
        return Err(reader.wrong(&format!("moves more than {MOST_BYTES} bytes")));
    }
    Ok((count as usize, ty))
}

pub(super) fn prefetch(reader: &mut Reader) -> Result<Op> {
    let space = reader.modifiers.take(SPACES).unwrap_or(Space::Generic);
    caches(&mut reader.modifiers, &["L1", "L2"]);
    reader.address(space)?;
    Ok(Op::Hint)
}

/// `discard` and `applypriority`: an address and how many bytes.
pub(super) fn discard(reader: &mut Reader) -> Result<Op> {
    let space = reader.modifiers.take(&[("global", Space::Global)]).unwrap_or(Space::Generic);
    caches(&mut reader.modifiers, &["L2"]);
    reader.address(space)?;
    reader.constant("the number of bytes", 128..=128)?;
    Ok(Op::Hint)
}

/// A policy for caches is any value here: nothing reads it.
pub(super) fn createpolicy(reader: &mut Reader) -> Result<Op> {
    caches(&mut reader.modifiers, &["fractional", "range", "global", "cvt"]);
    let ty = reader.ty(&[Type::B64])?;
    let dst = reader.dst(ty)?;
    reader.operands.clear();
    Ok(Op::Mov { ty, dst, src: Operand::Immediate(0) })
}
