//! The corners of the language: structures by value, constants, local arrays, calls, switches, locks.

use steadfast::device::{Argument, Launch};

use super::{load_misc, wide};
use crate::device::lab::{Lab, assert_near, to_bytes};

use Argument::{Buffer, Bytes, Float32, Int32, Uint32};

pub fn structures(lab: &mut Lab) {
    let module = load_misc(lab);
    let count = 200;
    let x = lab.normal(count);
    let (bx, out) = (lab.upload(&x), lab.poisoned::<f32>(count));
    let mut structure = to_bytes(&[-0.5_f32, 1.25]);
    structure.extend(to_bytes(&[count as i32, 0, 0, 0]));
    let arguments = [Bytes(&structure), Buffer(bx, 0), Buffer(out, 0), Float32(3.0), Uint32(7)];
    lab.launch(module, "byval", 2, 128, &arguments).unwrap();
    let each = |(at, x): (usize, f64)| {
        let clamped = if x < -0.5 { -0.5 } else { x.min(1.25) / 3.0 };
        clamped + (at / 7) as f64 + (at % 7) as f64
    };
    let expected: Vec<f64> = wide(&x).into_iter().enumerate().map(each).collect();
    assert_near(&lab.download(out), &expected, |at| 3e-7 * (1.0 + expected[at]));
}

pub fn constants(lab: &mut Lab) {
    let module = load_misc(lab);
    let k: Vec<u32> = lab.below(1000, 100);
    let (bk, out) = (lab.upload(&k), lab.poisoned::<f32>(100));
    for _ in 0..3 {
        lab.launch(module, "consts", 1, 128, &[Buffer(bk, 0), Buffer(out, 0), Int32(100)]).unwrap();
    }
    let expected: Vec<f32> = k.iter().map(|k| (k & 15) as f32).collect();
    assert_eq!(lab.download::<f32>(out), expected);
    let mut counter = [0; 4];
    lab.context.read_variable(module, "counter", 0, &mut counter).unwrap();
    assert_eq!(i32::from_le_bytes(counter), 3);
}

pub fn locals_and_calls(lab: &mut Lab) {
    let module = load_misc(lab);
    let (threads, picks) = (64, 50);
    let x = lab.normal(threads * 32);
    let index = lab.below(1000, picks);
    let (bx, bi, out) = (lab.upload(&x), lab.upload(&index), lab.poisoned::<f32>(threads));
    lab.launch(module, "localarr", 2, 32, &[Buffer(bx, 0), Buffer(out, 0), Buffer(bi, 0), Int32(picks as i32)])
        .unwrap();
    let sum = |row: &[f64]| index.iter().map(|pick| row[*pick as usize & 31]).sum::<f64>();
    let expected: Vec<f64> = wide(&x).chunks(32).map(sum).collect();
    assert_near(&lab.download(out), &expected, |_| 1e-5 * picks as f64);

    let out = lab.poisoned::<f32>(40);
    lab.launch(module, "callfn", 2, 32, &[Buffer(bx, 0), Buffer(out, 0), Int32(40)]).unwrap();
    let grown = |x: f64| (0..40).fold(x, |grown, _| grown * f64::from(1.1_f32) + x);
    let expected: Vec<f64> = wide(&x[..40]).into_iter().map(grown).collect();
    assert_near(&lab.download(out), &expected, |at| 1e-5 * expected[at].abs());
}

pub fn switches(lab: &mut Lab) {
    let module = load_misc(lab);
    let count = 300;
    let x: Vec<f32> = lab.normal(count).into_iter().map(|number| number * 10.0).collect();
    let k: Vec<u32> = lab.below(12, count);
    let (bk, bx, out) = (lab.upload(&k), lab.upload(&x), lab.poisoned::<f32>(count));
    lab.launch(module, "sw", 3, 128, &[Buffer(bk, 0), Buffer(bx, 0), Buffer(out, 0), Int32(count as i32)]).unwrap();
    // Each case rounds once, so f32 gives the reference's very bits; a root of a negative number is some NaN.
    let each = |(k, x): (&u32, &f32)| match k {
        0 => x + 1.0,
        1 => x * 2.0,
        2 => -x,
        3 => x * x,
        4 => 1.0 / x,
        5 => x.sqrt(),
        6 => x.floor(),
        7 => x.round_ties_even(),
        _ => 0.0,
    };
    let expected: Vec<f32> = k.iter().zip(&x).map(each).collect();
    for (found, expected) in lab.download::<f32>(out).into_iter().zip(expected) {
        assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{found} {expected}");
    }
}

pub fn locks(lab: &mut Lab) {
    let module = load_misc(lab);
    let count = 1000;
    let x: Vec<f64> = lab.normal(count).into_iter().map(f64::from).collect();
    let (bx, out) = (lab.upload(&x), lab.upload(&[0.5_f64, 0.0]));
    // One block: its warps take turns at the lock, and blocks of a grid would race for the count that it does not guard.
    lab.launch(module, "cas_loop", 1, 1024, &[Buffer(out, 0), Buffer(bx, 0), Int32(count as i32)]).unwrap();
    let found = lab.download::<f64>(out);
    let expected = 0.5 + x.iter().sum::<f64>();
    assert!((found[0] - expected).abs() < 1e-11, "{} {expected}", found[0]);
    assert_eq!(found[1], 32.0);
}

pub fn fractal(lab: &mut Lab) {
    let module = load_misc(lab);
    let (width, height, t) = (50_usize, 37_usize, 0.6_f32);
    let out = lab.poisoned::<f32>(width * height);
    let arguments = [Buffer(out, 0), Int32(width as i32), Int32(height as i32), Float32(t)];
    let (grid, block) = ([4, 5, 1], [16, 8, 1]);
    lab.context.launch(module, &Launch { entry: "rayt", grid, block, shared_bytes: 0, arguments: &arguments }).unwrap();
    let steps = |x: usize, y: usize| {
        let (cx, cy) = (-2.0 + 3.0 * x as f64 / width as f64, -1.5 + 3.0 * y as f64 / height as f64);
        let (mut zx, mut zy, mut k) = (0.0, 0.0, 0);
        while zx * zx + zy * zy < 4.0 && k < 256 {
            (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
            k += 1;
        }
        f64::from(k) / 256.0
    };
    let rest = f64::from(t).exp() + f64::from(t).sin() + f64::from(t);
    let found = lab.download::<f32>(out);
    assert!(found.iter().all(|pixel| !pixel.is_nan()));
    // Near the edge of the set, the last bit of a rounding decides: a few pixels may differ.
    let off = |(at, pixel): &(usize, &f32)| (f64::from(**pixel) - steps(at % width, at / width) - rest).abs() > 1e-5;
    let differ = found.iter().enumerate().filter(off).count();
    assert!(differ * 50 <= found.len(), "{differ} of {} pixels differ", found.len());
}
