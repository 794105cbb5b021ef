//! Arithmetic, memory and cooperation of threads.

use half::{bf16, f16};
use steadfast::device::{Argument, Launch};

use super::{load, load_misc, wide};
use crate::device::lab::{Lab, assert_near};

use Argument::{Buffer, Float32, Int32, Int64, Uint64};

pub fn saxpy(lab: &mut Lab) {
    let module = load(lab, "saxpy");
    for (entry, count, blocks) in [("saxpy", 1000, 4), ("saxpy", 1, 1), ("saxpy_grid", 5000, 3), ("saxpy_grid", 0, 3)] {
        let (x, y) = (lab.normal(count), lab.normal(count + 10));
        let (bx, by) = (lab.upload(&x), lab.upload(&y));
        let n = if entry == "saxpy" { Int32(count as i32) } else { Int64(count as i64) };
        // y begins behind 5 numbers that nobody may touch.
        lab.launch(module, entry, blocks, 256, &[n, Float32(1.7), Buffer(bx, 0), Buffer(by, 20)]).unwrap();
        let expected: Vec<f64> = (0..count + 10)
            .map(|at| {
                let inside = at.checked_sub(5).filter(|at| *at < count);
                f64::from(y[at]) + inside.map_or(0.0, |at| f64::from(1.7_f32) * f64::from(x[at]))
            })
            .collect();
        assert_near(&lab.download(by), &expected, |at| 2e-7 * (expected[at].abs() + 1.7 * 6.0));
    }
}

pub fn axpy4(lab: &mut Lab) {
    let module = load(lab, "saxpy");
    let (x, y) = (lab.normal(4 * 130), lab.normal(4 * 130));
    let (bx, by) = (lab.upload(&x), lab.upload(&y));
    lab.launch(module, "axpy4", 2, 96, &[Int32(130), Float32(-0.3), Buffer(bx, 0), Buffer(by, 0)]).unwrap();
    let expected: Vec<f64> =
        x.iter().zip(&y).map(|(x, y)| f64::from(-0.3_f32) * f64::from(*x) + f64::from(*y)).collect();
    assert_near(&lab.download(by), &expected, |at| 1e-7 * (expected[at].abs() + 2.0));
}

pub fn matmul(lab: &mut Lab) {
    let module = load(lab, "matmul");
    for [m, n, k] in [[16, 16, 16], [33, 40, 17], [1, 50, 3]] {
        let (a, b) = (lab.normal(m * k), lab.normal(k * n));
        let (ba, bb, bc) = (lab.upload(&a), lab.upload(&b), lab.poisoned::<f32>(m * n));
        let [mi, ni, ki] = [m, n, k].map(|count| Int32(count as i32));
        let grid = [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1];
        let arguments = [Buffer(ba, 0), Buffer(bb, 0), Buffer(bc, 0), mi, ni, ki];
        let launch = Launch { entry: "matmul", grid, block: [16, 16, 1], shared_bytes: 0, arguments: &arguments };
        lab.context.launch(module, &launch).unwrap();
        let sums = |of: fn(f64) -> f64| -> Vec<f64> {
            let sum = |row: usize, column: usize| {
                (0..k).map(|depth| of(f64::from(a[row * k + depth]) * f64::from(b[depth * n + column]))).sum()
            };
            (0..m * n).map(|at| sum(at / n, at % n)).collect()
        };
        let (expected, sizes) = (sums(|product| product), sums(f64::abs));
        assert_near(&lab.download(bc), &expected, |at| (k as f64 + 2.0) * 6e-8 * sizes[at]);
    }
}

pub fn reductions(lab: &mut Lab) {
    let module = load(lab, "reduce");
    let count = 10_007;
    let x = lab.normal(count);
    let buffer = lab.upload(&x);
    let size: f64 = wide(&x).iter().map(|number| number.abs()).sum();

    let out = lab.upload(&[0.25_f32]);
    lab.launch(module, "block_reduce", 5, 160, &[Buffer(buffer, 0), Buffer(out, 0), Int32(count as i32)]).unwrap();
    let expected = [0.25 + wide(&x).iter().sum::<f64>()];
    assert_near(&lab.download(out), &expected, |_| 64.0 * 6e-8 * size);

    let out = lab.poisoned::<f32>(40);
    let arguments = [Buffer(buffer, 0), Buffer(out, 0), Int32(count as i32)];
    let launch = Launch {
        entry: "smem_reduce",
        grid: [40, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 1024,
        arguments: &arguments,
    };
    lab.context.launch(module, &launch).unwrap();
    let mut expected: Vec<f64> = wide(&x).chunks(256).map(|chunk| chunk.iter().sum()).collect();
    expected.resize(40, 0.0);
    assert_near(&lab.download(out), &expected, |_| 8.0 * 6e-8 * 256.0);
}

pub fn histogram(lab: &mut Lab) {
    let module = load(lab, "reduce");
    let x: Vec<u8> = lab.below(200, 50_000).into_iter().map(|byte| byte as u8).collect();
    let (buffer, out) = (lab.upload(&x), lab.upload(&[3_u32; 256]));
    lab.launch(module, "hist", 7, 128, &[Buffer(buffer, 0), Buffer(out, 0), Int32(x.len() as i32)]).unwrap();
    let mut expected = [3_u32; 256];
    x.iter().for_each(|byte| expected[*byte as usize] += 1);
    assert_eq!(lab.download::<u32>(out), expected);
}

pub fn ballots(lab: &mut Lab) {
    let module = load(lab, "reduce");
    // One block, so that who comes first does not matter; no number of its first warp is positive.
    let mut x: Vec<i32> = lab.below(2001, 250).into_iter().map(|number| number as i32 - 1000).collect();
    x[..32].iter_mut().for_each(|number| *number = -number.abs());
    let (buffer, out, most) = (lab.upload(&x), lab.poisoned::<i32>(8), lab.upload(&[0_u64]));
    lab.launch(module, "ballots", 1, 256, &[Buffer(buffer, 0), Buffer(out, 0), Buffer(most, 0), Int32(250)]).unwrap();
    let positive = |numbers: &[i32]| numbers.iter().filter(|number| **number > 0).count() as i32;
    let mut expected: Vec<i32> = x.chunks(32).map(positive).collect();
    // No warp before has counted anything, so the block's count takes its place; the other is the first warp's active mask.
    (expected[0], expected[1]) = (positive(&x), -1);
    assert_eq!(lab.download::<i32>(out), expected);
    // Every thread of a warp in which any number is positive takes part, negative ones as huge unsigned numbers.
    let takes_part = x.chunks(32).filter(|warp| positive(warp) > 0).flatten();
    assert_eq!(lab.download::<u64>(most), [takes_part.map(|number| i64::from(*number) as u64).max().unwrap()]);
}

pub fn halves(lab: &mut Lab) {
    let module = load(lab, "half");
    let count = 300;
    let (x, y) = (lab.normal(count), lab.normal(count));
    let bits = |numbers: &[f32], make: fn(f32) -> u16| numbers.iter().map(|number| make(*number)).collect::<Vec<u16>>();
    let f16_bits: fn(f32) -> u16 = |number| f16::from_f32(number).to_bits();
    let bf16_bits: fn(f32) -> u16 = |number| bf16::from_f32(number).to_bits();
    let f16_of: fn(u16) -> f64 = |bits| f16::from_bits(bits).to_f64();
    let bf16_of: fn(u16) -> f64 = |bits| bf16::from_bits(bits).to_f64();
    for (entry, make, of, unit) in
        [("h_axpy", f16_bits, f16_of, 2_f64.powi(-11)), ("bf_axpy", bf16_bits, bf16_of, 2_f64.powi(-8))]
    {
        let (x, y) = (bits(&x, make), bits(&y, make));
        let (bx, by) = (lab.upload(&x), lab.upload(&y));
        lab.launch(module, entry, 3, 128, &[Int32(count as i32), Buffer(bx, 0), Buffer(by, 0), Float32(0.7)]).unwrap();
        for (at, found) in lab.download::<u16>(by).into_iter().enumerate() {
            let expected = f64::from(0.7_f32) * of(x[at]) + of(y[at]);
            assert!((of(found) - expected).abs() <= unit * (expected.abs() + 1e-5), "{entry} {at}");
        }
    }
    let (x, y) = (bits(&x, f16_bits), bits(&y, f16_bits));
    let (bx, by) = (lab.upload(&x), lab.upload(&y));
    lab.launch(module, "h2_add", 2, 96, &[Int32(count as i32 / 2), Buffer(bx, 0), Buffer(by, 0)]).unwrap();
    // The sum of two is rounded once, also by way of f64, which holds it exactly.
    let expected: Vec<u16> = x.iter().zip(&y).map(|(x, y)| f16::from_f64(f16_of(*x) + f16_of(*y)).to_bits()).collect();
    assert_eq!(lab.download::<u16>(by), expected);
}

pub fn heat(lab: &mut Lab) {
    let module = load(lab, "heat");
    let [nx, ny, nz] = [20_usize, 11, 9];
    let u = lab.normal(nx * ny * nz);
    let bu = lab.upload(&u);
    let expected: Vec<f64> = (0..u.len())
        .map(|at| {
            let [x, y, z] = [at % nx, at / nx % ny, at / nx / ny];
            let edge = x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1;
            let number = |at: usize| f64::from(u[at]);
            let around = |step: usize| number(at - step) + number(at + step);
            let laplacian = || around(1) + around(nx) + around(nx * ny) - 6.0 * number(at);
            if edge { 7.0 } else { number(at) + f64::from(0.1_f32) * laplacian() }
        })
        .collect();
    for (entry, grid, block) in [("heat", [3, 3, 3], [8, 4, 4]), ("heatz", [2, 2, 1], [16, 8, 1])] {
        let out = lab.upload(&vec![7_f32; u.len()]);
        let [x, y, z] = [nx, ny, nz].map(|count| Int32(count as i32));
        let arguments = [Buffer(bu, 0), Buffer(out, 0), x, y, z, Float32(0.1)];
        lab.context.launch(module, &Launch { entry, grid, block, shared_bytes: 0, arguments: &arguments }).unwrap();
        assert_near(&lab.download(out), &expected, |_| 3e-6);
    }
}

pub fn philox(lab: &mut Lab) {
    let module = load_misc(lab);
    let seed = 0x0123_4567_89ab_cdef_u64;
    let out = lab.poisoned::<u32>(200);
    lab.launch(module, "philox", 2, 128, &[Buffer(out, 0), Uint64(seed), Int32(200)]).unwrap();
    let expected: Vec<u32> = (0..200)
        .map(|at| {
            let [c0, c1, c2, c3] = steadfast::device::random::philox([at, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
            let mut hash = u64::from(c1);
            hash ^= hash >> 33;
            hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^= hash >> 33;
            hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            hash ^= hash >> 33;
            let find_first = if c0 == 0 { 0 } else { c0.trailing_zeros() + 1 };
            let sum = (hash as u32).wrapping_add(c2.leading_zeros());
            c0 ^ sum.wrapping_add(c3.reverse_bits()).wrapping_add(find_first)
        })
        .collect();
    assert_eq!(lab.download::<u32>(out), expected);
}

const DOT_PRODUCTS: &str = "
.visible .entry dots(.param .u64 a, .param .u64 b, .param .u64 c) {
    .reg .u32 %r<8>;
    .reg .u64 %rd<8>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd5, %rd1, %rd4;
    add.u64 %rd6, %rd2, %rd4;
    add.u64 %rd7, %rd3, %rd4;
    ld.global.u32 %r2, [%rd5];
    ld.global.u32 %r3, [%rd6];
    prmt.b32 %r4, %r2, %r3, 0x5140;
    dp4a.s32.s32 %r5, %r2, %r3, %r4;
    st.global.u32 [%rd7], %r5;
    ret;
}";

pub fn dot_products(lab: &mut Lab) {
    let module = lab.module(DOT_PRODUCTS);
    let (a, b) = (lab.below(u32::MAX, 100), lab.below(u32::MAX, 100));
    let (ba, bb, bc) = (lab.upload(&a), lab.upload(&b), lab.poisoned::<u32>(100));
    lab.launch(module, "dots", 1, 100, &[Buffer(ba, 0), Buffer(bb, 0), Buffer(bc, 0)]).unwrap();
    let expected: Vec<u32> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| {
            let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
            let start = u32::from_le_bytes([a[0], b[0], a[1], b[1]]);
            let product = |at: usize| i32::from(a[at] as i8) * i32::from(b[at] as i8);
            (0..4).fold(start, |sum, at| sum.wrapping_add(product(at) as u32))
        })
        .collect();
    assert_eq!(lab.download::<u32>(bc), expected);
}
