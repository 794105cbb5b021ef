//! Two dense layers with a ReLU between them, their gradient and Adam: all on the device, in one buffer of weights and one for each moment.
//!
//! ```text
//!  rows ─ gemm ─► bias, ReLU ─► active ─ gemm ─► scores ─► cross-entropy ─► errors     forward
//!  slopes ◄─ gemm, column sums ─ errors ─ gemm ─► ReLU's gradient ─► errors below     backward
//! ```
//!
//! Matrices lie row by row, a row a sample. Sums are taken in a fixed order, so a resumed training comes to the same bits.

use std::ops::Range;

use rand_core::Rng;
use serde::{Deserialize, Serialize};
use steadfast_guest::Result;
use steadfast_guest::device::{Buffer, Gemm, Module, View};

use super::data::{CLASSES, PIXELS, Sample};

const KERNELS: &str = include_str!("../kernels/digits.ptx");
const BLOCK: u32 = 128;
const KEEP_MEAN: f32 = 0.9;
const KEEP_SQUARE: f32 = 0.999;

/// The weights, and the optimizer's moments, each in the layout of [`Parts`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Network {
    hidden_units: u32,
    /// Of the weights, so far.
    updates: i32,
    weights: Buffer<f32>,
    means: Buffer<f32>,
    squares: Buffer<f32>,
}

/// Where each layer's parameters lie in a buffer of them all: the weights, a row of inputs for each output, then the biases.
struct Parts {
    hidden_weights: Range<u64>,
    hidden_biases: Range<u64>,
    output_weights: Range<u64>,
    output_biases: Range<u64>,
}

impl Parts {
    fn of(hidden_units: u32) -> Self {
        let mut end = 0;
        let mut next = |length: u64| {
            let start = end;
            end += length;
            start..end
        };
        let (hidden, inputs, outputs) = (u64::from(hidden_units), PIXELS as u64, CLASSES as u64);
        Self {
            hidden_weights: next(inputs * hidden),
            hidden_biases: next(hidden),
            output_weights: next(hidden * outputs),
            output_biases: next(outputs),
        }
    }

    fn total(&self) -> u64 {
        self.output_biases.end
    }
}

impl Network {
    /// He's initialisation: weights uniform with a variance of 2 / inputs, biases 0.
    pub(crate) fn random(hidden_units: u32, generator: &mut impl Rng) -> Result<Self> {
        let parts = Parts::of(hidden_units);
        let mut weights = vec![0.0; parts.total() as usize];
        for (layer, inputs) in [(&parts.hidden_weights, PIXELS as u32), (&parts.output_weights, hidden_units)] {
            let bound = (6.0 / inputs as f32).sqrt();
            for weight in &mut weights[layer.start as usize..layer.end as usize] {
                // 24 random bits are an f32 exactly.
                let unit = (generator.next_u32() >> 8) as f32 / (1 << 24) as f32;
                *weight = (2.0 * unit - 1.0) * bound;
            }
        }
        let zeros = vec![0.0; weights.len()];
        Self::of(hidden_units, 0, [&weights, &zeros, &zeros])
    }

    /// A network and moments that are at hand, in the order of the layers.
    pub(crate) fn of(hidden_units: u32, updates: i32, [weights, means, squares]: [&[f32]; 3]) -> Result<Self> {
        let total = Parts::of(hidden_units).total();
        let buffer = |name, values: &[f32]| {
            let buffer = Buffer::persistent(name, total)?;
            buffer.write(values).map(|()| buffer)
        };
        let (weights, means) = (buffer("weights", weights)?, buffer("means", means)?);
        Ok(Self { hidden_units, updates, weights, means, squares: buffer("squares", squares)? })
    }

    pub(crate) fn hidden_units(&self) -> u32 {
        self.hidden_units
    }

    /// All parameters, as PyTorch's `nn.Linear` names and shapes them.
    pub(crate) fn tensors(&self) -> Result<[Tensor; 4]> {
        let parts = Parts::of(self.hidden_units);
        let hidden = self.hidden_units as usize;
        let tensor = |name, part: Range<u64>, shape| -> Result<_> {
            Ok(Tensor { name, shape, values: self.weights.range(part).read()? })
        };
        Ok([
            tensor("hidden.weight", parts.hidden_weights, vec![hidden, PIXELS])?,
            tensor("hidden.bias", parts.hidden_biases, vec![hidden])?,
            tensor("output.weight", parts.output_weights, vec![CLASSES, hidden])?,
            tensor("output.bias", parts.output_biases, vec![CLASSES])?,
        ])
    }
}

/// Some of the parameters.
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// Samples on the device.
#[derive(Default)]
struct Samples {
    count: u32,
    pixels: Buffer<f32>,
    labels: Buffer<i32>,
}

impl Samples {
    fn upload(samples: &[Sample]) -> Result<Self> {
        let pixels = Buffer::scratch((samples.len() * PIXELS) as u64)?;
        pixels.write(&samples.iter().flat_map(|sample| sample.pixels).collect::<Vec<_>>())?;
        let labels = Buffer::scratch(samples.len() as u64)?;
        labels.write(&samples.iter().map(|sample| sample.label as i32).collect::<Vec<_>>())?;
        Ok(Self { count: samples.len() as u32, pixels, labels })
    }
}

/// What a training needs on the device beside its network: kernels, data, and room for what lies between. Made anew in every attempt.
#[derive(Default)]
pub(crate) struct Workbench {
    kernels: Module,
    training: Samples,
    held_out: Samples,
    /// The rows of the training data in the order of this epoch.
    order: Buffer<i32>,
    rows: Buffer<f32>,
    labels: Buffer<i32>,
    active: Buffer<f32>,
    scores: Buffer<f32>,
    losses: Buffer<f32>,
    guesses: Buffer<i32>,
    errors_below: Buffer<f32>,
    slopes: Buffer<f32>,
}

impl Workbench {
    pub(crate) fn new(training: &[Sample], held_out: &[Sample], batch_size: usize, hidden_units: u32) -> Result<Self> {
        let (training, held_out) = (Samples::upload(training)?, Samples::upload(held_out)?);
        let batch = training.count.min(u32::try_from(batch_size).unwrap_or(u32::MAX));
        let most = u64::from(batch.max(held_out.count));
        let (hidden, classes) = (u64::from(hidden_units), CLASSES as u64);
        Ok(Self {
            kernels: Module::from_ptx(KERNELS)?,
            order: Buffer::scratch(training.count.into())?,
            rows: Buffer::scratch(u64::from(batch) * PIXELS as u64)?,
            labels: Buffer::scratch(batch.into())?,
            active: Buffer::scratch(most * hidden)?,
            scores: Buffer::scratch(most * classes)?,
            losses: Buffer::scratch(most)?,
            guesses: Buffer::scratch(most)?,
            errors_below: Buffer::scratch(u64::from(batch) * hidden)?,
            slopes: Buffer::scratch(Parts::of(hidden_units).total())?,
            training,
            held_out,
        })
    }

    /// The order in which the rows are taken from now on.
    pub(crate) fn set_order(&self, order: &[u32]) -> Result<()> {
        let order: Vec<i32> = order.iter().map(|row| *row as i32).collect();
        Ok(self.order.write(&order)?)
    }

    /// One step of Adam on the mean loss of the rows at these places of the order; answers each row's loss.
    pub(crate) fn train(&self, network: &mut Network, places: Range<usize>, rate: f32) -> Result<Vec<f32>> {
        let count = places.len() as u32;
        let gather = self.launch("gather", count * PIXELS as u32).arg(&self.training.pixels).arg(&self.training.labels);
        let gather = gather.arg(self.order.at(places.start as u64)).arg(&self.rows).arg(&self.labels);
        gather.arg(count).arg(PIXELS as u32).launch()?;
        self.forward(network, self.rows.at(0), &self.labels, count)?;
        self.backward(network, count)?;
        self.update(network, rate)?;
        Ok(self.losses.range(..u64::from(count)).read()?)
    }

    /// How many of the held-out samples the network reads right.
    pub(crate) fn count_right(&self, network: &Network, held_out: &[Sample]) -> Result<usize> {
        let Samples { count, pixels, labels } = &self.held_out;
        self.forward(network, pixels.at(0), labels, *count)?;
        let guesses = self.guesses.range(..u64::from(*count)).read()?;
        Ok(guesses.iter().zip(held_out).filter(|(guess, sample)| **guess == sample.label as i32).count())
    }

    /// Losses and guesses of `count` rows, and in `scores` the errors: the gradient of the mean loss.
    fn forward(&self, network: &Network, rows: View<'_, f32>, labels: &Buffer<i32>, count: u32) -> Result<()> {
        let (parts, hidden, classes) = (Parts::of(network.hidden_units), network.hidden_units, CLASSES as u32);
        let (active, scores) = (self.active.matrix(count, hidden), self.scores.matrix(count, classes));
        let weights = |part: Range<u64>, outputs, inputs| network.weights.range(part).matrix(outputs, inputs);
        let (hidden_weights, output_weights) =
            (weights(parts.hidden_weights, hidden, PIXELS as u32), weights(parts.output_weights, classes, hidden));

        let rows = rows.matrix(count, PIXELS as u32);
        Gemm { a: rows, b: hidden_weights.t(), c: active, alpha: 1.0, beta: 0.0 }.run()?;
        let relu = self.launch("bias_relu", count * hidden).arg(&self.active);
        relu.arg(network.weights.range(parts.hidden_biases)).arg(count).arg(hidden).launch()?;
        Gemm { a: active, b: output_weights.t(), c: scores, alpha: 1.0, beta: 0.0 }.run()?;
        let loss =
            self.launch("cross_entropy", count).arg(&self.scores).arg(network.weights.range(parts.output_biases));
        Ok(loss.arg(labels).arg(&self.losses).arg(&self.guesses).arg(count).arg(classes).launch()?)
    }

    /// From the errors in `scores` to the slope of every parameter.
    fn backward(&self, network: &Network, count: u32) -> Result<()> {
        let (parts, hidden, classes) = (Parts::of(network.hidden_units), network.hidden_units, CLASSES as u32);
        let (rows, active) = (self.rows.matrix(count, PIXELS as u32), self.active.matrix(count, hidden));
        let (errors, below) = (self.scores.matrix(count, classes), self.errors_below.matrix(count, hidden));
        let slopes = |part: &Range<u64>| self.slopes.range(part.clone());

        let output_slopes = slopes(&parts.output_weights).matrix(classes, hidden);
        Gemm { a: errors.t(), b: active, c: output_slopes, alpha: 1.0, beta: 0.0 }.run()?;
        self.sum_columns(&self.scores, slopes(&parts.output_biases), count, classes)?;

        let output_weights = network.weights.range(parts.output_weights.clone()).matrix(classes, hidden);
        Gemm { a: errors, b: output_weights, c: below, alpha: 1.0, beta: 0.0 }.run()?;
        let relu = self.launch("relu_gradient", count * hidden).arg(&self.errors_below);
        relu.arg(&self.active).arg(count * hidden).launch()?;

        let hidden_slopes = slopes(&parts.hidden_weights).matrix(hidden, PIXELS as u32);
        Gemm { a: below.t(), b: rows, c: hidden_slopes, alpha: 1.0, beta: 0.0 }.run()?;
        self.sum_columns(&self.errors_below, slopes(&parts.hidden_biases), count, hidden)
    }

    fn sum_columns(&self, values: &Buffer<f32>, sums: View<'_, f32>, count: u32, width: u32) -> Result<()> {
        Ok(self.launch("column_sums", width).arg(values).arg(sums).arg(count).arg(width).launch()?)
    }

    fn update(&self, network: &mut Network, rate: f32) -> Result<()> {
        network.updates += 1;
        let total = network.weights.len() as u32;
        let adam = self.launch("adam", total).arg(&network.weights).arg(&self.slopes);
        let adam = adam.arg(&network.means).arg(&network.squares).arg(total).arg(rate).arg(KEEP_MEAN).arg(KEEP_SQUARE);
        let unbias = |keep: f32| 1.0 - keep.powi(network.updates);
        Ok(adam.arg(unbias(KEEP_MEAN)).arg(unbias(KEEP_SQUARE)).launch()?)
    }

    /// A kernel in as many threads, at least.
    fn launch<'a>(&'a self, kernel: &'a str, threads: u32) -> steadfast_guest::device::Launch<'a> {
        self.kernels.kernel(kernel).grid(threads.div_ceil(BLOCK)).block(BLOCK)
    }
}
