//! Manifests against the schema of Kubernetes, which the validator brings with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::{Block, fed};
use crate::python;

/// The validator with the schemas of every version of Kubernetes in it, so that nothing is fetched when it runs.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

/// Checks those that are for Kubernetes. Other engines use its form for objects of their own, which it has no schema for.
pub(super) fn manifests(blocks: &[&Block], skipped: &mut Vec<String>) -> Result<()> {
    let blocks: Vec<&&Block> = blocks.iter().filter(|block| is_for_kubernetes(&block.text)).collect();
    let validator = match validator() {
        Ok(validator) => validator,
        Err(error) => {
            skipped.push(format!("manifests in README.md: no kubernetes-validate: {error:#}"));
            return Ok(());
        }
    };
    for block in &blocks {
        if let Err(said) = validate(&validator, &block.text)? {
            bail!("README.md, manifest at line {}:\n{said}", block.line);
        }
        // A validator that takes anything would be no check.
        let misspelt = misspell(&block.text);
        if validate(&validator, &misspelt)?.is_ok() {
            bail!("kubernetes-validate lets a misspelt field pass, so it proves nothing:\n{misspelt}");
        }
    }
    println!("── {} manifests in README.md: as Kubernetes has them, and refused with a misspelt field", blocks.len());
    Ok(())
}

fn is_for_kubernetes(manifest: &str) -> bool {
    let version = manifest.lines().find_map(|line| line.strip_prefix("apiVersion:"));
    version.is_some_and(|version| !version.contains(".googleapis.com/"))
}

/// The manifest with a field too many: in its `spec`, where it has one.
fn misspell(manifest: &str) -> String {
    match manifest.split_once("\nspec:\n") {
        Some((head, spec)) => format!("{head}\nspec:\n  backoffLimits: 1\n{spec}"),
        None => format!("{manifest}specs: {{}}\n"),
    }
}

fn validate(validator: &Path, manifest: &str) -> Result<Result<(), String>> {
    // It reads files only, and what is fed to it is one.
    fed(Command::new(validator).args(["--strict", "--no-warn", "/dev/stdin"]), manifest)
}

/// Where the validator is, installed if it is not.
fn validator() -> Result<PathBuf> {
    Ok(python::environment("kubernetes-validate", &[VALIDATOR])?.join("kubernetes-validate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_manifest_has_a_field_too_many() {
        assert_eq!(misspell("kind: Job\nspec:\n  a: 1\n"), "kind: Job\nspec:\n  backoffLimits: 1\n  a: 1\n");
        assert_eq!(misspell("kind: ConfigMap\n"), "kind: ConfigMap\nspecs: {}\n");
    }

    #[test]
    fn what_is_for_another_engine_is_told_apart() {
        assert!(is_for_kubernetes("apiVersion: batch/v1\nkind: Job\n"));
        assert!(!is_for_kubernetes("apiVersion: run.googleapis.com/v1\nkind: Job\n"));
        assert!(!is_for_kubernetes("services:\n  a:\n    image: b\n"));
    }
}
