//! The numbers of a random fill: Philox 4×32-10 and what is made of its words, to the bit the same on every device.
//!
//! A seed names an endless sequence of numbers for each distribution; a fill writes the `count` numbers from `position` on. Number `p` comes from the
//! words `w0 … w3` that Philox makes of the counter `(p / 4, 0)` (64 bits each, lower words first) under the key `seed` (lower word first):
//!
//! - *uniform* in (0, 1]: `(w[p % 4] >> 8) + 1` times 2⁻²⁴, which no rounding touches.
//! - *normal*, mean 0 and variance 1, by Box and Muller: numbers `4k` and `4k + 1` are the pair of `w0, w1`, `4k + 2` and `4k + 3` that of `w2, w3`.
//!   Of a pair `(a, b)`: `r · cos t` and `r · sin t`, with `r = √(−2 · ln((a + 1) · 2⁻³²))` and `t = 2π · b · 2⁻³²`, in binary64, rounded to binary32 once.
//!
//! `ln`, `sin` and `cos` are sums of the operations +, −, ×, ÷ and √, which IEEE 754 rounds in one way only, in the order written here and without fused
//! multiply-adds. No mathematical library has a part in it, so the last bit is the same everywhere.

use std::f64::consts::{LN_2, TAU};

/// What a random number is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Uniform in (0, 1].
    Uniform,
    /// Normal with mean 0 and variance 1.
    Normal,
}

/// Which numbers a fill writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomFill {
    /// What they are drawn from.
    pub distribution: Distribution,
    /// Names the sequence.
    pub seed: u64,
    /// The first of its numbers to write.
    pub position: u64,
    /// How many; `position + count` fits into 64 bits.
    pub count: u64,
}

impl RandomFill {
    /// Numbers `skip …` of the fill, as little-endian `f32`s: as many as `into` holds. Any way to cut a fill gives the same bytes.
    pub fn write(&self, skip: u64, into: &mut [u8]) {
        let first = self.position + skip;
        let lead = usize::try_from(first % 4).unwrap_or_default();
        let mut block = first / 4;
        let mut put = |at: usize, chunk: &mut [u8]| {
            let numbers = self.numbers(block);
            for (bytes, number) in chunk.chunks_exact_mut(4).zip(&numbers[at..]) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
            block = block.wrapping_add(1);
        };
        let (head, rest) = into.split_at_mut(if lead == 0 { 0 } else { into.len().min((4 - lead) * 4) });
        if !head.is_empty() {
            put(lead, head);
        }
        rest.chunks_mut(16).for_each(|chunk| put(0, chunk));
    }

    fn numbers(&self, block: u64) -> [f32; 4] {
        let [w0, w1, w2, w3] =
            philox([block as u32, (block >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32]);
        match self.distribution {
            Distribution::Uniform => [w0, w1, w2, w3].map(uniform),
            Distribution::Normal => {
                let ((n0, n1), (n2, n3)) = (normals(w0, w1), normals(w2, w3));
                [n0, n1, n2, n3]
            }
        }
    }
}

/// Philox 4×32 with ten rounds, after Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3* (2011).
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    for _ in 0..10 {
        let [c0, c1, c2, c3] = counter;
        let (p0, p1) = (MULTIPLIERS[0] * u64::from(c0), MULTIPLIERS[1] * u64::from(c2));
        counter = [(p1 >> 32) as u32 ^ c1 ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ c3 ^ key[1], p0 as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

fn uniform(word: u32) -> f32 {
    const STEP: f32 = 1.0 / (1 << 24) as f32;
    ((word >> 8) + 1) as f32 * STEP
}

fn normals(a: u32, b: u32) -> (f32, f32) {
    let radius = (-2.0 * ln_of_fraction(u64::from(a) + 1)).sqrt();
    let (sin, cos) = sin_cos_of_turn(b);
    ((radius * cos) as f32, (radius * sin) as f32)
}

/// The logarithm of `n · 2⁻³²`, for `1 ≤ n ≤ 2³²`: `n = 2ᵉ · m` with `m` around 1, then `ln m = 2 · artanh((m − 1) / (m + 1))`.
fn ln_of_fraction(n: u64) -> f64 {
    const SQRT_2: f64 = std::f64::consts::SQRT_2;
    let mut exponent = n.ilog2();
    // Both divisors are powers of two: exact.
    let mut m = n as f64 / (1_u64 << exponent) as f64;
    if m > SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    // |s| < 0.172: the first term that is left out is below 2⁻⁵⁶ of the sum.
    let series = (0..11).rev().fold(0.0, |sum, k| sum * z + 1.0 / f64::from(2 * k + 1));
    (f64::from(exponent) - 32.0) * LN_2 + 2.0 * s * series
}

/// Sine and cosine of `turn · 2⁻³²` turns: the nearest quarter exactly, and Taylor's series for the eighth that is left at most.
fn sin_cos_of_turn(turn: u32) -> (f64, f64) {
    let quarter = turn.wrapping_add(1 << 29) >> 30;
    let rest = turn.wrapping_sub(quarter << 30) as i32;
    let x = f64::from(rest) * (TAU / (1_u64 << 32) as f64);
    let z = x * x;
    // sum = 1 − z/(2·3) · (1 − z/(4·5) · (…)), and the same for the cosine: terms up to x¹⁹, below 2⁻⁶³ there. Divisors are taken as their rounded reciprocals.
    let sin = x * (1..10).rev().fold(1.0, |sum, k| 1.0 - z * (1.0 / f64::from(2 * k * (2 * k + 1))) * sum);
    let cos = (1..10).rev().fold(1.0, |sum, k| 1.0 - z * (1.0 / f64::from(2 * k * (2 * k - 1))) * sum);
    match quarter {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that come with the authors' Random123 library (`kat_vectors`).
    #[test]
    fn philox_gives_the_published_answers() {
        let ones = u32::MAX;
        for (counter, key, answer) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(counter, key), answer);
        }
    }

    #[test]
    fn the_ends_of_the_distributions() {
        assert_eq!(uniform(0), 1.0 / 16_777_216.0);
        assert_eq!(uniform(u32::MAX), 1.0);
        assert_eq!(normals(u32::MAX, 12345), (0.0, 0.0));
        let (far, none) = normals(0, 0);
        assert_eq!((far, none), ((64.0 * std::f64::consts::LN_2).sqrt() as f32, 0.0));
    }

    #[test]
    fn logarithm_and_angle_agree_with_the_library_to_the_last_bits() {
        let mut word = 1_u32;
        for _ in 0..100_000 {
            word = word.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15);
            let n = u64::from(word) + 1;
            let ln = (n as f64 / 4_294_967_296.0).ln();
            assert!((ln_of_fraction(n) - ln).abs() <= 1e-15 * ln.abs().max(1.0), "{n}");
            let (sin, cos) = sin_cos_of_turn(word);
            let angle = f64::from(word) * (TAU / 4_294_967_296.0);
            assert!((sin - angle.sin()).abs() < 2e-15 && (cos - angle.cos()).abs() < 2e-15, "{word}");
        }
    }

    #[test]
    fn a_fill_in_pieces_is_the_whole_fill() {
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            let whole = RandomFill { distribution, seed: 7, position: 0, count: 41 };
            let mut bytes = [0; 41 * 4];
            whole.write(0, &mut bytes);
            for (first, count) in [(0, 1), (1, 1), (3, 2), (5, 3), (2, 39), (40, 1), (8, 0)] {
                let mut piece = vec![0; count * 4];
                RandomFill { position: first as u64, count: count as u64, ..whole }.write(0, &mut piece);
                assert_eq!(piece, bytes[first * 4..(first + count) * 4], "{first} {count}");
                whole.write(first as u64, &mut piece);
                assert_eq!(piece, bytes[first * 4..(first + count) * 4], "{first} {count}");
            }
        }
    }
}
