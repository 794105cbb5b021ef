//! Releases of `digits`, good and bad, that go on from one another's state: a real training whose code changes while it runs.
//!
//! Source for source it is `digits`, but that each release has a schedule of its own for the learning rate, whatever the
//! configuration says. The rate is a function of the place in the training alone, so the weights that come out are a function of which
//! release ran which step. That is written down in [`TAKEN`], with which the same sequence can be run again.

/// Included, and not a dependency: a component exports one plugin, and the package `digits` exports its own.
#[path = "../../../../plugins/digits/src/lib.rs"]
pub mod digits;

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result};

use crate::append;
use digits::{Digits, Schedule};

/// In `/output`: a line for each time that a release began or went on, with the step that it ran first and its number.
pub const TAKEN: &str = "taken.csv";

/// The configuration of every release.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// That of `digits`.
    pub digits: digits::Config,
    /// How long a step sleeps, in milliseconds.
    pub pause_ms: u64,
}

/// What one release does.
pub trait Release: 'static {
    /// Told apart by it.
    const NUMBER: u32;
    /// How its learning rate changes.
    const SCHEDULE: Schedule = Schedule::Constant;

    /// What it does in `restore`, once the state was read.
    fn restored() -> Result<()> {
        Ok(())
    }

    /// What it does at the begin of its first step since it was started or restored.
    fn first_step() {}
}

/// The good release 1: the rate is what the configuration says, all along.
pub struct Constant;

impl Release for Constant {
    const NUMBER: u32 = 1;
}

/// The good release 2.
pub struct Falling;

impl Release for Falling {
    const NUMBER: u32 = 2;
    const SCHEDULE: Schedule = Schedule::Cosine { floor: 0.0 };
}

/// The good release 3.
pub struct Halving;

impl Release for Halving {
    const NUMBER: u32 = 3;
    const SCHEDULE: Schedule = Schedule::Cosine { floor: 0.0025 };
}

/// `digits` as the release `R` trains it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Trained<R: Release> {
    digits: Digits,
    step: u64,
    #[serde(skip)]
    pause: Duration,
    #[serde(skip)]
    has_stepped: bool,
    #[serde(skip)]
    release: std::marker::PhantomData<R>,
}

impl<R: Release> Plugin for Trained<R> {
    type Config = Options;

    fn start(job: &Job, options: Options) -> Result<Self> {
        let digits = Digits::start(job, options.digits.with_schedule(R::SCHEDULE))?;
        let pause = Duration::from_millis(options.pause_ms);
        Ok(Self { digits, step: 0, pause, has_stepped: false, release: Default::default() })
    }

    fn resumed(&mut self, job: &Job, options: Options) -> Result<()> {
        self.pause = Duration::from_millis(options.pause_ms);
        self.digits.resumed(job, options.digits.with_schedule(R::SCHEDULE))?;
        R::restored()
    }

    fn step(&mut self) -> Result<Outcome> {
        if !self.has_stepped {
            R::first_step();
            append(TAKEN, &format!("{},{}", self.step, R::NUMBER))?;
            self.has_stepped = true;
        }
        thread::sleep(self.pause);
        self.step += 1;
        self.digits.step()
    }
}
