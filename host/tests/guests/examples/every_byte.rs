//! Right: every byte of its state is of the current step. A save that mixes two steps is noticed in `restore`.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Reader, Result, Writer, metric, plugin};
use test_guests::{append, counted};

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, bytes: 1 << 20 }
    }
}

#[derive(Serialize, Deserialize)]
struct EveryByte {
    step: u64,
    steps: u64,
    #[serde(skip)]
    bytes: Vec<u8>,
}

/// Never the same for two steps that follow one another.
fn mark(step: u64) -> u8 {
    (step % 251) as u8
}

impl Plugin for EveryByte {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, bytes: vec![mark(0); config.bytes] })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        self.bytes.fill(mark(self.step));
        append("steps.log", &format!("step {}", self.step))?;
        metric("mark", f64::from(mark(self.step)));
        Ok(counted(self.step, self.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        into.encode("counter", self)?;
        into.write("bytes", &self.bytes);
        Ok(())
    }

    fn restore(_job: &Job, config: Config, from: &Reader<'_>) -> Result<Self> {
        let mut guest: Self = from.decode("counter")?;
        guest.bytes = from.bytes("bytes")?;
        if guest.bytes.len() != config.bytes {
            return Err(Error::invalid(format!("{} bytes came back, not {}", guest.bytes.len(), config.bytes)));
        }
        match guest.bytes.iter().position(|byte| *byte != mark(guest.step)) {
            Some(at) => Err(Error::invalid(format!("byte {at} is not of step {}", guest.step))),
            None => Ok(guest),
        }
    }
}

plugin!(EveryByte);
