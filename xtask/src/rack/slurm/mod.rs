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

use std::time::Instant;

use anyhow::{Result, bail};

use self::cluster::Cluster;
use self::jobs::{Outputs, Scripts};
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

/// What was tried so far.
#[derive(Default)]
struct Ledger {
    lines: Vec<String>,
    failed: usize,
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
    ledger.note("undisturbed", || {
        rack.reference = interrupted::undisturbed(&rack.cluster, &rack.scripts)?;
        Ok(format!("{} tasks, each with outputs of its own", rack.reference.len()))
    });
    ledger.play(&rack, &interrupted::SCENARIOS);
    ledger.play(&rack, &refused::SCENARIOS);
    rack.cluster.requeue_by_exit_code(None)?;
    ledger.play(&rack, &interrupted::WITHOUT_REQUEUE_EXIT);
    drop(rack);
    ledger.close()
}

impl Ledger {
    fn play(&mut self, rack: &Rack, scenarios: &[Scenario]) {
        for Scenario { name, play } in scenarios {
            self.note(name, || play(rack));
            // A scenario that failed may have left jobs, which would take the cores from the next.
            if let Err(error) = rack.cluster.client.cancel_all(client::JOBS) {
                self.note("the end of its jobs", || Err(error));
            }
        }
    }

    fn note(&mut self, name: &str, play: impl FnOnce() -> Result<String>) {
        let began = Instant::now();
        let (word, text) = match play() {
            Ok(text) => ("ok  ", text),
            Err(error) => {
                self.failed += 1;
                ("FAIL", format!("{error:#}"))
            }
        };
        let line = format!("{word} {name:<54} {:>6.1} s  {text}", began.elapsed().as_secs_f64());
        println!("{line}");
        self.lines.push(line);
    }

    fn close(self) -> Result<()> {
        let Self { lines, failed } = self;
        println!("\n── summary");
        for line in &lines {
            println!("{line}");
        }
        println!("rack: {} passed, {failed} failed", lines.len() - failed);
        if failed > 0 {
            bail!("{failed} of {} scenarios ended otherwise than they must", lines.len());
        }
        Ok(())
    }
}
