//! Right: a random walk that draws from a generator of its own, from WASI's random bytes, and keeps a `HashMap`.
//!
//! What it writes depends on the position of WASI's generator, which is the host's to save, and never on the map's order.

use std::collections::HashMap;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, metric, plugin};
use test_guests::{Steps, append, counted};

mod bindings {
    //! WASI's random bytes, which the standard library does not offer.
    wit_bindgen::generate!({
        inline: "
            package steadfast:test-guests;
            world random { import wasi:random/random@0.2.0; }
            package wasi:random@0.2.0 {
                interface random {
                    get-random-bytes: func(len: u64) -> list<u8>;
                    get-random-u64: func() -> u64;
                }
            }
        ",
        world: "random",
        generate_all,
    });
}

use bindings::wasi::random::random::get_random_bytes;

#[derive(Serialize, Deserialize)]
struct Walk {
    step: u64,
    steps: u64,
    place: i64,
    generator: Pcg32,
    /// How often each remainder came up.
    seen: HashMap<u8, u32>,
}

impl Plugin for Walk {
    type Config = Steps;

    fn start(job: &Job, config: Steps) -> Result<Self> {
        let generator = Pcg32::seed_from_u64(job.seed);
        Ok(Self { step: 0, steps: config.steps, place: 0, generator, seen: HashMap::new() })
    }

    fn step(&mut self) -> Result<Outcome> {
        // Not the same number each time, so that a host that counts calls and not bytes is found out.
        let drawn = get_random_bytes(1 + self.step % 11);
        for byte in &drawn {
            *self.seen.entry(byte % 16).or_default() += 1;
        }
        let drawn: i64 = drawn.into_iter().map(i64::from).sum();
        self.place += i64::from(self.generator.next_u32() % 2001) - 1000 + drawn;
        self.step += 1;

        let mut seen: Vec<_> = self.seen.iter().collect();
        seen.sort();
        append("walk.csv", &format!("{},{},{drawn},{seen:?}", self.step, self.place))?;
        metric("place", self.place as f64);
        metric("drawn", drawn as f64);
        Ok(counted(self.step, self.steps))
    }

    /// The map goes into the snapshot in order, so that equal states are equal bytes.
    fn snapshot(&self, into: &mut steadfast_guest::Writer<'_>) -> Result<()> {
        let mut seen: Vec<_> = self.seen.iter().collect();
        seen.sort();
        into.encode("state", &(self.step, self.steps, self.place, &self.generator, seen))
    }

    fn restore(_job: &Job, _config: Steps, from: &steadfast_guest::Reader<'_>) -> Result<Self> {
        let (step, steps, place, generator, seen): (_, _, _, _, Vec<_>) = from.decode("state")?;
        Ok(Self { step, steps, place, generator, seen: seen.into_iter().collect() })
    }
}

plugin!(Walk);
