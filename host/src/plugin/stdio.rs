//! What a guest prints, as lines.
//!
//! Output is split at line ends and handed on at once; a line longer than 8 KiB arrives in pieces. So whatever a guest prints,
//! no more than one piece is held here. Thinning floods out is up to the receiver, which sees all streams.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::{GuestEvents, GuestStream};

const LONGEST_LINE: usize = 8 * 1024;
/// How much a guest may write at once; WASI hands larger writes over in turns.
const PERMIT: usize = 64 * 1024;
/// Lines kept to explain a trap: enough for a panic's message with a few lines of its own.
const LAST_WORDS: usize = 12;

/// One of a guest's two streams; clones are the same stream.
#[derive(Clone)]
pub(super) struct Lines(Arc<Inner>);

struct Inner {
    stream: GuestStream,
    events: Arc<dyn GuestEvents>,
    pending: Mutex<Pending>,
    /// Whether there are last words: asked before every call, most of which print none.
    has_words: AtomicBool,
}

#[derive(Default)]
struct Pending {
    unfinished: Vec<u8>,
    /// Pieces of this line are out already, so its end alone is no line of its own.
    in_pieces: bool,
    last_words: VecDeque<String>,
}

impl Lines {
    pub(super) fn new(stream: GuestStream, events: Arc<dyn GuestEvents>) -> Self {
        Self(Arc::new(Inner { stream, events, pending: Mutex::default(), has_words: AtomicBool::new(false) }))
    }

    /// Hands over a last line that has no end yet.
    pub(super) fn flush(&self) {
        let mut pending = self.lock();
        if !pending.unfinished.is_empty() {
            self.hand_over(&mut pending, true);
        }
    }

    /// Forgets what was printed in earlier calls.
    pub(super) fn begin_call(&self) {
        if self.0.has_words.load(Ordering::Acquire) {
            let mut pending = self.lock();
            pending.last_words.clear();
            self.0.has_words.store(false, Ordering::Release);
        }
    }

    /// The last lines printed in this call.
    pub(super) fn last_words(&self) -> Vec<String> {
        self.lock().last_words.iter().cloned().collect()
    }

    fn take(&self, mut bytes: &[u8]) {
        let mut pending = self.lock();
        while !bytes.is_empty() {
            let room = LONGEST_LINE - pending.unfinished.len();
            let part = &bytes[..room.min(bytes.len())];
            if let Some(end) = part.iter().position(|byte| *byte == b'\n') {
                pending.unfinished.extend_from_slice(&part[..end]);
                self.hand_over(&mut pending, true);
                bytes = &bytes[end + 1..];
            } else {
                pending.unfinished.extend_from_slice(part);
                bytes = &bytes[part.len()..];
                if pending.unfinished.len() == LONGEST_LINE {
                    self.hand_over(&mut pending, false);
                }
            }
        }
    }

    /// Hands the line on. Unless it is whole, a character cut in two at its end waits for its other half.
    fn hand_over(&self, pending: &mut Pending, whole: bool) {
        let mut line = std::mem::take(&mut pending.unfinished);
        if std::mem::replace(&mut pending.in_pieces, !whole) && line.is_empty() {
            return;
        }
        if whole {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        } else if let Some(cut) = unfinished_character(&line) {
            pending.unfinished = line.split_off(cut);
        }
        let text = String::from_utf8_lossy(&line);
        self.0.events.line(self.0.stream, &text);
        if self.0.stream == GuestStream::Stderr {
            if pending.last_words.len() == LAST_WORDS {
                pending.last_words.pop_front();
            }
            pending.last_words.push_back(text.into_owned());
            self.0.has_words.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a character begins whose end is missing.
fn unfinished_character(line: &[u8]) -> Option<usize> {
    let lead = (line.len().saturating_sub(3)..line.len()).rev().find(|at| line[*at] & 0xC0 != 0x80)?;
    std::str::from_utf8(&line[lead..]).err().filter(|error| error.error_len().is_none()).map(|_| lead)
}

/// The beginning of `text`, at most `most` bytes of it, cut between characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

impl IsTerminal for Lines {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Lines {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Lines {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Lines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for Lines {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Recorder;
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let recorder = Recorder::new();
        let stream = Lines::new(GuestStream::Stdout, recorder.clone());
        parts.iter().for_each(|part| stream.take(part));
        stream.flush();
        recorder.lines()
    }

    #[test]
    fn lines_are_joined_and_split() {
        assert_eq!(lines(&[b"a", b"b\nc\r\n\nd"]), ["ab", "c", "", "d"]);
        assert_eq!(lines(&[b"bad \xff utf-8\n"]), ["bad \u{fffd} utf-8"]);
        assert!(lines(&[b""]).is_empty());
    }

    #[test]
    fn long_lines_arrive_in_pieces_between_characters() {
        let text = format!("x{}", "é".repeat(10_000));
        let pieces = lines(&[text.as_bytes(), b"\n"]);
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.len() <= LONGEST_LINE));
        assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn a_line_of_exactly_one_piece_is_one_line() {
        let text = "x".repeat(LONGEST_LINE);
        assert_eq!(lines(&[text.as_bytes(), b"\n\ny\n"]), [text.as_str(), "", "y"]);
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let stream = Lines::new(GuestStream::Stderr, Recorder::new());
        (0..100).for_each(|i| stream.take(format!("{i}\n").as_bytes()));
        assert_eq!(stream.last_words().len(), LAST_WORDS);
        assert_eq!(stream.last_words().last().map(String::as_str), Some("99"));
        stream.begin_call();
        assert!(stream.last_words().is_empty());
    }

    proptest! {
        #[test]
        fn the_parts_of_a_write_do_not_matter(text in "[aé€𝄞\n]{0,40}", at in 0usize..200) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            prop_assert_eq!(lines(&[bytes]), lines(&[&bytes[..at], &bytes[at..]]));
        }

        #[test]
        fn characters_are_never_torn(text in "[aé€𝄞]{0,12000}") {
            prop_assert_eq!(lines(&[text.as_bytes(), b"\n"]).concat(), text);
        }
    }
}
