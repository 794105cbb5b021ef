//! Kernels whose threads work together: shared memory, shuffles, votes, atomics.

use super::subject::{Inputs, Subject, assert_near};

fn f(x: f32) -> f64 {
    f64::from(x)
}

#[test]
fn matrix_product_in_tiles() {
    let (subject, mut inputs) = (Subject::new("matmul", "matmul"), Inputs::fresh());
    for [m, n, k] in [[16usize, 16, 16], [33, 20, 50], [1, 1, 1], [5, 40, 17]] {
        let (a, b) = (inputs.floats(m * k, -1.0, 1.0), inputs.floats(k * n, -1.0, 1.0));
        let mut call = subject.call();
        call.input(&a);
        call.input(&b);
        let out = call.output::<f32>(m * n);
        for size in [m, n, k] {
            call.value(size as i32);
        }
        let got: Vec<f32> = call.run([(n as u32).div_ceil(16), (m as u32).div_ceil(16), 1], [16, 16, 1], 0).read(out);
        let sum = |i: usize| (0..k).map(|j| f(a[i / n * k + j]) * f(b[j * n + i % n])).sum();
        let expected: Vec<f64> = (0..m * n).map(sum).collect();
        assert_near(&got, &expected, 1e-6, k as f64);
    }
}

#[test]
fn sum_by_shuffles() {
    let (subject, mut inputs) = (Subject::new("reduce", "block_reduce"), Inputs::fresh());
    for (n, grid, block) in [(1000usize, 4, 64), (1, 1, 32), (777, 3, 96), (5000, 2, 256), (31, 7, 1024)] {
        let x = inputs.floats(n, -1.0, 1.0);
        let mut call = subject.call();
        call.input(&x);
        let out = call.inout(&[0.25f32]);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        assert_near(&got, &[0.25 + x.iter().map(|x| f(*x)).sum::<f64>()], 1e-6, n as f64);
    }
}

#[test]
fn sum_in_dynamic_shared_memory() {
    let (subject, mut inputs) = (Subject::new("reduce", "smem_reduce"), Inputs::fresh());
    for (n, block) in [(1000usize, 128u32), (1, 1), (77, 16), (513, 256), (2048, 1024)] {
        let grid = (n as u32).div_ceil(block);
        let x = inputs.floats(n, -1.0, 1.0);
        let mut call = subject.call();
        call.input(&x);
        let out = call.output::<f32>(grid as usize);
        call.value(n as i32);
        let got: Vec<f32> = call.run([grid, 1, 1], [block, 1, 1], 4 * block).read(out);
        let expected: Vec<f64> = x.chunks(block as usize).map(|part| part.iter().map(|x| f(*x)).sum()).collect();
        assert_near(&got, &expected, 1e-6, f64::from(block));
    }
}

#[test]
fn histogram() {
    let (subject, mut inputs) = (Subject::new("reduce", "hist"), Inputs::fresh());
    for (n, grid, block) in [(1000usize, 3, 100), (0, 1, 32), (5000, 2, 256), (333, 8, 7)] {
        let x: Vec<u8> =
            inputs.integers(n, 0, 255).iter().map(|x| (*x as u8) & if n == 333 { 3 } else { 255 }).collect();
        let mut expected: Vec<u32> = (0..256).collect();
        let mut call = subject.call();
        call.input(&x);
        let out = call.inout(&expected);
        call.value(n as i32);
        let got: Vec<u32> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        for x in x {
            expected[usize::from(x)] += 1;
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn ballots_and_a_maximum() {
    let (subject, mut inputs) = (Subject::new("reduce", "ballots"), Inputs::fresh());
    for (n, grid, block) in [(1000usize, 4u32, 256u32), (70, 1, 96), (20, 2, 64)] {
        for first_is_empty in [false, true] {
            let mut x = inputs.integers(n, -50, 50);
            x[..n.min(32)].fill(if first_is_empty { -1 } else { 3 });
            let warps = (grid * block / 32) as usize;
            let mut call = subject.call();
            call.input(&x);
            let out = call.output::<i32>(warps);
            let most = call.inout(&[0u64]);
            call.value(n as i32);
            let outcome = call.run([grid, 1, 1], [block, 1, 1], 0);
            let positive =
                |range: std::ops::Range<usize>| range.filter(|i| x.get(*i).is_some_and(|x| *x > 0)).count() as i32;
            let mut expected: Vec<i32> = (0..warps).map(|warp| positive(32 * warp..32 * warp + 32)).collect();
            // Thread 0 of each block puts the count of its block where the first warp counted none.
            if expected[0] == 0 {
                let counts: Vec<i32> =
                    (0..grid as usize).map(|i| positive(i * block as usize..(i + 1) * block as usize)).collect();
                expected[0] = counts.into_iter().find(|count| *count != 0).unwrap_or_default();
            }
            let got: Vec<i32> = outcome.read(out);
            // The second is the lanes that were active: whatever the order, the one that asks is among them.
            assert_eq!(got[1] & 1, 1, "{:#x}", got[1]);
            expected[1] = got[1];
            assert_eq!(got, expected);
            // Where a lane has a positive number, its whole warp takes part; a negative number is a very large one there.
            let warps = x.chunks(32).filter(|warp| warp.iter().any(|x| *x > 0));
            let greatest = warps.flatten().map(|x| i64::from(*x) as u64).max().unwrap_or_default();
            assert_eq!(outcome.read::<u64>(most), [greatest]);
        }
    }
}

#[test]
fn a_lock_between_warps() {
    let (subject, mut inputs) = (Subject::new("misc", "cas_loop"), Inputs::fresh());
    for (n, grid, block) in [(100usize, 1u32, 128u32), (20, 1, 32), (999, 1, 1024), (5, 1, 40)] {
        let x: Vec<f64> = inputs.integers(n, -1000, 1000).iter().map(|x| f64::from(*x)).collect();
        let mut call = subject.call();
        let out = call.inout(&[0.5f64, 7.0]);
        call.input(&x);
        call.value(n as i32);
        let got: Vec<f64> = call.run([grid, 1, 1], [block, 1, 1], 0).read(out);
        let counted = (grid * block) as usize;
        assert_eq!(got, [0.5 + x[..n.min(counted)].iter().sum::<f64>(), 7.0 + f64::from(block.div_ceil(32))]);
    }
}

#[test]
fn softmax_of_rows() {
    let (subject, mut inputs) = (Subject::new("softmax", "softmax"), Inputs::fresh());
    for (rows, columns, block) in [(3usize, 100usize, 64u32), (1, 1, 32), (2, 1000, 256), (4, 33, 96)] {
        let x = inputs.floats(rows * columns, -8.0, 8.0);
        let mut call = subject.call();
        let out = call.output::<f32>(rows * columns);
        call.input(&x);
        call.value(rows as i32).value(columns as i32);
        let got: Vec<f32> = call.run([rows as u32, 1, 1], [block, 1, 1], 4 * (block / 32)).read(out);
        let expected: Vec<f64> = x
            .chunks(columns)
            .flat_map(|row| {
                let sum: f64 = row.iter().map(|x| f(*x).exp()).sum();
                row.iter().map(move |x| f(*x).exp() / sum)
            })
            .collect();
        assert_near(&got, &expected, 4e-6, 1e-6);
    }
}

#[test]
fn layernorm_of_rows() {
    let (subject, mut inputs) = (Subject::new("softmax", "layernorm"), Inputs::fresh());
    for (rows, columns, block) in [(7usize, 100usize, 64u32), (1, 32, 32), (3, 1000, 128), (5, 33, 96)] {
        let x = inputs.floats(rows * columns, -3.0, 5.0);
        let (w, b) = (inputs.floats(columns, 0.5, 1.5), inputs.floats(columns, -1.0, 1.0));
        let mut call = subject.call();
        let out = call.output::<f32>(rows * columns);
        let (mean, rstd) = (call.output::<f32>(rows), call.output::<f32>(rows));
        for input in [&x, &w, &b] {
            call.input(input);
        }
        call.value(rows as i32).value(columns as i32);
        let outcome = call.run([(rows as u32).div_ceil(block / 32), 1, 1], [block, 1, 1], 0);
        let means: Vec<f64> =
            x.chunks(columns).map(|row| row.iter().map(|x| f(*x)).sum::<f64>() / columns as f64).collect();
        let scales: Vec<f64> = (x.chunks(columns).zip(&means))
            .map(|(row, mean)| row.iter().map(|x| (f(*x) - mean).powi(2)).sum::<f64>() / columns as f64)
            .map(|variance| 1.0 / (variance + 1e-5).sqrt())
            .collect();
        let expected: Vec<f64> = (0..rows * columns)
            .map(|i| scales[i / columns] * (f(x[i]) - means[i / columns]) * f(w[i % columns]) + f(b[i % columns]))
            .collect();
        assert_near(&outcome.read::<f32>(mean), &means, 1e-5, 1.0);
        assert_near(&outcome.read::<f32>(rstd), &scales, 1e-5, 1.0);
        assert_near(&outcome.read::<f32>(out), &expected, 1e-5, 1.0);
    }
}
