//! What is read and has no meaning for a translation: debug information and advice to the driver's compiler.

use super::cursor::Cursor;
use super::error::{Result, error};
use super::lexer::Kind;

/// `"nounroll";`, behind `.pragma`.
pub(super) fn pragma(cursor: &mut Cursor) -> Result<()> {
    loop {
        if cursor.advance()?.kind != Kind::Text {
            return error(cursor.position(), "a `.pragma` is text in quotation marks");
        }
        if !cursor.accept(',')? {
            return cursor.expect(';');
        }
    }
}

/// `1 "file.cu", 1700000000, 1234`, behind `.file`.
pub(super) fn file(cursor: &mut Cursor) -> Result<()> {
    cursor.integer("the number of the file")?;
    if cursor.advance()?.kind != Kind::Text {
        return error(cursor.position(), "the name of the file is missing");
    }
    while cursor.accept(',')? {
        cursor.integer("a number")?;
    }
    Ok(())
}

/// `1 25 3`, and `, function_name $L__info_string0+4, inlined_at 1 25 3`, behind `.loc`.
pub(super) fn location(cursor: &mut Cursor) -> Result<()> {
    numbers(cursor)?;
    while cursor.accept(',')? {
        match cursor.word("`function_name` or `inlined_at`")? {
            "inlined_at" => numbers(cursor)?,
            _ => {
                cursor.word("a label")?;
                if cursor.accept('+')? {
                    cursor.integer("an offset")?;
                }
            }
        }
    }
    Ok(())
}

/// File, line and column.
fn numbers(cursor: &mut Cursor) -> Result<()> {
    for what in ["the number of a file", "a line", "a column"] {
        cursor.integer(what)?;
    }
    Ok(())
}

/// `.debug_info { … }`, behind `.section`.
pub(super) fn section(cursor: &mut Cursor) -> Result<()> {
    let position = cursor.position();
    while cursor.peek() != Kind::Mark('{') {
        if cursor.advance()?.kind == Kind::End {
            return error(position, "this `.section` has no content in braces");
        }
    }
    let mut depth = 0_usize;
    loop {
        match cursor.advance()?.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') if depth == 1 => return Ok(()),
            Kind::Mark('}') => depth -= 1,
            Kind::End => return error(position, "this `.section` has no closing `}`"),
            _ => {}
        }
    }
}
