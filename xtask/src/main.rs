//! The commands of a developer's day: `cargo xtask demo`, `cargo xtask test` and what they are made of.
//!
//! ```text
//! main      the command line
//! step      a named piece of work: says what it runs, how long it took, and how to repeat it when it fails
//! plugins   the wasm32-wasip2 target, the plugins, the test guests
//! host      the host, and the host with durability rules that can be switched off
//! ci        what CI runs, cheapest first
//! tally     sums what the test runner says
//! fuzz      the fuzz targets, built with instrumentation and run
//! demo      the main job, with the platform played against it
//! documents what the README says: scripts, manifests, job files, options
//! kernels   the PTX of kernels, made from the CUDA C beside it
//! packages  programs that a check needs and a fresh machine lacks
//! python    tools from Python's package index
//! rack      the long proofs, run before a piece of work is called done and not in CI
//! gpu       what only a GPU can tell
//! bench     figures, as ratios to what the same work costs without Steadfast
//! ```
//!
//! What is checked is decided in the host (`steadfast rehearse`) and in its tests; here are only the order and the words.

mod bench;
mod ci;
mod demo;
mod documents;
mod fuzz;
mod gpu;
mod host;
mod kernels;
mod packages;
mod plugins;
mod python;
mod rack;
mod step;
mod tally;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Commands for working on Steadfast.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a digit classifier while it is preempted, killed and damaged, and check that nothing was lost
    Demo,
    /// Everything that CI runs, cheapest first
    Test,
    /// Build the example plugins and the test guests for wasm32-wasip2, adding the target if it is missing
    Plugins,
    /// Make the PTX of every kernel again from the CUDA C beside it; needs no GPU
    Kernels,
    /// Feed made-up checkpoints, folders, job files and plugins to the host, and look for a panic or a broken promise
    Fuzz {
        /// Which targets; all of them if none is named
        #[arg(value_enum)]
        targets: Vec<fuzz::Target>,
        /// How long for each, such as 60s or 10m
        #[arg(long, default_value = "60s", value_parser = fuzz::time)]
        time: Duration,
    },
    /// The long proofs, which CI does not run
    Rack {
        /// Which one
        #[arg(value_enum)]
        name: rack::Rack,
        /// The seed of the first random kernel that `kernels` compares, instead of 0
        #[arg(long, value_name = "SEED")]
        from: Option<u64>,
        /// How many random kernels `kernels` compares, instead of a million
        #[arg(long, value_name = "COUNT")]
        kernels: Option<u64>,
    },
    /// The suite of every device, the example plugins and their times on this machine's GPU; minutes
    TestGpu,
    /// What Steadfast costs, as ratios to a baseline measured in the same run; about a minute once built
    Bench {
        /// Which figures: step, digits, save, freeze, swap, start, kernels; all of them if none is named
        figures: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo => demo::run(),
        Command::Test => ci::run(),
        Command::Plugins => plugins::build(),
        Command::Kernels => kernels::build(),
        Command::Fuzz { targets, time } => fuzz::run(&targets, time),
        Command::Rack { name, from, kernels } => rack::run(name, from, kernels),
        Command::TestGpu => gpu::run(),
        Command::Bench { figures } => bench::run(&figures),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
