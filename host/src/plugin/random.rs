//! What WASI gives out as random: ChaCha20, keyed by the job's seed, so that runs repeat bit for bit.
//!
//! `wasi:random/random` and `wasi:random/insecure` are two streams with keys of their own, each with a position that can be
//! read, stored in a checkpoint and set again. `wasi:random/insecure-seed`, which seeds `HashMap`s, is one value for a job.
//! None of this is fit for secrets, and the SDK's documentation says so.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use rand_chacha::ChaCha20Rng;
use rand_core::{SeedableRng, TryRng};
use serde::{Deserialize, Serialize};

/// Where both streams are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomPosition {
    /// Of `wasi:random/random`.
    pub secure: StreamPosition,
    /// Of `wasi:random/insecure`.
    pub insecure: StreamPosition,
}

/// How many words of 32 bits a stream has given out. Two halves, because JSON has no number for 2⁶⁸ of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPosition {
    /// Multiples of 2⁶⁴; 0 in any run that people will see.
    #[serde(default)]
    pub high: u64,
    /// The rest.
    pub words: u64,
}

impl StreamPosition {
    fn of(words: u128) -> Self {
        Self { high: (words >> 64) as u64, words: words as u64 }
    }

    fn as_words(self) -> u128 {
        (u128::from(self.high) << 64) | u128::from(self.words)
    }
}

/// One stream; clones are the same stream, so that the host can read its position while WASI owns it.
#[derive(Clone)]
pub(super) struct Stream(Arc<Mutex<ChaCha20Rng>>);

impl Stream {
    fn new(context: &str, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha20Rng::from_seed(blake3::derive_key(context, &seed.to_le_bytes())))))
    }

    fn with<R>(&self, f: impl FnOnce(&mut ChaCha20Rng) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.with(TryRng::try_next_u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.with(TryRng::try_next_u64)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.with(|rng| rng.try_fill_bytes(bytes))
    }
}

/// All that is random for one guest.
pub(super) struct Random {
    pub(super) secure: Stream,
    pub(super) insecure: Stream,
    pub(super) insecure_seed: u128,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // These strings name the streams for ever: changing one changes every job's numbers.
        let [low, high, ..] = halves(blake3::derive_key("steadfast 0.1 wasi insecure seed", &seed.to_le_bytes()));
        Self {
            secure: Stream::new("steadfast 0.1 wasi random", seed),
            insecure: Stream::new("steadfast 0.1 wasi insecure random", seed),
            insecure_seed: (u128::from(high) << 64) | u128::from(low),
        }
    }

    pub(super) fn position(&self) -> RandomPosition {
        RandomPosition {
            secure: StreamPosition::of(self.secure.with(|rng| rng.get_word_pos())),
            insecure: StreamPosition::of(self.insecure.with(|rng| rng.get_word_pos())),
        }
    }

    pub(super) fn set_position(&self, position: RandomPosition) {
        self.secure.with(|rng| rng.set_word_pos(position.secure.as_words()));
        self.insecure.with(|rng| rng.set_word_pos(position.insecure.as_words()));
    }
}

fn halves(key: [u8; 32]) -> [u64; 4] {
    std::array::from_fn(|i| std::array::from_fn(|j| key[8 * i + j])).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    /// Uses of any width and alignment, as a guest may mix them.
    fn draw(random: &mut Random, uses: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &use_ in uses {
            let stream = if use_ & 1 == 0 { &mut random.secure } else { &mut random.insecure };
            match use_ % 3 {
                0 => out.extend(stream.try_next_u64().unwrap().to_le_bytes()),
                1 => out.extend(stream.try_next_u32().unwrap().to_le_bytes()),
                _ => {
                    let mut bytes = vec![0; usize::from(use_) * 3];
                    stream.try_fill_bytes(&mut bytes).unwrap();
                    out.extend(bytes);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn a_stream_goes_on_where_its_position_says(before: Vec<u8>, after: Vec<u8>, seed: u64) {
            let mut first = Random::new(seed);
            draw(&mut first, &before);
            let position = first.position();
            let json = serde_json::to_string(&position).unwrap();
            let mut second = Random::new(seed);
            second.set_position(serde_json::from_str(&json).unwrap());
            prop_assert_eq!(second.position(), position);
            prop_assert_eq!(draw(&mut first, &after), draw(&mut second, &after));
            prop_assert_eq!(first.position(), second.position());
        }
    }

    #[test]
    fn streams_and_seeds_differ() {
        let bytes = |seed: u64, which: u8| draw(&mut Random::new(seed), &[which]);
        assert_ne!(bytes(1, 0), bytes(1, 3));
        assert_ne!(bytes(1, 0), bytes(2, 0));
        assert_eq!(bytes(7, 0), bytes(7, 0));
        assert_ne!(Random::new(1).insecure_seed, Random::new(2).insecure_seed);
    }

    /// Numbers that published results rest on: they must be the same in every release.
    #[test]
    fn the_numbers_of_seed_0_stay() {
        let mut random = Random::new(0);
        insta::assert_snapshot!(format!(
            "{:016x} {:016x} {:032x}",
            random.secure.try_next_u64().unwrap(),
            random.insecure.try_next_u64().unwrap(),
            random.insecure_seed
        ), @"de73f0e3a5eb0d3b 54a269ff2f01884e 15a55207841379bb7e364e2e4d6b2a91");
    }
}
