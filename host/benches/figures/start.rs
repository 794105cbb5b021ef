//! From the start of the process to the first step, and what the host weighs. Reported, not promised.
//!
//! *Subject*: `steadfast run` on an empty volume, with the plugin compiled in its cache, until the guest's first step prints its
//! line. That includes the claim and the attempt's record, each of them synced.
//! *Baseline*: the smallest program that does this: it maps the compiled component, instantiates it, calls `start` and `step`.
//! Both are started as processes, and both run `countdown`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wasmtime::Engine;

use crate::bare::{Bare, plain};
use crate::bare_unsafe::deserialize;
use crate::measure::{Row, in_turn, median};
use crate::places;

/// The argument by which this program is asked to be the smallest one.
pub const SMALLEST: &str = "--smallest";

const ROUNDS: usize = 21;
const CONFIG: &str = r#"{"steps": 1000000, "busy": 20}"#;

pub fn figures() -> Result<Vec<Row>> {
    let component = places::component("countdown")?;
    let folder = places::on_disk()?;
    let compiled = folder.path().join("compiled");
    fs::write(&compiled, Engine::default().precompile_component(&fs::read(&component)?).map_err(plain)?)?;
    let cache = folder.path().join("cache");

    let mut rows = Vec::new();
    let mut memory = Vec::new();
    for (figure, place) in [("on the disk", Some(places::on_disk()?)), ("in memory", places::in_memory())] {
        let Some(place) = place else { continue };
        let subject = |memory: &mut Vec<[f64; 2]>| {
            let place = tempfile::tempdir_in(place.path())?;
            let started = first_line(&mut places::host_run(&component, CONFIG, place.path(), &cache))?;
            memory.push(started.memory);
            Ok(started.seconds)
        };
        let rounds =
            in_turn(&mut memory, ROUNDS, subject, |_| Ok(first_line(&mut smallest_program(&compiled)?)?.seconds))?;
        rows.push(rounds.row(&format!("start to first step, volume {figure} : smallest program"), 1.0, None));
    }
    let smallest = first_line(&mut smallest_program(&compiled)?)?.memory;
    rows.extend(weights(&memory, smallest)?);
    Ok(rows)
}

fn weights(memory: &[[f64; 2]], smallest: [f64; 2]) -> Result<Vec<Row>> {
    let row = |figure: &str, subject: String, baseline: String, ratios: Vec<f64>| Row {
        figure: figure.to_owned(),
        subject,
        baseline,
        ratios,
        target: None,
    };
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let mut rows = Vec::new();
    for (at, figure) in ["resident memory : smallest program", "of that, not backed by files"].into_iter().enumerate() {
        let host = median(&memory.iter().map(|memory| memory[at]).collect::<Vec<_>>());
        rows.push(row(figure, mib(host), mib(smallest[at]), vec![host / smallest[at]]));
    }
    let file = fs::metadata(places::HOST)?.len() as f64;
    rows.push(row("the binary, with line tables", mib(file), String::new(), Vec::new()));
    if let Some(stripped) = stripped() {
        rows.push(row("the binary, stripped", mib(stripped), String::new(), Vec::new()));
    }
    Ok(rows)
}

fn stripped() -> Option<f64> {
    let folder = places::on_disk().ok()?;
    let file = folder.path().join("stripped");
    let done = Command::new("strip").arg("-o").arg(&file).arg(places::HOST).status().ok()?.success();
    done.then(|| fs::metadata(&file).ok().map(|metadata| metadata.len() as f64)).flatten()
}

struct Started {
    seconds: f64,
    /// Resident bytes, and those of them that no file backs, a moment after the first step.
    memory: [f64; 2],
}

/// Starts a program and waits for its first line on standard output, looks at its memory, and kills it.
fn first_line(command: &mut Command) -> Result<Started> {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a program")?;
    let mut line = String::new();
    let output = child.stdout.take().context("no standard output")?;
    let mut output = BufReader::new(output);
    output.read_line(&mut line)?;
    let seconds = began.elapsed().as_secs_f64();
    // So that the first checkpoint is written, too.
    thread::sleep(Duration::from_millis(50));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let _ = child.kill();
    child.wait()?;
    ensure!(line.contains("to go"), "`{}` began with `{}`", command.get_program().display(), line.trim());
    Ok(Started { seconds, memory: ["VmRSS:", "RssAnon:"].map(|field| kibibytes(&status, field) * 1024.0) })
}

fn kibibytes(status: &str, field: &str) -> f64 {
    let value =
        status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix("kB")?.trim().parse().ok());
    value.unwrap_or(f64::NAN)
}

fn smallest_program(compiled: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // It stays until it is killed, or until nobody is left to do so.
    command.arg(SMALLEST).arg(compiled).stdin(Stdio::piped());
    Ok(command)
}

/// The smallest program itself.
pub fn smallest(arguments: &[String]) -> Result<()> {
    let compiled = arguments.first().context("no compiled component was given")?;
    let mut guest =
        deserialize(Path::new(compiled)).and_then(|component| Bare::start(&component, CONFIG)).map_err(plain)?;
    guest.step().map_err(plain)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
