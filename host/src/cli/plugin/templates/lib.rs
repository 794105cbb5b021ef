//! A job in steps. The struct is the state: all of it, and nothing else, outlives a preemption.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};

#[derive(Deserialize)]
struct Config {
    steps: u64,
}

#[derive(Serialize, Deserialize)]
struct Trainer {
    step: u64,
    steps: u64,
    weight: f64,
}

impl Plugin for Trainer {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, weight: 0.0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.weight -= 0.1 * (self.weight - 3.0);
        self.step += 1;
        metric("loss", (self.weight - 3.0).powi(2));
        let done = self.step >= self.steps;
        Ok(if done { Outcome::done(self.weight) } else { Outcome::progress(self.step, self.steps) })
    }
}

plugin!(Trainer);

#[test]
fn it_is_the_same_when_resumed_before_every_step() {
    steadfast_guest::testing::assert_resumes::<Trainer>(r#"{"steps": 20}"#);
}
