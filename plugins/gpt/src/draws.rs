//! Random numbers that are counted: a seed names an endless row of them, and a position is all that has to be kept.

use serde::{Deserialize, Serialize};

/// Two rows out of one seed, far enough apart: one for batches, and one for samples, so that neither depends on how many the other has drawn.
const ROWS_APART: u64 = 1 << 63;

/// The numbers from a position on, by SplitMix64 (Steele, Lea and Flood 2014), whose state is a multiple of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Draws {
    seed: u64,
    position: u64,
}

impl Draws {
    pub(crate) fn for_batches(seed: u64) -> Self {
        Self { seed, position: 0 }
    }

    pub(crate) fn for_samples(seed: u64) -> Self {
        Self { seed, position: ROWS_APART }
    }

    fn next(&mut self) -> u64 {
        self.position = self.position.wrapping_add(1);
        let state = self.seed.wrapping_add(self.position.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// At least 0 and below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // The first ones of its reference program with the seed 1234567.
        let mut draws = Draws::for_batches(1_234_567);
        let numbers = [0; 3].map(|_| draws.next());
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_position_is_all_there_is_to_keep() {
        let mut draws = Draws::for_samples(5);
        let drawn: Vec<_> = (0..10).map(|_| draws.below(1000)).collect();
        let mut again = Draws { position: ROWS_APART + 6, ..Draws::for_samples(5) };
        assert_eq!(drawn[6..], [0; 4].map(|_| again.below(1000)));
        assert!(drawn.iter().all(|number| *number < 1000) && drawn[0] != drawn[1]);
        assert!((0..1000).map(|_| draws.unit()).all(|unit| (0.0..1.0).contains(&unit)));
        assert_eq!(draws.below(0), 0);
    }
}
