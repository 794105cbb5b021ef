//! A million random kernels: the oracle and the translation of PTX leave the same bytes in memory.
//!
//! The kernels and the comparison are a test of `steadfast-ptx`, which CI runs for a thousand of them and which uses all processors; here it gets one range
//! of seeds after another. Seeds begin at 0 each time, so that a finding can be repeated.

use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::step;

/// How many kernels where the command line does not say.
pub(super) const KERNELS: u64 = 1_000_000;
/// Between two lines of progress: a minute or two.
const RANGE: u64 = 20_000;
/// The test, by its name in the test program.
const TEST: &str = "kernels::random_kernels_leave_the_same_bytes";

pub(super) fn run(kernels: u64) -> Result<()> {
    step::run("tests of the translation", test().arg("--no-run"))?;
    let began = Instant::now();
    let mut done = 0;
    while done < kernels {
        let seeds = done..kernels.min(done + RANGE);
        if let Some(finding) = compare(&seeds)? {
            println!("{finding}");
            bail!("after {done} kernels: a translated kernel does something else than the oracle");
        }
        done = seeds.end;
        println!("{done:>9} of {kernels} kernels after {:.0} s", began.elapsed().as_secs_f64());
    }
    println!("rack: {done} kernels the same in oracle and translation, {:.0} s", began.elapsed().as_secs_f64());
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
    if output.status.success() && !said.contains("test result: ok. 1 passed") {
        bail!("no test has the name `{TEST}`: the rack would prove nothing");
    }
    Ok((!output.status.success()).then_some(said + &String::from_utf8_lossy(&output.stderr)))
}
