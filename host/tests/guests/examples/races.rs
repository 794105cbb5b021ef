//! Goes through a door that others, and it itself, swap for a link to the outside while it goes: `/output/door`, `/input/door`.
//!
//! A step goes through all doors so many times. It is done when it came through some of them and found others closed often
//! enough, says how often, and is invalid if it ever read a secret.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, plugin};

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Ways through each door in a step.
    ways: u64,
    /// Steps at the least, and at the most.
    least: u64,
    most: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { ways: 200, least: 20, most: 5000 }
    }
}

#[derive(Serialize, Deserialize)]
struct Races {
    step: u64,
    config: Config,
    through: u64,
    closed: u64,
}

impl Races {
    fn count(&mut self, went: io::Result<()>) {
        match went {
            Ok(()) => self.through += 1,
            Err(_) => self.closed += 1,
        }
    }
}

impl Plugin for Races {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        fs::create_dir_all("/output/door")?;
        fs::write("/output/door/file", "inside")?;
        Ok(Self { step: 0, config, through: 0, closed: 0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        for _ in 0..self.config.ways {
            for door in ["/output/door", "/input/door", "/output/own"] {
                let file = format!("{door}/file");
                match fs::read_to_string(&file) {
                    Ok(text) if text.contains("secret") => return Err(Error::invalid(format!("{file} is a secret"))),
                    read => self.count(read.map(drop)),
                }
                let planted = fs::write(format!("{door}/planted"), "planted");
                self.count(planted);
                let _ = fs::create_dir(format!("{door}/planted folder"));
                let _ = fs::remove_file(format!("{door}/victim"));
                let _ = fs::rename(format!("{door}/victim"), "/output/stolen");
                let _ = fs::hard_link(format!("{door}/file"), "/output/linked");
                let _ = fs::remove_file("/output/linked");
            }
            self.swap_own();
        }
        self.step += 1;
        let Config { least, most, .. } = self.config;
        let both = self.through.min(self.closed) > 100 && self.step >= least;
        if both || self.step >= most {
            // Else what is left there could be a link, which is not kept.
            let _ = fs::remove_file("/output/own");
            Ok(Outcome::done(format!("through {}, closed {}", self.through, self.closed)))
        } else {
            Ok(Outcome::progress(self.step, most))
        }
    }
}

impl Races {
    /// A folder, a link out of `/output`, a folder again.
    #[expect(deprecated, reason = "the only stable way to make a symbolic link on WASI")]
    fn swap_own(&self) {
        let _ = fs::remove_file("/output/own");
        let _ = fs::remove_dir_all("/output/own");
        if self.through.is_multiple_of(2) {
            let _ = fs::soft_link("../../../outside", "/output/own");
        } else {
            let _ = fs::create_dir("/output/aside");
            let _ = fs::rename("/output/aside", "/output/own");
        }
    }
}

plugin!(Races);
