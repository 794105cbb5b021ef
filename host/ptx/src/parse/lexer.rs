//! Text to tokens, one at a time: nothing is kept of what was read, so that a large text costs no more memory than its module.

use super::error::{Result, error, quote};
use super::number::{self, Number};
use crate::module::Position;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A name: of an instruction, a register, a variable, a label; or `_`.
    Word(&'a str),
    /// `.name`, without its dot: a directive, or a modifier of an instruction. May have `::` in it.
    Dotted(&'a str),
    /// A literal.
    Number(Number),
    /// Text between quotation marks. Nothing that is translated depends on one.
    Text,
    /// Any other character.
    Mark(char),
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) position: Position,
    /// Where its first byte is.
    pub(super) start: usize,
    /// Where the byte after it is.
    pub(super) end: usize,
}

/// Reads tokens.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    /// What is to be subtracted from an offset for a column: where the line begins, and what its characters have of bytes
    /// beyond one each.
    line_start: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, line_start: 0 }
    }

    /// The text between two offsets that tokens gave.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        &self.text[start..end]
    }

    /// The next token; at the end of the text, `End` again and again.
    pub(super) fn next(&mut self) -> Result<Token<'a>> {
        self.skip_blank()?;
        let (start, position) = (self.at, self.position());
        let kind = self.kind(position)?;
        Ok(Token { kind, position, start, end: self.at })
    }

    fn kind(&mut self, position: Position) -> Result<Kind<'a>> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Kind::End) };
        match first {
            'a'..='z' | 'A'..='Z' | '_' | '$' | '%' => Ok(Kind::Word(self.take(rest, name_length(rest, 1)))),
            '.' => {
                let length = dotted_length(rest);
                if length == 1 {
                    return error(position, "a name is missing after `.`");
                }
                Ok(Kind::Dotted(&self.take(rest, length)[1..]))
            }
            '0'..='9' => {
                let (length, number) = number::scan(rest);
                let written = self.take(rest, length);
                match number {
                    Ok(number) => Ok(Kind::Number(number)),
                    Err(why) => error(position, format!("{} {why}", quote(written))),
                }
            }
            '"' => self.string(position),
            mark if mark.is_ascii_graphic() => {
                self.at += 1;
                Ok(Kind::Mark(mark))
            }
            other => error(position, format!("the character {other:?} has no meaning in PTX outside comments")),
        }
    }

    fn take(&mut self, rest: &'a str, length: usize) -> &'a str {
        self.at += length;
        &rest[..length]
    }

    fn position(&self) -> Position {
        // A text is at most `MOST_BYTES` long, so neither number is cut.
        Position { line: self.line, column: (self.at - self.line_start) as u32 + 1 }
    }

    fn string(&mut self, position: Position) -> Result<Kind<'a>> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(Kind::Text);
                }
                b'\n' => break,
                b'\\' if matches!(bytes.get(self.at + 1), Some(b'"' | b'\\')) => self.at += 1,
                _ => {}
            }
            self.step();
        }
        error(position, "this string has no closing `\"` on its line")
    }

    /// Passes blanks and comments.
    fn skip_blank(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        loop {
            match (bytes.get(self.at), bytes.get(self.at + 1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c), _) => self.step(),
                (Some(b'/'), Some(b'/')) => {
                    while bytes.get(self.at).is_some_and(|byte| *byte != b'\n') {
                        self.step();
                    }
                }
                (Some(b'/'), Some(b'*')) => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<()> {
        let (bytes, position) = (self.text.as_bytes(), self.position());
        self.at += 2;
        loop {
            match (bytes.get(self.at), bytes.get(self.at + 1)) {
                (Some(b'*'), Some(b'/')) => {
                    self.at += 2;
                    return Ok(());
                }
                (Some(_), _) => self.step(),
                (None, _) => return error(position, "this comment has no closing `*/`"),
            }
        }
    }

    /// Passes one byte, and keeps count of lines and columns.
    fn step(&mut self) {
        let byte = self.text.as_bytes()[self.at];
        self.at += 1;
        if byte == b'\n' {
            self.line += 1;
            self.line_start = self.at;
        } else if byte & 0xc0 == 0x80 {
            self.line_start += 1;
        }
    }
}

/// How long the name is that `text` begins with, its first `from` bytes being known.
fn name_length(text: &str, from: usize) -> usize {
    let rest = text.as_bytes()[from..].iter();
    from + rest.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')).count()
}

/// How long `.name` or `.name::name` is.
fn dotted_length(text: &str) -> usize {
    let mut length = name_length(text, 1);
    while text[length..].starts_with("::") {
        length = name_length(text, length + 2);
    }
    length
}
