//! Tools from Python's package index, each set in an environment of its own below the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{packages, step};

/// The `bin` folder of the environment `name`, with exactly these requirements installed; made or made anew where that is not so.
pub(crate) fn environment(name: &str, requirements: &[&str]) -> Result<PathBuf> {
    let folder = step::target().join(name);
    let stamp = folder.join("version");
    let wanted = requirements.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder.join("bin"));
    }
    // Debian's Python makes no environments without a package that brings no program: where pip is missing, so is that.
    packages::ensure(&["python3", "pip3"], &["python3", "python3-pip", "python3-venv"])?;
    let mut environment = Command::new("python3");
    step::run("environment for Python", environment.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    install.args(["--quiet", "--disable-pip-version-check", "install"]).args(requirements);
    step::run(name, &mut install)?;
    fs::write(&stamp, wanted)?;
    Ok(folder.join("bin"))
}
