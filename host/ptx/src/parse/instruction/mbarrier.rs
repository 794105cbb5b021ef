//! Barriers that are objects in shared memory: `mbarrier`. How one looks is the translation's affair (see `translate::build::mbarrier`).

use super::modifiers::Table;
use super::reader::Reader;
use super::rules::Fit;
use crate::module::{Address, Op, Operand, Space, Type};
use crate::parse::error::{Result, error};

/// The most arrivals that a phase may expect.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;
/// Orders and scopes: all threads of a block see one memory here, in one order.
const ORDERS: &[&str] = &["release", "relaxed", "acquire", "cta", "cluster"];

/// What is done with a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Init,
    Invalidate,
    Arrive { drops: bool },
    Test,
    Count,
}

const KINDS: &Table<Kind> = &[
    ("init", Kind::Init),
    ("inval", Kind::Invalidate),
    ("arrive", Kind::Arrive { drops: false }),
    ("arrive_drop", Kind::Arrive { drops: true }),
    ("test_wait", Kind::Test),
    ("try_wait", Kind::Test),
    ("pending_count", Kind::Count),
];

pub(super) fn mbarrier(reader: &mut Reader) -> Result<Op> {
    let kind = reader.choice(KINDS, "what is done, such as `.arrive`")?;
    if matches!(kind, Kind::Arrive { .. } | Kind::Test) {
        reader.modifiers.ignore(|word| ORDERS.contains(&word));
    }
    match kind {
        Kind::Init => {
            let (space, address) = object(reader)?;
            Ok(Op::MbarrierInit { space, address, count: count(reader)? })
        }
        Kind::Invalidate => object(reader).map(|_| Op::Hint),
        Kind::Arrive { drops } => arrive(reader, drops),
        Kind::Test => test(reader),
        Kind::Count => {
            reader.ty(&[Type::B64])?;
            Ok(Op::MbarrierPending { dst: reader.dst(Type::U32)?, state: reader.src(Type::B64)? })
        }
    }
}

/// `.shared`, `.b64` and nothing else.
fn space(reader: &mut Reader) -> Result<Space> {
    let space = reader.modifiers.take(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]);
    reader.ty(&[Type::B64])?;
    Ok(space.unwrap_or(Space::Generic))
}

/// Where the barrier lies.
fn object(reader: &mut Reader) -> Result<(Space, Address)> {
    let space = space(reader)?;
    reader.address(space)
}

/// How many arrivals.
fn count(reader: &mut Reader) -> Result<Operand> {
    let position = reader.operand_position();
    match reader.src(Type::U32)? {
        Operand::Immediate(count) if !(1..=MOST_ARRIVALS).contains(&count) => {
            error(position, format!("a phase takes 1 to {MOST_ARRIVALS} arrivals, not {count}"))
        }
        operand => Ok(operand),
    }
}

fn arrive(reader: &mut Reader, drops: bool) -> Result<Op> {
    // A promise that this arrival is not the last.
    reader.modifiers.flag("noComplete");
    let space = space(reader)?;
    let state = reader.dst_or_sink(Type::B64, Fit::Exact)?;
    let (space, address) = reader.address(space)?;
    let count = if reader.more() { count(reader)? } else { Operand::Immediate(1) };
    Ok(Op::MbarrierArrive { space, address, state, count, drops })
}

fn test(reader: &mut Reader) -> Result<Op> {
    let parity = reader.modifiers.flag("parity");
    let space = space(reader)?;
    let dst = reader.dst(Type::Pred)?;
    let (space, address) = reader.address(space)?;
    let phase = reader.src(if parity { Type::U32 } else { Type::B64 })?;
    if reader.more() {
        // For how long the thread may sleep, which it does not.
        reader.src(Type::U32)?;
    }
    Ok(Op::MbarrierTest { space, address, dst, parity, phase })
}

/// `cp.async.mbarrier.arrive`: all copies are done. Without `.noinc` one more arrival is expected first, which this one then is.
pub(super) fn arrive_after_copies(reader: &mut Reader) -> Result<Op> {
    if !reader.modifiers.flag("arrive") {
        return Err(reader.needs("`.arrive`"));
    }
    let counted = reader.modifiers.flag("noinc");
    let (space, address) = object(reader)?;
    if !counted {
        return Ok(Op::Hint);
    }
    Ok(Op::MbarrierArrive { space, address, state: None, count: Operand::Immediate(1), drops: false })
}
