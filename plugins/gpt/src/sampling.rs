//! Text that the model makes up, character by character.

use std::collections::VecDeque;

use steadfast_guest::{Error, Result};

use super::config::Config;
use super::draws::Draws;
use super::text::Table;
use super::transformer::{Model, Weights};

/// The prompt as tokens.
pub(crate) fn prompt(config: &Config, table: &Table) -> Result<Vec<i32>> {
    if config.prompt.is_empty() {
        return Ok(vec![0]);
    }
    table.tokens(&config.prompt).map_err(|character| {
        Error::invalid(format!("configuration, at `prompt`: {character:?} does not occur in the text"))
    })
}

/// Goes on from the prompt; answers both.
pub(crate) fn sample(
    model: &dyn Model,
    weights: &Weights,
    table: &Table,
    config: &Config,
    draws: &mut Draws,
) -> Result<String> {
    let context = config.sizes().shape.context as usize;
    let prompt = prompt(config, table)?;
    let mut text: String = prompt.iter().filter_map(|token| table.character(*token)).collect();
    let mut seen: VecDeque<i32> = prompt.into();
    for _ in 0..config.sample_length {
        seen.drain(..seen.len().saturating_sub(context));
        let scores = model.next_scores(weights, seen.make_contiguous())?;
        let token = pick(&scores, config.temperature, draws.unit()) as i32;
        text.extend(table.character(token));
        seen.push_back(token);
    }
    Ok(text)
}

/// The place of the score at which the shares of all before it and its own come to more than `draw`, which is below 1.
fn pick(scores: &[f32], temperature: f32, draw: f64) -> usize {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shares: Vec<f64> =
        scores.iter().map(|score| (f64::from(score - highest) / f64::from(temperature)).exp()).collect();
    let mut left = draw * shares.iter().sum::<f64>();
    let taken = shares.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    taken.unwrap_or(shares.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_decide_what_is_picked() {
        let scores = [0.0, 2.0_f32.ln(), f32::NEG_INFINITY, 0.0];
        assert_eq!([0.0, 0.24, 0.26, 0.74, 0.76, 0.999].map(|draw| pick(&scores, 1.0, draw)), [0, 0, 1, 1, 3, 3]);
    }

    #[test]
    fn without_warmth_the_highest_is_picked() {
        let scores = [1.0, 1.5, 1.25];
        assert!([0.001, 0.5, 0.999].iter().all(|draw| pick(&scores, 0.01, *draw) == 1));
    }

    #[test]
    fn scores_that_are_no_numbers_pick_something() {
        assert_eq!(pick(&[f32::NAN; 3], 1.0, 0.5), 2);
    }
}
