//! Why a kernel cannot be translated.

use crate::module::Position;

/// A kernel that cannot be translated, and where in its text the reason stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {text}", position.line, position.column)]
pub struct TranslateError {
    /// The instruction or declaration.
    pub position: Position,
    /// What is wrong, and what to do.
    pub text: String,
}

impl TranslateError {
    pub(crate) fn new(position: Position, text: impl Into<String>) -> Self {
        Self { position, text: text.into() }
    }
}

/// What each step of a translation gives.
pub(crate) type Result<T, E = TranslateError> = std::result::Result<T, E>;
