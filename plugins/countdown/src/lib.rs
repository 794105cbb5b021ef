//! Counts down in steps that are each busy for so many milliseconds: the smallest job worth preempting.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    steps: u64,
    busy: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Countdown {
    left: u64,
    config: Config,
}

impl Plugin for Countdown {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { left: config.steps, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        if self.left == 0 {
            return Ok(Outcome::done("lift-off"));
        }
        println!("{} to go", self.left);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(self.config.busy.unwrap_or(0)) {}
        self.left -= 1;
        Ok(Outcome::progress(self.config.steps - self.left, self.config.steps))
    }
}

plugin!(Countdown);
