//! Right, and large: so many MiB in so many sections, of which one byte in 4096 changes each step.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Reader, Result, Writer, plugin};
use test_guests::{append, counted, fill};

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    mebibytes: usize,
    sections: usize,
    /// Whether compression finds nothing in it.
    random: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, mebibytes: 64, sections: 1, random: true }
    }
}

#[derive(Serialize, Deserialize)]
struct BigState {
    step: u64,
    config: Config,
    #[serde(skip)]
    sections: Vec<Vec<u8>>,
}

impl BigState {
    /// FNV over one byte in 4096: enough to see that every step is in there.
    fn sum(&self) -> u64 {
        let bytes = self.sections.iter().flat_map(|section| section.iter().step_by(4096));
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    }
}

fn name(section: usize) -> String {
    format!("part-{section}")
}

impl Plugin for BigState {
    type Config = Config;

    fn start(job: &Job, config: Config) -> Result<Self> {
        if config.sections == 0 {
            return Err(Error::invalid("configuration, at `sections`: must be at least 1"));
        }
        let mut sections = vec![vec![0; (config.mebibytes << 20) / config.sections]; config.sections];
        if config.random {
            sections.iter_mut().enumerate().for_each(|(index, section)| fill(section, job.seed ^ index as u64));
        }
        Ok(Self { step: 0, config, sections })
    }

    fn step(&mut self) -> Result<Outcome> {
        for byte in self.sections.iter_mut().flat_map(|section| section.iter_mut().step_by(4096)) {
            *byte = byte.wrapping_add(1);
        }
        self.step += 1;
        append("sums.csv", &format!("{},{:016x}", self.step, self.sum()))?;
        Ok(counted(self.step, self.config.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        into.encode("counter", self)?;
        for (index, section) in self.sections.iter().enumerate() {
            into.write(&name(index), section);
        }
        Ok(())
    }

    fn restore(_job: &Job, _config: Config, from: &Reader<'_>) -> Result<Self> {
        let mut guest: Self = from.decode("counter")?;
        guest.sections = (0..guest.config.sections).map(|index| from.bytes(&name(index))).collect::<Result<_>>()?;
        Ok(guest)
    }
}

plugin!(BigState);
