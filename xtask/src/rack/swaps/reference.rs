//! The same sequence of releases, natively and undisturbed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::job::{CONFIG, SEED, input};
use crate::step;

/// An example of the test guests that is no guest.
pub(super) const PROGRAM: &str = "training_reference";

/// Runs what `taken` says, a release and its first step a line, the last of them with `config` and to the end; writes its outputs
/// to a folder.
pub(super) fn run(taken: &str, config: &str, output: &Path) -> Result<()> {
    fs::create_dir_all(output)?;
    let mut program = Command::new(step::target().join("release/examples").join(PROGRAM));
    let mut program = program.arg(SEED).arg(input()).arg(output).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut orders = program.stdin.take().context("no standard input")?;
    orders.write_all(sequence(taken, config)?.as_bytes())?;
    drop(orders);
    let status = program.wait()?;
    if status.success() { Ok(()) } else { bail!("the reference ended with {status}") }
}

/// A line for each: the release's number, how many steps it takes, its configuration.
fn sequence(taken: &str, last: &str) -> Result<String> {
    let lines = taken.lines().map(|line| {
        let (step, number) = line.split_once(',').with_context(|| format!("`{line}` is no step and release"))?;
        Ok((step.parse::<u64>()?, number))
    });
    let lines = lines.collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    for (at, (step, number)) in lines.iter().enumerate() {
        let (count, config) = match lines.get(at + 1) {
            Some((next, _)) => (next.checked_sub(*step).context("the steps go back")?, CONFIG),
            None => (u64::MAX, last),
        };
        text.push_str(&format!("{number} {count} {config}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_takes_the_steps_up_to_the_next() {
        let text = sequence("0,1\n7,3\n9,3\n", "{}").unwrap_or_default();
        assert_eq!(text, format!("1 7 {CONFIG}\n3 2 {CONFIG}\n3 {} {{}}\n", u64::MAX));
        assert!(sequence("7,1\n3,1\n", "{}").is_err());
        assert!(sequence("seven\n", "{}").is_err());
    }
}
