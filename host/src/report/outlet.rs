//! The one place where bytes leave: two streams behind a lock, and the bar that lines must not tear.
//!
//! Every write is a whole line in one call, and every error is ignored: a broken pipe must not end the job.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use indicatif::ProgressBar;

use super::GuestSource;
use super::flood::Flood;
use super::line::{Format, Line, Severity};

/// A guest's line beyond this is cut: log collectors refuse or split longer ones.
const LONGEST_GUEST_LINE: usize = 64 * 1024;

pub(super) struct Outlet {
    format: Format,
    shows_debug: bool,
    terminal: bool,
    clock: fn() -> jiff::Timestamp,
    streams: Mutex<Streams>,
    flood: Mutex<Flood>,
    bar: Mutex<Option<ProgressBar>>,
}

struct Streams {
    /// For people and collectors.
    err: Box<dyn Write + Send>,
    /// For what the guest prints, in the human format.
    out: Box<dyn Write + Send>,
}

#[derive(Clone, Copy)]
enum Stream {
    Err,
    Out,
}

impl Outlet {
    /// Writes to the standard streams of this process.
    pub(super) fn of_process(format: Format, shows_debug: bool) -> Self {
        let terminal = format == Format::Human && std::io::stderr().is_terminal();
        let streams = Streams { err: Box::new(std::io::stderr()), out: Box::new(std::io::stdout()) };
        Self::new(format, shows_debug, terminal, jiff::Timestamp::now, streams)
    }

    fn new(
        format: Format,
        shows_debug: bool,
        terminal: bool,
        clock: fn() -> jiff::Timestamp,
        streams: Streams,
    ) -> Self {
        Self {
            format,
            shows_debug,
            terminal,
            clock,
            streams: Mutex::new(streams),
            flood: Mutex::new(Flood::new(Instant::now())),
            bar: Mutex::new(None),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(format: Format, err: Box<dyn Write + Send>, out: Box<dyn Write + Send>) -> Self {
        let clock = || jiff::Timestamp::constant(1_780_000_000, 123_456_000);
        Self::new(format, false, false, clock, Streams { err, out })
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Whether a bar can be drawn.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Takes the bar that lines must not tear, or forgets it.
    pub(super) fn set_bar(&self, bar: Option<ProgressBar>) {
        *lock(&self.bar) = bar;
    }

    pub(super) fn write(&self, line: &Line) {
        match self.format {
            Format::Human => self.write_people(&line.human()),
            Format::Json => self.put(Stream::Err, &line.json((self.clock)())),
        }
    }

    /// Writes text for people as it is.
    pub(super) fn write_people(&self, text: &str) {
        self.put(Stream::Err, text);
    }

    pub(super) fn write_guest(&self, source: GuestSource, text: &str) {
        if source == GuestSource::Log(Severity::Debug) && !self.shows_debug && self.format == Format::Human {
            return;
        }
        let admitted = lock(&self.flood).admits(Instant::now());
        self.account_for_dropped(false);
        if !admitted {
            return;
        }
        let text = cut(text);
        match (self.format, source) {
            (Format::Human, GuestSource::Stdout) => self.put(Stream::Out, &format!("{text}\n")),
            (Format::Human, GuestSource::Stderr) => self.write_people(&format!("{text}\n")),
            (Format::Human, GuestSource::Log(severity)) => self.write(&Line::new(severity, text)),
            (Format::Json, _) => {
                let (severity, source) = match source {
                    GuestSource::Stdout => (Severity::Info, "guest stdout"),
                    GuestSource::Stderr => (Severity::Info, "guest stderr"),
                    GuestSource::Log(severity) => (severity, "guest log"),
                };
                self.write(&Line::new(severity, text).with("source", source));
            }
        }
    }

    pub(super) fn account_for_dropped(&self, everything: bool) {
        let dropped = lock(&self.flood).dropped(Instant::now(), everything);
        if let Some(dropped) = dropped {
            let lines = if dropped == 1 { "1 line" } else { &format!("{dropped} lines") };
            let verb = if dropped == 1 { "was" } else { "were" };
            let message = format!("{lines} of the guest's output {verb} dropped: it prints faster than a log can take");
            self.write(&Line::new(Severity::Warning, message).with("dropped", dropped));
        }
    }

    fn put(&self, stream: Stream, text: &str) {
        // The bar is cloned out of its lock: drawing may take time, and the bar has a lock of its own.
        let bar = lock(&self.bar).clone();
        let write = || {
            let mut streams = lock(&self.streams);
            let sink = match stream {
                Stream::Err => &mut streams.err,
                Stream::Out => &mut streams.out,
            };
            let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
        };
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").field("format", &self.format).field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

/// A thread that panicked while it wrote a line leaves nothing half done that matters here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cut(text: &str) -> String {
    if text.len() <= LONGEST_GUEST_LINE {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_GUEST_LINE);
    format!("{} … ({} more bytes)", &text[..end], text.len() - end)
}
