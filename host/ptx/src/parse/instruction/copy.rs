//! Asynchronous copies: `cp.async`. They are done where they stand, so there is nothing to wait for.

use super::data::{caches, policy};
use super::mbarrier;
use super::reader::Reader;
use crate::module::{Op, Space, Type};
use crate::parse::error::{Result, error};

/// Groups of copies that may be left unfinished; any number that a program may write.
const GROUPS: std::ops::RangeInclusive<u64> = 0..=0xffff_ffff;

pub(super) fn cp(reader: &mut Reader) -> Result<Op> {
    if !reader.modifiers.flag("async") || reader.modifiers.first() == Some("bulk") {
        return Err(reader.unsupported());
    }
    if reader.modifiers.flag("mbarrier") {
        return mbarrier::arrive_after_copies(reader);
    }
    if reader.modifiers.flag("commit_group") || reader.modifiers.flag("wait_all") {
        return Ok(Op::Hint);
    }
    if reader.modifiers.flag("wait_group") {
        reader.constant("the number of groups", GROUPS)?;
        return Ok(Op::Hint);
    }
    copy(reader)
}

fn copy(reader: &mut Reader) -> Result<Op> {
    let through_l2 = reader.choice(&[("ca", false), ("cg", true)], "`.ca` or `.cg`")?;
    let shared = &[("shared", Space::Shared), ("shared::cta", Space::Shared)];
    let to = reader.choice(shared, "`.shared`, to which it copies")?;
    let from = reader.choice(&[("global", Space::Global)], "`.global`, from which it copies")?;
    let hinted = caches(&mut reader.modifiers, &[]);
    let (_, to) = reader.address(to)?;
    let (_, from) = reader.address(from)?;
    let position = reader.operand_position();
    let bytes = reader.constant("the number of bytes", 4..=16)?;
    if !matches!(bytes, 4 | 8 | 16) || through_l2 && bytes != 16 {
        let sizes = if through_l2 { "16" } else { "4, 8 or 16" };
        return error(position, format!("{sizes} bytes can be copied so, not {bytes}"));
    }
    let (mut given, mut ignored) = (None, None);
    if reader.operands.len() > usize::from(hinted) {
        if reader.predicate_is_next()? {
            ignored = Some(reader.predicate()?);
        } else {
            given = Some(reader.src(Type::U32)?);
        }
    }
    policy(reader, hinted)?;
    Ok(Op::AsyncCopy { bytes: bytes as u32, to, from, given, ignored })
}
