//! Running attempts as child processes: a rehearsal plays the platform against a job and compares what comes out.
//!
//! ```text
//!  RehearsalSpec ─► rehearse ─┬─► run ──► attempt ──► child process, in its own process group
//!                             │     │        ▲ └──── marks: where the attempt is, over a socket
//!                             │     └─► schedule: when to strike   (preempt · kill · fault · damage)
//!                             ├─► compare: what two volumes hold   ─► the first difference
//!                             └─► verdict: the smallest command that repeats it ─► report
//! ```
//!
//! Knows the process interface alone (environment, exit codes, marks, the volume's content) and deliberately nothing of
//! what runs inside an attempt: the children are this same program, and are treated as strangers.

pub mod attempt;
pub mod compare;
pub mod faults;
pub mod marks;
pub mod place;
mod rehearse;
pub mod report;
mod run;
pub mod schedule;
pub mod spec;
#[cfg(test)]
mod tests;
mod verdict;

pub use rehearse::{Observer, rehearse};
pub use report::{AttemptRow, RehearsalReport, Verdict};
pub use spec::{Faults, Preempt, Progress, RehearsalError, RehearsalSpec};
