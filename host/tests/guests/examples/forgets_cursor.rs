//! Wrong: its place in the data is not in the snapshot, so that a resume reads the beginning again and never the end.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Reading {
    step: u64,
    steps: u64,
    sum: u64,
    #[serde(skip)]
    cursor: u64,
}

impl Plugin for Reading {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, sum: 0, cursor: 0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        let row = self.cursor * self.cursor % 101;
        self.cursor += 1;
        self.sum += row;
        self.step += 1;
        append("rows.csv", &format!("{},{row},{}", self.step, self.sum))?;
        metric("sum", self.sum as f64);
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Reading);
