//! Right: the second release of `writes_version`, with state of version 2, which reads that of version 1.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, decode, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct First {
    step: u64,
    steps: u64,
    sum: u32,
}

#[derive(Serialize, Deserialize)]
struct Second {
    sum: u64,
    step: u64,
    steps: u64,
}

impl Plugin for Second {
    type Config = Steps;
    const STATE_VERSION: u32 = 2;
    const READS: &'static [u32] = &[1, 2];

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { sum: 0, step: 0, steps: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        self.sum += self.step;
        append("sums.csv", &format!("{},{}", self.step, self.sum))?;
        Ok(counted(self.step, self.steps))
    }

    fn migrate(version: u32, bytes: &[u8]) -> Result<Self> {
        match version {
            1 => decode::<First>(bytes).map(|first| Self {
                sum: u64::from(first.sum),
                step: first.step,
                steps: first.steps,
            }),
            other => Err(Error::incompatible_state(format!("state of version {other}, which is none of ours"))),
        }
    }
}

plugin!(Second);
