//! Products of matrices on tensor cores: `mma`, `ldmatrix`, `cp.async`, a barrier in memory; and what warps do in one instruction.
//!
//! The reference is summed in f64 from the numbers as they are in the format. What the kernel has differs by the roundings of its f32 sums alone: `depth` of them, each by half a
//! unit in the last place (2⁻²⁴) of what has been summed. With factors below 1 that is within depth · depth · 2⁻²⁴; half of it is allowed here.

use super::subject::{Element, Inputs, Subject, assert_near};

/// Rows, columns and depth: whole tiles, parts of tiles, more than one tile in each direction.
const SIZES: [[usize; 3]; 5] = [[32, 32, 16], [64, 32, 64], [1, 8, 8], [33, 40, 24], [50, 72, 104]];

/// Half of what the roundings may come to.
fn tolerance(depth: usize) -> f64 {
    depth as f64 * depth as f64 * 2f64.powi(-25)
}

/// The product of two matrices whose elements `stored` made of numbers; `number` says what was kept of each.
fn check<T: Element>(entry: &str, multiple: usize, stored: impl Fn(f32) -> T, number: impl Fn(T) -> f64) {
    let (subject, mut inputs) = (Subject::new("tensor", entry), Inputs::fresh());
    for [rows, columns, depth] in SIZES {
        assert!(columns % multiple == 0 && depth % multiple == 0);
        let mut factor =
            |count: usize| -> Vec<T> { inputs.floats(count, -1.0, 1.0).into_iter().map(&stored).collect() };
        let (a, b) = (factor(rows * depth), factor(depth * columns));
        let mut call = subject.call();
        call.input(&a);
        call.input(&b);
        let out = call.output::<f32>(rows * columns);
        for size in [rows, columns, depth] {
            call.value(size as i32);
        }
        let grid = [(columns as u32).div_ceil(32), (rows as u32).div_ceil(32), 1];
        let got: Vec<f32> = call.run(grid, [128, 1, 1], 0).read(out);
        let sum = |i: usize| {
            (0..depth).map(|k| number(a[i / columns * depth + k]) * number(b[k * columns + i % columns])).sum()
        };
        let expected: Vec<f64> = (0..rows * columns).map(sum).collect();
        assert_near(&got, &expected, tolerance(depth), 1.0);
    }
}

#[test]
fn product_of_halves() {
    // Multiples of 2⁻¹⁰ below 1 are halves as they are.
    let stored = |x: f32| half((x * 1024.0).round() as i32);
    check("tensor_f16", 8, stored, |bits: u16| from_half(bits));
}

#[test]
fn product_of_short_singles() {
    let number = |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16));
    check("tensor_bf16", 8, |x: f32| (x.to_bits() >> 16) as u16, number);
}

/// To the nearest with 10 bits of fraction, ties away from zero.
#[test]
fn product_of_singles_in_tf32() {
    let number = |x: f32| f64::from(f32::from_bits((x.to_bits() + 0x1000) & !0x1fff));
    check("tensor_tf32", 4, |x: f32| x, number);
}

#[test]
fn sums_and_matches_of_warps() {
    let (subject, mut inputs) = (Subject::new("tensor", "warps"), Inputs::fresh());
    let x = inputs.integers(2 * 96, -6, 6);
    let mut call = subject.call();
    call.input(&x);
    let (sum, same, who) = (call.output::<i32>(x.len()), call.output::<i32>(x.len()), call.output::<u32>(x.len()));
    let outcome = call.run([2, 1, 1], [96, 1, 1], 0);
    let (sums, counts, lanes): (Vec<i32>, Vec<i32>, Vec<u32>) =
        (outcome.read(sum), outcome.read(same), outcome.read(who));
    for (warp, x) in x.chunks(32).enumerate() {
        let most = x.iter().map(|x| x & 7).max().unwrap_or_default();
        for (lane, value) in x.iter().enumerate() {
            let at = 32 * warp + lane;
            let alike = x.iter().rev().fold(0u32, |mask, other| mask << 1 | u32::from(other == value));
            assert_eq!((sums[at], lanes[at]), (x.iter().sum(), alike));
            assert_eq!(counts[at], alike.count_ones() as i32 + most);
        }
    }
}

/// `n · 2⁻¹⁰` as a half, for `n` of at most 11 bits.
fn half(n: i32) -> u16 {
    let sign = if n < 0 { 0x8000 } else { 0 };
    let magnitude = n.unsigned_abs();
    if magnitude == 0 {
        return sign;
    }
    let top = magnitude.ilog2();
    sign | (((top + 5) << 10) as u16) | ((magnitude << (10 - top)) & 0x3ff) as u16
}

/// Of a number that is no denormal.
fn from_half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    if bits & 0x7fff == 0 {
        return 0.0;
    }
    let magnitude = (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15);
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}
