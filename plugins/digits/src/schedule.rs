//! How the learning rate changes over a training.

use std::f64::consts::PI;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Result};

/// `"constant"`, `{"cosine": {"floor": 0.0005}}` or `{"step": {"every_epochs": 5, "factor": 0.5}}`. Tagged from outside, since it is
/// part of the state too, whose encoding cannot look ahead for a tag inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// The learning rate is what the configuration says, all along.
    #[default]
    Constant,
    /// Half a cosine from the learning rate down to this one.
    Cosine {
        /// The last one.
        floor: f32,
    },
    /// Multiplied by this factor each so many epochs.
    Step {
        /// How many epochs have the same.
        every_epochs: NonZeroU32,
        /// Above 0, and 1 at most.
        factor: f32,
    },
}

impl Schedule {
    pub(crate) fn check(&self, learning_rate: f32) -> Result<()> {
        let wrong =
            |field, bounds| Err(Error::invalid(format!("configuration, at `schedule.{field}`: must be {bounds}")));
        match *self {
            Self::Cosine { floor } if !(0.0..=learning_rate).contains(&floor) => {
                wrong("cosine.floor", "between 0 and the learning rate")
            }
            Self::Step { factor, .. } if !(factor > 0.0 && factor <= 1.0) => wrong("step.factor", "above 0, at most 1"),
            _ => Ok(()),
        }
    }

    /// The learning rate in an epoch, counted from 0, when `share` of all steps is done.
    pub(crate) fn rate(&self, learning_rate: f32, epoch: u32, share: f64) -> f32 {
        match *self {
            Self::Constant => learning_rate,
            Self::Cosine { floor } => {
                let left = 0.5 * (1.0 + (PI * share).cos());
                (f64::from(floor) + f64::from(learning_rate - floor) * left) as f32
            }
            Self::Step { every_epochs, factor } => {
                (0..epoch / every_epochs).fold(learning_rate, |rate, _| rate * factor)
            }
        }
    }
}
