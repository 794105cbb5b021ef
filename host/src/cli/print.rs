//! Data for standard output, where other programs read it.

use std::borrow::Cow;
use std::io::{self, Write};

use comfy_table::{Table, presets};

use super::failure::Failure;

/// Prints text. What a terminal would act on is written out: names of buffers and files are a guest's, and anybody's.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    let shown = without_controls(text);
    stream(|out| out.write_all(shown.as_bytes()).map_err(|error| failed(&error)))
}

fn without_controls(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && c != '\n';
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.into()
}

/// Prints JSON for machines, one value.
pub(super) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    text(&format!("{value:#}\n"))
}

/// Lets `write` print. That nobody reads on (as behind `head`) is no failure: the rest goes nowhere.
pub(super) fn stream(write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = Readers { out: io::stdout().lock(), gone: false };
    write(&mut out)?;
    out.flush().map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(75, format!("cannot write to standard output: {error}"))
}

/// Standard output that takes everything once its reader is gone.
struct Readers<W> {
    out: W,
    gone: bool,
}

impl<W: Write> Readers<W> {
    fn unless_gone<T>(&mut self, otherwise: T, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.gone {
            return Ok(otherwise);
        }
        match act(&mut self.out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(otherwise)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Readers<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_gone(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_gone((), Write::flush)
    }
}

/// A table without frames, which can be cut by columns.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// A number of bytes as people read it.
pub(super) fn size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_written_out() {
        assert_eq!(without_controls("a b\n\u{1b}[2J\r\u{9b}ä"), "a b\n\\u{1b}[2J\\r\\u{9b}ä");
        assert!(matches!(without_controls("buffer `weights`\n"), Cow::Borrowed(_)));
    }
}
