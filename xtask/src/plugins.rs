//! The wasm32-wasip2 target, the example plugins and the test guests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step;

const TARGET: &str = "wasm32-wasip2";

/// Builds every package below `plugins/`, and the test guests: in one call, so that what they share is built once.
pub(crate) fn build() -> Result<()> {
    ensure_target()?;
    let mut build = step::cargo(["build", "--release", "--target", TARGET, "--lib", "--examples"]);
    for package in packages(&step::root().join("plugins"))? {
        build.args(["-p", &package]);
    }
    step::run("plugins", build.args(["-p", "test-guests"]))
}

/// The component that a plugin's package was built into.
pub(crate) fn component(package: &str) -> PathBuf {
    step::target().join(TARGET).join("release").join(package.replace('-', "_") + ".wasm")
}

/// The component that a test guest was built into.
pub(crate) fn guest(example: &str) -> PathBuf {
    step::target().join(TARGET).join("release/examples").join(example.to_owned() + ".wasm")
}

/// Adds the target to the toolchain that builds, if its standard library is not there.
fn ensure_target() -> Result<()> {
    if target_is_there()? {
        return Ok(());
    }
    let missing = format!("plugins are built for {TARGET}, and this toolchain has no standard library for it");
    let hint = format!(
        "hint: `rustup target add {TARGET}` fetches it; it needs rustup (https://rustup.rs) and, once, the network"
    );
    let mut add = Command::new("rustup");
    if let Err(error) = step::run("wasm target", add.args(["target", "add", TARGET])) {
        bail!("{missing}: {error:#}\n{hint}");
    }
    if target_is_there()? {
        return Ok(());
    }
    bail!("{missing}: rustup added it to another toolchain than that of the `rustc` on the path\n{hint}")
}

/// Asks the compiler and not rustup: distributions ship the target without rustup.
fn target_is_there() -> Result<bool> {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(step::root())
        .output()
        .context("`rustc` cannot be started")?;
    if !output.status.success() {
        bail!("this `rustc` does not know {TARGET}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(has_standard_library(Path::new(String::from_utf8_lossy(&output.stdout).trim())))
}

fn has_standard_library(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd") && name.ends_with(".rlib")
    })
}

/// The packages below a folder, in the order of their names: a new plugin is one new folder.
fn packages(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list `{}`", step::short(folder).display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let manifest = entry?.path().join("Cargo.toml");
        if manifest.is_file() {
            let text = fs::read_to_string(&manifest)?;
            let name = package_name(&text);
            names.push(
                name.with_context(|| format!("`{}` names no package", step::short(&manifest).display()))?.to_owned(),
            );
        }
    }
    names.sort();
    Ok(names)
}

fn package_name(manifest: &str) -> Option<&str> {
    let package = manifest.split("[package]").nth(1)?.split("\n[").next()?;
    let value = package.lines().find_map(|line| line.trim().strip_prefix("name")?.trim_start().strip_prefix('='))?;
    value.trim().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_its_own_table() {
        let manifest = "[package]\nversion = \"1\"\nname = \"digits\" # as in handwriting\n\n[lib]\nname = \"other\"\n";
        assert_eq!(package_name(manifest), Some("digits"));
        assert_eq!(package_name("[lib]\nname = \"other\"\n"), None);
        assert_eq!(package_name("[package]\nversion = \"1\"\n[lib]\nname = \"other\"\n"), None);
    }

    #[test]
    fn the_example_plugins_are_found() {
        let found = packages(&step::root().join("plugins")).unwrap_or_default();
        assert!(found.iter().any(|name| name == "digits") && found.iter().any(|name| name == "countdown"), "{found:?}");
    }

    #[test]
    fn a_target_without_its_library_is_missing() {
        assert!(!has_standard_library(Path::new("/nonexistent")));
        assert!(!has_standard_library(&step::root().join("wit")));
    }
}
