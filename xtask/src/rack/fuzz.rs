//! Ten minutes of every fuzz target, without a finding.

use std::time::Duration;

use anyhow::Result;

const TIME: Duration = Duration::from_secs(10 * 60);

pub(super) fn run() -> Result<()> {
    crate::fuzz::run(&[], TIME)
}
