//! Every call of NVIDIA's driver fails, again and again, under a job on the double of the driver.
//!
//! The job and the verdict are a test of the host, which CI runs for each function once.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{plugins, step};

/// The test, by its name in the test program.
const TEST: &str = "cuda::calls::any_call_may_fail";

pub(super) fn run() -> Result<()> {
    plugins::build()?;
    let mut test = step::cargo(["test", "--release", "-p", "steadfast", "-p", "steadfast-ptx", "--test", "it"]);
    test.args(["--", "--exact", TEST, "--nocapture"]).env("STEADFAST_CUDA_CALLS", "all").stdin(Stdio::null());
    let mut passed = false;
    step::run_lines("failing calls", &mut test, |line| passed |= line.starts_with("test result: ok. 1 passed"))
        .context("a failing call of the driver did what it must not")?;
    if !passed {
        bail!("no test has the name `{TEST}`: the rack would prove nothing");
    }
    Ok(())
}
