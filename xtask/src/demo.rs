//! The main job, with the platform played against it: `cargo xtask demo`.
//!
//! Everything shown is what `steadfast run` and `steadfast rehearse` say; the demo only chooses the scenes, and fails if one
//! of them ends otherwise than it should.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{host, plugins, step};

/// The least share of the held-out digits that must be read right.
const ACCURACY: f64 = 0.95;

/// Builds what is needed and plays the scenes.
pub(crate) fn run() -> Result<()> {
    plugins::build()?;
    host::build()?;
    let started = Instant::now();

    scene("1. A digit classifier trains on real data, undisturbed.");
    let accuracy = train()?;
    println!("\n  accuracy     {:.2} % on the held-out fifth", accuracy * 100.0);
    if accuracy < ACCURACY {
        bail!("the classifier should reach {:.0} % and reached {:.2} %", ACCURACY * 100.0, accuracy * 100.0);
    }

    scene("2. Stopped by SIGTERM, wherever it is; and before each resume its newest checkpoint is damaged.");
    expect(&SAME, &mut digits(&["--preempt", "times:8", "--damage", "newest"]))?;

    scene("3. Killed without a warning, wherever it is: also in the middle of a save.");
    expect(&SAME, &mut digits(&["--preempt", "times:8", "--kill"]))?;

    scene("4. A plugin that forgets to save its random generator: the same check must catch it.");
    expect(&DIFFERENT, rehearse(&plugins::guest("forgets_generator")).args(["--preempt", "every-step"]))?;

    println!(
        "\nIt was caught. All of this took {:.0} s. Next, a plugin of your own:\n",
        started.elapsed().as_secs_f64()
    );
    println!("    {}\n", step::text(host::command().args(["rehearse", "my.wasm", "--config", "my.json"])));
    Ok(())
}

/// Trains once, in folders of its own, and answers the accuracy that the plugin wrote down.
fn train() -> Result<f64> {
    let folder = folder();
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot clear `{}`", folder.display()));
        }
        _ => {}
    }
    let outputs = folder.join("outputs");
    let mut train = host::command();
    train.arg("run").arg(step::short(&plugins::component("digits"))).args(["--input", INPUT]);
    train.arg("--volume").arg(step::short(&folder.join("checkpoints"))).arg("--output").arg(step::short(&outputs));
    println!("$ {}", step::text(&train));
    let status = train.status().with_context(|| step::text(&train))?;
    if !status.success() {
        bail!("the training ended with {status}; to repeat it: {}", step::text(&train));
    }
    let metrics = outputs.join("metrics.csv");
    let text = fs::read_to_string(&metrics).with_context(|| format!("cannot read `{}`", metrics.display()))?;
    last_accuracy(&text).with_context(|| format!("`{}` ends without an accuracy", metrics.display()))
}

/// The last column of the last line of `epoch,loss,accuracy`.
fn last_accuracy(metrics: &str) -> Option<f64> {
    metrics.lines().last()?.rsplit(',').next()?.parse().ok()
}

const INPUT: &str = "plugins/digits/data";

/// How a rehearsal ends: its exit code, and the word with which its verdict begins. The code alone would not do: a plugin
/// that is not repeatable in itself exits 1 too.
struct Verdict {
    code: i32,
    word: &'static str,
}

const SAME: Verdict = Verdict { code: 0, word: "same:" };
const DIFFERENT: Verdict = Verdict { code: 1, word: "different:" };

fn digits(disturbance: &[&str]) -> Command {
    let mut command = rehearse(&plugins::component("digits"));
    command.args(["--input", INPUT, "--every", "50steps"]).args(disturbance);
    command
}

fn rehearse(plugin: &Path) -> Command {
    let mut command = host::command();
    command.arg("rehearse").arg(step::short(plugin)).arg("--work").arg(step::short(&folder()));
    command
}

/// Where the demo's volumes are, and stay where a difference was found; the next demo clears it.
fn folder() -> PathBuf {
    step::target().join("demo")
}

fn scene(words: &str) {
    println!("\n── {words}\n");
}

fn expect(verdict: &Verdict, command: &mut Command) -> Result<()> {
    println!("$ {}", step::text(command));
    let mut said = false;
    let status = step::stream(command, &mut |line: &str| said |= line.starts_with(verdict.word))?;
    if status.code() == Some(verdict.code) && said {
        return Ok(());
    }
    let Verdict { code, word } = verdict;
    bail!(
        "this should have said `{word}` and ended with exit code {code}; it ended with {status}: {}",
        step::text(command)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accuracy_is_that_of_the_last_epoch() {
        assert_eq!(last_accuracy("epoch,loss,accuracy\n1,0.5,0.91\n2,0.2,0.972145\n"), Some(0.972_145));
        assert_eq!(last_accuracy("epoch,loss,accuracy\n"), None);
        assert_eq!(last_accuracy(""), None);
    }

    #[test]
    fn code_and_word_must_both_be_right() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert!(expect(&DIFFERENT, &mut shell("echo different: 3 of 3; exit 1")).is_ok());
        assert!(expect(&DIFFERENT, &mut shell("echo not repeatable:; exit 1")).is_err());
        assert!(expect(&DIFFERENT, &mut shell("echo different: 3 of 3")).is_err());
        assert!(expect(&SAME, &mut shell("exit 0")).is_err());
    }
}
