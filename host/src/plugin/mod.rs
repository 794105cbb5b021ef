//! Running guests: from a component file to typed calls.
//!
//! ```text
//!  file ──► load (what is it? fits the world? cached?) ──► Plugin ──► instantiate ──► Guest ──► start · step · snapshot · restore
//!                                                            │                          │
//!                                                       Interrupter            what it sees: state, telemetry, device, and of WASI
//!                                                     (ends a long call)       /input, /output, clocks, seeded random bytes
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `engine` | the wasmtime engine's settings and the linker: all that a guest can import |
//! | `load` | a file's bytes, its digest, the compiled component ([`Plugin`]) |
//! | `inspect`, `world`, `versions` | what a file is, what it lacks to be a plugin, and which state it says that it reads |
//! | `guest` | one running guest and its typed calls; a trap ends it for good |
//! | `failure` | what a failed call means, in words for people |
//! | `state`, `telemetry`, `wasi`, `stdio`, `random` | the imports, one file each |
//! | `device` | the import of that name: what a guest holds of its device |
//! | `limits`, `interrupt` | memory as a total, and the end of a call that takes too long |
//!
//! Deliberately absent: the checkpoint volume, retries, and any decision about what a failure means for the job. Nothing
//! here runs a thread of its own, and no guest gets an environment, arguments, a network or any folder but its two.

mod bindings;
mod device;
mod engine;
mod error;
mod failure;
mod guest;
mod inspect;
mod interrupt;
mod limits;
mod load;
mod random;
mod state;
mod stdio;
mod telemetry;
#[cfg(test)]
mod tests;
mod versions;
mod wasi;
mod world;

use std::path::PathBuf;
use std::sync::Arc;

pub use device::{DeviceKind, DeviceSection, OpenDevice};
pub use engine::{Nans, Runtime};
pub use error::PluginError;
pub use failure::{CallError, GuestError};
pub use guest::Guest;
pub use inspect::{FileKind, Inspection, Interface, MemoryFact, digest, imports_device, inspect, short};
pub use interrupt::{Interrupter, Interruption};
pub use load::{Artifact, LARGEST_FILE, Plugin, read};
pub use random::{RandomPosition, StreamPosition};
pub use state::{Snapshot, StateSection};
pub use versions::StateVersions;
pub use world::{Problem, WIT_VERSION};

/// What a guest gets for its lifetime.
#[derive(Clone)]
pub struct GuestSettings {
    /// The folder that the guest sees, read-only, as `/input`; without one there is no `/input`.
    pub input: Option<PathBuf>,
    /// The folder that the guest sees as `/output`.
    pub output: PathBuf,
    /// The most bytes that all memories and tables of the guest may have together.
    pub memory_limit: u64,
    /// The most bytes that one snapshot of its state may have.
    pub state_limit: u64,
    /// What opens the device, for a plugin or a state that needs one; without it there is none.
    pub device: Option<OpenDevice>,
    /// The most bytes that buffers of the device may have together.
    pub device_memory: u64,
    /// Seeds what WASI gives out as random.
    pub seed: u64,
    /// Where the guest's lines, log messages and metrics go.
    pub events: Arc<dyn GuestEvents>,
}

/// Receives what a guest reports while one of its calls runs, on the thread of that call.
///
/// Implementations return quickly and thin floods out themselves: a guest waits for each of them. They must not call back
/// into the [`Guest`].
pub trait GuestEvents: Send + Sync {
    /// A line that the guest printed, without its end. Long lines arrive in pieces of at most 8 KiB.
    fn line(&self, stream: GuestStream, line: &str);
    /// A message that the guest logged, cut to at most 64 KiB.
    fn log(&self, level: GuestLevel, message: &str);
    /// A value at the current step. The name is 1 to 255 bytes without control characters; the value may be anything.
    fn metric(&self, name: &str, value: f64);
}

/// Which stream a line was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How much a log message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuestLevel {
    /// For the plugin's author.
    Debug,
    /// For those who watch the job.
    Info,
    /// Something to look into.
    Warn,
    /// Something went wrong.
    Error,
}

/// Who the guest is told that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInfo {
    /// The job's name, or its run id.
    pub name: String,
    /// Which task of an array job, from 0.
    pub task_index: u32,
    /// How many tasks the array job has; 1 for a job that is no array.
    pub task_count: u32,
    /// How many attempts came before.
    pub attempt: u32,
    /// The same on every attempt.
    pub seed: u64,
}

/// What a step answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More {
        /// Units done.
        done: u64,
        /// Units in all, if known.
        total: Option<u64>,
    },
    /// The task is complete; a line for people.
    Done(String),
}
