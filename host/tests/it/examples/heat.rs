//! `heat` against the same equation in plain loops, in double precision.

use super::floats;
use crate::support::{Finished, Place};

const CELLS: [usize; 3] = [37, 9, 10];
const RATE: f64 = 0.15;

fn after(steps: u32) -> Finished {
    let place = Place::new();
    let config = format!(r#"{{"cells": {CELLS:?}, "rate": {RATE}, "steps": {steps}, "picture_every": 4}}"#);
    place.run("heat").config(&config).args("--seed 5").done();
    place.finished("heat")
}

fn temperatures(finished: &Finished) -> Vec<f32> {
    floats(finished.outputs["temperature.f32"].as_deref().unwrap())
}

#[test]
fn it_is_the_heat_equation() {
    let begun = temperatures(&after(1));
    let mut expected: Vec<f64> = begun.iter().copied().map(f64::from).collect();
    assert!(expected.iter().any(|value| *value > 0.9), "something is hot");
    for _ in 1..10 {
        expected = step(&expected);
    }
    let ended = after(10);
    for (cell, (value, expected)) in temperatures(&ended).iter().zip(&expected).enumerate() {
        assert!((f64::from(*value) - expected).abs() < 1e-6, "cell {cell}: {value}, expected {expected}");
    }
    let pictures: Vec<_> = ended.outputs.keys().filter(|name| name.ends_with(".png")).collect();
    assert_eq!(pictures, ["slice-000004.png", "slice-000008.png", "slice-000010.png"]);
    assert!(ended.outputs["slice-000004.png"].as_deref().unwrap().starts_with(b"\x89PNG"));
}

fn step(now: &[f64]) -> Vec<f64> {
    let [nx, ny, nz] = CELLS;
    let plane = nx * ny;
    let mut next = now.to_vec();
    for z in 1..nz - 1 {
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let cell = z * plane + y * nx + x;
                let around = [cell - 1, cell + 1, cell - nx, cell + nx, cell - plane, cell + plane];
                let sum: f64 = around.iter().map(|neighbour| now[*neighbour]).sum();
                next[cell] += RATE * (sum - 6.0 * now[cell]);
            }
        }
    }
    next
}

#[test]
fn a_box_that_cannot_be_is_invalid_and_another_size_is_refused() {
    let place = Place::new();
    let run = |config: &str| place.run("heat").config(config).exits(65).stderr;
    assert!(run(r#"{"cells": [2, 9, 9]}"#).contains("at `cells`: must be between 3 and 4096 along each axis"));
    assert!(run(r#"{"rate": 0.2}"#).contains("at `rate`: must be above 0 and at most 1/6"));
}
