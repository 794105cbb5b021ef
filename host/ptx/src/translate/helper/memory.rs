//! Operations on memory.

use crate::translate::build::ssa::Builder;
use crate::translate::ir::{Access, Inst, Kind, Memory, Unary, Value};

/// Byte by byte: `(to, from, how many are given, how many in all)`. What is not given is not read.
pub fn copy_part(b: &mut Builder) -> Value {
    let (to, from, given, all) = (b.argument(0), b.argument(1), b.argument(2), b.argument(3));
    let byte = Access {
        memory: Memory::Device,
        bytes: 1,
        signed: false,
        offset: 0,
        atomic: false,
        exclusive: false,
        constant: false,
    };
    let (index, value) = (b.variable(Kind::I32), b.variable(Kind::I32));
    let (zero, one) = (b.i32(0), b.i32(1));
    b.write(index, zero);
    let (head, read, write, behind) = (b.block(), b.block(), b.block(), b.block());
    b.jump(head);
    b.start(head);
    let at = b.read(index);
    b.write(value, zero);
    let there = b.lt_u(at, given);
    b.branch(there, read, write);
    b.start(read);
    let distance = b.unary(Unary::Widen { signed: false }, at);
    let source = b.add(from, distance);
    let loaded = b.push(Inst::Load(byte, source), Some(Kind::I32));
    b.write(value, loaded);
    b.jump(write);
    b.start(write);
    let distance = b.unary(Unary::Widen { signed: false }, at);
    let target = b.add(to, distance);
    let stored = b.read(value);
    b.push(Inst::Store(byte, target, stored), None);
    let next = b.add(at, one);
    b.write(index, next);
    let again = b.lt_u(next, all);
    b.branch(again, head, behind);
    b.start(behind);
    given
}
