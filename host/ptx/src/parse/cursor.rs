//! A place in the text with one token in view, and what every part of the grammar asks of it.

use super::error::{ParseError, Result, error, quote};
use super::lexer::{Kind, Lexer, Token};
use super::number::Number;
use crate::module::Position;

/// Where reading has come to.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token })
    }

    /// The token in view.
    pub(super) fn peek(&self) -> Kind<'a> {
        self.token.kind
    }

    pub(super) fn position(&self) -> Position {
        self.token.position
    }

    /// The text from an offset to the end of `last`.
    pub(super) fn since(&self, start: usize, last: &Token<'a>) -> &'a str {
        self.lexer.slice(start, last.end)
    }

    /// The text of the token in view.
    pub(super) fn written(&self) -> &'a str {
        self.lexer.slice(self.token.start, self.token.end)
    }

    /// The token in view; the next one comes into view.
    pub(super) fn advance(&mut self) -> Result<Token<'a>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Passes this character if it is in view.
    pub(super) fn accept(&mut self, mark: char) -> Result<bool> {
        let found = self.token.kind == Kind::Mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Passes `.name` if it is in view.
    pub(super) fn accept_dotted(&mut self, name: &str) -> Result<bool> {
        let found = self.token.kind == Kind::Dotted(name);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Passes this character, or says that it is missing.
    pub(super) fn expect(&mut self, mark: char) -> Result<()> {
        if self.accept(mark)? { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// A name; `what` says of what.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        let Kind::Word(name) = self.token.kind else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(name)
    }

    /// A literal, with or without a sign.
    pub(super) fn number(&mut self, what: &str) -> Result<Number> {
        let negative = self.accept('-')?;
        let Kind::Number(number) = self.token.kind else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(if negative { number.negated() } else { number })
    }

    /// A number that counts something.
    pub(super) fn integer(&mut self, what: &str) -> Result<u64> {
        let Kind::Number(Number::Integer(value)) = self.token.kind else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(value)
    }

    /// A number that fits in 32 bits.
    pub(super) fn integer32(&mut self, what: &str) -> Result<u32> {
        let position = self.position();
        let value = self.integer(what)?;
        u32::try_from(value).or_else(|_| error(position, format!("{what} is too large: {value}")))
    }

    /// Says that something else was expected than what is in view.
    pub(super) fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.token.kind {
            Kind::End => "the text ends".to_owned(),
            _ => format!("{} stands there", quote(self.written())),
        };
        ParseError { position: self.position(), message: format!("expected {expected}, but {found}") }
    }
}
