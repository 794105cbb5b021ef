//! The job whose plugin is changed: its attempts, what they log, and what their processes hold.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::releases::Releases;
use super::{Chance, reference};
use crate::rack::wait::{Patience, until};
use crate::{host, step};

pub(super) const SEED: &str = "7";
/// What `digits` is given. Without an end: it gets one when all changes are made.
pub(super) const CONFIG: &str = r#"{"epochs": 1000000}"#;
const PAUSE_MS: u32 = 2;
const STEPS_AN_EPOCH: u64 = 45;
/// What is compared: the network, the losses, and which release ran when.
const OUTPUTS: [&str; 3] = ["model.safetensors", "metrics.csv", "taken.csv"];
const TAKEN: &str = OUTPUTS[2];

const PATIENCE: Patience = Patience { limit: Duration::from_secs(60), every: Duration::from_millis(5) };

/// What `digits` reads.
pub(super) fn input() -> PathBuf {
    step::root().join("plugins/digits/data")
}

/// What came of one change.
pub(super) enum Outcome {
    Taken,
    Refused,
    Same,
}

impl Outcome {
    fn said_in(log: &str) -> Option<Self> {
        let said = |words: &str| log.contains(words);
        if said("the job goes on under it") {
            Some(Self::Taken)
        } else if said("is not used") && (!said("Going back to") || said("Resuming from")) {
            Some(Self::Refused)
        } else {
            said("is the one that runs").then_some(Self::Same)
        }
    }
}

/// What a process holds.
pub(super) struct Size {
    pub(super) resident_kb: u64,
    pub(super) threads: usize,
    /// Threads beside those, for the guests' file operations.
    pub(super) workers: usize,
    pub(super) files: usize,
}

pub(super) struct Job {
    folder: PathBuf,
    attempt: Child,
    /// How much of the log was read.
    read: usize,
    attempts: u32,
}

impl Job {
    pub(super) fn new(releases: &Releases) -> Result<Self> {
        let folder = step::target().join("swaps");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(folder.join("volume"))?,
        }
        fs::write(folder.join("job.wasm"), releases.first())?;
        let attempt = start(&folder, 0, &[&options(PAUSE_MS, CONFIG)])?;
        let mut job = Self { folder, attempt, read: 0, attempts: 0 };
        job.begun()?;
        Ok(job)
    }

    /// Puts another file in the place of the plugin's, and says so as often as not.
    pub(super) fn change(&self, releases: &Releases, chance: &mut Chance) -> Result<()> {
        let file = self.file();
        let now = fs::read(&file)?;
        let mut bytes = releases.any(chance);
        while bytes == now {
            bytes = releases.any(chance);
        }
        let new = self.folder.join("job.new");
        fs::write(&new, bytes)?;
        fs::rename(new, file)?;
        if chance.below(2) == 0 { self.signal("-HUP") } else { Ok(()) }
    }

    /// Waits until the job has come to terms with the file.
    pub(super) fn settle(&mut self) -> Result<Outcome> {
        let (file, read) = (self.log(), self.read);
        let (length, outcome) = until("nothing came of a changed file", PATIENCE, || {
            let log = fs::read_to_string(&file)?;
            let fresh = log.get(read..).unwrap_or_default();
            let outcome = Outcome::said_in(fresh);
            if let (None, Some(status)) = (&outcome, self.attempt.try_wait()?) {
                bail!("the attempt ended by itself, {status}:\n{fresh}");
            }
            Ok(outcome.map(|outcome| (log.len(), outcome)))
        })?;
        self.read = length;
        Ok(outcome)
    }

    pub(super) fn kill(&mut self, releases: &Releases) -> Result<()> {
        self.attempt.kill()?;
        self.attempt.wait()?;
        self.restart(releases)
    }

    pub(super) fn preempt(&mut self, releases: &Releases) -> Result<()> {
        self.stop()?;
        self.restart(releases)
    }

    fn signal(&self, signal: &str) -> Result<()> {
        step::run_quietly(Command::new("kill").args([signal, &self.attempt.id().to_string()]))
    }

    fn stop(&mut self) -> Result<()> {
        self.signal("-TERM")?;
        let status = self.attempt.wait()?;
        match status.code() {
            Some(143) => Ok(()),
            _ => bail!("SIGTERM ended the attempt with {status}; its log is {}", self.log().display()),
        }
    }

    fn restart(&mut self, releases: &Releases) -> Result<()> {
        // What is in the place of the plugin may be no plugin at all, which no attempt can begin with.
        if !releases.is_plugin(&fs::read(self.file())?) {
            fs::write(self.file(), releases.first())?;
        }
        self.begin(&[&options(PAUSE_MS, CONFIG)])
    }

    fn begin(&mut self, config: &[&str]) -> Result<()> {
        self.attempts += 1;
        self.attempt = start(&self.folder, self.attempts, config)?;
        self.read = 0;
        self.begun()
    }

    /// Waits until the attempt has read its plugin and says where it begins.
    fn begun(&mut self) -> Result<()> {
        let log = self.log();
        until("the attempt does not begin", PATIENCE, || {
            if let Some(status) = self.attempt.try_wait()? {
                bail!("the attempt did not begin, {status}; its log is {}", log.display());
            }
            Ok(fs::read_to_string(&log)?.contains("\n  start ").then_some(()))
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("job.wasm")
    }

    fn log(&self) -> PathBuf {
        log(&self.folder, self.attempts)
    }

    /// The least of some looks: threads and files come and go with every save.
    pub(super) fn size(&self) -> Result<Size> {
        let mut least = self.look()?;
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            let look = self.look()?;
            least.threads = least.threads.min(look.threads);
            least.workers = least.workers.min(look.workers);
            least.files = least.files.min(look.files);
        }
        Ok(least)
    }

    fn look(&self) -> Result<Size> {
        let process = PathBuf::from(format!("/proc/{}", self.attempt.id()));
        let status = fs::read_to_string(process.join("status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident_kb = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        // A thread may end while it is looked at.
        let names = fs::read_dir(process.join("task"))?.flatten();
        let names = names.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        let (workers, threads): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("tokio"));
        Ok(Size {
            resident_kb: resident_kb.context("the process says nothing of its memory")?,
            threads: threads.len(),
            workers: workers.len(),
            files: fs::read_dir(process.join("fd"))?.count(),
        })
    }

    /// Lets the training come to an end soon, and compares what it has come to; answers how many steps that were.
    pub(super) fn finish(&mut self, releases: &Releases) -> Result<u64> {
        self.stop()?;
        let epochs = self.next_step()? / STEPS_AN_EPOCH + 2;
        let config = format!(r#"{{"epochs": {epochs}}}"#);
        fs::write(self.file(), releases.first())?;
        self.begin(&[&options(0, &config), "--accept-changed", "config"])?;
        let status = self.attempt.wait()?;
        if !status.success() {
            bail!("the last attempt ended with {status}; its log is {}", self.log().display());
        }

        let volume = self.folder.join("volume");
        let undisturbed = self.folder.join("reference");
        reference::run(&String::from_utf8(output(&volume, TAKEN)?)?, &config, &undisturbed)?;
        for name in OUTPUTS {
            if reference::output_of(&undisturbed, name)? != output(&volume, name)? {
                let (folder, undisturbed) = (self.folder.display(), undisturbed.display());
                bail!("{name} differs from what the same releases come to undisturbed: {folder}, {undisturbed}");
            }
        }
        Ok(epochs * STEPS_AN_EPOCH)
    }

    /// Of the newest checkpoint.
    fn next_step(&self) -> Result<u64> {
        let shown = String::from_utf8(said(&["checkpoint", "show"], &self.folder.join("volume"), &[])?)?;
        let before = shown.split_once(" is the next to run").and_then(|(before, _)| before.split_whitespace().last());
        before.and_then(|step| step.parse().ok()).with_context(|| format!("no checkpoint names its step:\n{shown}"))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.attempt.kill();
        let _ = self.attempt.wait();
    }
}

/// One of the outputs of the job on a volume.
pub(super) fn output(volume: &Path, name: &str) -> Result<Vec<u8>> {
    said(&["output", "cat"], volume, &[name])
}

/// What a command says of a volume.
fn said(command: &[&str], volume: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut look = host::command();
    let said = look.args(command).arg(volume).args(arguments).stderr(Stdio::inherit()).output()?;
    if said.status.success() { Ok(said.stdout) } else { bail!("{} ended with {}", command.join(" "), said.status) }
}

/// What a release is given, with so long a pause before each step.
fn options(pause_ms: u32, digits: &str) -> String {
    format!(r#"{{"pause_ms": {pause_ms}, "digits": {digits}}}"#)
}

fn log(folder: &Path, attempt: u32) -> PathBuf {
    folder.join(format!("attempt-{attempt}.log"))
}

fn start(folder: &Path, attempt: u32, config: &[&str]) -> Result<Child> {
    let mut run = host::command();
    run.arg("run").arg(folder.join("job.wasm")).args(["--watch", "--every", "1s", "--seed", SEED]);
    run.args(["--memory-limit", "256MiB", "--step-timeout", "1s", "--max-stalled", "1000"]);
    run.arg("--input").arg(input()).arg("--config").args(config);
    run.arg("--volume").arg(folder.join("volume")).arg("--scratch").arg(folder.join("scratch"));
    let log = File::create(log(folder, attempt))?;
    Ok(run.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}
