//! What the configuration says: the size of the model, how it is trained, and what is told on the way.

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Result, check_config};

/// How large, how long, and how to train. What is not said is the preset's, or as in `Config::default()`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The sizes of the model and of the training, where they are not said one by one.
    pub(crate) preset: Preset,
    layers: Option<u32>,
    heads: Option<u32>,
    /// Numbers that stand for a character; a multiple of the heads.
    width: Option<u32>,
    /// Characters that the model looks back on.
    context: Option<u32>,
    /// Pieces of text a step, each as long as the context.
    batch: Option<u32>,
    steps: Option<u64>,
    learning_rate: Option<f32>,
    /// Steps over which the learning rate rises from nothing.
    warm_up: Option<u64>,
    /// The share of the learning rate that is left at the end of the half cosine on which it falls.
    last_rate: f32,
    /// Of matrices, not of biases and norms.
    pub(crate) weight_decay: f32,
    /// What Adam's moments keep each step.
    pub(crate) betas: [f32; 2],
    /// The greatest norm of the gradient; a greater one is scaled down.
    pub(crate) clip: f32,
    /// What matrix products are made of. Weights, moments and losses are float32 in any case.
    pub(crate) precision: Precision,
    /// The file in `/input`; the one whose name ends in `.txt` if there is one.
    pub(crate) text: Option<String>,
    /// Of the text, from its end, that is never trained on.
    pub(crate) validation_share: f64,
    /// Steps from one loss on that share to the next; 0 for none.
    pub(crate) validate_every: u64,
    /// Steps from one sample to the next; 0 for none.
    pub(crate) sample_every: u64,
    /// Characters of a sample.
    pub(crate) sample_length: u32,
    /// How bold samples are: near 0 the likeliest character is always taken, at 1 they are what the model thinks of the text.
    pub(crate) temperature: f32,
    /// What samples begin with; the first character of the table if empty.
    pub(crate) prompt: String,
    /// Steps from one file of weights to the next, the first one before step 0; 0 for none but the last.
    pub(crate) weights_every: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::Small,
            layers: None,
            heads: None,
            width: None,
            context: None,
            batch: None,
            steps: None,
            learning_rate: None,
            warm_up: None,
            last_rate: 0.1,
            weight_decay: 0.1,
            betas: [0.9, 0.99],
            clip: 1.0,
            precision: Precision::Float32,
            text: None,
            validation_share: 0.1,
            validate_every: 100,
            sample_every: 100,
            sample_length: 200,
            temperature: 0.8,
            prompt: String::new(),
            weights_every: 0,
        }
    }
}

/// Sizes that go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// 29,000 weights: a second on the CPU.
    Tiny,
    /// 1 million weights: minutes on the CPU.
    #[default]
    Small,
    /// The sizes of GPT-2 small, 86 million weights with a table of characters: for a GPU.
    Gpt2,
}

/// What matrix products are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Everything is a float32.
    #[default]
    Float32,
    /// Factors and results of products are bfloat16, their sums float32.
    Bfloat16,
}

/// What a preset decides, and the configuration can decide otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) shape: Shape,
    pub(crate) batch: u32,
    pub(crate) steps: u64,
    pub(crate) learning_rate: f32,
    pub(crate) warm_up: u64,
}

/// The size of a model, but for the characters that it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) layers: u32,
    pub(crate) heads: u32,
    pub(crate) width: u32,
    pub(crate) context: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layers, heads, width, context } = self;
        write!(f, "{layers} layers, {heads} heads, a width of {width} and a context of {context}")
    }
}

impl Preset {
    fn sizes(self) -> Sizes {
        let shape = |layers, heads, width, context| Shape { layers, heads, width, context };
        let (shape, batch, steps, learning_rate, warm_up) = match self {
            Self::Tiny => (shape(2, 2, 32, 32), 4, 200, 3e-3, 20),
            Self::Small => (shape(5, 4, 128, 64), 8, 1000, 2e-3, 50),
            Self::Gpt2 => (shape(12, 12, 768, 1024), 8, 100_000, 6e-4, 2000),
        };
        Sizes { shape, batch, steps, learning_rate, warm_up }
    }
}

impl Config {
    pub(crate) fn sizes(&self) -> Sizes {
        let preset = self.preset.sizes();
        Sizes {
            shape: Shape {
                layers: self.layers.unwrap_or(preset.shape.layers),
                heads: self.heads.unwrap_or(preset.shape.heads),
                width: self.width.unwrap_or(preset.shape.width),
                context: self.context.unwrap_or(preset.shape.context),
            },
            batch: self.batch.unwrap_or(preset.batch),
            steps: self.steps.unwrap_or(preset.steps),
            learning_rate: self.learning_rate.unwrap_or(preset.learning_rate),
            warm_up: self.warm_up.unwrap_or(preset.warm_up),
        }
    }

    pub(crate) fn checked(self) -> Result<Self> {
        let Sizes { shape, batch, steps, learning_rate, .. } = self.sizes();
        let above_0 = |value: f32| value > 0.0 && value.is_finite();
        check_config(&[
            ("layers", (1..=1000).contains(&shape.layers), "between 1 and 1000"),
            ("heads", shape.heads >= 1, "at least 1"),
            ("width", (1..=16384).contains(&shape.width), "between 1 and 16384"),
            ("width", shape.width.is_multiple_of(shape.heads.max(1)), "a multiple of `heads`"),
            ("context", (2..=65536).contains(&shape.context), "between 2 and 65536"),
            ("batch", (1..=65536).contains(&batch), "between 1 and 65536"),
            ("batch", u64::from(batch) * u64::from(shape.context) <= 1 << 24, "at most 16777216 / `context`"),
            ("steps", steps >= 1, "at least 1"),
            ("learning_rate", above_0(learning_rate), "above 0"),
            ("last_rate", (0.0..=1.0).contains(&self.last_rate), "between 0 and 1"),
            ("weight_decay", self.weight_decay >= 0.0 && self.weight_decay.is_finite(), "at least 0"),
            ("betas", self.betas.iter().all(|beta| (0.0..1.0).contains(beta)), "at least 0 and below 1"),
            ("clip", above_0(self.clip), "above 0"),
            ("validation_share", (0.0..=0.5).contains(&self.validation_share), "between 0 and 0.5"),
            ("sample_length", (1..=10_000).contains(&self.sample_length), "between 1 and 10000"),
            ("temperature", above_0(self.temperature), "above 0"),
        ])
        .map(|()| self)
    }

    /// The learning rate of a step, counted from 0: a function of the place alone, so that a resume changes nothing.
    pub(crate) fn rate(&self, step: u64) -> f32 {
        let Sizes { steps, learning_rate, warm_up, .. } = self.sizes();
        if step < warm_up {
            return (f64::from(learning_rate) * (step + 1) as f64 / warm_up as f64) as f32;
        }
        let share = (step - warm_up) as f64 / steps.saturating_sub(warm_up).max(1) as f64;
        let (last, left) = (f64::from(self.last_rate), 0.5 * (1.0 + (PI * share.min(1.0)).cos()));
        (f64::from(learning_rate) * (last + (1.0 - last) * left)) as f32
    }
}
