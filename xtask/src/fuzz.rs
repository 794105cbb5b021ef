//! The fuzz targets of `host/fuzz`, built with instrumentation and run.
//!
//! ```text
//! host/fuzz/seeds/NAME          inputs to begin with, committed
//! target/fuzz/corpus/NAME       inputs that reach something new, kept from run to run; `brief` instead of `corpus` in CI
//! target/fuzz/corpus/NAME.log   what libFuzzer said
//! target/fuzz/artifacts/NAME    findings
//! ```
//!
//! As many targets run at a time as there are processors, each on one of them.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::packages::{self, Missing};
use crate::step;
use crate::tally::Tally;

/// How long each target runs in CI.
const BRIEF: Duration = Duration::from_secs(20);

/// How many lines of a log are shown where a target fails.
const LAST_LINES: usize = 40;

/// What is fuzzed; `host/fuzz/src/lib.rs` says what each is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Checkpoint files
    Checkpoint,
    /// A task's folder: claims, records, checkpoints
    Store,
    /// Job files, configurations, options, engines' variables
    Job,
    /// Modules of wasm-smith, made components
    Component,
    /// Any bytes as a plugin's file
    #[value(alias = "plugin_bytes")]
    PluginBytes,
    /// PTX modules
    Ptx,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Store => "store",
            Self::Job => "job",
            Self::Component => "component",
            Self::PluginBytes => "plugin_bytes",
            Self::Ptx => "ptx",
        }
    }

    fn program(self) -> PathBuf {
        step::target().join("release").join(format!("fuzz_{}", self.name()))
    }
}

/// Reads a time such as `60s`, `10m` or `1h`.
pub(crate) fn time(given: &str) -> Result<Duration, String> {
    let seconds = |unit: char| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(60 * 60),
        _ => None,
    };
    let mut rest = given.chars();
    let unit = rest.next_back().and_then(seconds);
    let number: Option<u64> = rest.as_str().parse().ok().filter(|number| *number > 0);
    let product = unit.zip(number).and_then(|(unit, number)| number.checked_mul(unit));
    product.map(Duration::from_secs).ok_or_else(|| "say a time such as 60s, 10m or 1h".to_owned())
}

/// Makes sure of the C++ compiler that libFuzzer is built with.
pub(crate) fn compiler() -> Result<(), Missing> {
    packages::ensure(&["c++"], &["g++"])
}

/// Runs these targets, or all of them, for so long each.
pub(crate) fn run(targets: &[Target], time: Duration) -> Result<()> {
    compiler()?;
    build()?;
    let targets = if targets.is_empty() { Target::value_variants() } else { targets };
    sum(&all(targets, time, "corpus")?, &mut Tally::default())
}

/// What CI runs: every target for a short time, from the seeds alone, so that a run does not depend on those before it.
pub(crate) fn brief(tally: &mut Tally) -> Result<()> {
    build()?;
    let corpora = step::target().join("fuzz/brief");
    if corpora.exists() {
        fs::remove_dir_all(&corpora).with_context(|| format!("cannot remove `{}`", corpora.display()))?;
    }
    sum(&all(Target::value_variants(), BRIEF, "brief")?, tally)
}

/// A target counts as a test; an error if one of them failed.
fn sum(outcomes: &[Outcome], tally: &mut Tally) -> Result<()> {
    let failed = outcomes.iter().filter(|outcome| !outcome.is_ok()).count();
    tally.passed += (outcomes.len() - failed) as u64;
    tally.failed += failed as u64;
    if failed > 0 {
        bail!("{failed} of {} fuzz targets found something", outcomes.len());
    }
    Ok(())
}

/// Builds the targets; the packages of this workspace among what they use are instrumented.
fn build() -> Result<()> {
    let mut build = step::cargo(["build", "--release", "-p", "steadfast-fuzz", "--bins"]);
    build.env("RUSTC_WORKSPACE_WRAPPER", step::root().join("host/fuzz/instrument.sh"));
    step::run("fuzz targets", &mut build)
}

/// Runs targets side by side, and prints how each went.
fn all(targets: &[Target], time: Duration, corpora: &str) -> Result<Vec<Outcome>> {
    let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
    println!("── fuzz: {} for {} s each", names.join(", "), time.as_secs());
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = one(*target, time, corpora)?;
            println!("{outcome}");
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push(outcome);
            }
        }
        Ok(())
    };
    let at_a_time = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a thread that watched a fuzz target ended"),
        })
    })?;
    Ok(outcomes.into_inner().unwrap_or_default())
}

/// Runs one target to its end.
fn one(target: Target, time: Duration, corpora: &str) -> Result<Outcome> {
    let place = step::target().join("fuzz");
    let corpus = place.join(corpora).join(target.name());
    let artifacts = place.join("artifacts").join(target.name());
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    }
    let log = corpus.with_extension("log");
    let said = File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let mut fuzzer = Command::new(target.program());
    fuzzer
        .current_dir(step::root())
        // One processor a target: the host's own threads would take those of the others.
        .env("RAYON_NUM_THREADS", "1")
        .arg(format!("-max_total_time={}", time.as_secs()))
        .args(["-rss_limit_mb=2048", "-timeout=25", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .arg(step::root().join("host/fuzz/seeds").join(target.name()))
        .stdin(Stdio::null())
        .stdout(said.try_clone().context("cannot write a log")?)
        .stderr(said);
    let status = fuzzer.status().with_context(|| format!("cannot start {}", step::text(&fuzzer)))?;
    let text = fs::read(&log).with_context(|| format!("cannot read `{}`", log.display()))?;
    Ok(Outcome { target, status, facts: Facts::read(&String::from_utf8_lossy(&text)), log })
}

/// How a target went.
struct Outcome {
    target: Target,
    status: ExitStatus,
    facts: Facts,
    log: PathBuf,
}

/// What libFuzzer, and the target itself, say in a log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    inputs: Option<u64>,
    coverage: Option<u64>,
    /// Inputs that came as far as they are meant to, of those that were counted.
    reached: Option<(u64, u64)>,
    /// The input that was found.
    artifact: Option<String>,
    last_lines: Vec<String>,
}

impl Facts {
    fn read(log: &str) -> Self {
        let mut facts = Self::default();
        let number = |text: &str| text.split_whitespace().next().and_then(|number| number.parse().ok());
        for line in log.lines() {
            if let Some(rest) = line.strip_prefix("stat::number_of_executed_units:") {
                facts.inputs = number(rest);
            } else if let Some((_, rest)) = line.split_once(" cov: ").filter(|_| line.starts_with('#')) {
                facts.coverage = number(rest);
            } else if let Some(rest) = line.strip_prefix("reached step: ") {
                facts.reached = rest.split_once(" of ").and_then(|(part, all)| number(part).zip(number(all)));
            } else if let Some((_, path)) = line.split_once("Test unit written to ") {
                facts.artifact = Some(path.trim().to_owned());
            }
        }
        let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with("reached step: ")).collect();
        facts.last_lines =
            lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect();
        facts
    }
}

impl Outcome {
    fn is_ok(&self) -> bool {
        self.status.success() && self.reaches_enough()
    }

    /// A target of plugins of which hardly any runs proves nothing.
    fn reaches_enough(&self) -> bool {
        match self.facts.reached {
            Some((part, all)) => part * 2 >= all,
            None => self.target != Target::Component,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, status, facts, log } = self;
        let word = if self.is_ok() { "ok  " } else { "FAIL" };
        let (inputs, coverage) = (facts.inputs.unwrap_or_default(), facts.coverage.unwrap_or_default());
        write!(f, "{word} fuzz {:<13} {inputs:>10} inputs, coverage {coverage}", target.name())?;
        if let Some((part, all)) = facts.reached {
            write!(f, ", {part} of {all} plugins reached `step`")?;
        }
        if !self.reaches_enough() {
            write!(f, ": fewer than half, so this proves little")?;
        }
        if status.success() {
            return Ok(());
        }
        for line in &facts.last_lines {
            write!(f, "\n  | {line}")?;
        }
        write!(f, "\n{} ended with {status}; all it said is in {}", target.name(), step::short(log).display())?;
        let Some(artifact) = &facts.artifact else { return Ok(()) };
        let (program, artifact) = (target.program(), step::short(Path::new(artifact)).to_owned());
        let (program, artifact) = (step::short(&program).display(), artifact.display());
        write!(f, "\n  to repeat:   {program} {artifact}")?;
        write!(f, "\n  to minimise: {program} -minimize_crash=1 -max_total_time=60 {artifact}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for bad in ["", "60", "s", "0s", "-1s", "1d", "99999999999999999999s", "9999999999999999999m"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_word_of_a_log_counts() {
        let facts = Facts::read(
            "#2\tINITED cov: 10 ft: 12 corp: 1/1b\nreached step: 70 of 100 inputs\nreached step: 150 of 200 inputs\n\
             #9\tDONE   cov: 12 ft: 13\nstat::number_of_executed_units: 207\n",
        );
        assert_eq!((facts.inputs, facts.coverage, facts.reached), (Some(207), Some(12), Some((150, 200))));
        assert_eq!(facts.artifact, None);
        let facts = Facts::read("artifact_prefix='a/'; Test unit written to a/crash-1\n");
        assert_eq!(facts.artifact.as_deref(), Some("a/crash-1"));
    }
}
