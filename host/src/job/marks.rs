//! Tells a rehearsal where the attempt is.
//!
//! A rehearsal (see [`supervise`](crate::supervise)) wants to interrupt an attempt at chosen moments. It listens on a Unix
//! socket whose path it passes in `STEADFAST_MARKS`; the attempt writes a line for each phase that it enters and waits for one
//! line in answer:
//!
//! ```text
//! attempt    mark step 12
//! rehearsal  go            go on
//!            stopping      a signal was just sent: go on once the stop request has been seen
//! ```
//!
//! Without that variable, which is any real run, a mark costs a test of an option. A closed socket means: go on unmarked.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::platform::StopRequests;

/// Names the rehearsal's socket.
pub const MARKS_VARIABLE: &str = "STEADFAST_MARKS";

/// How long an attempt waits to see the stop request that a rehearsal says it sent.
const SIGNAL_ARRIVES: Duration = Duration::from_secs(10);

/// Where an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Finding out who and where it is.
    StartUp,
    /// Loading the plugin, compiling it if it must.
    Compilation,
    /// Loading a checkpoint, and the guest's `restore`.
    Restore,
    /// The guest's `start`.
    Start,
    /// A step of the guest.
    Step,
    /// Writing a checkpoint and reading it back; alongside steps.
    Save,
    /// Removing what is no longer needed; alongside steps.
    Prune,
    /// The saver has nothing to do; alongside steps.
    Idle,
    /// Assembling the outputs and writing the done record.
    FinalWrite,
    /// Everything is written.
    End,
}

impl Phase {
    /// All phases, in the order in which an attempt may go through them.
    pub const ALL: [Self; 10] = [
        Self::StartUp,
        Self::Compilation,
        Self::Restore,
        Self::Start,
        Self::Step,
        Self::Save,
        Self::Prune,
        Self::Idle,
        Self::FinalWrite,
        Self::End,
    ];

    /// The word in the protocol.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::StartUp => "start-up",
            Self::Compilation => "compilation",
            Self::Restore => "restore",
            Self::Start => "start",
            Self::Step => "step",
            Self::Save => "save",
            Self::Prune => "prune",
            Self::Idle => "idle",
            Self::FinalWrite => "final-write",
            Self::End => "end",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The attempt's end of the socket. Clones are the same end.
#[derive(Clone)]
pub struct Marks(Option<Arc<Line>>);

struct Line {
    socket: Mutex<Option<BufReader<UnixStream>>>,
    stops: StopRequests,
}

impl Marks {
    /// Connects to the rehearsal, if there is one.
    #[must_use]
    pub fn from_environment(stops: &StopRequests) -> Self {
        let path = std::env::var_os(MARKS_VARIABLE).filter(|path| !path.is_empty());
        let socket = path.and_then(|path| UnixStream::connect(path).ok());
        let line = |socket| Line { socket: Mutex::new(Some(BufReader::new(socket))), stops: stops.clone() };
        Self(socket.map(|socket| Arc::new(line(socket))))
    }

    /// Tells that the attempt enters a phase, and waits for the answer. `step` is the next step to run; 0 where there is none.
    pub fn at(&self, phase: Phase, step: u64) {
        if let Some(line) = &self.0 {
            line.tell(phase, step);
        }
    }

    /// Whether there is a rehearsal to tell, which may take its time to answer.
    pub fn are_read(&self) -> bool {
        self.0.is_some()
    }
}

impl Line {
    fn tell(&self, phase: Phase, step: u64) {
        let answer = {
            let mut guard = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(socket) = guard.as_mut() else { return };
            match ask(socket, phase, step) {
                Some(answer) => answer,
                None => {
                    *guard = None;
                    return;
                }
            }
        };
        if answer.trim() == "stopping" {
            let _ = self.stops.wait_timeout(SIGNAL_ARRIVES);
        }
    }
}

fn ask(socket: &mut BufReader<UnixStream>, phase: Phase, step: u64) -> Option<String> {
    let mark = format!("mark {} {step}\n", phase.word());
    socket.get_mut().write_all(mark.as_bytes()).ok()?;
    let mut answer = String::new();
    let got = socket.read_line(&mut answer).ok()?;
    (got > 0).then_some(answer)
}
