//! Two dense layers with a ReLU between them, their gradient, and Adam, in plain loops.

use rand_core::Rng;

use crate::data::Sample;
use crate::vector::{add_scaled, dot};

/// A layer's weights, or anything of their shape: a gradient, a moment of the optimizer.
#[derive(Clone)]
struct Dense {
    inputs: usize,
    /// A row of `inputs` weights for each output.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Dense {
    fn zeros(inputs: usize, outputs: usize) -> Self {
        Self { inputs, weights: vec![0.0; inputs * outputs], biases: vec![0.0; outputs] }
    }

    /// He's initialisation: uniform, with a variance of 2 / inputs.
    fn random(inputs: usize, outputs: usize, generator: &mut impl Rng) -> Self {
        let mut layer = Self::zeros(inputs, outputs);
        let bound = (6.0 / inputs as f32).sqrt();
        for weight in &mut layer.weights {
            // 24 random bits are an f32 exactly.
            let unit = (generator.next_u32() >> 8) as f32 / (1 << 24) as f32;
            *weight = (2.0 * unit - 1.0) * bound;
        }
        layer
    }

    fn forward(&self, inputs: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks_exact(self.inputs).zip(&self.biases);
        rows.map(|(row, bias)| dot(row, inputs) + bias).collect()
    }

    /// Adds to `gradient` what these errors at the outputs say.
    fn add_gradient(&self, inputs: &[f32], errors: &[f32], gradient: &mut Dense) {
        for (slopes, error) in gradient.weights.chunks_exact_mut(self.inputs).zip(errors) {
            add_scaled(slopes, *error, inputs);
        }
        for (slope, error) in gradient.biases.iter_mut().zip(errors) {
            *slope += error;
        }
    }

    /// The errors at the inputs that make these errors at the outputs.
    fn errors_below(&self, errors: &[f32]) -> Vec<f32> {
        let mut below = vec![0.0; self.inputs];
        for (row, error) in self.weights.chunks_exact(self.inputs).zip(errors) {
            add_scaled(&mut below, *error, row);
        }
        below
    }
}

#[derive(Clone)]
pub(crate) struct Network {
    hidden: Dense,
    output: Dense,
}

impl Network {
    pub(crate) fn random([inputs, hidden, outputs]: [usize; 3], generator: &mut impl Rng) -> Self {
        Self { hidden: Dense::random(inputs, hidden, generator), output: Dense::random(hidden, outputs, generator) }
    }

    fn zeros_like(&self) -> Self {
        let zeros = |layer: &Dense| Dense::zeros(layer.inputs, layer.biases.len());
        Self { hidden: zeros(&self.hidden), output: zeros(&self.output) }
    }

    /// What the hidden layer and the output layer answer.
    fn forward(&self, sample: &Sample) -> (Vec<f32>, Vec<f32>) {
        let mut active = self.hidden.forward(&sample.pixels);
        active.iter_mut().for_each(|value| *value = if *value > 0.0 { *value } else { 0.0 });
        let scores = self.output.forward(&active);
        (active, scores)
    }

    pub(crate) fn classify(&self, sample: &Sample) -> usize {
        let (_, scores) = self.forward(sample);
        (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0)
    }

    /// The summed cross-entropy of a batch, and the gradient of its mean.
    pub(crate) fn loss_and_gradient(&self, batch: &[&Sample]) -> (f64, Network) {
        let mut gradient = self.zeros_like();
        let mut loss = 0.0;
        for sample in batch {
            let (active, scores) = self.forward(sample);
            let mut errors = softmax(&scores);
            loss -= f64::from(errors[sample.label].max(f32::MIN_POSITIVE)).ln();
            errors[sample.label] -= 1.0;
            errors.iter_mut().for_each(|error| *error /= batch.len() as f32);

            self.output.add_gradient(&active, &errors, &mut gradient.output);
            let mut below = self.output.errors_below(&errors);
            for (error, active) in below.iter_mut().zip(&active) {
                *error = if *active > 0.0 { *error } else { 0.0 };
            }
            self.hidden.add_gradient(&sample.pixels, &below, &mut gradient.hidden);
        }
        (loss, gradient)
    }

    /// All parameters, layer after layer.
    fn slices(&self) -> [&[f32]; 4] {
        let Self { hidden, output } = self;
        [&hidden.weights, &hidden.biases, &output.weights, &output.biases]
    }

    fn slices_mut(&mut self) -> [&mut [f32]; 4] {
        let Self { hidden, output } = self;
        [&mut hidden.weights, &mut hidden.biases, &mut output.weights, &mut output.biases]
    }
}

fn softmax(scores: &[f32]) -> Vec<f32> {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// Adam, as Kingma and Ba wrote it down. Its two moments are as large as the network each.
pub(crate) struct Adam {
    updates: i32,
    mean: Network,
    square: Network,
}

impl Adam {
    const KEEP_MEAN: f32 = 0.9;
    const KEEP_SQUARE: f32 = 0.999;

    pub(crate) fn new(network: &Network) -> Self {
        Self { updates: 0, mean: network.zeros_like(), square: network.zeros_like() }
    }

    pub(crate) fn update(&mut self, network: &mut Network, gradient: &Network, learning_rate: f32) {
        self.updates += 1;
        let unbias_mean = 1.0 - Self::KEEP_MEAN.powi(self.updates);
        let unbias_square = 1.0 - Self::KEEP_SQUARE.powi(self.updates);
        let moments = self.mean.slices_mut().into_iter().zip(self.square.slices_mut());
        for ((weights, slopes), (means, squares)) in
            network.slices_mut().into_iter().zip(gradient.slices()).zip(moments)
        {
            let length = weights.len();
            let (slopes, means, squares) = (&slopes[..length], &mut means[..length], &mut squares[..length]);
            for i in 0..length {
                means[i] = Self::KEEP_MEAN * means[i] + (1.0 - Self::KEEP_MEAN) * slopes[i];
                squares[i] = Self::KEEP_SQUARE * squares[i] + (1.0 - Self::KEEP_SQUARE) * slopes[i] * slopes[i];
                weights[i] -= learning_rate * (means[i] / unbias_mean) / ((squares[i] / unbias_square).sqrt() + 1e-8);
            }
        }
    }
}

#[cfg(test)]
impl Network {
    pub(crate) fn flat(&self) -> Vec<f32> {
        self.slices().concat()
    }

    pub(crate) fn nudge(&mut self, at: usize, shift: f32) {
        let mut values = self.slices_mut().into_iter().flatten();
        if let Some(value) = values.nth(at) {
            *value += shift;
        }
    }
}
