//! The gradient of `gpt` beside differences of its loss, and beside the gradient where products are made of bfloat16: on the device, with its own code.

use std::fmt::Write;
use std::fs;

use serde::{Deserialize, Serialize};
use steadfast_guest::device::Bf16;
use steadfast_guest::{Job, Outcome, Plugin, Result, output, plugin};

/// Included, and not a dependency: a component exports one plugin, and the package `gpt` exports its own.
#[path = "../../../../plugins/gpt/src/lib.rs"]
pub mod gpt;

use gpt::config::Shape;
use gpt::layout::{Layout, Part};
use gpt::text::Batch;
use gpt::transformer::{Model, Transformer, Weights};

/// No size is a multiple of another one's, or of a warp.
const SHAPE: Shape = Shape { layers: 2, heads: 3, width: 12, context: 7 };
const CHARACTERS: u32 = 5;
const TEXTS: u32 = 2;
const TOKENS: [i32; 14] = [0, 1, 2, 3, 4, 0, 1, 1, 4, 2, 2, 0, 3, 1];
const TARGETS: [i32; 14] = [1, 2, 3, 4, 0, 1, 1, 4, 2, 2, 0, 3, 1, 2];
/// How far weights lie from 0: far enough for every part of the model to matter.
const DEVIATION: f32 = 0.3;
/// How far a weight is moved to either side.
const SHIFT: f32 = 1e-2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Threads for a row.
    lanes: u32,
}

#[derive(Serialize, Deserialize)]
struct Slopes {
    lanes: u32,
    weights: Weights,
    seed: u64,
}

impl Plugin for Slopes {
    type Config = Options;

    fn start(job: &Job, options: Options) -> Result<Self> {
        Ok(Self { lanes: options.lanes, weights: Weights::new(&layout())?, seed: job.seed })
    }

    fn step(&mut self) -> Result<Outcome> {
        let model = Transformer::<f32>::with_lanes(SHAPE, CHARACTERS, TEXTS, self.lanes)?;
        let narrow = Transformer::<Bf16>::with_lanes(SHAPE, CHARACTERS, TEXTS, self.lanes)?;
        let parameters = self.draw()?;
        self.weights.parameters.write(&parameters)?;
        let gradient = self.gradient(&model)?;
        let rounded: Vec<f32> = self.gradient(&narrow)?.into_iter().map(Bf16::to_f32).collect();

        let (mut differences, mut shares) =
            ("part,told,measured\n".to_owned(), "part,length,rounded,product\n".to_owned());
        for (name, part) in layout().named() {
            let place = part.first as usize..(part.first + part.len()) as usize;
            let (own, other) = (&gradient[place.clone()], &rounded[place]);
            let length = product(own, own).sqrt();
            // All at once in the direction in which the loss rises most, and some alone.
            let along = self.slope(&model, &parameters, part, |index| f64::from(own[index]) / length)?;
            writeln!(differences, "{name},{length},{along}").ok();
            for alone in (0..own.len()).step_by(own.len().div_ceil(5)) {
                let slope = self.slope(&model, &parameters, part, |index| f64::from(u8::from(index == alone)))?;
                writeln!(differences, "{name}[{alone}],{},{slope}", own[alone]).ok();
            }
            writeln!(shares, "{name},{length},{},{}", product(other, other).sqrt(), product(own, other)).ok();
        }
        fs::write(output("slopes.csv"), differences)?;
        fs::write(output("bfloat16.csv"), shares)?;
        Ok(Outcome::done("compared"))
    }
}

impl Slopes {
    fn draw(&self) -> Result<Vec<f32>> {
        let layout = layout();
        self.weights.parameters.fill_normal(self.seed, 0)?;
        let mut parameters = self.weights.parameters.read()?;
        parameters.iter_mut().for_each(|weight| *weight *= DEVIATION);
        for norm in layout.norms() {
            let place = norm.scale.first as usize..(norm.scale.first + norm.scale.len()) as usize;
            parameters[place].iter_mut().for_each(|weight| *weight += 1.0);
        }
        Ok(parameters)
    }

    fn gradient<T: gpt::number::Number>(&self, model: &Transformer<T>) -> Result<Vec<T>> {
        model.take_over(&self.weights)?;
        let extent = model.forward(&self.weights, &batch())?;
        model.cross_entropy(&batch(), extent)?;
        model.backward(&self.weights, extent)?;
        Ok(model.slopes.read()?)
    }

    /// How steeply the loss rises where a part's weights move in this direction.
    fn slope(
        &self,
        model: &Transformer<f32>,
        parameters: &[f32],
        part: Part,
        direction: impl Fn(usize) -> f64,
    ) -> Result<f64> {
        let loss = |shift: f32| -> Result<f64> {
            let mut moved = parameters.to_vec();
            for index in 0..part.len() as usize {
                moved[part.first as usize + index] += shift * direction(index) as f32;
            }
            self.weights.parameters.write(&moved)?;
            model.take_over(&self.weights)?;
            let losses = model.losses(&self.weights, &batch())?;
            Ok(losses.iter().copied().map(f64::from).sum::<f64>() / losses.len() as f64)
        };
        Ok((loss(SHIFT)? - loss(-SHIFT)?) / f64::from(2.0 * SHIFT))
    }
}

fn layout() -> Layout {
    Layout::of(SHAPE, CHARACTERS)
}

fn batch() -> Batch {
    Batch { tokens: TOKENS.to_vec(), targets: TARGETS.to_vec(), length: SHAPE.context }
}

fn product(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
}

plugin!(Slopes);
