//! The main job, with the platform played against it: `cargo xtask demo`.
//!
//! Everything shown is what `steadfast rehearse` says; the demo only chooses the scenes, and fails if one of them ends
//! otherwise than it should.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{host, plugins, step};

/// Builds what is needed and plays the scenes.
pub(crate) fn run() -> Result<()> {
    plugins::build()?;
    plugins::build_guests()?;
    host::build()?;

    scene(
        "A digit classifier trains on real data. It is stopped by SIGTERM and killed in the middle of a save,\n\
         and its newest checkpoint is damaged before each resume.",
    );
    expect(0, &mut digits(&["--preempt", "times:6", "--damage", "newest"]))?;

    scene("The same, killed without a warning wherever it is.");
    expect(0, &mut digits(&["--preempt", "times:6", "--kill"]))?;

    scene("A plugin that forgets to save its random generator. The same check must catch it.");
    let mut forgetful = rehearse(&plugins::guest("forgets_generator"));
    expect(1, forgetful.args(["--preempt", "times:2"]))?;

    println!(
        "\nCaught. To rehearse a plugin of your own:\n\n    {}\n",
        step::text(rehearse(Path::new("my.wasm")).args(YOURS))
    );
    Ok(())
}

const YOURS: [&str; 4] = ["--preempt", "every-step", "--config", "my.json"];

fn digits(disturbance: &[&str]) -> Command {
    let mut command = rehearse(&plugins::component("digits"));
    command.args(["--input", "plugins/digits/data"]).args(disturbance);
    command
}

fn rehearse(plugin: &Path) -> Command {
    let mut command = host::command();
    command.arg("rehearse").arg(step::short(plugin));
    command
}

fn scene(words: &str) {
    println!("\n{words}\n");
}

fn expect(code: i32, command: &mut Command) -> Result<()> {
    println!("$ {}", step::text(command));
    let status = command.status()?;
    if status.code() == Some(code) {
        return Ok(());
    }
    bail!("this should have ended with exit code {code}, and ended with {status}: {}", step::text(command))
}
