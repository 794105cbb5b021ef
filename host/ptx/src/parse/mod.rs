//! Text to a [`Module`]: one pass over the text, without recursion that it could drive deep, and with memory in proportion to it.
//!
//! ```text
//!  text ─► lexer ─► cursor ─┬► module directives ─► variable, initial      .global .align 4 .u32 x = 5;
//!                           └► function ─► names, labels                   .reg, { … }, L:
//!                                     └──► operand ─► instruction          @%p add.s32 %r1, %r2, 3;
//! ```
//!
//! What PTX's own rules forbid is an error here, with its place: unknown names, registers of the wrong type, modifiers that an
//! instruction does not have. An instruction of PTX that this program cannot translate is one as well, and the message says what can be
//! done. Debug information and advice to the driver's compiler are read and forgotten.

mod body;
mod cursor;
mod error;
mod function;
mod initial;
mod instruction;
mod labels;
mod lexer;
mod module;
mod names;
mod number;
mod operand;
mod skip;
#[cfg(test)]
mod tests;
mod variable;

pub use self::error::ParseError;

use self::error::error;
use crate::module::{Module, Position};

/// The most bytes that a text may have. The largest modules of compilers are a tenth of this; a typed instruction needs up to forty times the
/// bytes of its text.
pub const MOST_BYTES: usize = 16 << 20;

/// Reads a module.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let start = Position { line: 1, column: 1 };
    if text.len() > MOST_BYTES {
        return error(start, format!("the text has {} bytes, and {MOST_BYTES} are the most that are read", text.len()));
    }
    if let Some(at) = text.find('\0') {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
        let column = before[line_start..].chars().count() as u32 + 1;
        return error(Position { line, column }, "there is a NUL byte: PTX is text");
    }
    module::parse(text)
}
