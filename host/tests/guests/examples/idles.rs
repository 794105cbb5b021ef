//! Right, and empty: counts its steps and does nothing else in them, so that whatever time passes is the host's.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};
use test_guests::{Steps, counted};

#[derive(Serialize, Deserialize)]
struct Idle {
    step: u64,
    config: Steps,
}

impl Plugin for Idle {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        Ok(counted(self.step, self.config.steps))
    }
}

plugin!(Idle);
