//! The state as it was in version 1, which had no schedule. Never changed again: checkpoints out there have this form.
//!
//! `Network`, `Adam` and the generator are those of today, as long as their fields stay as they were; a state that the program of
//! version 1 saved lies in `golden/`, and a test goes on from it.

use rand_pcg::Pcg32;
use serde::Deserialize;

use super::network::{Adam, Network};
use super::schedule::Schedule;

#[derive(Deserialize)]
struct Config {
    epochs: u32,
    batch_size: usize,
    learning_rate: f32,
    hidden_units: usize,
}

#[derive(Deserialize)]
pub(crate) struct Digits {
    config: Config,
    network: Network,
    optimizer: Adam,
    generator: Pcg32,
    epoch: u32,
    order: Vec<u32>,
    cursor: usize,
    loss: f64,
}

impl From<Digits> for super::Digits {
    fn from(old: Digits) -> Self {
        let Config { epochs, batch_size, learning_rate, hidden_units } = old.config;
        Self {
            // What version 1 did, to the bit.
            config: super::Config { epochs, batch_size, learning_rate, hidden_units, schedule: Schedule::Constant },
            network: old.network,
            optimizer: old.optimizer,
            generator: old.generator,
            epoch: old.epoch,
            order: old.order,
            cursor: old.cursor,
            loss: old.loss,
            data: Default::default(),
        }
    }
}
