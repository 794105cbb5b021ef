//! Hundreds of changes of plugin in one running job, good and bad, with preemptions and kills among them: every step was run by
//! some good release, once, on the state that the step before it left.
//!
//! The outputs say which release ran which step, and chain a hash over all of them. The same sequence of releases is then run
//! natively and undisturbed (`swap_reference`), and has to come to the same bytes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::ledger::Ledger;
use super::wait::{Patience, until};
use crate::{host, plugins, step};

const CHANGES: u32 = 500;
/// Changes in one process before anything is stopped or killed, in which nothing may grow.
const UNDISTURBED: u32 = 120;
/// From here on it has what it keeps: threads, buffers.
const WARM: u32 = 40;
/// A component's initial memory is an open file; how many there are depends on which plugins are at hand.
const IMAGES: usize = 4;
/// What the allocator may keep on top.
const GROWTH_KB: u64 = 16 << 10;
const SEED: &str = "7";
const CONFIG: &str = r#"{"steps": 1000000000, "pause_ms": 1}"#;
const GOOD: [&str; 3] = ["swap_good_a", "swap_good_b", "swap_good_c"];
const BAD: [&str; 7] = [
    "swap_traps_in_restore",
    "swap_traps_in_step",
    "swap_endless",
    "swap_refuses",
    "swap_hungry",
    "swap_scribbles",
    // Of another world.
    "command",
];
const PATIENCE: Patience = Patience { limit: Duration::from_secs(60), every: Duration::from_millis(5) };

/// Runs it, and prints what happened.
pub(super) fn run() -> Result<()> {
    plugins::build()?;
    host::build()?;
    let mut reference = step::cargo(["build", "--release", "-p", "test-guests", "--example", "swap_reference"]);
    step::run("reference", &mut reference)?;

    let mut ledger = Ledger::default();
    ledger.check(&format!("{CHANGES} changes of plugin"), changes);
    ledger.end()
}

/// Makes them all; answers what came of them.
fn changes() -> Result<String> {
    let mut job = Job::new()?;
    let mut chance = Chance(20_261_130);
    let mut count = Count::default();
    let mut warm = None;
    for change in 0..CHANGES {
        let disturbed = change >= UNDISTURBED;
        job.change(&mut chance)?;
        match chance.below(10) {
            0 if disturbed => job.kill(&mut count)?,
            1 if disturbed => job.preempt(&mut count)?,
            _ => job.settle(&mut count)?,
        }
        if change == WARM {
            warm = Some(job.size()?);
        }
        if let (Some(warm), true) = (&warm, change + 1 == UNDISTURBED) {
            no_growth(warm, &job.size()?)?;
        }
        if (change + 1) % 50 == 0 {
            println!("   {} of {CHANGES} changes: {count}", change + 1);
        }
    }
    let steps = job.finish()?;
    Ok(format!("in {steps} steps: {count}"))
}

/// What came of one change.
enum Outcome {
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

/// What came of all of them.
#[derive(Default)]
struct Count {
    taken: u32,
    refused: u32,
    same: u32,
    kills: u32,
    preemptions: u32,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { taken, refused, same, kills, preemptions } = self;
        write!(
            f,
            "{taken} taken, {refused} refused, {same} of what ran already; {kills} kills, {preemptions} preemptions"
        )
    }
}

/// Numbers that are the same in every run (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// What a process holds.
struct Size {
    resident_kb: u64,
    threads: u64,
    files: usize,
}

fn no_growth(before: &Size, after: &Size) -> Result<()> {
    println!(
        "   resident {} → {} kB, threads {} → {}, open files {} → {}",
        before.resident_kb, after.resident_kb, before.threads, after.threads, before.files, after.files
    );
    if after.resident_kb > before.resident_kb + GROWTH_KB
        || after.threads > before.threads
        || after.files > before.files + IMAGES
    {
        bail!("the process has grown");
    }
    Ok(())
}

struct Job {
    folder: PathBuf,
    attempt: Child,
    /// How much of the log was read.
    read: usize,
    attempts: u32,
}

impl Job {
    fn new() -> Result<Self> {
        let folder = step::target().join("swaps");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(folder.join("volume"))?,
        }
        fs::copy(plugins::guest(GOOD[0]), folder.join("job.wasm"))?;
        let attempt = start(&folder, 0)?;
        let mut job = Self { folder, attempt, read: 0, attempts: 0 };
        job.begun()?;
        Ok(job)
    }

    /// Puts another file in the place of the plugin's, now and then half of one.
    fn change(&self, chance: &mut Chance) -> Result<()> {
        let file = self.folder.join("job.wasm");
        let now = fs::read(&file)?;
        let mut bytes = now.clone();
        while bytes == now {
            let all: &[&str] = if chance.below(2) == 0 { &GOOD } else { &BAD };
            bytes = fs::read(plugins::guest(all[chance.below(all.len() as u64) as usize]))?;
            if chance.below(10) == 0 {
                bytes.truncate(bytes.len() / 2);
            }
        }
        let new = self.folder.join("job.new");
        fs::write(&new, bytes)?;
        Ok(fs::rename(new, file)?)
    }

    /// Waits until the job has come to terms with the file.
    fn settle(&mut self, count: &mut Count) -> Result<()> {
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
        match outcome {
            Outcome::Taken => count.taken += 1,
            Outcome::Refused => count.refused += 1,
            Outcome::Same => count.same += 1,
        }
        self.read = length;
        Ok(())
    }

    fn kill(&mut self, count: &mut Count) -> Result<()> {
        count.kills += 1;
        self.attempt.kill()?;
        self.attempt.wait()?;
        self.restart()
    }

    fn preempt(&mut self, count: &mut Count) -> Result<()> {
        count.preemptions += 1;
        self.stop()?;
        self.restart()
    }

    fn stop(&mut self) -> Result<()> {
        step::run_quietly(Command::new("kill").args(["-TERM", &self.attempt.id().to_string()]))?;
        let status = self.attempt.wait()?;
        match status.code() {
            Some(143) => Ok(()),
            _ => bail!("SIGTERM ended the attempt with {status}; its log is {}", self.log().display()),
        }
    }

    fn restart(&mut self) -> Result<()> {
        self.attempts += 1;
        // What is in the place of the plugin may be no plugin at all, which no attempt can begin with.
        let file = self.folder.join("job.wasm");
        let whole = [&GOOD[..], &BAD[..6]].concat().iter().any(|name| same(&file, &plugins::guest(name)));
        if !whole {
            fs::copy(plugins::guest(GOOD[0]), &file)?;
        }
        self.attempt = start(&self.folder, self.attempts)?;
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

    fn log(&self) -> PathBuf {
        log(&self.folder, self.attempts)
    }

    /// The least of some looks: threads and files come and go with every save.
    fn size(&self) -> Result<Size> {
        let mut least = self.look()?;
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            let look = self.look()?;
            least.threads = least.threads.min(look.threads);
            least.files = least.files.min(look.files);
        }
        Ok(least)
    }

    fn look(&self) -> Result<Size> {
        let process = PathBuf::from(format!("/proc/{}", self.attempt.id()));
        let status = fs::read_to_string(process.join("status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).context("no such field")
        };
        let files = fs::read_dir(process.join("fd"))?.count();
        Ok(Size { resident_kb: field("VmRSS:")?, threads: field("Threads:")?, files })
    }

    /// Stops the job and compares what it has come to; answers how many steps that were.
    fn finish(&mut self) -> Result<usize> {
        self.stop()?;
        let mut cat = host::command();
        cat.args(["output", "cat"]).arg(self.folder.join("volume")).arg("steps.csv");
        let found = cat.stderr(Stdio::inherit()).output()?.stdout;
        let text = String::from_utf8(found.clone())?;
        let numbers: Vec<_> = text.lines().filter_map(|line| line.split(',').nth(1)).collect();

        let output = self.folder.join("reference");
        fs::create_dir_all(&output)?;
        let mut reference = Command::new(step::target().join("release/examples/swap_reference"));
        let mut reference = reference.arg(SEED).arg(&output).stdin(Stdio::piped()).spawn()?;
        reference.stdin.take().context("no standard input")?.write_all(numbers.join("\n").as_bytes())?;
        if !reference.wait()?.success() {
            bail!("the reference failed");
        }
        if fs::read(output.join("steps.csv"))? != found {
            bail!("the outputs differ from those of the same releases undisturbed: {}", self.folder.display());
        }
        Ok(numbers.len())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.attempt.kill();
        let _ = self.attempt.wait();
    }
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

fn log(folder: &Path, attempt: u32) -> PathBuf {
    folder.join(format!("attempt-{attempt}.log"))
}

fn start(folder: &Path, attempt: u32) -> Result<Child> {
    let mut run = host::command();
    run.arg("run").arg(folder.join("job.wasm")).args(["--watch", "--every", "1s", "--seed", SEED, "--config", CONFIG]);
    run.args(["--memory-limit", "256MiB", "--step-timeout", "1s", "--max-stalled", "1000"]);
    run.arg("--volume").arg(folder.join("volume")).arg("--scratch").arg(folder.join("scratch"));
    let log = File::create(log(folder, attempt))?;
    Ok(run.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}
