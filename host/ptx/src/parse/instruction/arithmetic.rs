//! Opcodes that integers and floats share: the type decides whose they are.

use super::float;
use super::integer;
use super::modifiers::TYPES;
use super::reader::Reader;
use crate::module::{FloatOp, FloatUnary, IntegerOp, IntegerUnary, Op};
use crate::parse::error::Result;

/// Whether the first type among the modifiers is one of floats.
fn of_floats(reader: &mut Reader) -> bool {
    reader.modifiers.peek(TYPES).is_some_and(|ty| ty.is_float())
}

pub(super) fn add(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::sum(reader, FloatOp::Add) } else { integer::sum(reader, IntegerOp::Add, false) }
}

pub(super) fn sub(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::sum(reader, FloatOp::Sub) } else { integer::sum(reader, IntegerOp::Sub, false) }
}

pub(super) fn mul(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::sum(reader, FloatOp::Mul) } else { integer::mul(reader) }
}

pub(super) fn mad(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::mad(reader) } else { integer::mad(reader, false) }
}

pub(super) fn div(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::div(reader) } else { integer::plain(reader, IntegerOp::Div) }
}

pub(super) fn min(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) {
        float::extreme(reader, FloatOp::Min, FloatOp::MinNan)
    } else {
        integer::extreme(reader, IntegerOp::Min)
    }
}

pub(super) fn max(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) {
        float::extreme(reader, FloatOp::Max, FloatOp::MaxNan)
    } else {
        integer::extreme(reader, IntegerOp::Max)
    }
}

pub(super) fn abs(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::sign(reader, FloatUnary::Abs) } else { integer::sign(reader, IntegerUnary::Abs) }
}

pub(super) fn neg(reader: &mut Reader) -> Result<Op> {
    if of_floats(reader) { float::sign(reader, FloatUnary::Neg) } else { integer::sign(reader, IntegerUnary::Neg) }
}
