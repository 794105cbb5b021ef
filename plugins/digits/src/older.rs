//! The state as it was in versions 1 and 2, when the network lay in the guest's memory. Never changed again: checkpoints out there have this form.
//!
//! The generator and the schedule are those of today, as long as their fields stay as they were; states that the programs of both
//! versions saved lie in `golden/`, and a test goes on from them.

use rand_pcg::Pcg32;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use steadfast_guest::{Error, Result, decode};

use super::network;
use super::schedule::Schedule;

#[derive(Deserialize)]
struct Config1 {
    epochs: u32,
    batch_size: usize,
    learning_rate: f32,
    hidden_units: usize,
}

#[derive(Deserialize)]
struct Config2 {
    epochs: u32,
    batch_size: usize,
    learning_rate: f32,
    hidden_units: usize,
    schedule: Schedule,
}

impl From<Config1> for Config2 {
    /// Version 1 had no schedule, and did what the constant one does.
    fn from(Config1 { epochs, batch_size, learning_rate, hidden_units }: Config1) -> Self {
        Self { epochs, batch_size, learning_rate, hidden_units, schedule: Schedule::Constant }
    }
}

#[derive(Deserialize)]
struct Dense {
    #[serde(rename = "inputs")]
    _inputs: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
}

#[derive(Deserialize)]
struct Network {
    hidden: Dense,
    output: Dense,
}

impl Network {
    /// All parameters, layer after layer.
    fn flat(&self) -> Vec<f32> {
        [&self.hidden.weights, &self.hidden.biases, &self.output.weights, &self.output.biases]
            .map(Vec::as_slice)
            .concat()
    }
}

#[derive(Deserialize)]
struct Adam {
    updates: i32,
    mean: Network,
    square: Network,
}

/// Version 1 and 2 differ in their configuration.
#[derive(Deserialize)]
struct Digits<C> {
    config: C,
    network: Network,
    optimizer: Adam,
    generator: Pcg32,
    epoch: u32,
    order: Vec<u32>,
    cursor: usize,
    loss: f64,
}

/// Today's state from one of those versions: the network moves to the device.
pub(crate) fn migrate(version: u32, bytes: &[u8]) -> Result<super::Digits> {
    match version {
        1 => moved::<Config1>(bytes),
        2 => moved::<Config2>(bytes),
        other => Err(Error::incompatible_state(format!("state of version {other} is none of this plugin's"))),
    }
}

fn moved<C: DeserializeOwned + Into<Config2>>(bytes: &[u8]) -> Result<super::Digits> {
    let old = decode::<Digits<C>>(bytes)?;
    let Config2 { epochs, batch_size, learning_rate, hidden_units, schedule } = old.config.into();
    let (weights, Adam { updates, mean, square }) = (old.network.flat(), old.optimizer);
    let network = network::Network::of(hidden_units as u32, updates, [&weights, &mean.flat(), &square.flat()])?;
    Ok(super::Digits {
        config: super::Config { epochs, batch_size, learning_rate, hidden_units, schedule },
        network,
        generator: old.generator,
        epoch: old.epoch,
        order: old.order,
        cursor: old.cursor,
        loss: old.loss,
        data: Default::default(),
        workbench: Default::default(),
    })
}
