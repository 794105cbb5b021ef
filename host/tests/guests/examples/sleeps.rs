//! Right, and slow: sleeps for so many milliseconds in each step, in a call to the host that takes as long.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};
use test_guests::{append, counted};

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    milliseconds: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, milliseconds: 100 }
    }
}

#[derive(Serialize, Deserialize)]
struct Sleeping {
    step: u64,
    config: Config,
}

impl Plugin for Sleeping {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { step: 0, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        println!("step {} begins", self.step);
        thread::sleep(Duration::from_millis(self.config.milliseconds));
        self.step += 1;
        append("steps.log", &format!("step {}", self.step))?;
        metric("step", self.step as f64);
        Ok(counted(self.step, self.config.steps))
    }
}

plugin!(Sleeping);
