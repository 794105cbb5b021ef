//! `digits` on the CPU device, against the same training in plain Rust loops without a host.
//!
//! *Subject*: `Guest::step` of the component: seventeen launches and products of small matrices a step, on one thread. *Baseline*: a program of its own
//! (`plugins/digits/examples/natively`) built in the same profile for the machine that rustc assumes, x86-64 with SSE2. Both
//! read the same input and write a line an epoch. Neither starts or saves anything.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Device, DeviceError};
use steadfast::plugin::{Guest, GuestEvents, GuestLevel, GuestSettings, GuestStream, JobInfo, Runtime, Step};

use crate::measure::{Row, cpu_of, cpu_seconds, in_turn};
use crate::places;

/// Two epochs.
const STEPS: u32 = 90;
const ROUNDS: usize = 25;
const CONFIG: &str = r#"{"epochs": 1000000}"#;

pub fn figures() -> Result<Vec<Row>> {
    let folder = places::on_disk()?;
    let input = places::repository().join("plugins/digits/data");
    let outputs = [folder.path().join("guest"), folder.path().join("native")];
    outputs.iter().try_for_each(std::fs::create_dir)?;

    let plugin = Runtime::new(None)?.load(&places::component("digits")?, &|_| {})?;
    let settings = GuestSettings { input: Some(input.clone()), ..settings(outputs[0].clone()) };
    let mut guest = plugin.instantiate(settings)?;
    guest.start(&job(), CONFIG)?;

    let mut native = Native::start(Command::new(places::native_digits()?).args([&input, &outputs[1]]).arg(CONFIG))?;
    let rounds = in_turn(
        &mut (&mut guest, &mut native),
        ROUNDS,
        |(guest, _)| cpu_seconds(|| steps(guest)),
        |(_, native)| native.steps(STEPS),
    )?;
    native.end()?;
    Ok(vec![rounds.row("a step of `digits` on the device : in plain loops", f64::from(STEPS), None)])
}

fn steps(guest: &mut Guest) -> Result<()> {
    for _ in 0..STEPS {
        let Step::More { .. } = guest.step()? else { bail!("the guest is done too early") };
    }
    Ok(())
}

/// Who the guests of these figures are told that they are.
pub fn job() -> JobInfo {
    JobInfo { name: "figures".to_owned(), task_index: 0, task_count: 1, attempt: 0, seed: 1 }
}

/// What they get: room enough, and nobody who listens.
pub fn settings(output: PathBuf) -> GuestSettings {
    let room = 1 << 30;
    GuestSettings {
        input: None,
        output,
        memory_limit: room,
        state_limit: room,
        device: Some(Arc::new(device)),
        device_memory: room,
        seed: 1,
        events: Arc::new(Deaf),
    }
}

/// The CPU device on this thread alone.
fn device() -> Result<Box<dyn Device>, DeviceError> {
    // As in a run, what was compiled once is at hand.
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures"));
    let settings =
        Settings { memory_bytes: 1 << 30, cores: NonZeroUsize::MIN, cache, canonical_nans: false, vectors: true };
    match CpuDevice::open(&settings) {
        Ok(device) => Ok(Box::new(device)),
        Err(error) => Err(DeviceError::Lost(error.to_string())),
    }
}

/// Listens to nothing.
pub struct Deaf;

impl GuestEvents for Deaf {
    fn line(&self, _: GuestStream, _: &str) {}
    fn log(&self, _: GuestLevel, _: &str) {}
    fn metric(&self, _: &str, _: f64) {}
}

/// What the native program says when the steps are taken.
const DONE: &str = "taken";

/// Whether a process sleeps.
fn waits(process: &str) -> Result<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    Ok(stat.rsplit(')').next().is_some_and(|fields| fields.trim_start().starts_with('S')))
}

/// The native program, which takes steps on request.
struct Native {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Native {
    /// What it prints for people goes where its answers go, so other lines are passed over.
    fn start(command: &mut Command) -> Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start `natively`")?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, orders, answers })
    }

    /// The processor time that so many steps take. Between orders the program waits, so the account is exact.
    fn steps(&mut self, count: u32) -> Result<f64> {
        let process = self.child.id().to_string();
        let before = cpu_of(&process)?;
        writeln!(self.orders, "{count}")?;
        let mut line = String::new();
        while self.answers.read_line(&mut line)? > 0 {
            if line.trim() == DONE {
                while !waits(&process)? {
                    std::thread::yield_now();
                }
                return Ok(cpu_of(&process)? - before);
            }
            line.clear();
        }
        bail!("`natively` ended too early")
    }

    fn end(mut self) -> Result<()> {
        drop(self.orders);
        self.child.wait()?;
        Ok(())
    }
}
