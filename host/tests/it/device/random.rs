//! Random fills: the numbers that the documentation defines, in any pieces.

use steadfast::device::random::philox as words;
use steadfast::device::{Distribution, RandomFill};

use super::lab::{Lab, from_bytes, refused};

const SEED: u64 = 0x299f_31d0_a409_3822;

fn fill(lab: &mut Lab, distribution: Distribution, position: u64, count: u64) -> Vec<f32> {
    let buffer = lab.poisoned::<f32>(count as usize + 2);
    lab.context.fill_random(buffer, 4, &RandomFill { distribution, seed: SEED, position, count }).unwrap();
    let mut numbers = lab.download::<f32>(buffer);
    assert!(numbers.remove(0).is_nan() && numbers.pop().is_some_and(f32::is_nan), "written beside its place");
    numbers
}

/// `words` itself has the published answers: a test beside it.
pub fn published_numbers(lab: &mut Lab) {
    let key = [SEED as u32, (SEED >> 32) as u32];
    let block = (1_u64 << 40) + 5;
    let [a, b, c, d] = words([block as u32, (block >> 32) as u32, 0, 0], key);
    let uniform = [a, b, c, d].map(|word| ((word >> 8) + 1) as f32 / 16_777_216.0);
    assert_eq!(fill(lab, Distribution::Uniform, block * 4, 4), uniform);
    let normals = [(a, b), (c, d)].map(|(a, b)| {
        let radius = (-2.0 * ((f64::from(a) + 1.0) / 4_294_967_296.0).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(b) / 4_294_967_296.0;
        [radius * angle.cos(), radius * angle.sin()]
    });
    for (found, expected) in fill(lab, Distribution::Normal, block * 4, 4).iter().zip(normals.concat()) {
        assert!((f64::from(*found) - expected).abs() <= 1e-7 * expected.abs().max(1e-3), "{found} {expected}");
    }
}

pub fn every_device_has_the_same_numbers(lab: &mut Lab) {
    for (distribution, position) in [(Distribution::Uniform, 2), (Distribution::Normal, (1 << 40) + 3)] {
        let count = 100_001;
        let mut bytes = vec![0; count * 4];
        RandomFill { distribution, seed: SEED, position, count: count as u64 }.write(0, &mut bytes);
        let found = fill(lab, distribution, position, count as u64);
        for (at, (found, expected)) in found.iter().zip(from_bytes::<f32>(&bytes)).enumerate() {
            assert_eq!(found.to_bits(), expected.to_bits(), "number {at}: {found} and not {expected}");
        }
    }
}

pub fn any_piece_is_the_whole(lab: &mut Lab) {
    for distribution in [Distribution::Uniform, Distribution::Normal] {
        // More than one core's share.
        let whole = fill(lab, distribution, 3, 700_001);
        for (first, count) in [(0, 1), (1, 7), (2, 4), (5, 0), (262_140, 9), (700_000, 1)] {
            let piece = fill(lab, distribution, 3 + first as u64, count as u64);
            assert_eq!(piece, whole[first..first + count]);
        }
    }
    assert_eq!(fill(lab, Distribution::Uniform, u64::MAX - 2, 2).len(), 2);
}

pub fn distributions(lab: &mut Lab) {
    let count = 400_000;
    let moments = |numbers: &[f32], mean: f64| {
        let sum = |power| numbers.iter().map(|number| (f64::from(*number) - mean).powi(power)).sum::<f64>();
        [1, 2, 4].map(|power| sum(power) / numbers.len() as f64)
    };
    let uniform = fill(lab, Distribution::Uniform, 0, count);
    assert!(uniform.iter().all(|number| *number > 0.0 && *number <= 1.0));
    let [mean, variance, _] = moments(&uniform, 0.5);
    assert!(mean.abs() < 0.003 && (variance - 1.0 / 12.0).abs() < 0.001);
    let normal = fill(lab, Distribution::Normal, 0, count);
    let [mean, variance, fourth] = moments(&normal, 0.0);
    assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02 && (fourth - 3.0).abs() < 0.1);
}

pub fn refusals(lab: &mut Lab) {
    let buffer = lab.upload(&[0_f32; 8]);
    let numbers = RandomFill { distribution: Distribution::Normal, seed: 1, position: 0, count: 8 };
    let mut random = |offset, fill| refused(lab.context.fill_random(buffer, offset, &fill));
    assert_eq!(random(2, RandomFill { count: 1, ..numbers }), "random fill: its offset, 2, is no multiple of 4");
    random(4, numbers);
    random(0, RandomFill { count: 1 << 62, ..numbers });
    random(0, RandomFill { count: u64::MAX, ..numbers });
    let end = random(0, RandomFill { position: u64::MAX - 3, count: 4, ..numbers });
    assert_eq!(end, "random fill: there are no 4 numbers from position 18446744073709551612 on");
}
