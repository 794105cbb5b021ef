//! The long proofs: run before a piece of work is called done, and not in CI.
//!
//! ```text
//! fuzz        ten minutes of every fuzz target
//! rehearsals  torture and sabotage: what `steadfast rehearse` must find, and must not
//! ```

mod fuzz;
mod rehearsals;

use anyhow::Result;
use clap::ValueEnum;

/// Which proof.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Rack {
    /// No difference for `digits` and `countdown`, wherever they are stopped and whatever the volume does
    Torture,
    /// A difference for every plugin that loses state, and for a host without any one of its durability rules
    Sabotage,
    /// No finding in ten minutes of every fuzz target
    Fuzz,
}

/// Runs one.
pub(crate) fn run(rack: Rack) -> Result<()> {
    match rack {
        Rack::Torture => rehearsals::torture(),
        Rack::Sabotage => rehearsals::sabotage(),
        Rack::Fuzz => fuzz::run(),
    }
}
