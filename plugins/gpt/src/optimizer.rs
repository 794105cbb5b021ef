//! One step down the gradient: clipped, then AdamW.

use steadfast_guest::Result;

use super::config::Config;
use super::number::Number;
use super::transformer::{Transformer, Weights};

/// How many sums the squares of the gradient are first added up to.
pub(super) const SUMS: u64 = 1024;

/// How weights change in a step.
pub(crate) struct Update {
    pub(crate) rate: f32,
    weight_decay: f32,
    betas: [f32; 2],
    /// What of the moments is not zeros of the beginning any more.
    filled: [f64; 2],
    clip: f32,
}

impl Update {
    /// That of a step, counted from 0.
    pub(crate) fn of(config: &Config, step: u64) -> Self {
        let updates = i32::try_from(step + 1).unwrap_or(i32::MAX);
        Self {
            rate: config.rate(step),
            weight_decay: config.weight_decay,
            betas: config.betas,
            filled: config.betas.map(|beta| 1.0 - f64::from(beta).powi(updates)),
            clip: config.clip,
        }
    }
}

impl<T: Number> Transformer<T> {
    pub(super) fn update(&self, weights: &Weights, update: &Update) -> Result<()> {
        let total = self.layout.total;
        let length = total.div_ceil(SUMS);
        let sums = self.launch_rows("sum_squares", SUMS).arg(&self.slopes).arg(&self.sums);
        sums.arg(length).arg(total).arg(self.lanes).launch()?;
        let clip = self.launch("clip", 1).block(self.lanes).arg(&self.sums).arg(&self.norm);
        clip.arg(total.div_ceil(length) as u32).arg(update.clip).arg(self.lanes).launch()?;

        let adamw = self.launch("adamw", total).arg(&weights.parameters).arg(&self.numbers).arg(&self.slopes);
        let adamw = adamw.arg(&weights.means).arg(&weights.squares).arg(&self.norm).arg(total).arg(self.layout.decayed);
        let [means_filled, squares_filled] = update.filled;
        let adamw = adamw.arg((f64::from(update.rate) / means_filled) as f32).arg(squares_filled.sqrt().recip() as f32);
        let adamw = adamw.arg(1.0 - update.rate * update.weight_decay);
        Ok(adamw.arg(update.betas[0]).arg(update.betas[1]).launch()?)
    }
}
