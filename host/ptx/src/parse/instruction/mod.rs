//! Instructions: from an opcode, its modifiers and its operands to an [`Op`].
//!
//! Each family of instructions is a file with one function an opcode. It takes from the [`Reader`] the modifiers that it knows, then
//! the operands in their order; whatever is left afterwards is an error.

mod arithmetic;
mod atomic;
mod bits;
mod compare;
mod control;
mod convert;
mod copy;
mod data;
mod float;
mod integer;
mod matrix;
mod mbarrier;
mod modifiers;
mod reader;
mod rules;
mod warp;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::modifiers::Modifiers;
use self::reader::Reader;
use super::body::{Body, Outer};
use super::cursor::Cursor;
use super::error::{Result, error, quote};
use super::lexer::{Kind, Token};
use super::names::Named;
use super::operand;
use crate::module::{Instruction, Op, Predicate, Type};

pub(super) use self::modifiers::type_named;
pub(super) use self::reader::of;
pub(super) use self::rules::immediate;

/// The most modifiers that an instruction has.
const MOST_MODIFIERS: usize = 16;

/// What reads an instruction of some opcode.
type Read = for<'r, 'a, 'b> fn(&'b mut Reader<'r, 'a>) -> Result<Op>;

/// An instruction behind a guard, whose `@` is in view.
pub(super) fn guarded<'a>(cursor: &mut Cursor<'a>, outer: Outer<'_, 'a>, body: &mut Body<'a>) -> Result<Instruction> {
    let position = cursor.position();
    cursor.expect('@')?;
    let guard = guard(cursor, outer, body)?;
    let opcode = cursor.advance()?;
    let Kind::Word(_) = opcode.kind else {
        return error(opcode.position, "an instruction is missing behind its guard");
    };
    let instruction = unguarded(cursor, outer, body, &opcode)?;
    Ok(Instruction { guard: Some(guard), position, ..instruction })
}

/// `%p` or `!%p`.
fn guard<'a>(cursor: &mut Cursor<'a>, outer: Outer<'_, 'a>, body: &mut Body<'a>) -> Result<Predicate> {
    let negated = cursor.accept('!')?;
    let position = cursor.position();
    let name = cursor.word("a predicate behind `@`")?;
    match body.find(outer, name, position)? {
        Some(Named::Register(register)) if body.function.ty(register) == Type::Pred => {
            Ok(Predicate { register, negated })
        }
        Some(_) => error(position, format!("{} is not a predicate", quote(name))),
        None => error(position, format!("{} is not declared here", quote(name))),
    }
}

/// An instruction whose opcode has been read.
pub(super) fn unguarded<'a>(
    cursor: &mut Cursor<'a>,
    outer: Outer<'_, 'a>,
    body: &mut Body<'a>,
    opcode: &Token<'a>,
) -> Result<Instruction> {
    let (words, written) = modifiers(cursor, opcode)?;
    let operator = cursor.since(opcode.start, opcode);
    let mut reader = Reader {
        outer,
        body,
        modifiers: Modifiers::new(words),
        operands: Default::default(),
        position: opcode.position,
        written,
    };
    let Some(read) = family(operator) else { return Err(reader.unsupported()) };
    reader.operands = operand::operands(cursor)?.into();
    let op = read(&mut reader)?;
    reader.finish()?;
    Ok(Instruction { guard: None, op, position: opcode.position })
}

/// The modifiers behind an opcode, and the text of both.
fn modifiers<'a>(cursor: &mut Cursor<'a>, opcode: &Token<'a>) -> Result<(Vec<&'a str>, &'a str)> {
    let (mut words, mut last) = (Vec::new(), *opcode);
    while let Kind::Dotted(word) = cursor.peek() {
        if words.len() == MOST_MODIFIERS {
            return error(opcode.position, format!("no instruction has more than {MOST_MODIFIERS} modifiers"));
        }
        words.push(word);
        last = cursor.advance()?;
    }
    Ok((words, cursor.since(opcode.start, &last)))
}

/// All opcodes, by family, and what reads their instructions.
#[rustfmt::skip]
const OPCODES: &[(&str, Read)] = &[
    ("add", arithmetic::add),
    ("sub", arithmetic::sub),
    ("mul", arithmetic::mul),
    ("mad", arithmetic::mad),
    ("div", arithmetic::div),
    ("min", arithmetic::min),
    ("max", arithmetic::max),
    ("abs", arithmetic::abs),
    ("neg", arithmetic::neg),

    ("addc", integer::addc),
    ("subc", integer::subc),
    ("madc", integer::madc),
    ("mul24", integer::mul24),
    ("mad24", integer::mad24),
    ("rem", integer::rem),
    ("sad", integer::sad),
    ("dp4a", integer::dp4a),
    ("dp2a", integer::dp2a),

    ("fma", float::fma),
    ("rcp", float::rcp),
    ("sqrt", float::sqrt),
    ("rsqrt", float::rsqrt),
    ("sin", float::sin),
    ("cos", float::cos),
    ("lg2", float::lg2),
    ("ex2", float::ex2),
    ("tanh", float::tanh),
    ("copysign", float::copysign),
    ("testp", float::testp),

    ("setp", compare::setp),
    ("set", compare::set),
    ("selp", compare::selp),
    ("slct", compare::slct),

    ("and", bits::and),
    ("or", bits::or),
    ("xor", bits::xor),
    ("not", bits::not),
    ("cnot", bits::cnot),
    ("lop3", bits::lop3),
    ("shl", bits::shl),
    ("shr", bits::shr),
    ("shf", bits::shf),
    ("popc", bits::popc),
    ("clz", bits::clz),
    ("brev", bits::brev),
    ("bfind", bits::bfind),
    ("bfe", bits::bfe),
    ("bfi", bits::bfi),
    ("bmsk", bits::bmsk),
    ("szext", bits::szext),
    ("fns", bits::fns),
    ("prmt", bits::prmt),

    ("cvt", convert::cvt),

    ("mov", data::mov),
    ("cvta", data::cvta),
    ("isspacep", data::isspacep),
    ("ld", data::ld),
    ("ldu", data::ldu),
    ("st", data::st),
    ("prefetch", data::prefetch),
    ("prefetchu", data::prefetch),
    ("discard", data::discard),
    ("applypriority", data::discard),
    ("createpolicy", data::createpolicy),

    ("atom", atomic::atom),
    ("red", atomic::red),
    ("membar", atomic::membar),
    ("fence", atomic::fence),

    ("bra", control::bra),
    ("brx", control::brx),
    ("call", control::call),
    ("ret", control::ret),
    ("exit", control::exit),
    ("trap", control::trap),
    ("brkpt", control::trap),
    ("nanosleep", control::nanosleep),
    ("pmevent", control::pmevent),
    ("griddepcontrol", control::griddepcontrol),

    ("bar", warp::bar),
    ("barrier", warp::barrier),
    ("shfl", warp::shfl),
    ("vote", warp::vote),
    ("match", warp::matching),
    ("redux", warp::redux),
    ("activemask", warp::activemask),
    ("elect", warp::elect),

    ("cp", copy::cp),
    ("mbarrier", mbarrier::mbarrier),

    ("mma", matrix::mma),
    ("ldmatrix", matrix::ldmatrix),
    ("stmatrix", matrix::stmatrix),
    ("movmatrix", matrix::movmatrix),
];

/// What reads the instructions of an opcode.
fn family(opcode: &str) -> Option<Read> {
    static BY_NAME: LazyLock<HashMap<&str, Read>> = LazyLock::new(|| OPCODES.iter().copied().collect());
    BY_NAME.get(opcode).copied()
}

/// The names of all opcodes.
#[cfg(test)]
pub(super) fn opcodes() -> impl Iterator<Item = &'static str> {
    OPCODES.iter().map(|(name, _)| *name)
}
