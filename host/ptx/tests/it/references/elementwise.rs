//! Kernels in which each thread has its own elements.

use steadfast_ptx::layout::Layout;

use super::subject::{Inputs, Subject, assert_near, assert_near_f64, text};
use crate::rig::{self, GLOBALS};

/// Sizes and shapes: fewer elements than threads, as many, and no multiple of anything.
const SHAPES: [(usize, u32, u32); 5] = [(1, 1, 32), (96, 3, 32), (1000, 8, 128), (777, 20, 48), (5, 2, 7)];

fn f(x: f32) -> f64 {
    f64::from(x)
}

#[test]
fn saxpy_is_fused() {
    let (subject, mut inputs) = (Subject::new("saxpy", "saxpy"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let (x, y, a) = (inputs.floats(n, -9.0, 9.0), inputs.floats(n, -9.0, 9.0), inputs.float(-3.0, 3.0));
        let mut call = subject.call();
        call.value(n as i32).value(a).input(&x);
        let out = call.inout(&y);
        let threads = (grid * block) as usize;
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f32> = (0..n).map(|i| if i < threads { a.mul_add(x[i], y[i]) } else { y[i] }).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn saxpy_with_a_stride_of_the_grid() {
    let (subject, mut inputs) = (Subject::new("saxpy", "saxpy_grid"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let (x, y, a) = (inputs.floats(n, -9.0, 9.0), inputs.floats(n, -9.0, 9.0), inputs.float(-3.0, 3.0));
        let mut call = subject.call();
        call.value(n as i64).value(a).input(&x);
        let out = call.inout(&y);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn axpy_on_vectors_of_four() {
    let (subject, mut inputs) = (Subject::new("saxpy", "axpy4"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let (x, y, a) = (inputs.floats(4 * n, -9.0, 9.0), inputs.floats(4 * n, -9.0, 9.0), inputs.float(-3.0, 3.0));
        let mut call = subject.call();
        call.value(n as i32).value(a).input(&x);
        let out = call.inout(&y);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn adamw() {
    let (subject, mut inputs) = (Subject::new("adam", "adamw"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let (p, g) = (inputs.floats(n, -2.0, 2.0), inputs.floats(n, -0.5, 0.5));
        let (m, v) = (inputs.floats(n, -0.1, 0.1), inputs.floats(n, 0.0, 0.1));
        let [lr, b1, b2, b1c, b2c, eps, wd] = [1e-3f32, 0.9, 0.999, 0.271, 0.003, 1e-8, 0.01];
        let mut call = subject.call();
        let out_p = call.inout(&p);
        call.input(&g);
        let (out_m, out_v) = (call.inout(&m), call.inout(&v));
        call.value(n as i64);
        for scalar in [lr, b1, b2, b1c, b2c, eps, wd] {
            call.value(scalar);
        }
        let outcome = call.run([grid, 1, 1], [block, 1, 1], 0);
        let mean: Vec<f64> = (0..n).map(|i| f(b1) * f(m[i]) + (1.0 - f(b1)) * f(g[i])).collect();
        let square: Vec<f64> = (0..n).map(|i| f(b2) * f(v[i]) + (1.0 - f(b2)) * f(g[i]).powi(2)).collect();
        let step = |i: usize| mean[i] / f(b1c) / ((square[i] / f(b2c)).sqrt() + f(eps)) + f(wd) * f(p[i]);
        let expected: Vec<f64> = (0..n).map(|i| f(p[i]) - f(lr) * step(i)).collect();
        assert_near(&outcome.read::<f32>(out_m), &mean, 1e-6, 0.1);
        assert_near(&outcome.read::<f32>(out_v), &square, 1e-6, 0.01);
        assert_near(&outcome.read::<f32>(out_p), &expected, 1e-6, 0.1);
    }
}

#[test]
fn gelu() {
    let (subject, mut inputs) = (Subject::new("adam", "gelu"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let x = inputs.floats(n, -6.0, 6.0);
        let mut call = subject.call();
        let out = call.output::<f32>(n);
        call.input(&x);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let gelu = |x: f64| 0.5 * x * (1.0 + (0.7978845608 * (x + 0.044715 * x.powi(3))).tanh());
        let expected: Vec<f64> = x.iter().map(|x| gelu(f(*x))).collect();
        assert_near(&got, &expected, 2e-6, 1.0);
    }
}

/// The error function by its series, or by a continued fraction where that would cancel.
fn erf(x: f64) -> f64 {
    if x < 2.5 {
        let mut term = x;
        let mut sum = x;
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let fraction = (1..80).rev().fold(x, |fraction, n| x + f64::from(n) / 2.0 / fraction);
    1.0 - (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

#[test]
fn functions_of_single_precision() {
    let (subject, mut inputs) = (Subject::new("adam", "trig"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let mut x = inputs.floats(n, 0.01, 12.0);
        // Far from zero, sine and cosine go by another way.
        x[n - 1] = 123_456.78;
        x[0] = if n > 1 { 1e-3 } else { x[0] };
        let mut call = subject.call();
        let out = call.output::<f32>(n);
        call.input(&x);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let all = |x: f64| x.sin() + x.cos() + x.ln() + x.powf(f(1.7)) + erf(x) + x.ln_1p() + x.exp_m1();
        let finite = |x: &f32| f(*x) < 80.0;
        let (got, expected): (Vec<f32>, Vec<f64>) =
            x.iter().zip(got).filter(|(x, _)| finite(x)).map(|(x, got)| (got, all(f(*x)))).unzip();
        assert_near(&got, &expected, 2e-6, 10.0);
    }
}

#[test]
fn functions_of_double_precision() {
    let (subject, mut inputs) = (Subject::new("adam", "dbl"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let mut x = inputs.doubles(n, 0.001, 30.0);
        x[0] = 600.5;
        let mut call = subject.call();
        let out = call.output::<f64>(n);
        call.input(&x);
        call.value(n as i32);
        let got: Vec<f64> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f64> = x.iter().map(|x| x.exp() / x.sqrt() + x.sin()).collect();
        assert_near_f64(&got, &expected, 1e-14, 1.0);
    }
}

/// A number of `exponent` and `fraction` bits as f64.
fn widened(bits: u16, exponent: u32, fraction: u32) -> f64 {
    let magnitude = u64::from(bits & 0x7fff);
    let (field, part) = (magnitude >> fraction, magnitude & ((1 << fraction) - 1));
    let bias = (1 << (exponent - 1)) - 1;
    let unit = 2f64.powi(1 - bias - fraction as i32);
    let value = if field == 0 {
        part as f64 * unit
    } else {
        (part | 1 << fraction) as f64 * unit * 2f64.powi(field as i32 - 1)
    };
    if bits >> 15 == 1 { -value } else { value }
}

fn halves(inputs: &mut Inputs, count: usize, exponents: std::ops::Range<u64>, fraction: u32) -> Vec<u16> {
    let mut half = || {
        let bits = inputs.bits();
        let exponent = exponents.start + bits % (exponents.end - exponents.start);
        ((bits >> 32 & 1) << 15 | exponent << fraction | bits >> 40 & ((1 << fraction) - 1)) as u16
    };
    (0..count).map(|_| half()).collect()
}

#[test]
fn half_precision() {
    let mut inputs = Inputs::fresh();
    for (entry, exponent, fraction) in [("h_axpy", 5, 10), ("bf_axpy", 8, 7)] {
        let subject = Subject::new("half", entry);
        for (n, grid, block) in SHAPES {
            let n = n.min((grid * block) as usize);
            let middle = 1 << (exponent - 1);
            let exponents = middle - 5..middle + 3;
            let (x, y) =
                (halves(&mut inputs, n, exponents.clone(), fraction), halves(&mut inputs, n, exponents, fraction));
            let a = inputs.float(-2.0, 2.0);
            let mut call = subject.call();
            call.value(n as i32).input(&x);
            let out = call.inout(&y);
            call.value(a);
            let got: Vec<u16> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
            let wide = |bits: &u16| widened(*bits, exponent, fraction);
            let got: Vec<f64> = got.iter().map(wide).collect();
            let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| f(a) * wide(x) + wide(y)).collect();
            // Half a unit in the last place, and what single precision lost before.
            assert_near_f64(&got, &expected, 0.5001 * 2f64.powi(-(fraction as i32)), 1e-3);
        }
    }
}

#[test]
fn pairs_of_halves() {
    let (subject, mut inputs) = (Subject::new("half", "h2_add"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let (x, y) = (halves(&mut inputs, 2 * n, 10..20, 10), halves(&mut inputs, 2 * n, 10..20, 10));
        let mut call = subject.call();
        call.value(n as i32).input(&x);
        let out = call.inout(&y);
        let got: Vec<u16> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let wide = |bits: &u16| widened(*bits, 5, 10);
        let got: Vec<f64> = got.iter().map(wide).collect();
        let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| wide(x) + wide(y)).collect();
        assert_near_f64(&got, &expected, 2f64.powi(-11), 1e-4);
    }
}

#[test]
fn a_structure_by_value() {
    let (subject, mut inputs) = (Subject::new("misc", "byval"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let (x, divisor) = (inputs.floats(n, -4.0, 4.0), 7u32);
        let (low, high, by) = (-1.5f32, 2.25f32, inputs.float(0.5, 3.0));
        let mut structure = Vec::new();
        for word in [low.to_bits(), high.to_bits(), n as u32, 1, 2, 3] {
            structure.extend(word.to_le_bytes());
        }
        let mut call = subject.call();
        call.bytes(&structure).input(&x);
        let out = call.output::<f32>(n);
        call.value(by).value(divisor);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f64> = (0..n)
            .map(|i| {
                let clamped = if x[i] < low { f(low) } else { f(x[i].min(high)) / f(by) };
                clamped + f64::from(i as u32 / divisor) + f64::from(i as u32 % divisor)
            })
            .collect();
        assert_near(&got, &expected, 1e-6, 1.0);
    }
}

#[test]
fn constants_and_a_counter() {
    let (subject, mut inputs) = (Subject::new("misc", "consts"), Inputs::fresh());
    let module = rig::parse(&text("misc")).unwrap();
    let index = module.variables.iter().position(|variable| variable.name == "counter").unwrap();
    let counter = GLOBALS + Layout::of(&module).offsets[index].unwrap();
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let k = inputs.integers(n, i32::MIN, i32::MAX);
        let mut call = subject.call();
        call.input(&k);
        let out = call.output::<f32>(n);
        call.value(n as i32).also_writes(counter, 4);
        let outcome = call.run([grid, 1, 1], [block, 1, 1], 0);
        let expected: Vec<f32> = k.iter().map(|k| (k & 15) as f32).collect();
        assert_eq!(outcome.read::<f32>(out), expected);
        assert_eq!(outcome.memory[counter as usize..][..4], [1, 0, 0, 0]);
    }
}

#[test]
fn an_array_of_each_thread() {
    let (subject, mut inputs) = (Subject::new("misc", "localarr"), Inputs::fresh());
    for (grid, block) in [(1, 1), (2, 33), (3, 64)] {
        let threads = (grid * block) as usize;
        // Small integers: sums are exact in any order.
        let x: Vec<f32> = inputs.integers(32 * threads, -99, 99).iter().map(|x| *x as f32).collect();
        let indices = inputs.integers(11, i32::MIN, i32::MAX);
        let mut call = subject.call();
        call.input(&x);
        let out = call.output::<f32>(threads);
        call.input(&indices);
        call.value(indices.len() as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f32> =
            (0..threads).map(|i| indices.iter().map(|k| x[32 * i + (k & 31) as usize]).sum()).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn a_device_function() {
    let (subject, mut inputs) = (Subject::new("misc", "callfn"), Inputs::fresh());
    for (n, grid, block) in [(1usize, 1, 32), (20, 1, 32), (37, 2, 20)] {
        let x = inputs.floats(n, -2.0, 2.0);
        let mut call = subject.call();
        call.input(&x);
        let out = call.output::<f32>(n);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let expected: Vec<f64> = x.iter().map(|x| (0..n).fold(f(*x), |r, _| r * f(1.1) + f(*x))).collect();
        assert_near(&got, &expected, 1e-5, 1e-3);
    }
}

#[test]
fn a_switch() {
    let (subject, mut inputs) = (Subject::new("misc", "sw"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let (k, x) = (inputs.integers(n, -1, 9), inputs.floats(n, 0.1, 20.0));
        let mut call = subject.call();
        call.input(&k);
        call.input(&x);
        let out = call.output::<f32>(n);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let case = |k: i32, v: f32| match k {
            0 => v + 1.0,
            1 => v * 2.0,
            2 => -v,
            3 => v * v,
            4 => 1.0 / v,
            5 => v.sqrt(),
            6 => v.floor(),
            7 => v.round_ties_even(),
            _ => 0.0,
        };
        let expected: Vec<f32> = k.iter().zip(&x).map(|(k, x)| case(*k, *x)).collect();
        assert_eq!(got, expected);
    }
}

/// Ten rounds with the counter `i`, and a hash of the results.
fn philox(i: u32, seed: u64) -> u32 {
    let hash = |mut a: u64| {
        a ^= a >> 33;
        a = a.wrapping_mul(0xff51_afd7_ed55_8ccd);
        a ^= a >> 33;
        a = a.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        (a ^ a >> 33) as u32
    };
    let (mut c, mut k) = ([i, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    for _ in 0..10 {
        let [first, second] = [0xd251_1f53u64 * u64::from(c[0]), 0xcd9e_8d57u64 * u64::from(c[2])];
        c = [(second >> 32) as u32 ^ c[1] ^ k[0], second as u32, (first >> 32) as u32 ^ c[3] ^ k[1], first as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    let first_set = if c[0] == 0 { 0 } else { c[0].trailing_zeros() + 1 };
    let sum =
        hash(c[1].into()).wrapping_add(c[2].leading_zeros()).wrapping_add(c[3].reverse_bits()).wrapping_add(first_set);
    c[0] ^ sum
}

#[test]
fn philox_and_a_hash() {
    let (subject, mut inputs) = (Subject::new("misc", "philox"), Inputs::fresh());
    for (n, grid, block) in SHAPES {
        let n = n.min((grid * block) as usize);
        let seed = inputs.bits();
        let mut call = subject.call();
        let out = call.output::<u32>(n);
        call.value(seed).value(n as i32);
        let got: Vec<u32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        assert_eq!(got, (0..n as u32).map(|i| philox(i, seed)).collect::<Vec<_>>());
    }
}

#[test]
fn loops_that_diverge() {
    let (subject, mut inputs) = (Subject::new("misc", "rayt"), Inputs::fresh());
    for ([w, h], grid, block) in [([40, 23], [3, 3, 1], [16, 8, 1]), ([7, 5], [2, 5, 1], [4, 1, 1])] {
        let t = inputs.float(-1.0, 1.0);
        let mut call = subject.call();
        let out = call.output::<f32>(w * h);
        call.value(w as i32).value(h as i32).value(t);
        let got: Vec<f32> = call.run(grid, block, 0).read(out);
        let rest = f(t).exp() + f(t).sin() + f(t).clamp(0.0, 1.0);
        let pixel = |x: usize, y: usize| {
            let (cx, cy) = (3.0 * x as f32 / w as f32 - 2.0, 3.0 * y as f32 / h as f32 - 1.5);
            let (mut zx, mut zy, mut zx2, mut zy2, mut k) = (0f32, 0f32, 0f32, 0f32, 0);
            // In the order in which the compiler put it: which pixels escape when depends on every bit.
            loop {
                let next = cx + (zx2 - zy2);
                zy = (zx + zx).mul_add(zy, cy);
                (zx, zx2, zy2) = (next, next * next, zy * zy);
                k += 1;
                if k >= 256 || zx2 + zy2 >= 4.0 {
                    return f64::from(k) / 256.0 + rest;
                }
            }
        };
        let expected: Vec<f64> = (0..w * h).map(|i| pixel(i % w, i / w)).collect();
        assert_near(&got, &expected, 1e-6, 1.0);
    }
}

#[test]
fn heat_in_three_dimensions() {
    let mut inputs = Inputs::fresh();
    for (entry, block) in
        [("heat", [8, 4, 2]), ("heat", [5, 3, 1]), ("heat", [11, 3, 1]), ("heatz", [16, 2, 1]), ("heatz", [3, 7, 1])]
    {
        let subject = Subject::new("heat", entry);
        let [nx, ny, nz] = [19usize, 10, 7];
        let (u, c) = (inputs.floats(nx * ny * nz, -1.0, 1.0), 0.1f32);
        let mut call = subject.call();
        call.input(&u);
        let out = call.inout(&u);
        for n in [nx, ny, nz] {
            call.value(n as i32);
        }
        call.value(c);
        let grid = if entry == "heat" { (nz as u32).div_ceil(block[2]) } else { 1 };
        let grid = [(nx as u32).div_ceil(block[0]), (ny as u32).div_ceil(block[1]), grid];
        let got: Vec<f32> = call.run(grid, block, 0).read(out);
        let at = |x: usize, y: usize, z: usize| f(u[(z * ny + y) * nx + x]);
        let expected: Vec<f64> = (0..nx * ny * nz)
            .map(|i| {
                let (x, y, z) = (i % nx, i / nx % ny, i / nx / ny);
                if x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1 {
                    return at(x, y, z);
                }
                let around = at(x - 1, y, z)
                    + at(x + 1, y, z)
                    + at(x, y - 1, z)
                    + at(x, y + 1, z)
                    + at(x, y, z - 1)
                    + at(x, y, z + 1);
                at(x, y, z) + f(c) * (around - 6.0 * at(x, y, z))
            })
            .collect();
        assert_near(&got, &expected, 1e-6, 1.0);
    }
}

#[test]
fn an_external_function_is_named_in_the_error() {
    let error = rig::Kernel::new(&text("misc"), "dp4").err().unwrap();
    assert!(error.contains("_Z6__dp4aiii"), "{error}");
}
