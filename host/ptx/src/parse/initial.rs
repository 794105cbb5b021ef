//! Initialisers: the bytes and addresses that a variable begins with.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::error::{Result, error, quote};
use super::instruction::immediate;
use super::lexer::Kind;
use super::number::Number;
use super::operand::offset;
use super::variable::{Declared, Shape, misplaced};
use crate::module::{Position, Relocation, Symbol};

/// What a variable begins with.
#[derive(Debug, Default)]
pub(super) struct Initial {
    /// The first bytes; what follows is 0.
    pub(super) bytes: Vec<u8>,
    pub(super) relocations: Vec<Relocation>,
}

/// An address in an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Target {
    variable: u32,
    offset: i64,
    generic: bool,
}

/// Single bytes of an address, `0xFF(x), 0xFF00(x), …`, until all of them are there.
#[derive(Debug, Clone, Copy)]
struct Partial {
    target: Target,
    at: u64,
    bytes: u32,
    position: Position,
}

/// Reads one initialiser.
struct Reader<'r, 'a> {
    cursor: &'r mut Cursor<'a>,
    globals: &'r HashMap<&'a str, Symbol>,
    shape: Shape,
    initial: Initial,
    partial: Option<Partial>,
    /// How many bytes may still be written.
    budget: &'r mut usize,
}

/// What stands behind `=`. An open outermost length is set to what is needed.
pub(super) fn initial<'a>(
    cursor: &mut Cursor<'a>,
    globals: &HashMap<&'a str, Symbol>,
    shape: Shape,
    declared: &mut Declared<'a>,
    budget: &mut usize,
) -> Result<Initial> {
    let mut reader = Reader { cursor, globals, shape, initial: Initial::default(), partial: None, budget };
    let mut dimensions = declared.dimensions.clone();
    if shape.vector > 1 {
        dimensions.push(u64::from(shape.vector));
    }
    if dimensions.is_empty() {
        reader.element(0)?;
    } else {
        let length = reader.braces(&dimensions, 0)?;
        if declared.open() {
            declared.dimensions[0] = length;
        }
    }
    reader.whole()?;
    let mut initial = reader.initial;
    let written = initial.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    initial.bytes.truncate(written);
    Ok(initial)
}

impl Reader<'_, '_> {
    /// `{a, b, …}` for an array of these dimensions at byte `at`; how many elements of the outermost there are. Nested no deeper
    /// than the array has dimensions.
    fn braces(&mut self, dimensions: &[u64], at: u64) -> Result<u64> {
        let Some((length, inner)) = dimensions.split_first() else { return Ok(0) };
        let stride =
            inner.iter().fold(u64::from(self.shape.element.bytes()), |bytes, length| bytes.saturating_mul(*length));
        self.cursor.expect('{')?;
        let mut count = 0;
        while !self.cursor.accept('}')? {
            if *length != 0 && count == *length {
                return error(self.cursor.position(), format!("there are more than {length} elements"));
            }
            let at = at.saturating_add(stride.saturating_mul(count));
            if inner.is_empty() {
                self.element(at)?;
            } else {
                self.braces(inner, at)?;
            }
            count += 1;
            if !self.cursor.accept(',')? {
                self.cursor.expect('}')?;
                break;
            }
        }
        if count == 0 && *length == 0 {
            return error(
                self.cursor.position(),
                "the length of the array follows from its elements, and there are none",
            );
        }
        Ok(count)
    }

    /// One value at byte `at`.
    fn element(&mut self, at: u64) -> Result<()> {
        let position = self.cursor.position();
        if let Kind::Word(_) = self.cursor.peek() {
            let target = self.target()?;
            return self.address(target, at, position);
        }
        let number = self.cursor.number("a value")?;
        if self.cursor.accept('(')? {
            let target = self.target()?;
            self.cursor.expect(')')?;
            return self.byte_of(number, target, at, position);
        }
        self.whole()?;
        let ty = self.shape.element;
        match immediate(number, ty) {
            Ok(bits) => self.write(at, &bits.to_le_bytes()[..ty.bytes().min(8) as usize], position),
            Err(why) => misplaced(ty, why, position),
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8], position: Position) -> Result<()> {
        let end = at.saturating_add(bytes.len() as u64);
        let more = end.saturating_sub(self.initial.bytes.len() as u64);
        let Some(left) = usize::try_from(more).ok().and_then(|more| self.budget.checked_sub(more)) else {
            return error(
                position,
                "the initial data is far larger than its text: leave out what is zero, or fill it in a kernel",
            );
        };
        *self.budget = left;
        let end = end as usize;
        if end > self.initial.bytes.len() {
            self.initial.bytes.resize(end, 0);
        }
        self.initial.bytes[at as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    /// `name+4` or `generic(name)+4`.
    fn target(&mut self) -> Result<Target> {
        let position = self.cursor.position();
        let mut name = self.cursor.word("a variable")?;
        let generic = name == "generic" && self.cursor.accept('(')?;
        let mut inner = 0;
        if generic {
            name = self.cursor.word("a variable")?;
            inner = offset(self.cursor)?;
            self.cursor.expect(')')?;
        }
        let offset = inner.wrapping_add(offset(self.cursor)?);
        match self.globals.get(name) {
            Some(Symbol::Module(variable)) => Ok(Target { variable: *variable, offset, generic }),
            Some(_) => {
                error(position, format!("{} is a function: a variable cannot begin with its address", quote(name)))
            }
            None => error(position, format!("{} is not a variable that is declared before", quote(name))),
        }
    }

    /// A whole address as an element.
    fn address(&mut self, target: Target, at: u64, position: Position) -> Result<()> {
        self.whole()?;
        let ty = self.shape.element;
        if ty.is_float() || !matches!(ty.bytes(), 4 | 8) {
            return misplaced(ty, "an address needs 4 or 8 bytes", position);
        }
        self.relocate(target, at, ty.bytes());
        Ok(())
    }

    fn relocate(&mut self, target: Target, at: u64, bytes: u32) {
        let Target { variable, offset, generic } = target;
        self.initial.relocations.push(Relocation { at, bytes, variable, offset, generic });
    }

    /// One byte of an address, which a mask picks. The bytes have to come in order, four or eight of them.
    fn byte_of(&mut self, mask: Number, target: Target, at: u64, position: Position) -> Result<()> {
        if self.shape.element.bytes() != 1 {
            return misplaced(self.shape.element, "a byte of an address needs 1 byte", position);
        }
        if self.partial.is_some_and(|partial| partial.target != target || partial.bytes == 8) {
            self.whole()?;
        }
        let mut partial = self.partial.take().unwrap_or(Partial { target, at, bytes: 0, position });
        let next = at == partial.at + u64::from(partial.bytes) && mask == Number::Integer(0xff << (8 * partial.bytes));
        if !next {
            return error(position, "the bytes of an address are written in order: `0xFF(x), 0xFF00(x), …`");
        }
        partial.bytes += 1;
        self.partial = Some(partial);
        if partial.bytes == 8 { self.whole() } else { Ok(()) }
    }

    /// Ends a run of bytes of an address.
    fn whole(&mut self) -> Result<()> {
        let Some(partial) = self.partial.take() else { return Ok(()) };
        if !matches!(partial.bytes, 4 | 8) {
            return error(partial.position, format!("4 or 8 bytes of an address are needed, not {}", partial.bytes));
        }
        self.relocate(partial.target, partial.at, partial.bytes);
        Ok(())
    }
}
