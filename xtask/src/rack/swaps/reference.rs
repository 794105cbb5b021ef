//! The same sequence of releases as one plugin, undisturbed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::job::{CONFIG, SEED, input, output};
use crate::{host, plugins};

/// The test guest that trains by a script.
const GUEST: &str = "training_reference";

/// Runs what `taken` says, a release and its first step a line, the last of them with `config` and to the end. The volume is in `folder`.
pub(super) fn run(taken: &str, config: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("volume"))?;
    let mut run = host::command();
    run.arg("run").arg(plugins::guest(GUEST)).args(["--every", "1h", "--seed", SEED]);
    run.arg("--input").arg(input()).arg("--config").arg(script(taken, config)?);
    run.arg("--volume").arg(folder.join("volume")).arg("--scratch").arg(folder);
    let ended = run.stdin(Stdio::null()).output()?;
    match ended.status.success() {
        true => Ok(()),
        false => bail!("the reference ended with {}:\n{}", ended.status, String::from_utf8_lossy(&ended.stderr)),
    }
}

/// One of its outputs.
pub(super) fn output_of(folder: &Path, name: &str) -> Result<Vec<u8>> {
    output(&folder.join("volume"), name)
}

/// The guest's configuration.
fn script(taken: &str, last: &str) -> Result<String> {
    let lines: Vec<_> = taken.lines().collect();
    let segments = lines.iter().enumerate().map(|(at, line)| {
        let (step, number) = line.split_once(',').with_context(|| format!("`{line}` is no step and release"))?;
        let (step, number): (u64, u32) = (step.parse()?, number.parse()?);
        let config = if at + 1 < lines.len() { CONFIG } else { last };
        Ok(format!(r#"{{"from": {step}, "release": {number}, "digits": {config}}}"#))
    });
    Ok(format!(r#"{{"segments": [{}]}}"#, segments.collect::<Result<Vec<_>>>()?.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_release_has_the_last_configuration() {
        let text = script("0,1\n7,3\n", r#"{"epochs": 2}"#).unwrap_or_default();
        let first = format!(r#"{{"from": 0, "release": 1, "digits": {CONFIG}}}"#);
        assert_eq!(
            text,
            format!(r#"{{"segments": [{first}, {{"from": 7, "release": 3, "digits": {{"epochs": 2}}}}]}}"#)
        );
        assert!(script("seven\n", "{}").is_err());
    }
}
