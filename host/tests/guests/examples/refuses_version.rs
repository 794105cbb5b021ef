//! A second release of `writes_version` that forgot about the first: state of version 1 is incompatible.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Second {
    step: u64,
    steps: u64,
}

impl Plugin for Second {
    type Config = Steps;
    const STATE_VERSION: u32 = 2;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        append("sums.csv", &format!("{}", self.step))?;
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Second);
