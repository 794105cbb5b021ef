//! A million random kernels: the oracle and the translation of PTX leave the same bytes in memory.
//!
//! The kernels and the comparison are a test of `steadfast-ptx`, which CI runs for a thousand of them; here every processor takes one range of
//! seeds after another. Seeds begin at 0 each time, so that a finding can be repeated.

use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::step;

/// How many kernels where the command line does not say.
pub(super) const KERNELS: u64 = 1_000_000;
/// What one process takes: some minutes of work.
const RANGE: u64 = 5000;
/// The test, by its name in the test program.
const TEST: &str = "kernels::random_kernels_leave_the_same_bytes";

pub(super) fn run(kernels: u64) -> Result<()> {
    step::run("tests of the translation", test().arg("--no-run"))?;
    let began = Instant::now();
    let (next, done, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let findings = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        while !failed.load(Ordering::Relaxed) {
            let first = next.fetch_add(RANGE, Ordering::Relaxed);
            if first >= kernels {
                return Ok(());
            }
            let seeds = first..kernels.min(first + RANGE);
            let count = seeds.end - seeds.start;
            if let Some(finding) = compare(&seeds)? {
                failed.store(true, Ordering::Relaxed);
                findings.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(finding);
                return Ok(());
            }
            let done = done.fetch_add(count, Ordering::Relaxed) + count;
            println!("{done:>9} of {kernels} kernels after {:.0} s", began.elapsed().as_secs_f64());
        }
        Ok(())
    };
    let at_a_time = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a thread that watched a test ended"),
        })
    })?;
    let findings = findings.into_inner().unwrap_or_default();
    findings.iter().for_each(|finding| println!("{finding}"));
    let (done, seconds) = (done.into_inner(), began.elapsed().as_secs_f64());
    println!("rack: {done} kernels the same in oracle and translation, {} findings, {seconds:.0} s", findings.len());
    if !findings.is_empty() {
        bail!("a translated kernel does something else than the oracle");
    }
    Ok(())
}

/// The host and the crate together: their dependencies then have the features that they always have.
fn test() -> Command {
    step::cargo(["test", "--release", "-p", "steadfast", "-p", "steadfast-ptx", "--test", "it"])
}

/// What the test says where it fails.
fn compare(seeds: &Range<u64>) -> Result<Option<String>> {
    let mut test = test();
    test.args(["--", "--exact", TEST])
        .env("STEADFAST_PTX_SEED", seeds.start.to_string())
        .env("STEADFAST_PTX_KERNELS", (seeds.end - seeds.start).to_string())
        .stdin(Stdio::null());
    let output = test.output().with_context(|| format!("cannot start {}", step::text(&test)))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && !said.contains("1 passed") {
        bail!("no test has the name `{TEST}`: the rack would prove nothing");
    }
    Ok((!output.status.success()).then_some(said + &String::from_utf8_lossy(&output.stderr)))
}
