//! Products of matrices on the CPU, by crate `matrixmultiply`.
//!
//! Factors of 16 bits become `f32`s a block at a time; sums are made in `f32`, and each element of the result is rounded once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};

use super::crew::Crew;
use super::memory_unsafe::{Number, numbers, numbers_mut};
use super::product_unsafe::{Factor, Real, Strides, Tile, Tiles, accumulate};
use crate::device::gemm::{Float, ValidatedGemm, ValidatedMatrix};
use crate::device::{DeviceError, Result, Stopper};

/// Columns of `a` and rows of `b` that are made `f32`s at once.
const DEPTH: usize = 2048;
/// Multiplications that are worth taking the lock for, when tiles are small.
const SHARE: usize = 1 << 20;

/// The bytes of the three matrices, each from its first element on; factors that are not needed may be empty.
pub(super) struct Operands<'a> {
    pub(super) a: &'a [u8],
    pub(super) b: &'a [u8],
    pub(super) c: &'a mut [u8],
}

/// Carries out a product. Between tiles it looks whether it is to stop.
pub(super) fn multiply(gemm: &ValidatedGemm, operands: Operands<'_>, crew: &Crew, stopper: &Stopper) -> Result<()> {
    let Operands { a, b, c } = operands;
    match gemm.element {
        Float::Float32 => whole::<f32>(gemm, numbers(a), numbers(b), numbers_mut(c), crew, stopper),
        Float::Float64 => whole::<f64>(gemm, numbers(a), numbers(b), numbers_mut(c), crew, stopper),
        Float::Float16 => narrow::<f16>(gemm, numbers(a), numbers(b), numbers_mut(c), crew, stopper),
        Float::Bfloat16 => narrow::<bf16>(gemm, numbers(a), numbers(b), numbers_mut(c), crew, stopper),
    }
}

/// Gives every tile to one of the crew.
fn share<T: Number + Send>(
    gemm: &ValidatedGemm,
    c: &mut [T],
    crew: &Crew,
    stopper: &Stopper,
    work: impl Fn(Tile<'_, T>) + Sync,
) -> Result<()> {
    let cost = |tile: &Tile<'_, T>| tile.place.rows.len() * tile.place.columns.len() * (gemm.k + 1);
    let seats = if gemm.m * gemm.n * gemm.batch <= SHARE / (gemm.k + 1) { 1 } else { crew.seats() };
    let tiles = Mutex::new(Tiles::new(gemm, c));
    let stopped = AtomicBool::new(false);
    crew.work(seats, |_| {
        let mut taken = Vec::new();
        loop {
            if stopper.is_stopped() {
                stopped.store(true, Ordering::Relaxed);
                return;
            }
            {
                let mut tiles = tiles.lock().unwrap_or_else(PoisonError::into_inner);
                let mut sum = 0;
                while sum < SHARE {
                    let Some(tile) = tiles.next() else { break };
                    sum += cost(&tile);
                    taken.push(tile);
                }
            }
            if taken.is_empty() {
                return;
            }
            taken.drain(..).for_each(&work);
        }
    });
    if stopped.into_inner() { Err(DeviceError::Stopped) } else { Ok(()) }
}

/// Floats that are multiplied as they are.
fn whole<T: Real + Number>(
    gemm: &ValidatedGemm,
    a: &[T],
    b: &[T],
    c: &mut [T],
    crew: &Crew,
    stopper: &Stopper,
) -> Result<()> {
    let (alpha, beta) = (T::of(gemm.alpha), T::of(gemm.beta));
    share(gemm, c, crew, stopper, |mut tile| {
        if !gemm.needs_factors() {
            for number in tile.columns().flatten() {
                *number = if gemm.beta == 0.0 { T::ZERO } else { beta.times(*number) };
            }
            return;
        }
        let place = tile.place.clone();
        let a = factor(a, &gemm.a, place.batch, gemm.m, gemm.k).part(place.rows, 0..gemm.k);
        let b = factor(b, &gemm.b, place.batch, gemm.k, gemm.n).part(0..gemm.k, place.columns);
        tile.product(alpha, &a, &b, beta);
    })
}

/// A float of 16 bits.
trait Narrow: Send + Sync {
    fn widen(bits: u16) -> f32;
    fn narrow(number: f32) -> u16;
}

impl Narrow for f16 {
    fn widen(bits: u16) -> f32 {
        Self::from_bits(bits).to_f32()
    }

    fn narrow(number: f32) -> u16 {
        Self::from_f32(number).to_bits()
    }
}

impl Narrow for bf16 {
    fn widen(bits: u16) -> f32 {
        Self::from_bits(bits).to_f32()
    }

    fn narrow(number: f32) -> u16 {
        Self::from_f32(number).to_bits()
    }
}

fn narrow<F: Narrow>(
    gemm: &ValidatedGemm,
    a: &[u16],
    b: &[u16],
    c: &mut [u16],
    crew: &Crew,
    stopper: &Stopper,
) -> Result<()> {
    let (alpha, beta) = (gemm.alpha as f32, gemm.beta as f32);
    share(gemm, c, crew, stopper, |mut tile| {
        let place = tile.place.clone();
        let (m, n) = (place.rows.len(), place.columns.len());
        let mut sums = Vec::with_capacity(m * n);
        for column in tile.columns() {
            let start = |bits: &u16| if beta == 0.0 { 0.0 } else { beta * F::widen(*bits) };
            sums.extend(column.iter().map(start));
        }
        if gemm.needs_factors() {
            let a = factor(a, &gemm.a, place.batch, gemm.m, gemm.k);
            let b = factor(b, &gemm.b, place.batch, gemm.k, gemm.n);
            let (mut wide_a, mut wide_b) = (Vec::new(), Vec::new());
            for first in (0..gemm.k).step_by(DEPTH) {
                let depth = first..gemm.k.min(first + DEPTH);
                a.part(place.rows.clone(), depth.clone()).gather(&mut wide_a, F::widen);
                b.part(depth.clone(), place.columns.clone()).gather(&mut wide_b, F::widen);
                accumulate(alpha, &wide_a, &wide_b, &mut sums, [m, depth.len(), n]);
            }
        }
        for (bits, sum) in tile.columns().flatten().zip(&sums) {
            *bits = F::narrow(*sum);
        }
    })
}

/// One factor of a batch, as it is used.
fn factor<'a, T: Copy>(
    all: &'a [T],
    matrix: &ValidatedMatrix,
    batch: usize,
    rows: usize,
    columns: usize,
) -> Factor<'a, T> {
    let strides = if matrix.transpose {
        Strides { row: matrix.leading, column: 1 }
    } else {
        Strides { row: 1, column: matrix.leading }
    };
    Factor::new(&all[batch * matrix.stride..], strides, rows, columns)
}
