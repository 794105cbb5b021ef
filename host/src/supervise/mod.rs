//! Running attempts as child processes: a rehearsal plays the platform against a job and compares what comes out.
//!
//! ```text
//!  RehearsalSpec ─► rehearse ─► play ─┬─► run ──► attempt ──► child process, in its own process group
//!                                     │     │        ▲ └──── marks: where the attempt is, over a socket
//!                                     │     └─► schedule: when to strike      trials, faults: what goes wrong
//!                                     ├─► place, compare: what a volume holds ─► the first difference
//!                                     └─► verdict: the smallest command that repeats it ─► report
//! ```
//!
//! Knows the process interface alone (environment, exit codes, marks, the volume's content) and deliberately nothing of
//! what runs inside an attempt: the children are this same program, and are treated as strangers.

pub mod attempt;
pub mod compare;
pub mod faults;
pub mod marks;
pub mod place;
mod play;
mod rehearse;
pub mod report;
mod run;
pub mod schedule;
pub mod spec;
#[cfg(test)]
mod tests;
mod trials;
mod verdict;

pub use rehearse::{Observer, rehearse};
pub use report::{AttemptRow, RehearsalReport, Verdict};
pub use spec::{Faults, Preempt, Progress, RehearsalError, RehearsalSpec};
