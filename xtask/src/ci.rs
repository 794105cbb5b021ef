//! What CI runs, cheapest first; the first failure ends it.
//!
//! The host is selected with nothing but the PTX crate and the double of NVIDIA's driver, which ask their dependencies for nothing more: features are unified
//! over what is selected, and with the other packages beside it wasmtime would be built a second time. The fuzz targets stand on the host
//! and ask for nothing more either, so alone they take the wasmtime that is there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tally::Tally;
use crate::{documents, fuzz, host, kernels, packages, plugins, rack, step};

/// Runs every check, and prints the sum of the tests as the last line.
pub(crate) fn run() -> Result<()> {
    let mut skipped = Vec::new();
    step::run("format", &mut step::cargo(["fmt", "--all", "--check"]))?;
    shell_scripts(&mut skipped)?;
    documents::run(&mut skipped)?;
    kernels::check(&mut skipped)?;
    dependencies(&mut skipped)?;
    plugins::build()?;
    let selections = selections(&mut skipped);
    for (what, packages) in selections {
        lints(what, packages)?;
        documentation(what, packages)?;
    }
    let sabotaged = host::build_sabotaged()?;
    registry(&mut skipped);

    let mut tally = Tally { skipped: skipped.len() as u64, ..Tally::default() };
    let outcome = tests(selections, &sabotaged, &mut tally)
        .and_then(|()| options())
        .and_then(|()| rack::a_few_swaps())
        .and_then(|()| fuzzing(selections, &mut tally));
    for reason in skipped {
        println!("SKIPPED {reason}");
    }
    if let Err(error) = &outcome {
        println!("{error:#}");
    }
    println!("{tally}");
    outcome
}

/// A name, and the packages that are built together.
type Selection = (&'static str, &'static [&'static str]);

/// All packages but the host and what belongs to it; the host; the fuzz targets.
const SELECTIONS: [Selection; 3] = [
    (
        "other packages",
        &[
            "--workspace",
            "--exclude",
            "steadfast",
            "--exclude",
            "steadfast-ptx",
            "--exclude",
            "cuda_double",
            "--exclude",
            "steadfast-fuzz",
        ],
    ),
    ("host", &["-p", "steadfast", "-p", "steadfast-ptx", "-p", "cuda_double"]),
    FUZZ_TARGETS,
];
const FUZZ_TARGETS: Selection = ("fuzz targets", &["-p", "steadfast-fuzz"]);

/// All selections; without the fuzz targets where nothing can compile libFuzzer.
fn selections(skipped: &mut Vec<String>) -> &'static [Selection] {
    match fuzz::compiler() {
        Ok(()) => &SELECTIONS,
        Err(missing) => {
            skipped.push(format!("fuzz targets: {missing}"));
            &SELECTIONS[..2]
        }
    }
}

/// Every fuzz target for a short time.
fn fuzzing(selections: &[Selection], tally: &mut Tally) -> Result<()> {
    if selections.contains(&FUZZ_TARGETS) { fuzz::brief(tally) } else { Ok(()) }
}

fn lints(what: &str, packages: &[&str]) -> Result<()> {
    let mut lints = step::cargo(["clippy", "--release", "--all-targets"]);
    step::run(&format!("lints of {what}"), lints.args(packages).args(["--", "-D", "warnings"]))
}

fn documentation(what: &str, packages: &[&str]) -> Result<()> {
    let mut documentation = step::cargo(["doc", "--release", "--no-deps"]);
    documentation.args(packages).env("RUSTDOCFLAGS", "-D warnings");
    step::run(&format!("documentation of {what}"), &mut documentation)
}

fn tests(selections: &[Selection], sabotaged: &Path, tally: &mut Tally) -> Result<()> {
    for (what, packages) in selections {
        let mut tests = step::cargo(["test", "--release", "--no-fail-fast"]);
        tests.args(*packages).env("STEADFAST_SABOTAGED_HOST", sabotaged);
        step::run_lines(&format!("tests of {what}"), &mut tests, |line| tally.see(line))?;
    }
    Ok(())
}

/// The options that the README shows. The tests have left the normal host where the sabotaged one was moved away.
fn options() -> Result<()> {
    host::build()?;
    documents::options(&host::binary())
}

/// What the tests of plugins by reference talk to. Without it they say `SKIPPED`, and so does the sum.
fn registry(skipped: &mut Vec<String>) {
    if let Err(missing) = packages::ensure(&["docker-registry"], &["docker-registry"]) {
        skipped.push(format!("tests against a registry: {missing}"));
    }
}

fn shell_scripts(skipped: &mut Vec<String>) -> Result<()> {
    if let Err(missing) = packages::ensure(&["shellcheck"], &["shellcheck"]) {
        skipped.push(format!("shell scripts: {missing}"));
        return Ok(());
    }
    step::run("shell scripts", Command::new("shellcheck").args(scripts()?).current_dir(step::root()))
}

fn dependencies(skipped: &mut Vec<String>) -> Result<()> {
    if !step::installed("cargo-deny", &["--version"]) {
        skipped.push("dependencies (licences, sources, advisories): cargo-deny is not installed".to_owned());
        return Ok(());
    }
    step::run("dependencies", &mut step::cargo(["deny", "check", "bans", "licenses", "sources"]))?;
    // What is known against a dependency stands in a database on the network; not to reach it is no fault of the code.
    if let Err(error) = step::run("advisory database", &mut step::cargo(["deny", "fetch", "db"])) {
        skipped.push(format!("advisories: {error:#}"));
        return Ok(());
    }
    step::run("advisories", &mut step::cargo(["deny", "--offline", "check", "advisories"]))
}

/// The shell scripts: all of `.ci`, and every `.sh` that git knows.
fn scripts() -> Result<Vec<PathBuf>> {
    let folder = step::root().join(".ci");
    let mut scripts = Vec::new();
    for entry in fs::read_dir(&folder).context("cannot list `.ci`")? {
        scripts.push(entry?.path());
    }
    let listed = Command::new("git").args(["ls-files", "-z", "*.sh"]).current_dir(step::root()).output();
    if let Ok(listed) = listed {
        let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        scripts.extend(names.map(|name| step::root().join(OsStr::new(&*String::from_utf8_lossy(name)))));
    }
    scripts.sort();
    Ok(scripts)
}
