//! Programs that a check needs and a fresh machine lacks: taken from the distribution where that can be done.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step;

/// Why a program is not there, so that a check which needs it can be skipped by name.
#[derive(Debug)]
pub(crate) struct Missing {
    program: String,
    why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed, and {}", self.program, self.why)
    }
}

impl std::error::Error for Missing {}

/// Installs `packages` of Debian (or a distribution made from it) unless every one of `programs` is on the path.
pub(crate) fn ensure(programs: &[&str], packages: &[&str]) -> Result<(), Missing> {
    let Some(absent) = programs.iter().find(|program| !on_the_path(program)) else { return Ok(()) };
    let missing = |why: String| Missing { program: (*absent).to_owned(), why };
    if !on_the_path("apt-get") {
        return Err(missing("this machine has no apt-get to install it with".to_owned()));
    }
    if !is_root() {
        return Err(missing(format!("only root can: apt-get install {}", packages.join(" "))));
    }
    let mut install = apt(&["install", "-y", "--no-install-recommends"]);
    install.args(packages);
    // The lists of a fresh machine are empty, those of an old one name versions that are gone.
    let outcome = step::run("package lists", &mut apt(&["update"])).and_then(|()| step::run("packages", &mut install));
    outcome.map_err(|error| missing(format!("{error:#}")))?;
    match programs.iter().find(|program| !on_the_path(program)) {
        None => Ok(()),
        Some(program) => Err(Missing {
            program: (*program).to_owned(),
            why: format!("the packages {} do not bring it", packages.join(", ")),
        }),
    }
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Whether a program can be found as a shell would find it.
pub(crate) fn on_the_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

/// The owner of this process, as the kernel tells it.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed_again() {
        assert!(ensure(&["sh", "cat"], &["no-such-package"]).is_ok());
        assert!(!on_the_path("no-such-program"));
    }
}
