//! Products of matrices.

use super::buffer::{Buffer, View};
use super::element::{Element, Float};
use super::error::{Error, Result};
use crate::bindings::steadfast::job::device as wit;

/// A product of matrices: `c` = `alpha` · `a` × `b` + `beta` · `c`.
///
/// ```
/// # use steadfast_guest::device::{Buffer, Gemm, Result};
/// # fn layer(x: &Buffer<f32>, w: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
/// // 64 samples of 784 inputs times the transpose of 10 outputs' weights.
/// Gemm { a: x.matrix(64, 784), b: w.matrix(10, 784).t(), c: y.matrix(64, 10), alpha: 1.0, beta: 0.0 }.run()
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a, T: Float> {
    /// The left factor.
    pub a: Matrix<'a, T>,
    /// The right factor. It has as many rows as the left one has columns.
    pub b: Matrix<'a, T>,
    /// Where the result goes. Must not overlap the factors.
    pub c: Matrix<'a, T>,
    /// What the product is multiplied with.
    pub alpha: f64,
    /// What `c` is multiplied with before the product is added. With 0 it is not read.
    pub beta: f64,
}

/// A matrix that lies in a buffer row by row, or the transpose of one.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T: Element> {
    view: View<'a, T>,
    /// As it is meant: after a transposition.
    rows: u32,
    columns: u32,
    transposed: bool,
    leading: u32,
    stride: u64,
}

impl<T: Float> Buffer<T> {
    /// The matrix that begins with the first element, row by row.
    pub fn matrix(&self, rows: u32, columns: u32) -> Matrix<'_, T> {
        self.at(0).matrix(rows, columns)
    }
}

impl<'a, T: Float> View<'a, T> {
    /// The matrix that begins with its first element, row by row.
    pub fn matrix(self, rows: u32, columns: u32) -> Matrix<'a, T> {
        let stride = u64::from(rows) * u64::from(columns);
        Matrix { view: self, rows, columns, transposed: false, leading: columns.max(1), stride }
    }
}

impl<T: Float> Matrix<'_, T> {
    /// Its transpose; nothing is moved.
    pub fn t(self) -> Self {
        Self { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }

    /// Elements from the beginning of one row, as it lies in the buffer, to that of the next; as many as it has if not said.
    pub fn leading(self, elements: u32) -> Self {
        Self { leading: elements, ..self }
    }

    /// Elements from the beginning of one matrix of a batch to that of the next; as many as it has if not said, and 0 to use the same for all.
    pub fn stride(self, elements: u64) -> Self {
        Self { stride: elements, ..self }
    }

    /// As the device takes it, which reads column by column, and so finds the transpose of what lies row by row: that one, or with `flipped`
    /// its own transpose.
    fn lower(&self, flipped: bool) -> Result<wit::Matrix<'_>> {
        let (at, offset) = self.view.place()?;
        Ok(wit::Matrix {
            at,
            offset,
            leading: self.leading,
            stride: self.stride,
            transposed: self.transposed ^ flipped,
        })
    }
}

impl<T: Float> Gemm<'_, T> {
    /// Multiplies once. Does not wait for it.
    pub fn run(&self) -> Result<()> {
        self.run_batch(1)
    }

    /// Multiplies `count` times, each time with the next matrix of each buffer (see [`Matrix::stride`]).
    pub fn run_batch(&self, count: u32) -> Result<()> {
        let Self { a, b, c, alpha, beta } = self;
        let shape = |matrix: &Matrix<'_, T>| format!("{} × {}", matrix.rows, matrix.columns);
        if a.columns != b.rows || a.rows != c.rows || b.columns != c.columns {
            let (a, b, c) = (shape(a), shape(b), shape(c));
            return Err(Error::invalid(format!("gemm: an `a` of {a} times a `b` of {b} does not make a `c` of {c}")));
        }
        let named = |name: &str, error: Error| error.within(&format!("gemm: `{name}`"));
        // Column by column, `c` lies there as its own transpose, which is the product of the other transposes in the other order; if a transpose is
        // what was asked for, then as the product itself.
        let lower_a = a.lower(c.transposed).map_err(|error| named("a", error))?;
        let lower_b = b.lower(c.transposed).map_err(|error| named("b", error))?;
        let lower_c = c.lower(c.transposed).map_err(|error| named("c", error))?;
        let (m, n, k) = (c.rows, c.columns, a.columns);
        Ok(match c.transposed {
            false => wit::gemm(T::KIND, n, m, k, *alpha, &lower_b, &lower_a, *beta, &lower_c, count),
            true => wit::gemm(T::KIND, m, n, k, *alpha, &lower_a, &lower_b, *beta, &lower_c, count),
        }?)
    }
}
