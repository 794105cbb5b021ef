//! Wrong: a random walk whose generator begins anew at its seed after a resume.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};
use test_guests::{Steps, append, counted};

#[derive(Serialize, Deserialize)]
struct Walk {
    step: u64,
    steps: u64,
    place: i64,
    #[serde(skip, default = "seedless")]
    generator: Pcg32,
}

fn seedless() -> Pcg32 {
    Pcg32::seed_from_u64(0)
}

impl Plugin for Walk {
    type Config = Steps;

    fn start(job: &Job, config: Steps) -> Result<Self> {
        Ok(Self { step: 0, steps: config.steps, place: 0, generator: Pcg32::seed_from_u64(job.seed) })
    }

    fn resumed(&mut self, job: &Job, _config: Steps) -> Result<()> {
        self.generator = Pcg32::seed_from_u64(job.seed);
        Ok(())
    }

    fn step(&mut self) -> Result<Outcome> {
        self.place += i64::from(self.generator.next_u32() % 2001) - 1000;
        self.step += 1;
        append("walk.csv", &format!("{},{}", self.step, self.place))?;
        metric("place", self.place as f64);
        Ok(counted(self.step, self.steps))
    }
}

plugin!(Walk);
