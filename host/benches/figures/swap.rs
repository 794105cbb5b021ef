//! How long a job stands still while its plugin is changed.
//!
//! *Subject*: `steadfast run --watch` of a component that is replaced by another under its feet, in every round: what the log says the
//! change took, from the end of the last step under the old plugin to the end of the first under the new one.
//! *Baseline*: `Guest::snapshot` of the same component, `Guest::restore` of another guest that is there already, and its first step.
//!
//! `digits` reads its data again when it is restored. It is measured as it is, and as a component of 20 MB: with a core module
//! beside its own that is compiled and instantiated, and never called. A guest that only counts, small and large, shows what the host
//! itself takes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadfast::plugin::{Guest, GuestSettings, Plugin, Runtime, Snapshot};
use tempfile::TempDir;

use crate::digits::{job, settings};
use crate::grown::{grown, marked};
use crate::measure::{Row, in_turn, quickest, seconds};
use crate::places;

const ROUNDS: usize = 7;
/// A round is the quickest of so many: the time on the wall has in it whatever else the machine does.
const CHANGES: usize = 5;
const DIGITS: &str = r#"{"epochs": 1000000}"#;
const IDLES: &str = r#"{"steps": 1000000000000}"#;

pub fn figures() -> Result<Vec<Row>> {
    let digits = fs::read(places::component("digits")?)?;
    let idles = fs::read(places::component("idles")?)?;
    let large = grown(&digits)?;
    let size = format!("a component of {} MB", large.len() / 1_000_000);
    let baseline = "snapshot, restore, a step";
    Ok(vec![
        measured(&format!("changing `digits` : {baseline}"), &digits, DIGITS, Some(1.2))?,
        measured(&format!("the same as {size} : {baseline}"), &large, DIGITS, Some(1.2))?,
        measured(&format!("changing a guest that only counts : {baseline}"), &idles, IDLES, None)?,
        measured(&format!("the same, of 20 MB too : {baseline}"), &grown(&idles)?, IDLES, None)?,
    ])
}

fn measured(figure: &str, component: &[u8], config: &str, target: Option<f64>) -> Result<Row> {
    let folder = places::on_disk()?;
    let versions = [marked(component, 1), marked(component, 2)];
    let cache = folder.path().join("cache");
    let runtime = Runtime::new(Some(cache.clone()))?;
    let plugins = versions.each_ref().map(|bytes| runtime.load_bytes(Path::new(figure), bytes));
    let [one, other] = plugins;
    let by_hand = ByHand::new([one?, other?], config)?;
    let running = Running::start(folder, versions, config, &cache)?;
    let rounds = in_turn(
        &mut (running, by_hand),
        ROUNDS,
        |(running, _)| quickest(CHANGES, || running.change()),
        |(running, by_hand)| running.held(|| quickest(CHANGES, || by_hand.change())),
    )?;
    Ok(rounds.row(figure, 1.0, target))
}

/// A job whose plugin is changed.
struct Running {
    file: PathBuf,
    versions: [Vec<u8>; 2],
    /// Which of them is next.
    next: usize,
    process: Child,
    log: BufReader<ChildStderr>,
    _folder: TempDir,
}

impl Running {
    fn start(folder: TempDir, versions: [Vec<u8>; 2], config: &str, cache: &Path) -> Result<Self> {
        let file = folder.path().join("job.wasm");
        fs::write(&file, &versions[0])?;
        let mut run = places::host_command(&file, config, folder.path(), cache);
        run.args(["--watch", "--every", "1h", "--log", "json"]).arg("--input").arg(data());
        let mut process = run.stderr(Stdio::piped()).spawn()?;
        let log = BufReader::new(process.stderr.take().context("no standard error")?);
        let mut running = Self { file, versions, next: 1, process, log, _folder: folder };
        // It has read the first version once it has saved step 0.
        running.hears_of("bytes")?;
        Ok(running)
    }

    /// Puts the other version in the place of the file and waits until the job goes on under it; answers what that took.
    fn change(&mut self) -> Result<f64> {
        let new = self.file.with_extension("new");
        fs::write(&new, &self.versions[self.next])?;
        fs::rename(new, &self.file)?;
        self.next = 1 - self.next;
        Ok(self.hears_of("us")? / 1e6)
    }

    /// Does something else while the job stands still, so that each has the machine to itself.
    fn held<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let process = Pid::from_child(&self.process);
        kill_process(process, Signal::STOP)?;
        let done = work();
        kill_process(process, Signal::CONT)?;
        done
    }

    /// Waits for a line of the log that has this field.
    fn hears_of(&mut self, field: &str) -> Result<f64> {
        let mut line = String::new();
        while self.log.read_line(&mut line)? > 0 {
            let fields = serde_json::from_str::<Value>(&line);
            if let Some(number) = fields.ok().and_then(|fields| fields.get(field)?.as_f64()) {
                return Ok(number);
            }
            line.clear();
        }
        bail!("the job ended with {}", self.process.wait()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same with nothing around it.
struct ByHand {
    plugins: [Plugin; 2],
    /// Which of them is next.
    next: usize,
    guest: Guest,
    config: String,
    buffers: Snapshot,
    output: TempDir,
}

impl ByHand {
    fn new(plugins: [Plugin; 2], config: &str) -> Result<Self> {
        let output = places::on_disk()?;
        let mut guest = plugins[0].instantiate(with_data(&output))?;
        guest.start(&job(), config)?;
        Ok(Self { plugins, next: 1, guest, config: config.to_owned(), buffers: Snapshot::default(), output })
    }

    fn change(&mut self) -> Result<f64> {
        let mut new = self.plugins[self.next].instantiate(with_data(&self.output))?;
        self.next = 1 - self.next;
        let buffers = std::mem::take(&mut self.buffers);
        let took = seconds(|| {
            let state = self.guest.snapshot(buffers)?.into();
            new.restore(&job(), &self.config, &state)?;
            new.step()?;
            self.buffers = std::sync::Arc::try_unwrap(state).unwrap_or_default();
            Ok(())
        })?;
        self.guest = new;
        Ok(took)
    }
}

fn with_data(output: &TempDir) -> GuestSettings {
    GuestSettings { input: Some(data()), ..settings(output.path().to_owned()) }
}

fn data() -> PathBuf {
    places::repository().join("plugins/digits/data")
}
