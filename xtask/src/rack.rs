//! The long proofs: hours of rehearsal, run before a piece of work is called done and not in CI.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{host, plugins, step};

/// Which proof.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Rack {
    /// No difference for `digits` and `countdown`, wherever they are stopped and whatever the volume does
    Torture,
    /// A difference for every plugin that loses state, and for a host without any one of its durability rules
    Sabotage,
}

/// One rehearsal, and the exit code that it must end with.
struct Proof {
    name: String,
    command: Command,
    expected: i32,
}

/// How it went.
struct Outcome {
    name: String,
    expected: i32,
    code: Option<i32>,
    took: Duration,
}

/// Runs every rehearsal of a proof, also after one that failed, and prints a table.
pub(crate) fn run(rack: Rack) -> Result<()> {
    plugins::build()?;
    let proofs = match rack {
        Rack::Torture => {
            host::build()?;
            torture()
        }
        Rack::Sabotage => {
            let sabotaged = host::build_sabotaged()?;
            host::build()?;
            sabotage(&sabotaged)
        }
    };
    let mut outcomes = Vec::new();
    for Proof { name, mut command, expected } in proofs {
        println!("\n── {name}\n$ {}", step::text(&command));
        let started = Instant::now();
        let code = command.status().with_context(|| step::text(&command))?.code();
        outcomes.push(Outcome { name, expected, code, took: started.elapsed() });
        println!("{}", outcomes[outcomes.len() - 1]);
    }
    println!("\n── summary");
    for outcome in &outcomes {
        println!("{outcome}");
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.as_expected()).count();
    println!("rack: {} passed, {failed} failed", outcomes.len() - failed);
    if failed > 0 {
        bail!("{failed} of {} rehearsals ended otherwise than they must", outcomes.len());
    }
    Ok(())
}

impl Outcome {
    fn as_expected(&self) -> bool {
        self.code == Some(self.expected)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.as_expected() { "ok  " } else { "FAIL" };
        let code = self.code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        let Self { name, expected, took, .. } = self;
        write!(f, "{word} {name:<52} exit {code} (must be {expected}) {:>8.1} s", took.as_secs_f64())
    }
}

/// The example jobs, short: one epoch, a score of steps.
const JOBS: [(&str, &[&str]); 2] = [
    ("digits", &["--input", "plugins/digits/data", "--config", r#"{"epochs": 1}"#]),
    ("countdown", &["--config", r#"{"steps": 20}"#]),
];

/// What must not make a difference.
const DISTURBANCES: [&[&str]; 7] = [
    &["--preempt", "every-step"],
    &["--preempt", "every-step", "--kill"],
    &["--preempt", "times:100"],
    &["--preempt", "times:100", "--kill"],
    &["--preempt", "times:20", "--damage", "newest"],
    &["--preempt", "times:20", "--kill", "--damage", "newest"],
    &["--faults", "every-operation"],
];

fn torture() -> Vec<Proof> {
    let mut proofs = Vec::new();
    for (job, options) in JOBS {
        for keep in ["1", "2"] {
            for disturbance in DISTURBANCES {
                let mut command = rehearse(&host::binary(), &plugins::component(job), options);
                command.args(["--keep", keep, "--every", "3steps"]).args(disturbance);
                let name = format!("{job}, keep {keep}, {}", disturbance.join(" "));
                proofs.push(Proof { name, command, expected: 0 });
            }
        }
    }
    proofs
}

/// Plugins that lose state, each in one way.
const FORGETFUL: [&str; 3] = ["forgets_generator", "applies_twice", "forgets_cursor"];

/// The durability rules that a host built for sabotage can switch off.
const RULES: [&str; 5] =
    ["close-unchecked", "prune-before-verify", "rename-before-close", "load-without-hashes", "outputs-late"];

fn sabotage(sabotaged: &Path) -> Vec<Proof> {
    let mut proofs = Vec::new();
    for guest in FORGETFUL {
        let mut command = rehearse(&host::binary(), &plugins::guest(guest), &["--config", r#"{"steps": 20}"#]);
        command.args(["--preempt", "every-step", "--every", "3steps"]);
        proofs.push(Proof { name: format!("guest {guest}"), command, expected: 1 });
    }
    // Without a rule switched off the sabotaged host must pass: else the differences below would prove nothing.
    for rule in std::iter::once("").chain(RULES) {
        let (job, options) = JOBS[0];
        let mut command = rehearse(sabotaged, &plugins::component(job), options);
        command.args(["--keep", "1", "--every", "3steps", "--faults", "every-operation"]);
        let (name, expected) = if rule.is_empty() {
            ("host with all rules".to_owned(), 0)
        } else {
            command.env("STEADFAST_SABOTAGE", rule);
            (format!("host, {rule}"), 1)
        };
        proofs.push(Proof { name, command, expected });
    }
    proofs
}

fn rehearse(host: &Path, plugin: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(host);
    command.current_dir(step::root()).arg("rehearse").arg(step::short(plugin)).args(options);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_complete() {
        assert_eq!(torture().len(), JOBS.len() * 2 * DISTURBANCES.len());
        assert_eq!(sabotage(Path::new("host")).iter().filter(|proof| proof.expected == 1).count(), 8);
    }

    #[test]
    fn an_exit_code_other_than_expected_is_a_failure() {
        let outcome = |code| Outcome { name: "trial".to_owned(), expected: 1, code, took: Duration::ZERO };
        assert!(outcome(Some(1)).as_expected());
        assert!(!outcome(Some(0)).as_expected());
        assert!(!outcome(None).as_expected(), "killed by a signal");
        assert!(outcome(None).to_string().starts_with("FAIL trial"));
    }
}
