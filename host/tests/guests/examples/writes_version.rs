//! Right: the first release of a plugin, with state of version 1. `reads_version` is the second.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct First {
    step: u64,
    steps: u64,
    sum: u32,
}

impl Plugin for First {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, sum: 0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        self.sum += self.step as u32;
        append("sums.csv", &format!("{},{}", self.step, self.sum))?;
        Ok(counted(self.step, self.steps))
    }
}

plugin!(First);
