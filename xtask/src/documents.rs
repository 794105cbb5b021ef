//! What the README says is checked: its scripts by shellcheck, its manifests against the schema of Kubernetes, its job files by a
//! parser of TOML, and every option of `steadfast` in it against what the program itself says in `--help`.
//!
//! The scripts for Slurm are run for real by `cargo xtask rack slurm`, which takes them from here.

mod manifests;
mod options;

pub(crate) use self::options::options;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{packages, step};

/// A fenced block of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Line of its first line of text, from 1.
    pub(crate) line: usize,
    /// What stands behind the fence.
    pub(crate) language: String,
    /// What is in it.
    pub(crate) text: String,
}

/// The README's text.
pub(crate) fn readme() -> Result<String> {
    fs::read_to_string(step::root().join("README.md")).context("cannot read README.md")
}

/// The fenced blocks of a document, in their order.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                open = Some(Block { line: index + 2, language: language.trim().to_owned(), text: String::new() });
            }
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    // One that is never closed runs to the end, as renderers have it.
    blocks.extend(open);
    blocks
}

/// Every check that needs no host.
pub(crate) fn run(skipped: &mut Vec<String>) -> Result<()> {
    let readme = readme()?;
    let blocks = blocks(&readme);
    let of = |languages: &[&str]| -> Vec<&Block> {
        blocks.iter().filter(|block| languages.contains(&block.language.as_str())).collect()
    };
    job_files(&of(&["toml"]))?;
    scripts(&of(&["sh", "bash"]), skipped)?;
    manifests::manifests(&of(&["yaml"]), skipped)
}

fn job_files(blocks: &[&Block]) -> Result<()> {
    for block in blocks {
        if let Err(error) = block.text.parse::<toml::Table>() {
            bail!("README.md, block at line {}: {error}", block.line);
        }
    }
    Ok(())
}

fn scripts(blocks: &[&Block], skipped: &mut Vec<String>) -> Result<()> {
    if let Err(missing) = packages::ensure(&["shellcheck"], &["shellcheck"]) {
        skipped.push(format!("scripts in README.md: {missing}"));
        return Ok(());
    }
    for block in blocks {
        let mut check = Command::new("shellcheck");
        check.arg(format!("--shell={}", block.language)).arg("-");
        let said = fed(&mut check, &block.text)?;
        if let Err(said) = said {
            bail!("README.md, script at line {} (its lines are counted from there):\n{said}", block.line);
        }
    }
    println!("── {} scripts in README.md: shellcheck has nothing against them", blocks.len());
    Ok(())
}

/// Runs a command on a text: what it says is an error unless it exits 0.
fn fed(command: &mut Command, text: &str) -> Result<Result<(), String>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", step::text(command)))?;
    if let Some(mut input) = child.stdin.take() {
        // One that does not read to the end says why by its exit code.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output()?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        "text\n```sh\nsteadfast run a.wasm \\\n  --every=5m\n```\n\n```\nplain\n```\n```toml\nx = 1\n```\n";

    #[test]
    fn blocks_are_found_with_their_lines() {
        let blocks = blocks(DOCUMENT);
        let of = |index: usize| blocks.get(index).map(|block| (block.line, block.language.as_str(), &*block.text));
        assert_eq!(of(0), Some((3, "sh", "steadfast run a.wasm \\\n  --every=5m\n")));
        assert_eq!(of(1), Some((8, "", "plain\n")));
        assert_eq!(of(2), Some((11, "toml", "x = 1\n")));
        assert_eq!(blocks.len(), 3);
        assert_eq!(super::blocks("```sh\nls\n").len(), 1, "one that is not closed");
    }

    #[test]
    fn what_shellcheck_says_is_an_error() {
        let fails = fed(Command::new("sh").args(["-c", "cat; echo bad >&2; exit 1"]), "text\n");
        assert!(fails.is_ok_and(|said| said == Err("text\nbad\n".to_owned())));
        assert!(fed(&mut Command::new("true"), "text\n").is_ok_and(|said| said.is_ok()));
    }
}
