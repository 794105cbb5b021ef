//! What is said about a text that is not understood.

use thiserror::Error;

use crate::module::Position;

/// Why a text is not a module that can be translated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {}, column {}: {message}", position.line, position.column)]
pub struct ParseError {
    /// Where in the text.
    pub position: Position,
    /// What is wrong there and, where there is something, what to do.
    pub message: String,
}

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// An error at `position`.
pub(super) fn error<T>(position: Position, message: impl Into<String>) -> Result<T> {
    Err(ParseError { position, message: message.into() })
}

/// The longest piece of the text that a message repeats.
const LONGEST_QUOTE: usize = 100;

/// A piece of the text as messages show it: on one line, and not longer than a person reads.
pub(super) fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().take(LONGEST_QUOTE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    format!("`{quoted}`")
}
