//! What only a GPU can tell, in one command of less than ten minutes once everything is built.
//!
//! The suite of every device, with the driver of this machine in the place of its double; the example plugins, stopped at random instants and compared with
//! undisturbed runs, on the GPU and from GPU to GPU by a checkpoint; and what a step of theirs takes. What is the same to the bit and what is not is said in
//! `host/src/device/cuda/mod.rs`.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{bench, host, plugins, step};

/// Each example plugin that uses a device, short.
const JOBS: [(&str, &[&str]); 3] = [
    ("digits", &["--input", "plugins/digits/data", "--config", r#"{"epochs": 1}"#]),
    ("gpt", &["--input", "plugins/gpt/data", "--config", r#"{"preset": "tiny", "steps": 60, "sample_every": 0}"#]),
    ("heat", &["--config", r#"{"cells": [64, 64, 64], "steps": 300}"#]),
];

/// Runs it all; fails at once where there is no GPU.
pub(crate) fn run() -> Result<()> {
    plugins::build()?;
    host::build()?;
    step::run("what is here", Command::new(host::binary()).args(["doctor", "--device", "cuda"]))?;
    suite()?;
    for (plugin, options) in JOBS {
        rehearse(plugin, options)?;
    }
    figures()
}

fn suite() -> Result<()> {
    let mut test = step::cargo(["test", "--release", "-p", "steadfast", "-p", "steadfast-ptx", "--test", "it"]);
    // One case at a time: they share the GPU, and some keep it busy until they are stopped.
    test.args(["--", "device::on_cuda::", "--test-threads", "1"]).env("STEADFAST_TEST_GPU", "1");
    let mut passed = 0;
    step::run_lines("the suite on the GPU", &mut test, |line| passed += u32::from(line.ends_with(" ... ok")))?;
    if passed == 0 {
        bail!("no case of the suite has run");
    }
    Ok(())
}

fn rehearse(plugin: &str, options: &[&str]) -> Result<()> {
    let mut command = Command::new(host::binary());
    command.current_dir(step::root()).arg("rehearse").arg(step::short(&plugins::component(plugin))).args(options);
    command.args(["--device", "cuda", "--every", "3steps", "--preempt", "times:5", "--kill"]);
    step::run(&format!("{plugin}, killed on the GPU"), &mut command)
}

/// Printed, not judged: another machine has other ones.
fn figures() -> Result<()> {
    bench::run(&["gpu".to_owned()])?;
    for (plugin, options) in JOBS {
        for device in ["cuda", "cpu"] {
            let volume = step::target().join("test-gpu").join(format!("{plugin}-{device}"));
            let mut command = Command::new(host::binary());
            command.current_dir(step::root()).arg("run").arg(step::short(&plugins::component(plugin))).args(options);
            command.args(["--device", device, "--if-done", "restart", "--volume"]).arg(volume);
            step::run(&format!("{plugin} on {device}"), &mut command)?;
        }
    }
    Ok(())
}
