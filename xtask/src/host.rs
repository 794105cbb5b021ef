//! The host, and the host whose durability rules can be switched off.
//!
//! Both are built with the host alone selected, as its tests are: features are unified over what is selected, and another
//! selection would build wasmtime a second time.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

const BUILD: [&str; 6] = ["build", "--release", "-p", "steadfast", "--bin", "steadfast"];

/// Builds the host.
pub(crate) fn build() -> Result<()> {
    step::run("host", &mut step::cargo(BUILD))
}

/// Builds the host with the feature `sabotage`, and answers where it is.
///
/// Cargo gives both builds the same name, so that the last one stands there. This one is moved aside, and whoever builds
/// next puts the normal one back; cargo keeps the objects of both, and only links a name.
pub(crate) fn build_sabotaged() -> Result<PathBuf> {
    let mut build = step::cargo(BUILD);
    step::run("host for sabotage", build.args(["--features", "steadfast/sabotage"]))?;
    let aside = step::target().join("release/steadfast-sabotage");
    fs::rename(binary(), &aside).with_context(|| format!("cannot move the host to `{}`", aside.display()))?;
    Ok(aside)
}

/// Where the host is.
pub(crate) fn binary() -> PathBuf {
    step::target().join("release/steadfast")
}

/// The host, as a command to be given arguments.
pub(crate) fn command() -> Command {
    let mut command = Command::new(binary());
    command.current_dir(step::root());
    command
}
