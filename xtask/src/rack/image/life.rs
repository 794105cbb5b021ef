//! A job that is preempted and goes on, as on Cloud Run: nobody tells the program where its volume is, what it is called or the
//! how manieth attempt this is.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::container::{Container, Launch};
use super::promises::owner;
use super::room::{Room, ask};
use crate::rack::ledger::Ledger;
use crate::step;

const RUN: [&str; 8] =
    ["run", "/plugins/digits.wasm", "--input", "/data", "--config", r#"{"epochs": 3000}"#, "--log", "human"];

pub(super) fn check(room: &Room, image: &str, ledger: &mut Ledger) {
    ledger.check("a forgotten mount is refused", || {
        let ended = Launch::new(room, image).on_cloud_run("digits", 0).mount(&data(), DATA).arguments(RUN).end()?;
        Ok(ended.code(2)?.said("steadfast: ")?.to_owned())
    });
    let (mut whole, mut pieces) = (PathBuf::new(), PathBuf::new());
    ledger.check("an undisturbed run", || {
        whole = volume(room, image, "undisturbed")?;
        let ended = attempt(room, image, &whole, 0).end()?.code(0)?;
        ended.compiled_nothing()?;
        Ok(ended.said("Done: ")?.to_owned())
    });
    let mut safe = 0;
    let stopped = ledger.check("SIGTERM to process 1 saves a checkpoint", || {
        pieces = volume(room, image, "preempted")?;
        safe = preempt(room, image, &pieces)?;
        Ok(format!("exit code 143, {safe} steps are safe"))
    });
    if !stopped {
        return;
    }
    ledger.check("the next attempt goes on there", || {
        let ended = attempt(room, image, &pieces, 1).end()?.code(0)?;
        ended.compiled_nothing()?;
        let from = ended.number("Resuming from checkpointed step")?;
        ensure!(from == safe, "{safe} steps were safe, and it went on at step {from}");
        Ok(format!("from step {from}: {}", ended.said("Done: ")?))
    });
    ledger.check("outputs as without the preemption", || same(&outputs(&whole)?, &outputs(&pieces)?));
}

/// The data that the job reads, mounted where it is told.
const DATA: &str = "/data:ro";

fn data() -> PathBuf {
    step::root().join("plugins/digits/data")
}

/// An empty volume that belongs to the image's user.
pub(super) fn volume(room: &Room, image: &str, name: &str) -> Result<PathBuf> {
    let volume = room.empty(name)?;
    let user = ask(&mut room.podman(["image", "inspect", "--format", "{{.Config.User}}", image]))?;
    let (user, group) = owner(&user).context("the image has no user by number")?;
    chown(&volume, Some(user), Some(group))?;
    Ok(volume)
}

/// An attempt at the job, its number as the engine would tell it.
pub(super) fn attempt<'a>(room: &'a Room, image: &'a str, volume: &Path, number: u32) -> Launch<'a> {
    let attempt = Launch::new(room, image).on_cloud_run("digits", number).mount(&data(), DATA);
    attempt.mount(volume, "/checkpoints").arguments(RUN)
}

/// Stops an attempt after some epochs; answers the step from which the next one has to go on.
fn preempt(room: &Room, image: &str, volume: &Path) -> Result<u64> {
    let mut container = attempt(room, image, volume, 0).start()?;
    container.says("epoch 3:")?;
    look_at_process(&container)?;
    container.terminate()?;
    let ended = container.end()?.code(143)?;
    ended.compiled_nothing()?;
    ended.said("Received SIGTERM")?;
    let saved = ended.log.iter().rev().find(|line| line.contains("Saved step"));
    println!("  {}\n  {}", saved.map_or("", String::as_str), ended.said("Stopped: ")?);
    ended.number("Stopped: ")
}

/// The program itself is process 1, and not root, as the kernel tells it.
fn look_at_process(container: &Container<'_>) -> Result<()> {
    let process = container.process()?;
    let of = |file: &str| {
        let path = format!("/proc/{process}/{file}");
        fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))
    };
    let command = of("cmdline")?;
    ensure!(command.starts_with("/usr/local/bin/steadfast\0run\0"), "process 1 is `{}`", command.replace('\0', " "));
    let status = of("status")?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let last = |name: &str| field(name).and_then(|numbers| numbers.split_whitespace().last());
    ensure!(last("NSpid") == Some("1"), "it is process {:?} of its container", last("NSpid"));
    ensure!(last("Uid").is_some_and(|user| user != "0"), "it runs as root");
    Ok(())
}

/// The outputs of the only task of the job `digits`.
fn outputs(volume: &Path) -> Result<PathBuf> {
    let task = volume.join("digits/task-00000-of-00001");
    let entries = fs::read_dir(&task).with_context(|| format!("cannot list `{}`", task.display()))?;
    let found = entries.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with("output-"));
    Ok(found.with_context(|| format!("no outputs in `{}`", task.display()))?.path())
}

/// Both folders hold the same files with the same bytes.
fn same(one: &Path, other: &Path) -> Result<String> {
    let names = names(one)?;
    ensure!(!names.is_empty(), "there are no outputs");
    ensure!(names == self::names(other)?, "other files in `{}` than in `{}`", one.display(), other.display());
    let mut bytes = 0;
    for name in &names {
        let (here, there) = (fs::read(one.join(name))?, fs::read(other.join(name))?);
        if here != there {
            bail!("`{name}` differs between `{}` and `{}`", one.display(), other.display());
        }
        bytes += here.len();
    }
    Ok(format!("{} with {bytes} bytes", names.join(", ")))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
