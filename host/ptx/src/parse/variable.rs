//! Declarations of variables.

use super::cursor::Cursor;
use super::error::{Result, error, quote};
use super::instruction::{of, type_named};
use super::lexer::Kind;
use crate::module::{Position, Space, Type};

/// The most dimensions that an array may have. C compilers write one.
const MOST_DIMENSIONS: usize = 16;
/// The largest alignment. Variables of the module stand in memory that the host aligns to this.
const MOST_ALIGN: u64 = 256;
/// The largest alignment of shared memory, which GPUs align further.
const MOST_SHARED_ALIGN: u64 = 1 << 16;
/// The most bytes of one variable: more than any device has, and little enough that the sum over as many as a text can declare fits in 64 bits.
const MOST_BYTES: u64 = 1 << 40;

/// What stands before the names of a declaration: `.align 8 .v4 .f32`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) element: Type,
    /// Elements in a vector; 1 for none.
    pub(super) vector: u32,
    /// In bytes.
    pub(super) align: u32,
}

/// A name with its dimensions.
#[derive(Debug, Clone)]
pub(super) struct Declared<'a> {
    pub(super) name: &'a str,
    pub(super) position: Position,
    /// From the outermost on; none for a single value. 0 for `[]`.
    pub(super) dimensions: Vec<u64>,
}

/// Alignment, vector and type, up to the name. `.ptr` and what describes where it points are passed.
pub(super) fn shape(cursor: &mut Cursor, space: Space) -> Result<Shape> {
    let (mut align, mut vector, mut element) = (None, 1, None);
    while let Kind::Dotted(word) = cursor.peek() {
        let position = cursor.position();
        match (word, type_named(word)) {
            ("align", _) => align = Some(alignment(cursor, space)?),
            ("v2", _) => vector = vector_of(cursor, 2)?,
            ("v4", _) => vector = vector_of(cursor, 4)?,
            ("ptr", _) if space == Space::Param && element.is_some() => pointer(cursor)?,
            (_, Some(Type::Pred)) => return error(position, "a predicate has no place in memory"),
            (_, Some(ty)) if element.is_none() => {
                cursor.advance()?;
                element = Some(ty);
            }
            _ => return error(position, format!("{} is not supported in a declaration", quote(cursor.written()))),
        }
    }
    let Some(element) = element else { return Err(cursor.unexpected("a type such as `.b32`")) };
    Ok(Shape { element, vector, align: align.unwrap_or(element.bytes() * vector) })
}

fn vector_of(cursor: &mut Cursor, elements: u32) -> Result<u32> {
    cursor.advance()?;
    Ok(elements)
}

/// `.align 8`.
fn alignment(cursor: &mut Cursor, space: Space) -> Result<u32> {
    cursor.advance()?;
    let position = cursor.position();
    let align = cursor.integer("an alignment")?;
    let most = if space == Space::Shared { MOST_SHARED_ALIGN } else { MOST_ALIGN };
    if !align.is_power_of_two() || align > most {
        return error(position, format!("an alignment is a power of two up to {most}, not {align}"));
    }
    Ok(align as u32)
}

/// `.ptr .global .align 4`: what is known of a pointer, which nothing here depends on.
fn pointer(cursor: &mut Cursor) -> Result<()> {
    cursor.advance()?;
    if matches!(cursor.peek(), Kind::Dotted("global" | "shared" | "local" | "const" | "param")) {
        cursor.advance()?;
    }
    if cursor.peek() == Kind::Dotted("align") {
        alignment(cursor, Space::Shared)?;
    }
    Ok(())
}

/// A name and its dimensions.
pub(super) fn declared<'a>(cursor: &mut Cursor<'a>) -> Result<Declared<'a>> {
    let position = cursor.position();
    let name = cursor.word("a name")?;
    let mut dimensions = Vec::new();
    while cursor.accept('[')? {
        let at = cursor.position();
        if dimensions.len() == MOST_DIMENSIONS {
            return error(at, format!("an array has at most {MOST_DIMENSIONS} dimensions"));
        }
        if dimensions.is_empty() && cursor.accept(']')? {
            dimensions.push(0);
            continue;
        }
        let length = cursor.integer("the length of the array")?;
        if length == 0 {
            return error(at, "an array has at least one element");
        }
        dimensions.push(length);
        cursor.expect(']')?;
    }
    Ok(Declared { name, position, dimensions })
}

impl Declared<'_> {
    /// Bytes in all.
    pub(super) fn bytes(&self, shape: Shape) -> Result<u64> {
        let element = u64::from(shape.element.bytes() * shape.vector);
        let bytes = self.dimensions.iter().try_fold(element, |bytes, length| bytes.checked_mul(*length));
        match bytes {
            Some(bytes) if bytes <= MOST_BYTES => Ok(bytes),
            _ => error(self.position, format!("{} is larger than {MOST_BYTES} bytes", quote(self.name))),
        }
    }

    /// Whether the outermost length is left out.
    pub(super) fn open(&self) -> bool {
        self.dimensions.first() == Some(&0)
    }
}

/// `.reg .b32 %r<9>, %x;`, behind the type: each name, with how many it stands for if it is a range.
pub(super) fn registers<'a>(
    cursor: &mut Cursor<'a>,
    mut declare: impl FnMut(&'a str, Option<u32>, Type, Position) -> Result<()>,
) -> Result<()> {
    let ty = register_type(cursor)?;
    loop {
        let position = cursor.position();
        let name = cursor.word("a register")?;
        let count = if cursor.accept('<')? { Some(count(cursor)?) } else { None };
        declare(name, count, ty, position)?;
        if !cursor.accept(',')? {
            return cursor.expect(';');
        }
    }
}

/// `9>`, of a range of registers.
fn count(cursor: &mut Cursor) -> Result<u32> {
    let count = cursor.integer32("the number of registers")?;
    cursor.expect('>')?;
    Ok(count)
}

/// The type of a register.
pub(super) fn register_type(cursor: &mut Cursor) -> Result<Type> {
    let position = cursor.position();
    let Kind::Dotted(word) = cursor.peek() else { return Err(cursor.unexpected("the type of the registers")) };
    let Some(ty) = type_named(word) else {
        return error(position, format!("{} is no type that a register can have", quote(cursor.written())));
    };
    cursor.advance()?;
    Ok(ty)
}

/// Says that a value of a type cannot be in a place.
pub(super) fn misplaced<T>(ty: Type, why: &str, position: Position) -> Result<T> {
    error(position, format!("this value cannot be {}: {why}", of(ty)))
}
