//! The images that the Dockerfile builds on: those that it names, or, where no registry can be reached, the same made out of the
//! packages and the Rust toolchain of this machine.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::room::{Room, ask};
use crate::step;

/// Names of the images to build on.
pub(super) struct Bases {
    /// With Rust and a C compiler.
    pub(super) rust: String,
    /// What the program runs in.
    pub(super) debian: String,
    /// With pip.
    pub(super) python: String,
}

const MADE_DEBIAN: &str = "localhost/made-debian:bookworm";
/// The number changes with what is in it.
const MADE_RUST: &str = "localhost/made-rust-2:bookworm";
const MADE_PYTHON: &str = "localhost/made-python:bookworm";
const RELEASE: &str = "bookworm";

/// What a slim image leaves out.
const LEFT_OUT: [&str; 4] = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*"];

/// Finds all of them, fetches them, or makes them.
pub(super) fn ensure(room: &Room) -> Result<Bases> {
    let debian = one(room, &named("BASE_IMAGE")?, MADE_DEBIAN, make_debian)?;
    let rust = one(room, &named("RUST_IMAGE")?, MADE_RUST, make_rust)?;
    let python = one(room, &named("PYTHON_IMAGE")?, MADE_PYTHON, make_python)?;
    Ok(Bases { rust, debian, python })
}

/// The value that an argument of our Dockerfile has by default.
pub(super) fn named(argument: &str) -> Result<String> {
    let dockerfile = fs::read_to_string(step::root().join("Dockerfile")).context("cannot read the Dockerfile")?;
    let value = default_of(&dockerfile, argument).map(str::to_owned);
    value.with_context(|| format!("the Dockerfile has no `ARG {argument}=…`"))
}

fn default_of<'a>(dockerfile: &'a str, argument: &str) -> Option<&'a str> {
    dockerfile.lines().find_map(|line| line.strip_prefix("ARG ")?.strip_prefix(argument)?.strip_prefix('='))
}

fn one(room: &Room, named: &str, made: &str, make: fn(&Room) -> Result<()>) -> Result<String> {
    if let Some(there) = [named, made].into_iter().find(|name| room.has(name)) {
        return Ok(there.to_owned());
    }
    match step::run("base image", &mut room.buildah(["pull", "--quiet", named])) {
        Ok(()) => Ok(named.to_owned()),
        // Why, was said by the command itself.
        Err(_) => {
            println!("   {named} cannot be fetched: a stand-in is made here");
            make(room).with_context(|| format!("cannot make a stand-in for {named}"))?;
            Ok(made.to_owned())
        }
    }
}

fn make_debian(room: &Room) -> Result<()> {
    bootstrap(room, "debian.tar", &[])?;
    commit(room, &[("debian.tar", "/")], &[], MADE_DEBIAN)
}

/// Debian's C compiler and certificates, and the toolchain that this command itself was built with.
fn make_rust(room: &Room) -> Result<()> {
    bootstrap(room, "compiler.tar", &["--include=gcc,libc6-dev,ca-certificates"])?;
    let sysroot = ask(Command::new("rustc").args(["--print", "sysroot"]).current_dir(step::root()))?;
    let mut pack = Command::new("tar");
    // Without the documentation, which is larger than all the rest.
    pack.args(["--directory", &sysroot, "--exclude=./share", "--create", "--file"]).arg(room.at("rust.tar")).arg(".");
    step::run("toolchain", &mut pack)?;
    commit(room, &[("compiler.tar", "/"), ("rust.tar", "/usr/local")], &["CARGO_HOME=/usr/local/cargo"], MADE_RUST)
}

/// Debian's own Python and pip.
fn make_python(room: &Room) -> Result<()> {
    bootstrap(room, "python.tar", &["--include=python3-pip"])?;
    commit(room, &[("python.tar", "/")], &[], MADE_PYTHON)
}

/// A root file system out of Debian's packages, from where this machine has its own.
fn bootstrap(room: &Room, archive: &str, options: &[&str]) -> Result<()> {
    let mut bootstrap = Command::new("mmdebstrap");
    bootstrap.args(["--quiet", "--variant=minbase"]).args(options);
    bootstrap.args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    bootstrap.arg(RELEASE).arg(room.at(archive)).args(sources()?).env("TMPDIR", room.at("tmp"));
    step::run("base system", &mut bootstrap)
}

/// This machine's sources of the release, as lines of a `sources.list`.
fn sources() -> Result<Vec<String>> {
    let format = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)";
    let listed = ask(Command::new("apt-get").args(["indextargets", "--format", format]).args([
        "Created-By: Packages",
        "Origin: Debian",
        "Component: main",
    ]))?;
    let lines: Vec<_> = listed.lines().filter(|line| is_of_release(line)).map(str::to_owned).collect();
    if lines.is_empty() {
        bail!("no source of this machine's apt is Debian {RELEASE}, or `apt-get update` has never run here");
    }
    Ok(lines)
}

/// `bookworm`, `bookworm-updates` and `bookworm-security`, but no other release.
fn is_of_release(line: &str) -> bool {
    line.split(' ').nth(2).and_then(|release| release.split('-').next()) == Some(RELEASE)
}

/// An image out of archives, each unpacked below a folder.
fn commit(room: &Room, archives: &[(&str, &str)], variables: &[&str], name: &str) -> Result<()> {
    let container = ask(&mut room.buildah(["from", "scratch"]))?;
    for (archive, folder) in archives {
        let mut add = room.buildah(["add", "--quiet", &container]);
        step::run("base image", add.arg(room.at(archive)).arg(folder))?;
        // It is in the image now; together they would be a gigabyte.
        fs::remove_file(room.at(archive))?;
    }
    for variable in variables {
        step::run("base image", &mut room.buildah(["config", "--env", variable, &container]))?;
    }
    step::run("base image", &mut room.buildah(["commit", "--quiet", "--rm", &container, name]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dockerfile_names_its_bases() {
        let dockerfile = fs::read_to_string(step::root().join("Dockerfile")).unwrap_or_default();
        assert!(default_of(&dockerfile, "RUST_IMAGE").is_some_and(|image| image.contains("rust:")));
        assert!(default_of(&dockerfile, "BASE_IMAGE").is_some_and(|image| image.contains("debian:")));
        assert!(default_of(&dockerfile, "PYTHON_IMAGE").is_some_and(|image| image.contains("python:")));
        assert_eq!(default_of(&dockerfile, "NO_IMAGE"), None);
    }

    #[test]
    fn the_label_tells_the_version_of_the_program() {
        let dockerfile = fs::read_to_string(step::root().join("Dockerfile")).unwrap_or_default();
        let label = format!("org.opencontainers.image.version=\"{}\"", env!("CARGO_PKG_VERSION"));
        assert!(dockerfile.contains(&label), "{label}");
    }

    #[test]
    fn what_is_built_when_no_stage_is_named_is_the_small_image() {
        let dockerfile = fs::read_to_string(step::root().join("Dockerfile")).unwrap_or_default();
        assert_eq!(dockerfile.lines().last(), Some("FROM steadfast"));
    }

    #[test]
    fn sources_of_other_releases_are_left_out() {
        assert!(is_of_release("deb http://mirror.example/debian/ bookworm-updates main"));
        assert!(!is_of_release("deb http://mirror.example/debian/ trixie main"));
        assert!(!is_of_release(""));
    }
}
