//! Wrong: gathers lines and writes them every few steps; those that were gathered at a snapshot are lost after a resume.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Buffering {
    step: u64,
    steps: u64,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Plugin for Buffering {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, lines: Vec::new() })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.lines.push(format!("step {}", self.step));
        self.step += 1;
        if self.step.is_multiple_of(4) || self.step == self.steps {
            append("lines.log", &self.lines.join("\n"))?;
            self.lines.clear();
        }
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Buffering);
