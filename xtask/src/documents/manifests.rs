//! Manifests against the schema of Kubernetes, which the validator brings with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::{Block, fed};
use crate::{packages, step};

/// The validator with the schemas of every version of Kubernetes in it, so that nothing is fetched when it runs.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

pub(super) fn manifests(blocks: &[&Block], skipped: &mut Vec<String>) -> Result<()> {
    let validator = match validator() {
        Ok(validator) => validator,
        Err(error) => {
            skipped.push(format!("manifests in README.md: no kubernetes-validate: {error:#}"));
            return Ok(());
        }
    };
    for block in blocks {
        if let Err(said) = validate(&validator, &block.text)? {
            bail!("README.md, manifest at line {}:\n{said}", block.line);
        }
        // A validator that takes anything would be no check.
        let Some(misspelt) = misspell(&block.text) else {
            bail!("README.md, manifest at line {}: it has no field `spec`", block.line);
        };
        if validate(&validator, &misspelt)?.is_ok() {
            bail!("kubernetes-validate lets a misspelt field pass, so it proves nothing:\n{misspelt}");
        }
    }
    println!("── {} manifests in README.md: as Kubernetes has them, and refused with a misspelt field", blocks.len());
    Ok(())
}

/// The manifest with a field too many in its `spec`.
fn misspell(manifest: &str) -> Option<String> {
    manifest.contains("\nspec:\n").then(|| manifest.replacen("\nspec:\n", "\nspec:\n  backoffLimits: 1\n", 1))
}

fn validate(validator: &Path, manifest: &str) -> Result<Result<(), String>> {
    // It reads files only, and what is fed to it is one.
    fed(Command::new(validator).args(["--strict", "--no-warn", "/dev/stdin"]), manifest)
}

/// Where the validator is, installed if it is not.
fn validator() -> Result<PathBuf> {
    let folder = step::target().join("kubernetes-validate");
    let program = folder.join("bin/kubernetes-validate");
    let stamp = folder.join("version");
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|version| version == VALIDATOR) {
        return Ok(program);
    }
    // Debian's Python makes no environments without a package that brings no program: where pip is missing, so is that.
    packages::ensure(&["python3", "pip3"], &["python3", "python3-pip", "python3-venv"])?;
    let mut environment = Command::new("python3");
    step::run("environment for Python", environment.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    install.args(["--quiet", "--disable-pip-version-check", "install", VALIDATOR]);
    step::run("kubernetes-validate", &mut install)?;
    fs::write(&stamp, VALIDATOR)?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_manifest_differs_in_its_specification_only() {
        let misspelt = misspell("kind: Job\nspec:\n  a: 1\n");
        assert_eq!(misspelt.as_deref(), Some("kind: Job\nspec:\n  backoffLimits: 1\n  a: 1\n"));
        assert_eq!(misspell("kind: Job\n"), None);
    }
}
