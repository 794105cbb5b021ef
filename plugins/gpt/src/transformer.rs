//! A transformer as GPT-2 is one, on the device: what it consists of there, and what can be asked of it.
//!
//! ```text
//!  tokens ─► rows of two tables ─┬─► layernorm ─► queries, keys, values ─► attention ─► dense ─┬─► + ─┐  for each
//!                                └─────────────────────── stream ──────────────────────────────┘      │  layer
//!                                ┌────────────────────────────────────────────────────────────────────┘
//!                                ├─► layernorm ─► dense ─► GELU ─► dense ─┬─► + ─► … ─► layernorm ─► × table ─► scores
//!                                └──────────────── stream ────────────────┘
//! ```
//!
//! Everything lies in buffers of the device, and all arithmetic is done there: products of matrices by the device's own function, the rest by kernels.
//! Biases' slopes are sums over rows, and these are products with a row of ones; those of the table of tokens are a product with a matrix of
//! ones and zeros. So there are no atomics, every sum has a fixed order, and a resumed training comes to the same bits.
//!
//! Deliberately absent: dropout, and attention that keeps no square matrices (as FlashAttention).

use serde::{Deserialize, Serialize};
use steadfast_guest::Result;
use steadfast_guest::device::{Backend, Buffer, Gemm, Launch, Matrix, Module, View, describe};

use super::config::Shape;
use super::layout::{Layout, Norm, Part};
use super::number::Number;
use super::optimizer::{SUMS, Update};
use super::text::Batch;

const BLOCK: u32 = 128;
/// Threads for a row where they run side by side.
const WARP: u32 = 32;
/// What GPT-2's weights deviate from 0 in the beginning.
const DEVIATION: f32 = 0.02;

/// What a training is about: all parameters, and Adam's moments of each, in the order of a [`Layout`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Weights {
    pub(crate) parameters: Buffer<f32>,
    pub(crate) means: Buffer<f32>,
    pub(crate) squares: Buffer<f32>,
}

impl Weights {
    /// All zeros.
    pub(crate) fn new(layout: &Layout) -> Result<Self> {
        let buffer = |name| Buffer::persistent(name, layout.total);
        Ok(Self { parameters: buffer("parameters")?, means: buffer("means")?, squares: buffer("squares")? })
    }

    /// A part that no product is made of.
    pub(super) fn part(&self, part: Part) -> View<'_, f32> {
        self.parameters.range(part.first..part.first + part.len())
    }
}

/// A transformer, whatever its products are made of.
pub(crate) trait Model {
    /// Draws the first weights.
    fn initialize(&self, weights: &Weights, seed: u64) -> Result<()>;

    /// Has to be called when weights came from elsewhere.
    fn take_over(&self, weights: &Weights) -> Result<()>;

    /// One step of training; answers each character's loss before it.
    fn train(&self, weights: &Weights, batch: &Batch, update: &Update) -> Result<Trained>;

    /// Each character's loss.
    fn losses(&self, weights: &Weights, batch: &Batch) -> Result<Vec<f32>>;

    /// What comes after these tokens, at most as many as the context: a score for each character.
    fn next_scores(&self, weights: &Weights, tokens: &[i32]) -> Result<Vec<f32>>;
}

/// What a step of training tells.
pub(crate) struct Trained {
    pub(crate) losses: Vec<f32>,
    /// The length of the gradient before it was clipped.
    pub(crate) norm: f32,
}

/// Closed, as a buffer by default is.
impl Default for Box<dyn Model> {
    fn default() -> Self {
        Box::new(Transformer::<f32>::default())
    }
}

/// The buffers and kernels of a transformer whose products are made of `T`. No part of the state.
#[derive(Default)]
pub(crate) struct Transformer<T: Number> {
    pub(super) shape: Shape,
    pub(super) characters: u32,
    pub(super) layout: Layout,
    kernels: Module,
    /// Threads for a row.
    pub(super) lanes: u32,
    /// The parameters as products take them.
    pub(super) numbers: Buffer<T>,
    /// Of all parameters: the gradient.
    pub(crate) slopes: Buffer<T>,
    pub(super) tokens: Buffer<i32>,
    pub(super) targets: Buffer<i32>,
    pub(super) layers: Vec<LayerRoom<T>>,
    /// The stream behind the last layer.
    pub(super) last: Buffer<f32>,
    pub(super) normal: NormRoom<T>,
    /// For each row one of every character, and later the slopes of these.
    pub(super) scores: Buffer<T>,
    pub(super) losses: Buffer<f32>,
    /// One layer's result, or its slopes, as wide as the stream.
    pub(super) change: Buffer<T>,
    /// Slopes four times as wide.
    pub(super) wide: Buffer<T>,
    /// Of the probabilities of attention.
    pub(super) probability_slopes: Buffer<T>,
    pub(super) stream_slopes: Buffer<f32>,
    pub(super) rounded_slopes: Buffer<T>,
    pub(super) scale_terms: Buffer<T>,
    pub(super) ones: Buffer<T>,
    pub(super) sums: Buffer<f32>,
    /// Of the gradient: its length, and what it is multiplied with.
    pub(super) norm: Buffer<f32>,
}

/// What a layer leaves for its gradient.
pub(super) struct LayerRoom<T: Number> {
    /// The stream before it.
    pub(super) stream: Buffer<f32>,
    pub(super) normal_1: NormRoom<T>,
    /// Queries, keys and values, side by side in a row.
    pub(super) queries: Buffer<T>,
    /// For each head of each text, how much each place takes from each.
    pub(super) probabilities: Buffer<T>,
    pub(super) attended: Buffer<T>,
    /// The stream between its halves.
    pub(super) middle: Buffer<f32>,
    pub(super) normal_2: NormRoom<T>,
    pub(super) hidden: Buffer<T>,
    pub(super) active: Buffer<T>,
}

/// What a layernorm leaves for its gradient.
#[derive(Default)]
pub(super) struct NormRoom<T: Number> {
    pub(super) values: Buffer<T>,
    pub(super) means: Buffer<f32>,
    pub(super) reciprocals: Buffer<f32>,
}

impl<T: Number> NormRoom<T> {
    fn new(rows: u64, width: u64) -> Result<Self> {
        Ok(Self {
            values: Buffer::scratch(rows * width)?,
            means: Buffer::scratch(rows)?,
            reciprocals: Buffer::scratch(rows)?,
        })
    }
}

impl<T: Number> LayerRoom<T> {
    fn new(shape: Shape, texts: u64) -> Result<Self> {
        let (rows, width) = (texts * u64::from(shape.context), u64::from(shape.width));
        Ok(Self {
            stream: Buffer::scratch(rows * width)?,
            normal_1: NormRoom::new(rows, width)?,
            queries: Buffer::scratch(rows * 3 * width)?,
            probabilities: Buffer::scratch(probabilities(shape, texts))?,
            attended: Buffer::scratch(rows * width)?,
            middle: Buffer::scratch(rows * width)?,
            normal_2: NormRoom::new(rows, width)?,
            hidden: Buffer::scratch(rows * 4 * width)?,
            active: Buffer::scratch(rows * 4 * width)?,
        })
    }
}

/// A square for each head of each text.
fn probabilities(shape: Shape, texts: u64) -> u64 {
    texts * u64::from(shape.heads) * u64::from(shape.context).pow(2)
}

impl<T: Number> Transformer<T> {
    /// With room for so many texts at once.
    pub(crate) fn new(shape: Shape, characters: u32, texts: u32) -> Result<Self> {
        // Sums are the same on every model that has the same kind of device.
        let lanes = match describe()?.backend {
            Backend::Cpu => 1,
            Backend::Cuda => WARP,
        };
        Self::with_lanes(shape, characters, texts, lanes)
    }

    /// The same, with 1 or 32 threads for a row.
    pub(crate) fn with_lanes(shape: Shape, characters: u32, texts: u32, lanes: u32) -> Result<Self> {
        let layout = Layout::of(shape, characters);
        let texts = u64::from(texts);
        let (rows, width) = (texts * u64::from(shape.context), u64::from(shape.width));
        let layers: Result<_> = (0..shape.layers).map(|_| LayerRoom::new(shape, texts)).collect();
        let ones = Buffer::scratch(rows)?;
        ones.fill(T::ONE)?;
        Ok(Self {
            shape,
            characters,
            kernels: Module::from_ptx(T::KERNELS)?,
            lanes,
            numbers: Buffer::scratch(layout.total)?,
            slopes: Buffer::scratch(layout.total)?,
            tokens: Buffer::scratch(rows)?,
            targets: Buffer::scratch(rows)?,
            layers: layers?,
            last: Buffer::scratch(rows * width)?,
            normal: NormRoom::new(rows, width)?,
            scores: Buffer::scratch(rows * u64::from(characters))?,
            losses: Buffer::scratch(rows)?,
            change: Buffer::scratch(rows * width)?,
            wide: Buffer::scratch(rows * 4 * width)?,
            probability_slopes: Buffer::scratch(probabilities(shape, texts))?,
            stream_slopes: Buffer::scratch(rows * width)?,
            rounded_slopes: Buffer::scratch(rows * width)?,
            scale_terms: Buffer::scratch(rows * width)?,
            ones,
            sums: Buffer::scratch(SUMS)?,
            norm: Buffer::scratch(2)?,
            layout,
        })
    }

    /// A kernel in as many threads, at least.
    pub(super) fn launch<'a>(&'a self, kernel: &'a str, threads: u64) -> Launch<'a> {
        self.kernels.kernel(kernel).grid(threads.div_ceil(BLOCK.into())).block(BLOCK)
    }

    /// A kernel with a thread for each place of a matrix.
    pub(super) fn launch_places<'a>(&'a self, kernel: &'a str, rows: u32, width: u32) -> Launch<'a> {
        self.kernels.kernel(kernel).grid((rows, width.div_ceil(BLOCK))).block(BLOCK)
    }

    /// A kernel whose work is rows.
    pub(super) fn launch_rows<'a>(&'a self, kernel: &'a str, rows: u64) -> Launch<'a> {
        self.launch(kernel, rows * u64::from(self.lanes))
    }

    /// A part that products are made of.
    pub(super) fn matrix(&self, part: Part) -> Matrix<'_, T> {
        self.numbers.at(part.first).matrix(part.rows, part.columns)
    }
}

/// `c = a × b`
pub(super) fn product<T: Number>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: Matrix<'_, T>) -> Result<()> {
    Ok(Gemm { a, b, c, alpha: 1.0, beta: 0.0 }.run()?)
}

impl<T: Number> Model for Transformer<T> {
    fn initialize(&self, weights: &Weights, seed: u64) -> Result<()> {
        let matrices = weights.parameters.range(..self.layout.decayed);
        matrices.fill_normal(seed, 0)?;
        let scale = |first: u64, len: u64, factor: f32| {
            self.launch("scale", len).arg(weights.parameters.at(first)).arg(factor).arg(len).launch()
        };
        scale(0, matrices.len(), DEVIATION)?;
        // What is added to the stream adds up over the layers.
        let added = (2.0 * self.shape.layers as f32).sqrt().recip();
        for layer in &self.layout.layers {
            for part in [layer.attended.weight, layer.active.weight] {
                scale(part.first, part.len(), added)?;
            }
        }
        for Norm { scale, .. } in self.layout.norms() {
            weights.part(scale).fill(1.0)?;
        }
        self.take_over(weights)
    }

    fn take_over(&self, weights: &Weights) -> Result<()> {
        let total = self.layout.total;
        let round = self.launch("to_numbers", total).arg(&weights.parameters).arg(&self.numbers);
        Ok(round.arg(total).launch()?)
    }

    fn train(&self, weights: &Weights, batch: &Batch, update: &Update) -> Result<Trained> {
        let extent = self.forward(weights, batch)?;
        self.cross_entropy(batch, extent)?;
        self.backward(weights, extent)?;
        self.update(weights, update)?;
        let losses = self.losses.range(..batch.tokens.len() as u64).read()?;
        Ok(Trained { losses, norm: self.norm.range(..1).read()?.first().copied().unwrap_or_default() })
    }

    fn losses(&self, weights: &Weights, batch: &Batch) -> Result<Vec<f32>> {
        let extent = self.forward(weights, batch)?;
        self.cross_entropy(batch, extent)?;
        Ok(self.losses.range(..batch.tokens.len() as u64).read()?)
    }

    fn next_scores(&self, weights: &Weights, tokens: &[i32]) -> Result<Vec<f32>> {
        let batch = Batch { tokens: tokens.to_vec(), targets: Vec::new(), length: tokens.len() as u32 };
        self.forward(weights, &batch)?;
        let (characters, rows) = (u64::from(self.characters), tokens.len() as u64);
        let last = self.scores.range((rows - 1) * characters..rows * characters).read()?;
        Ok(last.into_iter().map(T::widened).collect())
    }
}
