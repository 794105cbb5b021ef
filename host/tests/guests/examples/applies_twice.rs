//! Wrong: takes its last batch once more after a resume, since it believes that it was interrupted in the middle of it.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Training {
    step: u64,
    steps: u64,
    weight: f64,
}

impl Training {
    /// Towards a target that differs for each batch.
    fn apply(&mut self, batch: u64) {
        self.weight += 0.1 * ((batch * 7 % 13) as f64 - self.weight);
    }
}

impl Plugin for Training {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, weight: 0.0 })
    }

    fn resumed(&mut self, _job: &Job, _config: Steps) -> Result<()> {
        if let Some(last) = self.step.checked_sub(1) {
            self.apply(last);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Outcome> {
        self.apply(self.step);
        self.step += 1;
        append("weights.csv", &format!("{},{}", self.step, self.weight))?;
        metric("weight", self.weight);
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Training);
