//! What a job needs of a machine, and what to do about what is missing: for `steadfast doctor`.
//!
//! | file | what it looks at |
//! |---|---|
//! | `machine` | versions, processor, cores, memory |
//! | `gpu` | NVIDIA's driver, its library and its devices |
//! | `device` | whether a device opens |
//! | `places` | the volume, scratch space, the folder of compiled code |
//! | [`kernels`] | not the machine but a plugin: how its kernels run on the CPU |
//!
//! Each check says what it found, and whether that keeps jobs from running. Nothing is written, installed or repaired. What is said of NVIDIA's
//! driver comes from files; only then it is loaded, as a run would, to open the device.

mod device;
mod gpu;
pub mod kernels;
mod machine;
mod places;

use crate::job::spec::JobSpec;
use crate::platform::Environment;

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it is.
    pub state: State,
    /// What was found, for people.
    pub found: String,
    /// What to do about it, where there is something to do.
    pub advice: Option<String>,
}

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Fine,
    /// Jobs run, but something is worth knowing.
    Note,
    /// Jobs do not run.
    Missing,
}

impl State {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Missing => "MISSING",
        }
    }
}

impl Check {
    fn fine(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, state: State::Fine, found: found.into(), advice: None }
    }

    fn note(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, state: State::Note, found: found.into(), advice: Some(advice.into()) }
    }

    fn missing(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, state: State::Missing, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Looks at everything that a run with this specification would meet on this machine.
#[must_use]
pub fn examine(spec: &JobSpec, environment: Environment<'_>) -> Vec<Check> {
    let mut checks = machine::checks();
    checks.extend(gpu::checks(&gpu::Machine::real(environment)));
    checks.extend(device::checks(spec));
    checks.extend(places::checks(spec, environment));
    checks
}
