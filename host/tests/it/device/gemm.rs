//! Products of matrices of every kind, against a plain one in f64.
//!
//! Tolerance: for each element, with S = Σ |alpha · a · b| + |beta · c| and u the unit roundoff of the type that sums are made in: (k + 4) · u · S, and
//! where that is wider than the element, half a unit in the last place of the result.

use half::{bf16, f16};
use steadfast::device::{BufferId, Element, Gemm, Matrix};

use super::lab::{Lab, from_bytes, refused, to_bytes};

const KINDS: [Element; 4] = [Element::Float16, Element::Bfloat16, Element::Float32, Element::Float64];

/// Numbers as elements of a kind.
fn encode(element: Element, numbers: &[f64]) -> Vec<u8> {
    let each = |make: fn(f64) -> u16| to_bytes(&numbers.iter().map(|number| make(*number)).collect::<Vec<_>>());
    match element {
        Element::Float16 => each(|number| f16::from_f64(number).to_bits()),
        Element::Bfloat16 => each(|number| bf16::from_f64(number).to_bits()),
        Element::Float32 => to_bytes(&numbers.iter().map(|number| *number as f32).collect::<Vec<_>>()),
        _ => to_bytes(numbers),
    }
}

fn decode(element: Element, bytes: &[u8]) -> Vec<f64> {
    match element {
        Element::Float16 => from_bytes(bytes).into_iter().map(|bits| f16::from_bits(bits).to_f64()).collect(),
        Element::Bfloat16 => from_bytes(bytes).into_iter().map(|bits| bf16::from_bits(bits).to_f64()).collect(),
        Element::Float32 => from_bytes::<f32>(bytes).into_iter().map(f64::from).collect(),
        _ => from_bytes(bytes),
    }
}

/// Relative errors: of a sum's step, and of the last rounding; and how far this is off where it makes a subnormal number.
fn roundoff(element: Element) -> [f64; 3] {
    let unit = |bits: i32| 2_f64.powi(-bits);
    match element {
        Element::Float16 => [unit(24), unit(11), unit(25)],
        Element::Bfloat16 => [unit(24), unit(8), unit(134)],
        Element::Float32 => [unit(24), 0.0, 0.0],
        _ => [unit(53), 0.0, 0.0],
    }
}

/// A matrix beside its numbers on this side.
struct Side {
    matrix: Matrix,
    numbers: Vec<f64>,
}

impl Side {
    /// With more in front, between the columns and behind than the matrix needs.
    fn new(lab: &mut Lab, element: Element, [rows, columns]: [u32; 2], batch: u32, transpose: bool) -> Self {
        let [tall, wide] = if transpose { [columns, rows] } else { [rows, columns] };
        let leading = tall.max(1) + 3;
        let stride = u64::from(leading) * u64::from(wide) + 5;
        let count = 7 + stride as usize * batch as usize;
        let numbers: Vec<_> = lab.normal(count).into_iter().map(f64::from).collect();
        let bytes = encode(element, &numbers);
        let numbers = decode(element, &bytes);
        let buffer = lab.upload(&bytes);
        Self { matrix: Matrix { buffer, offset: 7 * element.bytes(), leading, stride, transpose }, numbers }
    }

    fn at(&self, row: u32, column: u32, batch: u32) -> usize {
        let (row, column) = if self.matrix.transpose { (column, row) } else { (row, column) };
        let Matrix { leading, stride, .. } = self.matrix;
        7 + batch as usize * stride as usize + column as usize * leading as usize + row as usize
    }
}

/// Carries a product out, and compares all of `c`'s buffer: what belongs to no element stays as it was.
fn check(lab: &mut Lab, gemm: &Gemm, a: &Side, b: &Side, c: &Side) {
    lab.context.gemm(gemm).unwrap();
    let found = decode(gemm.element, &lab.bytes(gemm.c.buffer));
    let [sums, last, least] = roundoff(gemm.element);
    let mut expected = c.numbers.clone();
    let mut allowed = vec![0.0; expected.len()];
    for batch in 0..gemm.batch {
        for column in 0..gemm.n {
            for row in 0..gemm.m {
                let at = c.at(row, column, batch);
                let before = if gemm.beta == 0.0 { 0.0 } else { gemm.beta * c.numbers[at] };
                let products = (0..gemm.k).map(|depth| {
                    gemm.alpha * a.numbers[a.at(row, depth, batch)] * b.numbers[b.at(depth, column, batch)]
                });
                let (sum, size) =
                    products.fold((before, before.abs()), |(sum, size), product| (sum + product, size + product.abs()));
                expected[at] = sum;
                allowed[at] = f64::from(gemm.k + 4) * sums * size + (last * sum.abs()).max(least);
            }
        }
    }
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let off = (found - expected).abs();
        assert!(off <= allowed[at], "{gemm:?}: element {at} is {found} and not {expected}: off by {off:e}");
    }
}

fn product(lab: &mut Lab, element: Element, [m, n, k]: [u32; 3], transposed: [bool; 2], scale: [f64; 2], batch: u32) {
    let a = Side::new(lab, element, [m, k], batch, transposed[0]);
    let b = Side::new(lab, element, [k, n], batch, transposed[1]);
    let c = Side::new(lab, element, [m, n], batch, false);
    let [alpha, beta] = scale;
    let gemm = Gemm { element, m, n, k, alpha, a: a.matrix, b: b.matrix, beta, c: c.matrix, batch };
    check(lab, &gemm, &a, &b, &c);
}

pub fn all_kinds(lab: &mut Lab) {
    for element in KINDS {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            for size in [[1, 1, 1], [3, 5, 7], [8, 8, 8], [17, 33, 9], [64, 1, 130], [1, 64, 3]] {
                product(lab, element, size, transposed, [0.75, 0.0], 1);
                product(lab, element, size, transposed, [-1.0, 0.5], 3);
            }
        }
    }
}

/// Larger than one tile in each direction, and, of 16 bits, than one piece of the depth.
pub fn whole_tiles(lab: &mut Lab) {
    for element in KINDS {
        product(lab, element, [1030, 262, 3], [false, true], [1.0, 1.0], 1);
        product(lab, element, [5, 9, 2100], [true, false], [0.1, 0.0], 2);
    }
}

pub fn scaling_without_factors(lab: &mut Lab) {
    for element in KINDS {
        for beta in [0.0, 1.0, -0.5] {
            product(lab, element, [5, 6, 0], [false, false], [1.0, beta], 2);
            product(lab, element, [5, 6, 3], [false, false], [0.0, beta], 2);
        }
        for empty in [[0, 6, 3], [5, 0, 3]] {
            product(lab, element, empty, [false, false], [1.0, 0.0], 2);
        }
        product(lab, element, [5, 6, 3], [false, false], [1.0, 0.0], 0);
    }
}

/// A buffer of NaNs.
fn nans(lab: &mut Lab, element: Element, count: usize) -> BufferId {
    lab.upload(&encode(element, &vec![f64::NAN; count]))
}

fn dense(buffer: BufferId, leading: u32) -> Matrix {
    Matrix { buffer, offset: 0, leading, stride: 0, transpose: false }
}

pub fn nothing_unneeded_is_read(lab: &mut Lab) {
    for element in KINDS {
        let ones = lab.upload(&encode(element, &[1.0; 16]));
        let (nan, c) = (nans(lab, element, 16), nans(lab, element, 16));
        let all = |lab: &mut Lab, number: f64| {
            assert_eq!(decode(element, &lab.bytes(c)), [number; 16], "{element:?}");
        };
        let (m, n, k) = (4, 4, 4);
        let gemm = Gemm {
            element,
            m,
            n,
            k,
            alpha: 1.0,
            a: dense(ones, 4),
            b: dense(ones, 4),
            beta: 0.0,
            c: dense(c, 4),
            batch: 1,
        };
        // What c held does not matter where beta is 0.
        lab.context.gemm(&gemm).unwrap();
        all(lab, 4.0);
        // Factors do not matter where alpha is 0.
        lab.context.gemm(&Gemm { alpha: 0.0, a: dense(nan, 4), b: dense(nan, 4), beta: 0.5, ..gemm }).unwrap();
        all(lab, 2.0);
        // Otherwise a NaN spreads, as it should.
        lab.context.gemm(&Gemm { a: dense(nan, 4), ..gemm }).unwrap();
        assert!(decode(element, &lab.bytes(c)).iter().all(|number| number.is_nan()));
        lab.context.gemm(&Gemm { alpha: 0.0, beta: 0.0, ..gemm }).unwrap();
        all(lab, 0.0);
    }
}

/// Heads of attention: matrices that are blocks of rows of larger ones, side by side, one of them the result.
pub fn side_by_side(lab: &mut Lab) {
    let element = Element::Float32;
    let numbers: Vec<f32> = lab.normal(24 * 6);
    let buffer = lab.upload(&numbers);
    let block = |first: u64, stride| Matrix { buffer, offset: first * 4, leading: 24, stride, transpose: false };
    // Of each column of 24: rows 0 to 7 are two blocks of 4 of a, 8 to 15 two of c. b is elsewhere.
    let factor = lab.normal(36);
    let b = lab.upload(&factor);
    let b = Matrix { buffer: b, offset: 0, leading: 6, stride: 0, transpose: false };
    let (m, n, k) = (4, 6, 6);
    for (a_stride, c_stride, batch) in [(0, 0, 1), (4, 4, 2)] {
        lab.context.write(buffer, 0, &to_bytes(&numbers)).unwrap();
        let (a, c) = (block(0, a_stride), block(8, c_stride));
        let gemm = Gemm { element, m, n, k, alpha: 1.0, a, b, beta: 0.0, c, batch };
        if batch == 2 {
            // Which rows a batch of blocks takes is not looked into: they might be c's.
            refused(lab.context.gemm(&gemm));
            continue;
        }
        lab.context.gemm(&gemm).unwrap();
        let found: Vec<f32> = lab.download(buffer);
        for (at, found) in found.iter().enumerate() {
            let (column, row) = (at / 24, at % 24);
            let expected = if (8..12).contains(&row) {
                let term =
                    |depth: usize| f64::from(numbers[depth * 24 + row - 8]) * f64::from(factor[column * 6 + depth]);
                (0..6).map(term).sum()
            } else {
                f64::from(numbers[at])
            };
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{at}");
        }
    }
}

pub fn batches(lab: &mut Lab) {
    let element = Element::Float64;
    // One matrix a for all of a batch, and results side by side within the leading dimension.
    let (m, n, k, batch) = (3, 2, 4, 500);
    let [a, b] =
        [m * k, k * n * batch].map(|count| lab.normal(count as usize).into_iter().map(f64::from).collect::<Vec<_>>());
    let c = lab.poisoned::<f64>((m * n * batch) as usize);
    let (left, right) = (dense(lab.upload(&a), m), Matrix { stride: u64::from(k * n), ..dense(lab.upload(&b), k) });
    let result = Matrix { stride: u64::from(m), leading: m * batch, ..dense(c, 0) };
    let gemm = Gemm { element, m, n, k, alpha: 1.0, a: left, b: right, beta: 0.0, c: result, batch };
    lab.context.gemm(&gemm).unwrap();
    let found: Vec<f64> = lab.download(c);
    let [m, n, k, batch] = [m, n, k, batch].map(|count| count as usize);
    for which in 0..batch {
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let term = |depth: usize| a[depth * m + row] * b[which * k * n + column * k + depth];
            let expected: f64 = (0..k).map(term).sum();
            let found = found[column * m * batch + which * m + row];
            assert!((found - expected).abs() < 1e-12, "{which}: {found} {expected}");
        }
    }
}

pub fn refusals(lab: &mut Lab) {
    let element = Element::Float32;
    let (a, b, c) = (lab.upload(&[1_f32; 16]), lab.upload(&[1_f32; 16]), lab.upload(&[5_f32; 16]));
    let (m, n, k) = (4, 4, 4);
    let good =
        Gemm { element, m, n, k, alpha: 1.0, a: dense(a, 4), b: dense(b, 4), beta: 0.0, c: dense(c, 4), batch: 1 };
    let gone = lab.upload(&[1_f32; 16]);
    lab.context.free(gone);
    for (bad, words) in [
        (Gemm { element: Element::Int64, ..good }, "gemm: there are products of"),
        (Gemm { a: dense(gone, 4), ..good }, "gemm: a is a buffer that was dropped"),
        (Gemm { b: dense(b, 3), ..good }, "gemm: b has 4 rows"),
        (Gemm { n: 5, ..good }, "gemm: b reaches from byte 0 to 80"),
        (Gemm { c: Matrix { offset: 4, ..dense(c, 4) }, ..good }, "gemm: c reaches from byte 4 to 68"),
        (Gemm { batch: 2, ..good }, "gemm: c's stride is 0"),
        (Gemm { a: dense(c, 4), ..good }, "gemm: c overlaps a"),
        (Gemm { m: u32::MAX, n: u32::MAX, k: u32::MAX, batch: u32::MAX, ..good }, "gemm: a has 4294967295 rows"),
    ] {
        let text = refused(lab.context.gemm(&bad));
        assert!(text.starts_with(words), "{text}");
    }
    assert_eq!(lab.download::<f32>(c), [5.0; 16]);
}
