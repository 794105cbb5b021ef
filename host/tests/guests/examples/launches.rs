//! Right, and does nothing but launch a kernel that does nothing: a million times a step, unless `{"launches": 1000}` says otherwise.

use serde::{Deserialize, Serialize};
use steadfast_guest::device::Module;
use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};

const PTX: &str = ".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }";

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    launches: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { launches: 1_000_000 }
    }
}

#[derive(Serialize, Deserialize)]
struct Launches {
    launches: u64,
    step: u64,
    #[serde(skip)]
    kernels: Module,
}

impl Plugin for Launches {
    type Config = Config;

    fn start(_job: &Job, Config { launches }: Config) -> Result<Self> {
        Ok(Self { launches, step: 0, kernels: Module::from_ptx(PTX)? })
    }

    fn resumed(&mut self, _job: &Job, _config: Config) -> Result<()> {
        self.kernels = Module::from_ptx(PTX)?;
        Ok(())
    }

    fn step(&mut self) -> Result<Outcome> {
        for _ in 0..self.launches {
            self.kernels.kernel("nothing").launch()?;
        }
        self.step += 1;
        Ok(Outcome::more(self.step))
    }
}

plugin!(Launches);
