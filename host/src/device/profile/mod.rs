//! Where a device's time goes: kernel by kernel, and what moved bytes.
//!
//! ```text
//!  Context ──► Watched ──► dyn Device         Profile ──► Line … ──► the attempt's end
//!                 └── each operation, its time ──►┘
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `watched` | the device round a device, which notes each operation |
//!
//! Where there is no profile there is no such device, so it costs nothing then; with one, an operation costs two looks at the clock and one into a table, well
//! under a microsecond.
//!
//! # Whose time it is
//!
//! The host's, from the call of an operation to its end. The CPU device is done when its call returns. A GPU goes on by itself, so under a profile each operation
//! is waited for: what would have overlapped does not, and a launch takes some microseconds more. What a launch costs that does nothing is measured on the same
//! device before the first launch of all, to compare with.
//!
//! A file's transfer counts from its call to its end, with the time of the file, and so do saving and restoring a checkpoint: the pieces of which they consist are
//! no operations of their own. The time of the guest itself is none of a device.

mod watched;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_ptx::kernel::{Form, LANES};

use self::watched::Watched;
use super::gemm::Float;
use super::{Code, Device};

/// The profile of an attempt. Clones are the same profile.
#[derive(Clone, Debug, Default)]
pub struct Profile(Arc<Mutex<Ledger>>);

/// What a device does beside running kernels of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Products of matrices.
    Products(Float),
    /// Random fills.
    Random,
    /// Bytes of the guest to buffers and variables.
    Write,
    /// Bytes of buffers and variables to the guest.
    Read,
    /// Fills with a pattern.
    Fill,
    /// From buffer to buffer.
    Copy,
    /// From files to buffers.
    Load,
    /// From buffers to files.
    Store,
    /// To checkpoints, as far as the guest waits for it.
    Save,
    /// From a checkpoint.
    Restore,
    /// Making buffers.
    Allocate,
    /// Making modules and kernels ready.
    Make,
    /// Waiting at the ends of steps for what is under way.
    Settle,
}

/// How a kernel runs. Groups of lanes that are given up while they run, since they disagree, are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// As translated.
    Translated {
        /// What it became.
        code: Code,
        /// The width of its blocks, if that keeps it from running as the lanes of vectors.
        width: Option<u32>,
    },
    /// As the GPU does it.
    Gpu,
}

/// Operations of one kind together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many.
    pub calls: u64,
    /// Blocks that were run.
    pub blocks: u64,
    /// Threads that were run.
    pub threads: u64,
    /// Bytes that were moved or filled.
    pub bytes: u64,
    /// From their calls to their ends.
    pub time: Duration,
}

/// A line of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The kernel or the operation.
    pub what: String,
    /// How it ran, of a kernel.
    pub path: Option<Path>,
    /// What it came to.
    pub figures: Figures,
}

#[derive(Debug, Default)]
struct Ledger {
    kernels: HashMap<String, Vec<(Path, Figures)>>,
    others: BTreeMap<Work, Figures>,
    empty_launch: Option<Duration>,
}

impl Profile {
    /// A device that does what `device` does, and notes it here.
    #[must_use]
    pub fn watch(&self, device: Box<dyn Device>) -> Box<dyn Device> {
        Box::new(Watched::new(device, self.clone()))
    }

    /// All that was noted, what took longest first.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let ledger = self.lock();
        let kernels = ledger.kernels.iter().flat_map(|(name, paths)| {
            // A text that only a driver has read may call its kernels anything.
            let what = name.escape_debug();
            paths.iter().map(move |(path, figures)| Line {
                what: what.to_string(),
                path: Some(*path),
                figures: *figures,
            })
        });
        let others = ledger.others.iter();
        let others = others.map(|(work, figures)| Line { what: work.to_string(), path: None, figures: *figures });
        let mut lines: Vec<Line> = kernels.chain(others).collect();
        lines.sort_by(|a, b| (b.figures.time, &a.what).cmp(&(a.figures.time, &b.what)));
        lines
    }

    /// What a launch takes that does nothing, once there was a launch.
    #[must_use]
    pub fn empty_launch(&self) -> Option<Duration> {
        self.lock().empty_launch
    }

    fn note(&self, work: Work, figures: Figures) {
        self.lock().others.entry(work).or_default().add(figures);
    }

    fn note_launch(&self, kernel: &str, path: Path, figures: Figures) {
        let mut ledger = self.lock();
        // A name is only copied when it is new.
        if !ledger.kernels.contains_key(kernel) {
            ledger.kernels.insert(kernel.to_owned(), Vec::new());
        }
        let Some(paths) = ledger.kernels.get_mut(kernel) else { return };
        match paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, sum)) => sum.add(figures),
            None => paths.push((path, figures)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.blocks += other.blocks;
        self.threads += other.threads;
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

impl Path {
    fn of(code: Option<Code>, width: u32) -> Self {
        let Some(code) = code else { return Self::Gpu };
        let unfit = code.form == Form::Vector && !width.is_multiple_of(LANES);
        Self::Translated { code, width: unfit.then_some(width) }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Translated { code, width } = self else { return f.write_str("GPU") };
        match (width, code.form) {
            (Some(width), _) => write!(f, "thread by thread: blocks {width} wide")?,
            (None, Form::Vector) => f.write_str("vector lanes")?,
            (None, Form::Scalar(obstacle)) => {
                write!(f, "thread by thread: {obstacle}")?;
                if let Some(place) = obstacle.place() {
                    write!(f, ", line {}", place.line)?;
                }
            }
        }
        if code.one_core { f.write_str("; on one core") } else { Ok(()) }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Products(Float::Float16) => "(products of float16)",
            Self::Products(Float::Bfloat16) => "(products of bfloat16)",
            Self::Products(Float::Float32) => "(products of float32)",
            Self::Products(Float::Float64) => "(products of float64)",
            Self::Random => "(random fills)",
            Self::Write => "(writes)",
            Self::Read => "(reads)",
            Self::Fill => "(fills)",
            Self::Copy => "(copies)",
            Self::Load => "(files to buffers)",
            Self::Store => "(buffers to files)",
            Self::Save => "(checkpoints)",
            Self::Restore => "(restoring)",
            Self::Allocate => "(new buffers)",
            Self::Make => "(modules, compiling)",
            Self::Settle => "(ends of steps)",
        })
    }
}

#[cfg(test)]
mod tests;
