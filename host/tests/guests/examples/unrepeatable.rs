//! Not repeatable in itself: two undisturbed runs differ, since what it computes depends on the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Timing {
    step: u64,
    steps: u64,
    nanoseconds: u128,
}

impl Plugin for Timing {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, nanoseconds: 0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(Error::retryable)?;
        self.nanoseconds = now.as_nanos();
        self.step += 1;
        append("times.csv", &format!("{},{}", self.step, self.nanoseconds))?;
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Timing);
