//! Figures: builds what they measure and runs `host/benches/figures`, which says how each of them is taken.

use anyhow::Result;

use crate::{plugins, step};

/// Builds guests and host, and measures the figures with these names, or all.
pub(crate) fn run(figures: &[String]) -> Result<()> {
    plugins::build()?;
    step::run("native digits", &mut step::cargo(["build", "--release", "-p", "digits", "--example", "natively"]))?;
    // In the release profile and with the host alone selected, as everywhere, so that wasmtime is not built again.
    let mut bench = step::cargo(["bench", "--profile", "release", "-p", "steadfast", "--bench", "figures", "--"]);
    step::run("figures", bench.args(figures))
}
