//! Releases of one plugin, good and bad, that go on from one another's state: what a swap has to tell apart.
//!
//! The state has one layout, and a version for each good release, all of which every release says that it reads. So nothing but
//! behaviour decides. What comes out tells which release took which step: each mixes its own number into a running hash, reports it as
//! the metric `version`, and writes both with every step.

use std::fs;
use std::thread;
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Reader, Result, STATE_SECTION, Writer, metric, output};

use crate::{append, counted};

/// A line a step: the step, the release that took it, the hash after it.
pub const LINES: &str = "steps.csv";
/// The newest of those lines, in a file that is written anew each time.
pub const LATEST: &str = "latest.txt";

/// The configuration of every release, good or bad: a swap does not change it.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// How many steps there are.
    pub steps: u64,
    /// How long a step sleeps, in milliseconds.
    pub pause_ms: u64,
    /// From which next step on `swap_snapshot_fails` traps in `snapshot`.
    pub snapshot_fails_from: u64,
    /// Lets `swap_endless` sleep instead of compute: it is then in a call of the host, which nobody can end.
    pub sleeps: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 20, pause_ms: 0, snapshot_fails_from: 0, sleeps: false }
    }
}

/// What one release does.
pub trait Release: 'static {
    /// Told apart by it: mixed into the hash, reported, written.
    const NUMBER: u32;
    /// Of the state that it writes.
    const STATE_VERSION: u32;

    /// What it does in `restore`, once the state was read.
    fn restored() -> Result<()> {
        Ok(())
    }

    /// What it does at the begin of its first step since it was started or restored.
    fn first_step(_options: &Options) -> Result<()> {
        Ok(())
    }

    /// What it does at the begin of `snapshot`.
    fn snapshot(_options: &Options, _next_step: u64) -> Result<()> {
        Ok(())
    }
}

/// A plugin of the release `R`.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Swapped<R: Release> {
    step: u64,
    hash: u64,
    generator: Pcg32,
    #[serde(skip)]
    options: Options,
    #[serde(skip)]
    has_stepped: bool,
    #[serde(skip)]
    release: std::marker::PhantomData<R>,
}

impl<R: Release> Plugin for Swapped<R> {
    type Config = Options;
    const STATE_VERSION: u32 = R::STATE_VERSION;
    const READS: &'static [u32] = &[1, 2, 3];

    fn start(job: &Job, options: Options) -> Result<Self> {
        let generator = Pcg32::seed_from_u64(job.seed);
        Ok(Self { step: 0, hash: 0, generator, options, has_stepped: false, release: Default::default() })
    }

    fn step(&mut self) -> Result<Outcome> {
        if !self.has_stepped {
            R::first_step(&self.options)?;
            self.has_stepped = true;
        }
        thread::sleep(Duration::from_millis(self.options.pause_ms));
        let drawn = u64::from(self.generator.next_u32()) + u64::from(R::NUMBER);
        self.hash = (self.hash ^ drawn).wrapping_mul(0x0000_0100_0000_01b3);
        self.step += 1;
        let line = format!("{},{},{:016x}", self.step, R::NUMBER, self.hash);
        append(LINES, &line)?;
        fs::write(output(LATEST), line)?;
        metric("version", f64::from(R::NUMBER));
        Ok(counted(self.step, self.options.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        R::snapshot(&self.options, self.step)?;
        into.encode(STATE_SECTION, self)
    }

    /// All versions have one layout.
    fn restore(_job: &Job, options: Options, from: &Reader<'_>) -> Result<Self> {
        let guest = Self { options, ..from.decode(STATE_SECTION)? };
        R::restored().map(|()| guest)
    }
}
