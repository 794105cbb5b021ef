//! What training is made of.

use steadfast::device::{Argument, Launch};

use super::{load, wide};
use crate::device::lab::{Lab, assert_near};

use Argument::{Buffer, Float32, Int32, Int64};

pub fn softmax(lab: &mut Lab) {
    let module = load(lab, "softmax");
    for (rows, columns, threads) in [(3, 100, 64), (5, 33, 128), (1, 1, 32)] {
        let x: Vec<f32> = lab.normal(rows * columns).into_iter().map(|number| number * 5.0).collect();
        let (bx, out) = (lab.upload(&x), lab.poisoned::<f32>(rows * columns));
        let arguments = [Buffer(out, 0), Buffer(bx, 0), Int32(rows as i32), Int32(columns as i32)];
        let (grid, block) = ([rows as u32, 1, 1], [threads, 1, 1]);
        let launch = Launch { entry: "softmax", grid, block, shared_bytes: threads / 32 * 4, arguments: &arguments };
        lab.context.launch(module, &launch).unwrap();
        let row = |row: &[f64]| {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = row.iter().map(|number| (number - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(move |power| power / sum).collect::<Vec<_>>()
        };
        let expected: Vec<f64> = wide(&x).chunks(columns).flat_map(row).collect();
        assert_near(&lab.download(out), &expected, |at| 2e-5 * expected[at] + 1e-30);
    }
}

pub fn layernorm(lab: &mut Lab) {
    let module = load(lab, "softmax");
    let (rows, columns) = (10, 70);
    let (x, w, b) = (lab.normal(rows * columns), lab.normal(columns), lab.normal(columns));
    let [bx, bw, bb] = [&x, &w, &b].map(|numbers| lab.upload(numbers));
    let [out, mean, scale] = [rows * columns, rows, rows].map(|count| lab.poisoned::<f32>(count));
    let [n, c] = [rows, columns].map(|count| Int32(count as i32));
    let buffers = [out, mean, scale, bx, bw, bb].map(|buffer| Buffer(buffer, 0));
    lab.launch(module, "layernorm", 3, 128, &[buffers.as_slice(), &[n, c]].concat()).unwrap();
    let rows: Vec<(f64, f64)> = wide(&x)
        .chunks(columns)
        .map(|row| {
            let mean = row.iter().sum::<f64>() / columns as f64;
            let variance = row.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / columns as f64;
            (mean, 1.0 / (variance + 1e-5).sqrt())
        })
        .collect();
    let (means, scales): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
    assert_near(&lab.download(mean), &means, |_| 1e-6);
    assert_near(&lab.download(scale), &scales, |at| 2e-6 * scales[at]);
    let normal = |at: usize| {
        let (mean, scale) = rows[at / columns];
        scale * (f64::from(x[at]) - mean) * f64::from(w[at % columns]) + f64::from(b[at % columns])
    };
    let expected: Vec<f64> = (0..x.len()).map(normal).collect();
    assert_near(&lab.download(out), &expected, |at| 1e-5 * (1.0 + expected[at].abs()));
}

pub fn adamw(lab: &mut Lab) {
    let module = load(lab, "adam");
    let count = 1000;
    let (p, g, m) = (lab.normal(count), lab.normal(count), lab.normal(count));
    let v = lab.uniform(count);
    let [bp, bg, bm, bv] = [&p, &g, &m, &v].map(|numbers| lab.upload(numbers));
    let settings = [1e-3_f32, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01];
    let buffers = [bp, bg, bm, bv].map(|buffer| Buffer(buffer, 0));
    let scalars = settings.map(Float32);
    lab.launch(module, "adamw", 4, 256, &[&buffers[..], &[Int64(count as i64)], &scalars].concat()).unwrap();
    let [lr, b1, b2, b1c, b2c, eps, decay] = settings.map(f64::from);
    let each = |of: &dyn Fn(f64, f64, f64, f64) -> f64| -> Vec<f64> {
        (0..count).map(|at| of(p[at].into(), g[at].into(), m[at].into(), v[at].into())).collect()
    };
    let mean = |g: f64, m: f64| b1 * m + (1.0 - b1) * g;
    let square = |g: f64, v: f64| b2 * v + (1.0 - b2) * g * g;
    assert_near(&lab.download(bm), &each(&|_, g, m, _| mean(g, m)), |_| 1e-6);
    assert_near(&lab.download(bv), &each(&|_, g, _, v| square(g, v)), |_| 1e-6);
    let parameters = each(&|p, g, m, v| p - lr * (mean(g, m) / b1c / ((square(g, v) / b2c).sqrt() + eps) + decay * p));
    assert_near(&lab.download(bp), &parameters, |_| 2e-6);
}

/// The error function, by its series: good to 1e-12 up to 4.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..120 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

pub fn functions(lab: &mut Lab) {
    let module = load(lab, "adam");
    let count = 500;
    let run = |lab: &mut Lab, entry: &str, x: &[f32]| {
        let (bx, out) = (lab.upload(x), lab.poisoned::<f32>(count));
        lab.launch(module, entry, 4, 128, &[Buffer(out, 0), Buffer(bx, 0), Int32(count as i32)]).unwrap();
        lab.download::<f32>(out)
    };
    let x: Vec<f32> = lab.normal(count).into_iter().map(|number| number * 3.0).collect();
    let expected: Vec<f64> = wide(&x)
        .into_iter()
        .map(|x| 0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x * x * x)).tanh()))
        .collect();
    assert_near(&run(lab, "gelu", &x), &expected, |at| 2e-6 * (1.0 + f64::from(x[at]).abs()));

    let x: Vec<f32> = lab.uniform(count).into_iter().map(|number| number * 3.5).collect();
    let terms = |x: f64| [x.sin(), x.cos(), x.ln(), x.powf(f64::from(1.7_f32)), erf(x), x.ln_1p(), x.exp_m1()];
    let expected: Vec<f64> = wide(&x).into_iter().map(|x| terms(x).iter().sum()).collect();
    let size = |x: f64| terms(x).iter().map(|term| term.abs()).sum::<f64>();
    assert_near(&run(lab, "trig", &x), &expected, |at| 1e-6 * size(x[at].into()));
    // Far from 0, where the angle has to be reduced with many digits.
    let far: Vec<f32> = x.iter().map(|number| number * 1e7).collect();
    let found = run(lab, "trig", &far);
    assert!(found.iter().all(|number| !number.is_nan()));

    let x: Vec<f64> = lab.uniform(count).into_iter().map(|number| f64::from(number) * 20.0).collect();
    let (bx, out) = (lab.upload(&x), lab.poisoned::<f64>(count));
    lab.launch(module, "dbl", 4, 128, &[Buffer(out, 0), Buffer(bx, 0), Int32(count as i32)]).unwrap();
    for (found, x) in lab.download::<f64>(out).into_iter().zip(x) {
        let expected = x.exp() / x.sqrt() + x.sin();
        assert!((found - expected).abs() <= 1e-14 * (x.exp() / x.sqrt() + 1.0), "{x}: {found} {expected}");
    }
}
