//! Trains a small network to read handwritten digits on the device: 64 pixels → hidden units → 10 classes, one minibatch a step.
//!
//! Reads `/input/digits.csv.gz`, appends a line an epoch to `/output/metrics.csv`, and ends with the network in
//! `/output/model.safetensors` and its accuracy on a fifth of the data that it never trained on.
//!
//! The state is whatever later steps depend on: weights and optimizer, in buffers of the device, generator, the order of this epoch and the
//! place in it. The data can be read again, so it is not part of the state.

mod data;
mod network;
mod older;
mod schedule;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::Write;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};
use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, check_config, input, metric, output};

use data::Data;
use network::{Network, Workbench};
pub use schedule::Schedule;

const INPUT: &str = "digits.csv.gz";
const METRICS: &str = "metrics.csv";
const MODEL: &str = "model.safetensors";

/// How long, and how, to train.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    epochs: u32,
    batch_size: usize,
    learning_rate: f32,
    hidden_units: usize,
    schedule: Schedule,
}

impl Default for Config {
    fn default() -> Self {
        Self { epochs: 20, batch_size: 32, learning_rate: 0.005, hidden_units: 64, schedule: Schedule::Constant }
    }
}

impl Config {
    /// The same with another schedule.
    #[must_use]
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }

    fn checked(self) -> Result<Self> {
        check_config(&[
            ("epochs", self.epochs >= 1, "at least 1"),
            ("batch_size", self.batch_size >= 1, "at least 1"),
            ("learning_rate", self.learning_rate > 0.0 && self.learning_rate.is_finite(), "above 0"),
            ("hidden_units", (1..=4096).contains(&self.hidden_units), "between 1 and 4096"),
        ])?;
        self.schedule.check(self.learning_rate).map(|()| self)
    }
}

/// A network in training.
#[derive(Serialize, Deserialize)]
pub struct Digits {
    config: Config,
    network: Network,
    /// Draws the first weights and every epoch's order, and nothing else.
    generator: Pcg32,
    epoch: u32,
    /// The rows in the order in which this epoch takes them.
    order: Vec<u32>,
    /// How many of them it has taken.
    cursor: usize,
    /// The sum of their losses.
    loss: f64,
    #[serde(skip)]
    data: Data,
    #[serde(skip)]
    workbench: Workbench,
}

impl Plugin for Digits {
    type Config = Config;
    // 2: the configuration, which is part of the state, has a schedule. 3: the network is in buffers of the device.
    const STATE_VERSION: u32 = 3;
    const READS: &'static [u32] = &[1, 2, 3];

    fn migrate(version: u32, bytes: &[u8]) -> Result<Self> {
        older::migrate(version, bytes)
    }

    fn start(job: &Job, config: Config) -> Result<Self> {
        let config = config.checked()?;
        let data = Data::read(&input(INPUT))?;
        fs::write(output(METRICS), "epoch,loss,accuracy\n")?;

        let mut generator = Pcg32::seed_from_u64(job.seed);
        let network = Network::random(config.hidden_units as u32, &mut generator)?;
        let order = (0..data.training.len() as u32).collect();
        let workbench = Workbench::default();
        let mut digits = Self { config, network, generator, epoch: 0, order, cursor: 0, loss: 0.0, data, workbench };
        shuffle(&mut digits.order, &mut digits.generator);
        digits.set_up()?;
        Ok(digits)
    }

    fn resumed(&mut self, _job: &Job, config: Config) -> Result<()> {
        self.data = Data::read(&input(INPUT))?;
        if self.data.training.len() != self.order.len() {
            return Err(Error::invalid(format!("`{INPUT}` has another number of rows than when this job began")));
        }
        // A changed configuration reaches the plugin only if the user accepted the change.
        self.configure(config)
    }

    fn step(&mut self) -> Result<Outcome> {
        let places = self.cursor..self.order.len().min(self.cursor + self.config.batch_size);
        let rate = self.learning_rate();
        let losses = self.workbench.train(&mut self.network, places.clone(), rate)?;
        let loss: f64 = losses.iter().copied().map(f64::from).sum();
        metric("loss", loss / places.len() as f64);
        self.loss += loss;
        self.cursor = places.end;

        if self.cursor == self.order.len() {
            let accuracy = self.end_epoch()?;
            if self.epoch >= self.config.epochs {
                fs::write(output(MODEL), self.to_safetensors()?)?;
                return Ok(Outcome::done(format!("accuracy {:.2} % on the held-out fifth", accuracy * 100.0)));
            }
            shuffle(&mut self.order, &mut self.generator);
            self.workbench.set_order(&self.order)?;
        }
        let (done, total) = self.progress();
        Ok(Outcome::progress(done, total))
    }
}

impl Digits {
    /// Steps done, and steps in all.
    fn progress(&self) -> (u64, u64) {
        let steps_an_epoch = self.order.len().div_ceil(self.config.batch_size) as u64;
        let done = u64::from(self.epoch) * steps_an_epoch + self.cursor.div_ceil(self.config.batch_size) as u64;
        (done, u64::from(self.config.epochs) * steps_an_epoch)
    }

    /// Of the step that comes next: a function of the place alone, so that a resume changes nothing.
    fn learning_rate(&self) -> f32 {
        let (done, total) = self.progress();
        self.config.schedule.rate(self.config.learning_rate, self.epoch, done as f64 / total as f64)
    }

    /// Goes on under this configuration.
    pub fn configure(&mut self, config: Config) -> Result<()> {
        let config = config.checked()?;
        if config.hidden_units as u32 != self.network.hidden_units() {
            return Err(Error::invalid(
                "configuration, at `hidden_units`: the network that is being trained has another size",
            ));
        }
        self.config = config;
        self.set_up()
    }

    /// Brings kernels and data to the device.
    fn set_up(&mut self) -> Result<()> {
        let Data { training, held_out } = &self.data;
        self.workbench = Workbench::new(training, held_out, self.config.batch_size, self.network.hidden_units())?;
        self.workbench.set_order(&self.order)
    }

    /// Reports the epoch that just ended and begins the next; answers the accuracy.
    fn end_epoch(&mut self) -> Result<f64> {
        let loss = self.loss / self.order.len() as f64;
        let right = self.workbench.count_right(&self.network, &self.data.held_out)?;
        let accuracy = right as f64 / self.data.held_out.len() as f64;
        self.epoch += 1;
        self.cursor = 0;
        self.loss = 0.0;

        metric("accuracy", accuracy);
        println!("epoch {}: loss {loss:.4}, accuracy {accuracy:.4}", self.epoch);
        let mut lines = OpenOptions::new().append(true).open(output(METRICS))?;
        writeln!(lines, "{},{loss:.6},{accuracy:.6}", self.epoch)?;
        Ok(accuracy)
    }

    fn to_safetensors(&self) -> Result<Vec<u8>> {
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
        let tensors = self.network.tensors()?.map(|tensor| (tensor.name, tensor.shape, bytes(&tensor.values)));
        let views =
            tensors.iter().map(|(name, shape, bytes)| Ok((*name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)));
        let views: Result<Vec<_>, _> = views.collect();
        views.and_then(|views| serialize(views, None)).map_err(Error::invalid)
    }
}

/// Fisher and Yates, written out so that the order depends on nothing but the generator.
fn shuffle(order: &mut [u32], generator: &mut Pcg32) {
    for last in (1..order.len()).rev() {
        let other = (u64::from(generator.next_u32()) * (last as u64 + 1)) >> 32;
        order.swap(last, other as usize);
    }
}

// A component is one plugin: whoever makes another of this source does so without this line.
#[cfg(not(feature = "no-export"))]
steadfast_guest::plugin!(Digits);
