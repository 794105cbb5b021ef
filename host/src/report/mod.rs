//! What people and log collectors see: log lines, the opening block, the guest's own output, progress.
//!
//! ```text
//!  tracing macros ─► layer ─┐
//!  block ───────────────────┼─► Line ─► human text │ JSON ─► Outlet (stderr; guest stdout in human format: stdout)
//!  guest lines ─► flood ────┤
//!  progress ────────────────┴─► bar (terminal only)
//! ```
//!
//! In the human format a line is the event's message; its fields are for machines, so a message has to be complete in
//! itself. Two fields are the exception: `error` is appended after a colon (as JSON too) and `hint` stands on a line of its own.
//!
//! Nothing here decides anything about the job, and nothing here can fail: a collector that hung up, a full disk behind
//! stderr or a guest that prints without end must never end an attempt.

mod flood;
mod layer;
mod line;
mod outlet;
mod progress;
mod table;

use std::sync::Arc;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use crate::job::spec::LogFormat;

pub use line::Severity;
pub use progress::Progress;
pub use table::{Cell, Table};

use line::{Format, Line};
use outlet::Outlet;

/// Chooses what is logged, in the syntax of `tracing_subscriber`'s targets: `debug`, `steadfast=debug,wasmtime=warn`.
pub const FILTER_VARIABLE: &str = "STEADFAST_LOG";

/// Which of the guest's ways to say something a line came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSource {
    /// It was printed to standard output.
    Stdout,
    /// It was printed to standard error.
    Stderr,
    /// It was logged through `telemetry`, at this level.
    Log(Severity),
}

/// The handle through which the job reports what isn't a log line. Clones are the same reporter.
#[derive(Clone, Debug)]
pub struct Reporter {
    outlet: Arc<Outlet>,
}

/// Installs the log subscriber of this process and returns the reporter. [`LogFormat::Auto`] is the human format here;
/// whoever knows the engine resolves it first ([`LogFormat::resolved`]). A second call changes nothing about log lines.
pub fn init(format: LogFormat) -> Reporter {
    let format = match format {
        LogFormat::Json => Format::Json,
        LogFormat::Human | LogFormat::Auto => Format::Human,
    };
    let filter = filter(std::env::var(FILTER_VARIABLE).ok().as_deref());
    let shows_debug = filter.would_enable("steadfast::guest", &tracing::Level::DEBUG);
    let outlet = Arc::new(Outlet::of_process(format, shows_debug));
    let subscriber =
        tracing_subscriber::registry().with(layer::LineLayer::new(Arc::clone(&outlet)).with_filter(filter));
    // Only a second call in one process (a test) fails here, and then the first subscriber goes on.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Reporter { outlet }
}

/// What is logged by default: this program's own events, from the level of information on.
fn filter(given: Option<&str>) -> Targets {
    let usual = || Targets::new().with_target("steadfast", LevelFilter::INFO);
    given.filter(|text| !text.trim().is_empty()).and_then(|text| text.parse().ok()).unwrap_or_else(usual)
}

/// The block of rows as people read it: a word, then what it is. Further lines of a text are set below its first.
#[must_use]
pub fn render_block(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(word, text)| format!("  {word:<9} {}\n", text.replace('\n', "\n            "))).collect()
}

impl Reporter {
    /// Writes a block like the one that every run begins with. As JSON, each row is a line of its own.
    pub fn block(&self, rows: &[(&str, String)]) {
        match self.outlet.format() {
            Format::Human => self.outlet.write_people(&render_block(rows)),
            Format::Json => {
                for (word, text) in rows {
                    let line = Line::new(Severity::Info, format!("{word}: {text}")).with("row", *word);
                    self.outlet.write(&line);
                }
            }
        }
    }

    /// Writes a table. As JSON, each row is a line of its own, with its cells as fields.
    pub fn table(&self, table: &Table) {
        match self.outlet.format() {
            Format::Human => self.outlet.write_people(&table.for_people()),
            Format::Json => table.for_collectors().iter().for_each(|line| self.outlet.write(line)),
        }
    }

    /// Passes on a line that the guest printed or logged, without its line end. A flood is thinned out, never waited for.
    pub fn guest_line(&self, source: GuestSource, text: &str) {
        self.outlet.write_guest(source, text);
    }

    /// The progress of the job; one a process.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::new(Arc::clone(&self.outlet))
    }

    /// Says what is still unsaid: how many lines of the guest were dropped.
    pub fn finish(&self) {
        self.outlet.account_for_dropped(true);
    }
}

#[cfg(test)]
mod tests;
