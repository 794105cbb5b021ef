//! A container that is too small: the kernel would kill it at some step, with an exit code that says nothing; the host has to tell
//! at the start.

use anyhow::{Result, bail, ensure};

use super::container::Launch;
use super::life::volume;
use super::room::Room;
use super::tally::Tally;

const RUN: [&str; 6] = ["run", "/plugins/countdown.wasm", "--config", r#"{"steps": 3}"#, "--log", "human"];

pub(super) fn check(room: &Room, image: &str, tally: &mut Tally) {
    tally.check("a container with enough memory", || {
        let ended = run(room, image, "512m", "64MiB")?;
        Ok(ended.code(0)?.said("limits")?.trim().to_owned())
    });
    tally.check("too little memory is refused at the start", || {
        let ended = run(room, image, "256m", "2GiB")?;
        if ended.code >= 125 && ended.code != 137 {
            bail!("MEMORY LIMITS CANNOT BE SET ON THIS MACHINE, nothing was checked: {}", ended.log.join(" | "));
        }
        ensure!(ended.code != 0 && ended.code != 137, "exit code {}", ended.code);
        ended.said("hint:")?;
        let said = ended.said("steadfast: ")?;
        ensure!(said.contains("memory") && said.contains(|c: char| c.is_ascii_digit()), "it said: {said}");
        Ok(format!("exit code {}: {said}", ended.code))
    });
}

/// A run in a container of this size, with a guest that may have that much.
fn run(room: &Room, image: &str, container: &str, guest: &str) -> Result<super::container::Ended> {
    let folder = volume(room, image, "small")?;
    let run = Launch::new(room, image).on_cloud_run("countdown", 0).mount(&folder, "/checkpoints");
    let run = run.option("--memory", container).option("--memory-swap", container);
    run.arguments(RUN).arguments(["--memory-limit", guest]).end()
}
