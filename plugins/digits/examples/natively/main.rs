//! The same training in plain loops, without a host and without a device, on request: the baseline of what running as a guest costs.
//!
//! ```text
//! usage   natively INPUT-FOLDER OUTPUT-FOLDER CONFIG
//! stdin   a number of steps, a line each time
//! stdout  `taken` when they are, among what the training prints
//! ```
//!
//! A program of its own since the host's benchmark cannot link it: guests ask dependencies for features that would have
//! wasmtime built twice. Its losses are those of the plugin but for the last bits: sums are taken in another order.
#![cfg_attr(
    target_family = "wasm",
    allow(unused, reason = "all examples are built for guests too, where this one has nothing to do")
)]

#[path = "../../src/data.rs"]
mod data;
mod network;
mod vector;

use std::fs::OpenOptions;
use std::io::{Error, Write, stdin, stdout};
use std::path::{Path, PathBuf};

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use serde::Deserialize;

use data::{Data, Sample};
use network::{Adam, Network};

#[derive(Deserialize)]
#[serde(default)]
struct Config {
    batch_size: usize,
    learning_rate: f32,
    hidden_units: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { batch_size: 32, learning_rate: 0.005, hidden_units: 64 }
    }
}

struct Training {
    config: Config,
    data: Data,
    network: Network,
    optimizer: Adam,
    generator: Pcg32,
    metrics: PathBuf,
    epoch: u32,
    order: Vec<u32>,
    cursor: usize,
    loss: f64,
}

impl Training {
    fn start(input: &Path, output: &Path, config: Config) -> Result<Self, Error> {
        let data = Data::read(&input.join("digits.csv.gz")).map_err(|error| Error::other(format!("{error:?}")))?;
        let mut generator = Pcg32::seed_from_u64(1);
        let network = Network::random([data::PIXELS, config.hidden_units, data::CLASSES], &mut generator);
        let optimizer = Adam::new(&network);
        let order = (0..data.training.len() as u32).collect();
        let metrics = output.join("metrics.csv");
        std::fs::write(&metrics, "epoch,loss,accuracy\n")?;
        let mut training =
            Self { config, data, network, optimizer, generator, metrics, epoch: 0, order, cursor: 0, loss: 0.0 };
        training.shuffle();
        Ok(training)
    }

    fn step(&mut self) -> Result<(), Error> {
        let end = self.order.len().min(self.cursor + self.config.batch_size);
        let rows = self.order[self.cursor..end].iter();
        let batch: Vec<&Sample> = rows.map(|row| &self.data.training[*row as usize]).collect();
        let (loss, gradient) = self.network.loss_and_gradient(&batch);
        self.optimizer.update(&mut self.network, &gradient, self.config.learning_rate);
        self.loss += loss;
        self.cursor = end;
        if self.cursor == self.order.len() {
            self.end_epoch()?;
        }
        Ok(())
    }

    fn end_epoch(&mut self) -> Result<(), Error> {
        let loss = self.loss / self.order.len() as f64;
        let right = self.data.held_out.iter().filter(|sample| self.network.classify(sample) == sample.label).count();
        let accuracy = right as f64 / self.data.held_out.len() as f64;
        self.epoch += 1;
        println!("epoch {}: loss {loss:.4}, accuracy {accuracy:.4}", self.epoch);
        writeln!(OpenOptions::new().append(true).open(&self.metrics)?, "{},{loss:.6},{accuracy:.6}", self.epoch)?;
        (self.cursor, self.loss) = (0, 0.0);
        self.shuffle();
        Ok(())
    }

    fn shuffle(&mut self) {
        for last in (1..self.order.len()).rev() {
            let other = (u64::from(self.generator.next_u32()) * (last as u64 + 1)) >> 32;
            self.order.swap(last, other as usize);
        }
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output), Some(config)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::other("usage: natively INPUT-FOLDER OUTPUT-FOLDER CONFIG"));
    };
    let config = serde_json::from_str(&config)?;
    let mut training = Training::start(Path::new(&input), Path::new(&output), config)?;
    for line in stdin().lines() {
        let steps: u32 = line?.trim().parse().map_err(Error::other)?;
        for _ in 0..steps {
            training.step()?;
        }
        writeln!(stdout(), "taken")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The gradient agrees with differences of the loss.
    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let data = Data::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/digits.csv.gz")).unwrap();
        let network = Network::random([data::PIXELS, 6, data::CLASSES], &mut Pcg32::seed_from_u64(1));
        let batch: Vec<_> = data.training[..8].iter().collect();
        let (_, gradient) = network.loss_and_gradient(&batch);
        for probe in (0..gradient.flat().len()).step_by(7) {
            let loss = |shift: f32| {
                let mut network = network.clone();
                network.nudge(probe, shift);
                network.loss_and_gradient(&batch).0 / batch.len() as f64
            };
            let slope = (loss(1e-3) - loss(-1e-3)) / 2e-3;
            let told = f64::from(gradient.flat()[probe]);
            assert!((slope - told).abs() < 2e-3 + 0.02 * told.abs(), "value {probe}: told {told}, measured {slope}");
        }
    }
}
