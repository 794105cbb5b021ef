//! The long proofs: run before a piece of work is called done, and not in CI.
//!
//! ```text
//! cuda        every call of NVIDIA's driver fails, in every way, on a double of it
//! fuzz        ten minutes of every fuzz target
//! image       the container image, built and run as a platform would
//! kernels     a million random kernels, interpreted, translated, and translated for the lanes of vectors
//! ledger      what a proof has checked, and the sum
//! rehearsals  torture and sabotage: what `steadfast rehearse` must find, and must not
//! swaps       hundreds of changes of plugin in a running job; a few of them in CI
//! wait        waiting for what other programs do
//! slurm       a real Slurm, real preemptions, the README's own scripts
//! ```

mod cuda;
mod fuzz;
mod image;
mod kernels;
mod ledger;
mod rehearsals;
mod slurm;
mod swaps;
mod wait;

use anyhow::{Result, bail};
use clap::ValueEnum;

/// Which proof.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Rack {
    /// No difference for `digits` and `countdown`, wherever they are stopped and whatever the volume does
    Torture,
    /// A difference for every plugin that loses state, and for a host without any one of its durability rules
    Sabotage,
    /// Arrays preempted, requeued and cancelled by a real Slurm on this machine; jobs that it must not requeue for ever
    Slurm,
    /// The container image: built, run as process 1, preempted, and what it promises
    Image,
    /// Five hundred changes of plugin in a running `digits`, good and bad, with kills among them: every step run once
    Swaps,
    /// No finding in ten minutes of every fuzz target
    Fuzz,
    /// Each call of NVIDIA's driver in turn answers each of five errors, on a double of it: the right exit code, and nothing lost
    Cuda,
    /// A million random PTX kernels: the same bytes from an interpreter, from the translation to WebAssembly, and from that for the lanes of vectors
    Kernels,
}

/// A few changes of plugin, which CI has the time for.
pub(crate) fn a_few_swaps() -> Result<()> {
    swaps::brief()
}

/// Runs one; the seed to begin `from` and the number of `kernels` are for [`Rack::Kernels`].
pub(crate) fn run(rack: Rack, from: Option<u64>, kernels: Option<u64>) -> Result<()> {
    if (from.is_some() || kernels.is_some()) && !matches!(rack, Rack::Kernels) {
        bail!("`--from` and `--kernels` say which kernels `rack kernels` compares; no other proof has any");
    }
    match rack {
        Rack::Torture => rehearsals::torture(),
        Rack::Sabotage => rehearsals::sabotage(),
        Rack::Slurm => slurm::run(),
        Rack::Image => image::run(),
        Rack::Swaps => swaps::run(),
        Rack::Fuzz => fuzz::run(),
        Rack::Cuda => cuda::run(),
        Rack::Kernels => self::kernels::run(from.unwrap_or(0), kernels.unwrap_or(self::kernels::KERNELS)),
    }
}
