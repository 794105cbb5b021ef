//! Hundreds of changes of plugin in one running `digits`, good and bad, with preemptions and kills among them: every step was run
//! by some good release, once, on the state that the step before it left.
//!
//! ```text
//! releases   what is put in the place of the plugin
//! job        the job: attempts, their logs, what their processes hold
//! reference  the same releases as one plugin, undisturbed
//! ```
//!
//! Which release ran which steps is among the outputs. The same sequence is then run in one piece, and has to come to the same network, to the
//! bit.
//!
//! A release that traps in `start` is no case of its own: a change calls `restore`, and never `start`. What traps before
//! either is a component that cannot become an instance.

mod job;
mod reference;
mod releases;

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use super::ledger::Ledger;
use crate::{host, plugins};
use job::{Job, Outcome, Size};
use releases::Releases;

/// How many changes.
#[derive(Clone, Copy)]
struct Extent {
    changes: u32,
    /// Changes in one process before anything is stopped or killed, in which nothing may grow.
    undisturbed: u32,
    /// From here on it has what it keeps: threads, buffers.
    warm: u32,
}

const LONG: Extent = Extent { changes: 500, undisturbed: 120, warm: 40 };
/// Too few to tell growth from warming up.
const BRIEF: Extent = Extent { changes: 20, undisturbed: 4, warm: u32::MAX };

/// A component's initial memory is an open file, and a guest on the device opens its folders a second time; how many there are depends on which plugins are
/// at hand.
const IMAGES: usize = 8;
/// Threads that do a guest's file operations: as many as it once had at the same time, which a busy machine makes more.
const WORKERS: usize = 16;
/// What the allocator may keep on top.
const GROWTH_KB: u64 = 16 << 10;

/// Runs it, and prints what happened.
pub(super) fn run() -> Result<()> {
    plugins::build()?;
    host::build()?;
    prove(LONG)
}

/// A few changes, for CI, where all is built.
pub(crate) fn brief() -> Result<()> {
    prove(BRIEF)
}

fn prove(extent: Extent) -> Result<()> {
    let mut ledger = Ledger::default();
    ledger.check(&format!("{} changes of plugin in a running `digits`", extent.changes), || changes(extent));
    ledger.end()
}

/// Makes them all; answers what came of them.
fn changes(extent: Extent) -> Result<String> {
    let releases = Releases::read()?;
    let mut job = Job::new(&releases)?;
    let mut chance = Chance(20_261_130);
    let mut count = Count::default();
    let mut warm = None;
    for change in 0..extent.changes {
        let disturbed = change >= extent.undisturbed;
        thread::sleep(Duration::from_millis(chance.below(30)));
        job.change(&releases, &mut chance)?;
        match chance.below(10) {
            0 if disturbed => {
                count.kills += 1;
                job.kill(&releases)?;
            }
            1 if disturbed => {
                count.preemptions += 1;
                job.preempt(&releases)?;
            }
            _ => count.add(&job.settle()?),
        }
        if change == extent.warm {
            warm = Some(job.size()?);
        }
        if let (Some(warm), true) = (&warm, change + 1 == extent.undisturbed) {
            no_growth(warm, &job.size()?)?;
        }
        if (change + 1) % 50 == 0 {
            println!("   {} of {} changes: {count}", change + 1, extent.changes);
        }
    }
    let steps = job.finish(&releases)?;
    Ok(format!("in {steps} steps: {count}"))
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

impl Count {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Taken => self.taken += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Same => self.same += 1,
        }
    }
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

fn no_growth(before: &Size, after: &Size) -> Result<()> {
    println!(
        "   resident {} → {} kB, threads {} → {} and for files {} → {}, open files {} → {}",
        before.resident_kb,
        after.resident_kb,
        before.threads,
        after.threads,
        before.workers,
        after.workers,
        before.files,
        after.files
    );
    if after.resident_kb > before.resident_kb + GROWTH_KB
        || after.threads > before.threads
        || after.workers > before.workers + WORKERS
        || after.files > before.files + IMAGES
    {
        bail!("the process has grown");
    }
    Ok(())
}
