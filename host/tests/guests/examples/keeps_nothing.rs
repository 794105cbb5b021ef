//! Right, and without state: its snapshot has no sections. How far it came is told by the file that it writes.

use std::fs;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Reader, Result, Writer, output, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct KeepsNothing {
    steps: u64,
}

impl Plugin for KeepsNothing {
    type Config = Steps;

    fn start(_job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { steps: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        let done = fs::read_to_string(output("steps.log")).map_or(0, |text| text.lines().count() as u64);
        append("steps.log", &format!("step {done}"))?;
        Ok(counted(done + 1, self.steps))
    }

    fn snapshot(&self, _into: &mut Writer<'_>) -> Result<()> {
        Ok(())
    }

    fn restore(_job: &Job, config: Steps, from: &Reader<'_>) -> Result<Self> {
        match from.sections().as_slice() {
            [] => Ok(Self { steps: config.steps }),
            sections => Err(Error::invalid(format!("sections that nobody wrote: {sections:?}"))),
        }
    }
}

plugin!(KeepsNothing);
