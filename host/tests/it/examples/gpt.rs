//! `gpt` learns, its gradient is the slope of its loss, products of bfloat16 change neither, and its numbers stay what they were.

use std::fs;
use std::path::PathBuf;

use super::{source, tensor, trained};
use crate::support::{Finished, Place};

/// A column of a table with a line for its head.
fn column(table: &str, name: &str) -> Vec<f64> {
    let place = table.lines().next().unwrap().split(',').position(|head| head == name).unwrap();
    table.lines().skip(1).map(|line| line.split(',').nth(place).unwrap().parse().unwrap()).collect()
}

fn losses(finished: &Finished) -> Vec<f64> {
    column(finished.text("loss.csv"), "loss")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn it_learns_to_write() {
    let finished = trained("gpt", r#"{"preset": "tiny", "sample_length": 50, "prompt": "Mr. ", "weights_every": 150}"#);
    let losses = losses(&finished);
    assert_eq!((losses.len(), finished.steps), (200, 200));
    // Nothing is known at first of 72 characters; that some are more frequent than others is learned within some steps, and then what follows what.
    assert!((losses[0] - 72_f64.ln()).abs() < 0.1, "{}", losses[0]);
    let last = mean(&losses[180..]);
    assert!(last < 2.9, "{last}");
    let held_out = column(finished.text("validation.csv"), "loss");
    assert!(held_out.len() == 2 && (held_out[1] - last).abs() < 0.3, "{held_out:?}, {last}");

    let files: Vec<_> = finished.outputs.keys().map(String::as_str).collect();
    let expected = [
        "loss.csv",
        "model.safetensors",
        "samples",
        "samples/000100.txt",
        "samples/000200.txt",
        "validation.csv",
        "weights",
        "weights/000000.safetensors",
        "weights/000150.safetensors",
    ];
    assert_eq!(files, expected);
    let sample = finished.text("samples/000200.txt");
    assert!(sample.starts_with("Mr. ") && sample.chars().count() == 54, "{sample}");
    let [first, last] = ["weights/000000.safetensors", "model.safetensors"].map(|file| {
        let (shape, values) = tensor(finished.outputs[file].as_deref().unwrap(), "h.1.mlp.c_proj.weight");
        assert_eq!(shape, [128, 32]);
        values
    });
    let deviation = mean(&first.iter().map(|weight| f64::from(*weight).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!((deviation - 0.02 / 2.0).abs() < 0.001, "what is added to the stream is smaller: {deviation}");
    assert!(first != last);
}

#[test]
fn products_of_bfloat16_learn_the_same() {
    let after = |precision: &str| {
        let config = format!(r#"{{"preset": "tiny", "steps": 100, "sample_every": 0, "precision": "{precision}"}}"#);
        losses(&trained("gpt", &config))
    };
    let (whole, narrow) = (after("float32"), after("bfloat16"));
    let apart: Vec<_> = whole.iter().zip(&narrow).map(|(one, other)| (one - other).abs()).collect();
    let apart = mean(&apart);
    assert!(apart > 0.0 && apart < 0.01, "{apart}");
}

/// Each with its numbers in `plugins/gpt/golden`, whose README says what they are and when they are made anew.
const PRECISIONS: [&str; 2] = ["float32", "bfloat16"];

fn golden(precision: &str) -> PathBuf {
    source("gpt/golden").join(format!("{precision}.csv"))
}

/// The losses of some steps on the CPU device, and the hashes of all that is on the device in the end.
fn numbers(precision: &str) -> String {
    let place = Place::new();
    let config = format!(r#"{{"preset": "tiny", "steps": 20, "sample_every": 0, "precision": "{precision}"}}"#);
    let run = place.run("gpt").config(&config).args("--seed 1 --device cpu");
    run.arg("--input").arg(source("gpt/data")).done();
    let finished = place.finished("gpt");
    // The guest's own section has no colon in its name, and no number that is not in these.
    let device = finished.state.iter().filter(|(name, _)| name.contains(':'));
    let hashes: String = device.map(|(name, bytes)| format!("{name},{}\n", blake3::hash(bytes))).collect();
    format!("{}\nbuffer,blake3\n{hashes}", finished.text("loss.csv"))
}

/// Whether the device sums up products as where the golden numbers were made: each multiplication and addition in one.
fn sums_as_then() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// To the last bit, so that no change of the numerics goes unnoticed: of the plugin, of its kernels' translation, of the device's products.
#[test]
fn its_numbers_are_what_they_were() {
    for precision in PRECISIONS {
        let (then, now) = (fs::read_to_string(golden(precision)).unwrap(), numbers(precision));
        if sums_as_then() {
            assert!(now == then, "{precision}: see plugins/gpt/golden/README.md; now they are\n{now}");
            continue;
        }
        eprintln!("SKIPPED the last bits of gpt's numbers: they are those of x86-64 with FMA");
        let losses = |numbers: &str| column(numbers.split("\n\n").next().unwrap(), "loss");
        let (then, now) = (losses(&then), losses(&now));
        assert_eq!(then.len(), now.len());
        assert!(then.iter().zip(&now).all(|(then, now)| (then - now).abs() < 1e-3), "{precision}: {now:?}");
    }
}

#[test]
#[ignore = "writes the golden numbers anew, when a change of them is meant"]
fn write_golden_numbers() {
    for precision in PRECISIONS {
        fs::write(golden(precision), numbers(precision)).unwrap();
    }
}

/// What the test guest says of the gradient, with one thread for a row, or 32.
fn compared(lanes: u32) -> Finished {
    let place = Place::new();
    place.run("gpt_slopes").config(&format!(r#"{{"lanes": {lanes}}}"#)).args("--seed 1").done();
    place.finished("gpt_slopes")
}

/// Every part of the model: all its weights at once in the direction in which the loss rises most, and some of them alone.
#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    for lanes in [1, 32] {
        let finished = compared(lanes);
        let table = finished.text("slopes.csv");
        let (told, measured) = (column(table, "told"), column(table, "measured"));
        assert!(told.len() > 28 * 5, "{}", told.len());
        for (line, (told, measured)) in table.lines().skip(1).zip(told.iter().zip(&measured)) {
            assert!((told - measured).abs() < 1e-4 + 1e-3 * told.abs(), "lanes {lanes}: {line}");
        }
    }
}

/// With 8 bits for a number, each part's gradient has the same direction, and the same length but for a few hundredths.
#[test]
fn the_gradient_of_bfloat16_points_the_same_way() {
    for lanes in [1, 32] {
        let finished = compared(lanes);
        let table = finished.text("bfloat16.csv");
        let [length, rounded, product] = ["length", "rounded", "product"].map(|name| column(table, name));
        assert_eq!(length.len(), 2 + 2 * 12 + 2);
        for (part, line) in table.lines().skip(1).enumerate() {
            let ratio = rounded[part] / length[part];
            let cosine = product[part] / (length[part] * rounded[part]);
            assert!((0.95..1.05).contains(&ratio) && cosine > 0.999, "lanes {lanes}: {line}");
        }
    }
}

#[test]
fn another_seed_is_another_model_and_other_batches() {
    let after = |seed: &str| {
        let place = Place::new();
        let run = place.run("gpt").config(r#"{"preset": "tiny", "steps": 2, "sample_every": 0}"#).args(seed);
        run.arg("--input").arg(source("gpt/data")).done();
        losses(&place.finished("gpt"))
    };
    assert_eq!(after("--seed 1"), after("--seed 1"));
    assert!(after("--seed 1") != after("--seed 2"));
}

#[test]
fn what_is_wrong_with_text_and_prompt_is_said() {
    let place = Place::new();
    let run = |config: &str| place.run("gpt").config(config).arg("--input").arg(source("gpt/data")).exits(65).stderr;
    assert!(run(r#"{"text": "other.txt"}"#).contains("there is no `/input/other.txt`: give its folder with --input"));
    assert!(run(r#"{"prompt": "∞"}"#).contains("at `prompt`: '∞' does not occur in the text"));
    assert!(run(r#"{"preset": "tiny", "context": 10000}"#).contains("a `context` of 10000 needs more than as many"));
}

/// Both end the job: another attempt would come to the same.
#[test]
fn a_loss_that_is_no_number_and_another_size_are_refused() {
    let place = Place::new();
    let run = |config: &str| {
        let run = place.run("gpt").config(config).args("--every 1steps --accept-changed config");
        run.arg("--input").arg(source("gpt/data")).exits(65).stderr
    };
    let wild = r#"{"preset": "tiny", "learning_rate": 1e30, "clip": 1e30, "warm_up": 0, "last_rate": 1}"#;
    let said = run(wild);
    assert!(said.contains("with a learning rate of 1e30: lower `learning_rate`"), "{said}");
    let said = run(r#"{"preset": "tiny", "layers": 3}"#);
    let sizes =
        "has 2 layers, 2 heads, a width of 32 and a context of 32, and asked for are 3 layers, 2 heads, a width of 32";
    assert!(said.contains(sizes), "{said}");
}
