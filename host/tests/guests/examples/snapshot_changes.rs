//! Wrong: being saved changes what it computes, so the result depends on how often it was.

use std::cell::Cell;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, STATE_SECTION, Writer, metric, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Counting {
    step: u64,
    steps: u64,
    snapshots: Cell<u64>,
}

impl Plugin for Counting {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, snapshots: Cell::new(0) })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        append("snapshots.csv", &format!("{},{}", self.step, self.snapshots.get()))?;
        metric("snapshots", self.snapshots.get() as f64);
        Ok(counted(self.step, self.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        self.snapshots.set(self.snapshots.get() + 1);
        into.encode(STATE_SECTION, self)
    }
}

plugin!(Counting);
