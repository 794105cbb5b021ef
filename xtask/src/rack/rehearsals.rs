//! Hours of rehearsal: no difference where none may be, and a difference where there must be one.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{host, plugins, step};

/// One rehearsal, and what it must find.
struct Proof {
    name: String,
    command: Command,
    expected: Verdict,
}

/// What a rehearsal says first of what it found: a job that is not repeatable in itself is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Different,
}

/// How it went.
struct Outcome {
    name: String,
    expected: Verdict,
    found: Option<Verdict>,
    /// Phases in which too few of the instants struck.
    thin: Vec<String>,
    took: Duration,
}

/// A hundred random instants prove little about a phase that hardly any of them struck.
const LEAST_INSTANTS: u64 = 10;

/// No difference for `digits` and `countdown`, wherever they are stopped and whatever the volume does.
pub(super) fn torture() -> Result<()> {
    plugins::build()?;
    host::build()?;
    all(undisturbable())
}

/// A difference for every plugin that loses state, and for a host without any one of its durability rules.
pub(super) fn sabotage() -> Result<()> {
    plugins::build()?;
    let sabotaged = host::build_sabotaged()?;
    host::build()?;
    all(sabotaged_in_turn(&sabotaged))
}

/// Runs every rehearsal of a proof, also after one that failed, and prints a table.
fn all(proofs: Vec<Proof>) -> Result<()> {
    let mut outcomes = Vec::new();
    for proof in proofs {
        let outcome = proof.run()?;
        println!("{outcome}");
        outcomes.push(outcome);
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

impl Proof {
    fn run(self) -> Result<Outcome> {
        let Self { name, mut command, expected } = self;
        println!("\n── {name}\n$ {}", step::text(&command));
        let started = Instant::now();
        let output = command.stderr(Stdio::inherit()).output().with_context(|| step::text(&command))?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        let found = Verdict::read(&text, output.status.code());
        let thin = if command.get_args().any(|argument| argument == "times:100") { thin(&text) } else { Vec::new() };
        Ok(Outcome { name, expected, found, thin, took: started.elapsed() })
    }
}

impl Verdict {
    /// The verdict's line and the exit code have to agree.
    fn read(text: &str, code: Option<i32>) -> Option<Self> {
        let says = |word: &str| text.lines().any(|line| line.starts_with(word));
        match code {
            Some(0) if says("same:") => Some(Self::Same),
            Some(1) if says("different:") => Some(Self::Different),
            _ => None,
        }
    }
}

/// The phases of a rehearsal's line `instants  start-up 15, step 14, …` that were struck too rarely.
fn thin(text: &str) -> Vec<String> {
    let Some(line) = text.lines().find_map(|line| line.trim_start().strip_prefix("instants")) else {
        return vec!["no instants at all".to_owned()];
    };
    let few = |part: &&str| {
        part.rsplit(' ').next().and_then(|count| count.parse().ok()).is_none_or(|n: u64| n < LEAST_INSTANTS)
    };
    line.split(',').map(str::trim).filter(few).map(str::to_owned).collect()
}

impl Outcome {
    fn as_expected(&self) -> bool {
        self.found == Some(self.expected) && self.thin.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.as_expected() { "ok  " } else { "FAIL" };
        let found = self.found.map_or("neither", Verdict::word);
        let Self { name, expected, took, .. } = self;
        write!(f, "{word} {name:<52} {found} (must be {}) {:>8.1} s", expected.word(), took.as_secs_f64())?;
        if self.thin.is_empty() { Ok(()) } else { write!(f, "; too few instants: {}", self.thin.join(", ")) }
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
        }
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

/// A score of steps of `countdown` is over before it hears of a signal: what is struck at a hundred instants has to leave something to go on from.
const LONGER: [&str; 2] = ["--config", r#"{"steps": 1000}"#];

fn options_for(job: &str, disturbance: &[&str], short: &'static [&'static str]) -> &'static [&'static str] {
    if job == "countdown" && disturbance.contains(&"times:100") { &LONGER } else { short }
}

fn undisturbable() -> Vec<Proof> {
    let mut proofs = Vec::new();
    for (job, options) in JOBS {
        for keep in ["1", "2"] {
            for disturbance in DISTURBANCES {
                let options = options_for(job, disturbance, options);
                let mut command = rehearse(&host::binary(), &plugins::component(job), options);
                command.args(["--keep", keep, "--every", "3steps"]).args(disturbance);
                let name = format!("{job}, keep {keep}, {}", disturbance.join(" "));
                proofs.push(Proof { name, command, expected: Verdict::Same });
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

fn sabotaged_in_turn(sabotaged: &Path) -> Vec<Proof> {
    let mut proofs = Vec::new();
    for guest in FORGETFUL {
        let mut command = rehearse(&host::binary(), &plugins::guest(guest), &["--config", r#"{"steps": 20}"#]);
        command.args(["--preempt", "every-step", "--every", "3steps"]);
        proofs.push(Proof { name: format!("guest {guest}"), command, expected: Verdict::Different });
    }
    // Without a rule switched off the sabotaged host must pass: else the differences below would prove nothing.
    for rule in std::iter::once("").chain(RULES) {
        let mut command = match rule {
            // A small state is one compressed chunk, which no flipped bit survives unnoticed: this takes a larger one.
            "load-without-hashes" => {
                let (job, options) = JOBS[0];
                let mut command = rehearse(sabotaged, &plugins::component(job), options);
                command.args(["--keep", "2", "--every", "1steps", "--preempt", "every-step", "--damage", "newest"]);
                command
            }
            _ => {
                let config = r#"{"steps": 8, "bytes": 2000}"#;
                let mut command = rehearse(sabotaged, &plugins::guest("outputs"), &["--config", config]);
                command.args(["--keep", "1", "--every", "3steps", "--faults", "every-operation"]);
                command
            }
        };
        let (name, expected) = if rule.is_empty() {
            ("host with all rules".to_owned(), Verdict::Same)
        } else {
            command.env("STEADFAST_SABOTAGE", rule);
            (format!("host, {rule}"), Verdict::Different)
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
        assert_eq!(undisturbable().len(), JOBS.len() * 2 * DISTURBANCES.len());
        let different = |proof: &&Proof| proof.expected == Verdict::Different;
        assert_eq!(sabotaged_in_turn(Path::new("host")).iter().filter(different).count(), 8);
    }

    #[test]
    fn a_verdict_counts_only_with_its_exit_code() {
        assert_eq!(Verdict::read("x\nsame: all of it\n", Some(0)), Some(Verdict::Same));
        assert_eq!(Verdict::read("different: 1 of 3\n", Some(1)), Some(Verdict::Different));
        assert_eq!(Verdict::read("not repeatable: by itself\n", Some(1)), None);
        assert_eq!(Verdict::read("same: all of it\n", None), None, "killed by a signal");
    }

    #[test]
    fn phases_that_were_struck_too_rarely_are_named() {
        assert_eq!(thin("  instants     start-up 15, step 9, final-write 10\n"), ["step 9"]);
        assert_eq!(thin("  faults 3\n"), ["no instants at all"]);
    }
}
