//! Operands as they are written, before the instruction says what each must be.

use super::cursor::Cursor;
use super::error::{Result, error};
use super::lexer::Kind;
use super::number::Number;
use crate::module::Position;

/// An operand and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw<'a> {
    pub(super) position: Position,
    pub(super) kind: RawKind<'a>,
}

/// How an operand is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawKind<'a> {
    /// `_`.
    Sink,
    /// A number, or a name with or without an offset.
    Value(Value<'a>),
    /// `!%p`.
    Negated(&'a str),
    /// `%p|%q`; either may be `_`.
    Pair(Option<&'a str>, Option<&'a str>),
    /// `{a, b}`; none for `_`.
    Vector(Vec<(Position, Option<Value<'a>>)>),
    /// `[a+4]`.
    Address(Value<'a>),
    /// `(a, b)`: what a call gives or takes.
    List(Vec<Raw<'a>>),
}

/// A number, or something with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(Number),
    /// `name`, `%tid.x`, `name+4`.
    Name {
        name: &'a str,
        component: Option<&'a str>,
        offset: i64,
    },
}

/// The operands of an instruction, up to and with its `;`.
pub(super) fn operands<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Raw<'a>>> {
    let mut operands = Vec::new();
    if cursor.accept(';')? {
        return Ok(operands);
    }
    loop {
        let raw = operand(cursor)?;
        operands.push(raw);
        if !cursor.accept(',')? {
            cursor.expect(';')?;
            return Ok(operands);
        }
    }
}

fn operand<'a>(cursor: &mut Cursor<'a>) -> Result<Raw<'a>> {
    let position = cursor.position();
    let kind = match cursor.peek() {
        Kind::Mark('(') => RawKind::List(list(cursor)?),
        Kind::Mark('{') => RawKind::Vector(vector(cursor)?),
        Kind::Mark('[') => address(cursor)?,
        Kind::Mark('!') => {
            cursor.advance()?;
            RawKind::Negated(cursor.word("a predicate after `!`")?)
        }
        _ => simple(cursor)?,
    };
    Ok(Raw { position, kind })
}

/// What stands without brackets: a value, `_`, or a pair of names.
fn simple<'a>(cursor: &mut Cursor<'a>) -> Result<RawKind<'a>> {
    let position = cursor.position();
    let value = value(cursor)?;
    if cursor.accept('|')? {
        let second = element_name(cursor.word("a register after `|`")?);
        return match value {
            None => Ok(RawKind::Pair(None, second)),
            Some(Value::Name { name, component: None, offset: 0 }) => Ok(RawKind::Pair(Some(name), second)),
            Some(_) => error(position, "only registers can stand on both sides of `|`"),
        };
    }
    Ok(value.map_or(RawKind::Sink, RawKind::Value))
}

fn element_name(name: &str) -> Option<&str> {
    Some(name).filter(|name| *name != "_")
}

/// A number or a name; none for `_`.
fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Value<'a>>> {
    match cursor.peek() {
        Kind::Word("_") => {
            cursor.advance()?;
            Ok(None)
        }
        Kind::Word(name) => {
            cursor.advance()?;
            let component = if let Kind::Dotted(component) = cursor.peek() { Some(component) } else { None };
            if component.is_some() {
                cursor.advance()?;
            }
            Ok(Some(Value::Name { name, component, offset: offset(cursor)? }))
        }
        _ => Ok(Some(Value::Number(cursor.number("an operand")?))),
    }
}

/// `+4`, `-4`, `+-4` or nothing.
pub(super) fn offset(cursor: &mut Cursor) -> Result<i64> {
    let plus = cursor.accept('+')?;
    if !plus && cursor.peek() != Kind::Mark('-') {
        return Ok(0);
    }
    let position = cursor.position();
    match cursor.number("a number of bytes")? {
        Number::Integer(value) => Ok(value as i64),
        Number::Single(_) | Number::Double(_) => error(position, "an offset is an integer"),
    }
}

fn address<'a>(cursor: &mut Cursor<'a>) -> Result<RawKind<'a>> {
    cursor.expect('[')?;
    let position = cursor.position();
    let Some(value) = value(cursor)? else { return error(position, "`_` is no address") };
    cursor.expect(']')?;
    Ok(RawKind::Address(value))
}

fn vector<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(Position, Option<Value<'a>>)>> {
    cursor.expect('{')?;
    let mut elements = Vec::new();
    loop {
        let position = cursor.position();
        elements.push((position, value(cursor)?));
        if !cursor.accept(',')? {
            cursor.expect('}')?;
            return Ok(elements);
        }
    }
}

/// What stands in parentheses: nothing nested, so that no text makes the reader recurse.
fn list<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Raw<'a>>> {
    cursor.expect('(')?;
    let mut elements = Vec::new();
    if cursor.accept(')')? {
        return Ok(elements);
    }
    loop {
        let position = cursor.position();
        let kind = simple(cursor)?;
        elements.push(Raw { position, kind });
        if !cursor.accept(',')? {
            cursor.expect(')')?;
            return Ok(elements);
        }
    }
}
