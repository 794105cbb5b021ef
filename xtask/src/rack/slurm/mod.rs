//! A real Slurm of one node, real preemptions, and the scripts that the README shows: `cargo xtask rack slurm`.
//!
//! | file | what is in it |
//! |---|---|
//! | `config`, `cluster` | the daemons, started and stopped |
//! | `client` | Slurm's commands, and waiting for what can be seen |
//! | `jobs` | arrays of `digits`: submitted, observed, their outputs read |
//! | `interrupted` | what must end with the outputs of an undisturbed run |
//! | `refused` | what must end, and not be requeued for ever |
//!
//! Nothing here waits for a time to pass: only for a line in a log, a state of a job, a file.

mod client;
mod cluster;
mod config;
mod interrupted;
mod jobs;
mod refused;

use anyhow::Result;

use self::cluster::Cluster;
use self::jobs::{Outputs, Scripts};
use crate::rack::ledger::Ledger;
use crate::{host, packages, plugins, step};

/// What every scenario needs.
struct Rack {
    cluster: Cluster,
    scripts: Scripts,
    /// What each task's outputs are when nobody disturbs it.
    reference: Vec<Outputs>,
}

/// One thing that is tried.
struct Scenario {
    name: &'static str,
    /// Answers what was seen, for people.
    play: fn(&Rack) -> Result<String>,
}

/// Runs every scenario, also after one that failed, and prints a table.
pub(super) fn run() -> Result<()> {
    // Daemons need not be on the path of one who is not root.
    let daemons = ["munged", "slurmctld", "slurmd"];
    if !daemons.iter().all(|name| cluster::program(name).is_file()) {
        packages::ensure(&daemons, &["slurm-wlm", "munge"])?;
    }
    plugins::build()?;
    host::build()?;
    let scripts = Scripts::from_readme()?;
    let cluster = Cluster::start(&step::target().join("slurm"))?;
    let mut rack = Rack { cluster, scripts, reference: Vec::new() };
    let mut ledger = Ledger::default();
    ledger.check("undisturbed", || {
        rack.reference = interrupted::undisturbed(&rack.cluster, &rack.scripts)?;
        Ok(format!("{} tasks, each with outputs of its own", rack.reference.len()))
    });
    play(&mut ledger, &rack, &interrupted::SCENARIOS);
    play(&mut ledger, &rack, &refused::SCENARIOS);
    rack.cluster.requeue_by_exit_code(None)?;
    play(&mut ledger, &rack, &interrupted::WITHOUT_REQUEUE_EXIT);
    drop(rack);
    ledger.end()
}

/// Plays them in turn, whatever came of the ones before.
fn play(ledger: &mut Ledger, rack: &Rack, scenarios: &[Scenario]) {
    for Scenario { name, play } in scenarios {
        ledger.check(name, || play(rack));
        // A scenario that failed may have left jobs, which would take the cores from the next.
        if let Err(error) = rack.cluster.client.cancel_all(client::JOBS) {
            ledger.check("the end of its jobs", || Err(error));
        }
    }
}
