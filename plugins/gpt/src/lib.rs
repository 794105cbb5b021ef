//! Trains a transformer to write, character by character, what comes next in a text: GPT-2's architecture, on the device from the first weight to the last.
//!
//! Reads a text in `/input`, which may be any in UTF-8. Writes to `/output`
//!
//! | file | what is in it |
//! |---|---|
//! | `loss.csv` | a line a step: loss of its batch, learning rate, norm of the gradient |
//! | `validation.csv` | now and then, the loss on the end of the text, which is never trained on |
//! | `samples/000100.txt` … | what the model writes after so many steps |
//! | `weights/000100.safetensors` … | if asked for (`weights_every`), the weights with which that step begins |
//! | `model.safetensors` | the weights in the end |
//!
//! Tensors are called and shaped as in GPT-2's own files (`h.0.attn.c_attn.weight` …); the metadata has the table of characters, whose place in it is
//! their token, and the size of the model.
//!
//! Without a configuration: a million weights, and a thousand steps in a minute or two on two cores. What [`Config`] can say is described there; the preset
//! `gpt2` has 86 million weights, and takes 13 GB of device memory. Losses are those of the same model in PyTorch: see `compare/`.
//!
//! The state is whatever later steps depend on: weights and moments, in three buffers of the device; the table; how many random numbers were drawn.
//! The text can be read again, and what lies between the weights and the loss is computed anew each step, so neither is part of it.

mod backward;
pub mod config;
mod draws;
mod forward;
pub(crate) mod layout;
pub(crate) mod number;
mod optimizer;
mod outputs;
mod sampling;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod transformer;

use serde::{Deserialize, Serialize};
use steadfast_guest::device::Bf16;
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, input, metric};

use config::{Config, Precision, Sizes};
use draws::Draws;
use layout::Layout;
use optimizer::Update;
use text::{Table, Text};
use transformer::{Model, Transformer, Weights};

/// Batches of the held-out text that a validation takes, at most.
const VALIDATION_BATCHES: u32 = 8;

/// A model in training.
#[derive(Serialize, Deserialize)]
pub struct Gpt {
    config: Config,
    table: Table,
    /// In the text.
    characters: u64,
    /// The next one.
    step: u64,
    batches: Draws,
    samples: Draws,
    weights: Weights,
    #[serde(skip)]
    text: Text,
    #[serde(skip)]
    model: Box<dyn Model>,
}

impl Plugin for Gpt {
    type Config = Config;

    fn start(job: &Job, config: Config) -> Result<Self> {
        let config = config.checked()?;
        let text = text::read(&input(""), config.text.as_deref())?;
        let table = Table::of(&text)?;
        let weights = Weights::new(&Layout::of(config.sizes().shape, table.len()))?;
        let mut gpt = Self {
            table,
            characters: text.chars().count() as u64,
            step: 0,
            batches: Draws::for_batches(job.seed),
            samples: Draws::for_samples(job.seed),
            weights,
            text: Text::default(),
            model: Box::default(),
            config,
        };
        gpt.set_up(&text)?;
        gpt.model.initialize(&gpt.weights, job.seed)?;
        Ok(gpt)
    }

    fn resumed(&mut self, _job: &Job, config: Config) -> Result<()> {
        let config = config.checked()?;
        let (size, other) = (self.config.sizes().shape, config.sizes().shape);
        if size != other {
            return Err(Error::invalid(format!(
                "configuration: the model in training has {size}, and asked for are {other}: another size needs a job of its own (`--name`)"
            )));
        }
        // A changed configuration reaches the plugin only if the user accepted the change.
        self.config = config;
        let text = text::read(&input(""), self.config.text.as_deref())?;
        if text.chars().count() as u64 != self.characters {
            return Err(Error::invalid("the text has another number of characters than when this job began"));
        }
        self.set_up(&text)?;
        self.model.take_over(&self.weights)
    }

    fn step(&mut self) -> Result<Outcome> {
        if is_due(self.step, self.config.weights_every) {
            self.store(&outputs::weights_of(self.step))?;
        }
        let Sizes { shape, batch, steps, .. } = self.config.sizes();
        let loss = self.train(batch, shape.context)?;
        self.step += 1;
        let done = self.step >= steps;
        if is_due(self.step, self.config.validate_every) || done {
            self.validate(batch, shape.context)?;
        }
        if is_due(self.step, self.config.sample_every) {
            let (config, table) = (&self.config, &self.table);
            let text = sampling::sample(&*self.model, &self.weights, table, config, &mut self.samples)?;
            outputs::sample(self.step, &text)?;
        }
        if !done {
            return Ok(Outcome::progress(self.step, steps));
        }
        self.store(outputs::MODEL)?;
        Ok(Outcome::done(format!("loss {loss:.4} after {steps} steps")))
    }
}

impl Gpt {
    /// Brings kernels and room to the device, and the text into memory.
    fn set_up(&mut self, text: &str) -> Result<()> {
        let Sizes { shape, batch, .. } = self.config.sizes();
        let tokens = self.table.tokens(text).map_err(|character| {
            let known = self.table.len();
            Error::invalid(format!(
                "{character:?} in the text is not one of the {known} characters of this job's table"
            ))
        })?;
        self.text = Text::new(tokens, self.config.validation_share, shape.context)?;
        sampling::prompt(&self.config, &self.table)?;
        self.model = match self.config.precision {
            Precision::Float32 => Box::new(Transformer::<f32>::new(shape, self.table.len(), batch)?),
            Precision::Bfloat16 => Box::new(Transformer::<Bf16>::new(shape, self.table.len(), batch)?),
        };
        Ok(())
    }

    fn train(&mut self, batch: u32, context: u32) -> Result<f64> {
        let update = Update::of(&self.config, self.step);
        let batch = self.text.draw(&mut self.batches, batch, context);
        let trained = self.model.train(&self.weights, &batch, &update)?;
        let loss = mean(&trained.losses);
        if !loss.is_finite() {
            let (step, rate) = (self.step, update.rate);
            return Err(Error::invalid(format!(
                "the loss of step {step} is {loss}, with a learning rate of {rate:e}: lower `learning_rate`, or raise `warm_up`"
            )));
        }
        metric("loss", loss);
        outputs::loss(self.step, loss, update.rate, trained.norm)?;
        Ok(loss)
    }

    fn validate(&self, batch: u32, context: u32) -> Result<()> {
        if self.config.validation_share == 0.0 || self.config.validate_every == 0 {
            return Ok(());
        }
        let mut losses = Vec::new();
        for batch in self.text.held_out(VALIDATION_BATCHES, batch, context) {
            losses.extend(self.model.losses(&self.weights, &batch)?);
        }
        let loss = mean(&losses);
        metric("validation_loss", loss);
        println!("step {}: loss {loss:.4} on the held-out text", self.step);
        outputs::validation(self.step, loss)
    }

    fn store(&self, name: &str) -> Result<()> {
        let shape = self.config.sizes().shape;
        outputs::weights(name, &self.weights, &Layout::of(shape, self.table.len()), shape, &self.table)
    }
}

/// Whether something that is done each so many steps is done now; never if they are 0.
fn is_due(step: u64, every: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}

fn mean(losses: &[f32]) -> f64 {
    losses.iter().copied().map(f64::from).sum::<f64>() / losses.len() as f64
}

// A component is one plugin: whoever makes another of this source does so without this line.
#[cfg(not(feature = "no-export"))]
steadfast_guest::plugin!(Gpt);
