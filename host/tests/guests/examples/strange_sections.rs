//! Writes the sections that its configuration names, in turn and in pieces, whether the contract allows them or not.
//!
//! With names that are allowed (1 to 255 bytes) it is right: `restore` checks that all came back, whole and in order. A name that
//! is given twice is one section, written to twice as often.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Reader, Result, Writer, plugin};
use test_guests::{append, counted};

#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    names: Vec<String>,
    /// This many more, named by their numbers.
    numbered: u64,
    /// Each is written in so many pieces, its own step number each; 0 leaves it empty.
    pieces: usize,
}

impl Default for Config {
    fn default() -> Self {
        let names = ["plain", "with space", "../up", "a/b", "größe 寸法", "new\nline"].map(str::to_owned).to_vec();
        Self { steps: 20, names, numbered: 0, pieces: 3 }
    }
}

#[derive(Serialize, Deserialize)]
struct Sections {
    step: u64,
    config: Config,
}

impl Config {
    fn all(&self) -> Vec<String> {
        self.names.iter().cloned().chain((0..self.numbered).map(|number| number.to_string())).collect()
    }
}

impl Plugin for Sections {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { step: 0, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        self.step += 1;
        append("steps.log", &format!("step {}", self.step))?;
        Ok(counted(self.step, self.config.steps))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        into.encode("step", &self.step)?;
        let names = self.config.all();
        names.iter().for_each(|name| into.write(name, &[]));
        for _ in 0..self.config.pieces {
            names.iter().for_each(|name| into.write(name, &self.step.to_le_bytes()));
        }
        Ok(())
    }

    fn restore(_job: &Job, config: Config, from: &Reader<'_>) -> Result<Self> {
        let step: u64 = from.decode("step")?;
        let names = config.all();
        let mut times = HashMap::new();
        names.iter().for_each(|name| *times.entry(name).or_insert(0) += 1);
        let mut seen = HashSet::new();
        let wanted: Vec<_> = names.iter().filter(|name| seen.insert(*name)).collect();
        let have = from.sections();
        if have.first().map(String::as_str) != Some("step") || !have[1..].iter().eq(wanted) {
            return Err(Error::invalid(format!("{} sections came back, others or in another order", have.len())));
        }
        let bytes = |name: &String| step.to_le_bytes().repeat(config.pieces * times[name]);
        if let Some(name) = names.iter().find(|name| from.bytes(name) != Ok(bytes(name))) {
            return Err(Error::invalid(format!("section `{name}` came back with other bytes")));
        }
        Ok(Self { step, config })
    }
}

plugin!(Sections);
