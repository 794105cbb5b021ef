//! Barriers, and what the lanes of a warp do together.

use super::modifiers::Table;
use super::reader::Reader;
use crate::kernel::WARP;
use crate::module::{AtomicOp, BarrierReduction, Op, Operand, Predicate, RegisterId, Shuffle, Type, Vote};
use crate::parse::error::{Result, error};

/// How many barriers a block has.
const BARRIERS: u64 = 16;
/// The mask of all lanes, for the forms without `.sync`, which have none.
const ALL_LANES: Operand = Operand::Immediate(0xffff_ffff);

/// What a barrier instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sync,
    Arrive,
    Reduce,
}

const KINDS: &Table<Kind> = &[("sync", Kind::Sync), ("arrive", Kind::Arrive), ("red", Kind::Reduce)];

pub(super) fn bar(reader: &mut Reader) -> Result<Op> {
    if !reader.modifiers.flag("warp") {
        return at_barrier(reader);
    }
    if !reader.modifiers.flag("sync") {
        return Err(reader.needs("`.sync`"));
    }
    Ok(Op::WarpBarrier { mask: reader.src(Type::B32)? })
}

pub(super) fn barrier(reader: &mut Reader) -> Result<Op> {
    reader.modifiers.flag("aligned");
    at_barrier(reader)
}

fn at_barrier(reader: &mut Reader) -> Result<Op> {
    reader.modifiers.flag("cta");
    let kind = reader.choice(KINDS, "`.sync`, `.arrive` or `.red`")?;
    let reduction = if kind == Kind::Reduce { Some(reduction(reader)?) } else { None };
    let result = reduction.map(|(_, ty)| reader.dst(ty)).transpose()?;
    let barrier = number(reader)?;
    if kind == Kind::Arrive {
        return Ok(Op::BarrierArrive { barrier, threads: threads(reader)? });
    }
    let fewer = if kind == Kind::Reduce { reader.operands.len() > 1 } else { reader.more() };
    let threads = if fewer { Some(threads(reader)?) } else { None };
    let reduction = match (reduction, result) {
        (Some((reduction, _)), Some(dst)) => Some((reduction, dst, reader.predicate()?)),
        _ => None,
    };
    Ok(Op::Barrier { barrier, threads, reduction })
}

/// What a reduction gives, and the type of it.
fn reduction(reader: &mut Reader) -> Result<(BarrierReduction, Type)> {
    const REDUCTIONS: &Table<BarrierReduction> =
        &[("popc", BarrierReduction::Count), ("and", BarrierReduction::All), ("or", BarrierReduction::Any)];
    let reduction = reader.choice(REDUCTIONS, "`.popc`, `.and` or `.or`")?;
    let ty = reader.ty(if reduction == BarrierReduction::Count { &[Type::U32] } else { &[Type::Pred] })?;
    Ok((reduction, ty))
}

/// Which barrier.
fn number(reader: &mut Reader) -> Result<Operand> {
    let position = reader.operand_position();
    match reader.src(Type::U32)? {
        Operand::Immediate(number) if number >= BARRIERS => {
            error(position, format!("a block has the barriers 0 to {}, and no number {number}", BARRIERS - 1))
        }
        operand => Ok(operand),
    }
}

/// How many threads meet.
fn threads(reader: &mut Reader) -> Result<Operand> {
    let position = reader.operand_position();
    match reader.src(Type::U32)? {
        Operand::Immediate(count) if count == 0 || count % u64::from(WARP) != 0 => {
            error(position, format!("the number of threads at a barrier is a multiple of {WARP}, not {count}"))
        }
        operand => Ok(operand),
    }
}

/// The mask behind the other operands: there for `.sync`, else all lanes.
fn mask(reader: &mut Reader, sync: bool) -> Result<Operand> {
    if sync { reader.src(Type::B32) } else { Ok(ALL_LANES) }
}

pub(super) fn shfl(reader: &mut Reader) -> Result<Op> {
    const MODES: &Table<Shuffle> =
        &[("up", Shuffle::Up), ("down", Shuffle::Down), ("bfly", Shuffle::Bfly), ("idx", Shuffle::Idx)];
    let sync = reader.modifiers.flag("sync");
    let mode = reader.choice(MODES, "`.up`, `.down`, `.bfly` or `.idx`")?;
    reader.ty(&[Type::B32])?;
    let [dst, valid] = reader.dst_pair(Type::B32, Type::Pred)?;
    let (a, b, c) = (reader.src(Type::B32)?, reader.src(Type::B32)?, reader.src(Type::B32)?);
    Ok(Op::Shuffle { mode, dst, valid, a, b, c, mask: mask(reader, sync)? })
}

pub(super) fn vote(reader: &mut Reader) -> Result<Op> {
    const VOTES: &Table<Vote> = &[("all", Vote::All), ("any", Vote::Any), ("uni", Vote::Uni), ("ballot", Vote::Ballot)];
    let sync = reader.modifiers.flag("sync");
    let vote = reader.choice(VOTES, "`.all`, `.any`, `.uni` or `.ballot`")?;
    let ty = reader.ty(if vote == Vote::Ballot { &[Type::B32] } else { &[Type::Pred] })?;
    let (dst, predicate): (RegisterId, Predicate) = (reader.dst(ty)?, reader.predicate()?);
    Ok(Op::Vote { vote, dst, predicate, mask: mask(reader, sync)? })
}

pub(super) fn matching(reader: &mut Reader) -> Result<Op> {
    let all = reader.choice(&[("any", false), ("all", true)], "`.any` or `.all`")?;
    synchronous(reader)?;
    let ty = reader.ty(&[Type::B32, Type::B64])?;
    let [dst, valid] = reader.dst_pair(Type::B32, Type::Pred)?;
    let Some(dst) = dst else { return Err(reader.wrong("needs a register for its mask")) };
    if valid.is_some() && !all {
        return Err(reader.wrong("gives no predicate: only `match.all` does"));
    }
    Ok(Op::Match { all, ty, dst, valid, a: reader.src(ty)?, mask: reader.src(Type::B32)? })
}

/// `.sync`, which has to be there.
fn synchronous(reader: &mut Reader) -> Result<()> {
    if reader.modifiers.flag("sync") { Ok(()) } else { Err(reader.needs("`.sync`")) }
}

pub(super) fn redux(reader: &mut Reader) -> Result<Op> {
    const OPERATIONS: &Table<AtomicOp> = &[
        ("add", AtomicOp::Add),
        ("min", AtomicOp::Min),
        ("max", AtomicOp::Max),
        ("and", AtomicOp::And),
        ("or", AtomicOp::Or),
        ("xor", AtomicOp::Xor),
    ];
    synchronous(reader)?;
    let op = reader.choice(OPERATIONS, "an operation such as `.add`")?;
    let bitwise = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
    let ty = reader.ty(if bitwise { &[Type::B32] } else { &[Type::U32, Type::S32] })?;
    Ok(Op::Redux { op, ty, dst: reader.dst(ty)?, a: reader.src(ty)?, mask: reader.src(Type::B32)? })
}

pub(super) fn activemask(reader: &mut Reader) -> Result<Op> {
    reader.ty(&[Type::B32])?;
    Ok(Op::ActiveMask { dst: reader.dst(Type::B32)? })
}

pub(super) fn elect(reader: &mut Reader) -> Result<Op> {
    synchronous(reader)?;
    let [dst, leads] = reader.dst_pair(Type::B32, Type::Pred)?;
    let Some(leads) = leads else { return Err(reader.wrong("needs a predicate behind `|`, which is what it is for")) };
    Ok(Op::Elect { dst, leads, mask: reader.src(Type::B32)? })
}
