//! Atomic operations and fences.

use super::data::{SCOPES, caches, order, policy};
use super::modifiers::Table;
use super::reader::Reader;
use super::rules::Fit;
use crate::module::{AtomicOp, Op, Space, Type};
use crate::parse::error::Result;

const OPERATIONS: &Table<AtomicOp> = &[
    ("exch", AtomicOp::Exch),
    ("cas", AtomicOp::Cas),
    ("add", AtomicOp::Add),
    ("inc", AtomicOp::Inc),
    ("dec", AtomicOp::Dec),
    ("min", AtomicOp::Min),
    ("max", AtomicOp::Max),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
];
const SPACES: &Table<Space> = &[("global", Space::Global), ("shared", Space::Shared), ("shared::cta", Space::Shared)];

/// The types that an operation exists for.
fn types(op: AtomicOp) -> &'static [Type] {
    match op {
        AtomicOp::Exch => &[Type::B32, Type::B64],
        AtomicOp::Cas => &[Type::B16, Type::B32, Type::B64],
        AtomicOp::Add => &[
            Type::U32,
            Type::S32,
            Type::U64,
            Type::S64,
            Type::F16,
            Type::F16x2,
            Type::Bf16,
            Type::Bf16x2,
            Type::F32,
            Type::F64,
        ],
        AtomicOp::Inc | AtomicOp::Dec => &[Type::U32],
        AtomicOp::Min | AtomicOp::Max => &[Type::U32, Type::S32, Type::U64, Type::S64],
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => &[Type::B32, Type::B64],
    }
}

pub(super) fn atom(reader: &mut Reader) -> Result<Op> {
    atomic(reader, true)
}

pub(super) fn red(reader: &mut Reader) -> Result<Op> {
    atomic(reader, false)
}

fn atomic(reader: &mut Reader, answers: bool) -> Result<Op> {
    order(&mut reader.modifiers);
    reader.modifiers.take(SCOPES);
    let space = reader.modifiers.take(SPACES).unwrap_or(Space::Generic);
    let hinted = caches(&mut reader.modifiers, &[]);
    let op = reader.choice(OPERATIONS, "an operation such as `.add`")?;
    if !answers && matches!(op, AtomicOp::Exch | AtomicOp::Cas) {
        return Err(reader.wrong("throws away what it is for: use `atom`"));
    }
    let ty = reader.ty(types(op))?;
    if matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) {
        reader.modifiers.flag("noftz");
    }
    let dst = if answers { reader.dst_or_sink(ty, Fit::Exact)? } else { None };
    let (space, address) = reader.address(space)?;
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return Err(reader.wrong("works on global and shared memory only"));
    }
    let b = reader.src(ty)?;
    let c = if op == AtomicOp::Cas { Some(reader.src(ty)?) } else { None };
    policy(reader, hinted)?;
    Ok(Op::Atomic { op, space, ty, dst, address, b, c })
}

pub(super) fn membar(reader: &mut Reader) -> Result<Op> {
    if reader.modifiers.flag("proxy") {
        return proxy(reader);
    }
    reader.choice(&[("cta", ()), ("gl", ()), ("sys", ())], "`.cta`, `.gl` or `.sys`")?;
    Ok(Op::Fence)
}

pub(super) fn fence(reader: &mut Reader) -> Result<Op> {
    const ORDERS: &Table<()> = &[("sc", ()), ("acq_rel", ()), ("acquire", ()), ("release", ())];
    if reader.modifiers.flag("proxy") {
        return proxy(reader);
    }
    if reader.modifiers.flag("mbarrier_init") {
        reader.choice(&[("release", ())], "`.release`")?;
        reader.choice(&[("cluster", ())], "`.cluster`")?;
        return Ok(Op::Fence);
    }
    reader.modifiers.take(ORDERS);
    reader.choice(SCOPES, "a scope such as `.gpu`")?;
    Ok(Op::Fence)
}

/// Between ways to memory, which are one here.
fn proxy(reader: &mut Reader) -> Result<Op> {
    reader.choice(&[("alias", ()), ("async", ())], "`.alias` or `.async`")?;
    reader.modifiers.take(&[("global", ()), ("shared::cta", ()), ("shared::cluster", ())]);
    Ok(Op::Fence)
}
