//! Right: reports a metric in each of its calls. Only those of `start` and of steps are of the work; how often it is saved and
//! restored is not.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, STATE_SECTION, Writer, metric, plugin};
use test_guests::{Steps, counted};

#[derive(Serialize, Deserialize)]
struct Reporting {
    step: u64,
    steps: u64,
}

impl Plugin for Reporting {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        metric("start", 1.0);
        Ok(Self { step: 0, steps: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        metric("step", self.step as f64);
        self.step += 1;
        Ok(counted(self.step, self.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        metric("snapshot", self.step as f64);
        into.encode(STATE_SECTION, self)
    }

    fn resumed(&mut self, _job: &Job, _config: Steps) -> Result<()> {
        metric("restore", self.step as f64);
        Ok(())
    }
}

plugin!(Reporting);
