//! Products of matrices, checked against the buffers that they touch before any device hears of them.
//!
//! `c = alpha · a × b + beta · c`, `batch` times, column-major as in BLAS. `a` is `m × k` and `b` is `k × n` after their transposition, `c` is `m × n`. A matrix
//! as it lies in memory has `rows` elements in each column and `leading` elements from one column to the next; its next one in the batch begins
//! `stride` elements later. A stride of 0 uses the same `a` or `b` again.
//!
//! As in BLAS, what is not needed is not read: `c` where `beta` is 0, `a` and `b` where `alpha` or `k` is 0. So a NaN there does not spread.

use super::{BufferId, DeviceError, Element, Result, Span};

/// A product that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Of all three matrices: one of the four floats.
    pub element: Element,
    /// Rows of `a` and `c`.
    pub m: u32,
    /// Columns of `b` and `c`.
    pub n: u32,
    /// Columns of `a`, rows of `b`.
    pub k: u32,
    /// Multiplies the product. Rounded to the type that sums are made in.
    pub alpha: f64,
    /// The left factor.
    pub a: Matrix,
    /// The right factor.
    pub b: Matrix,
    /// Multiplies what `c` held before.
    pub beta: f64,
    /// The result. Cannot be transposed.
    pub c: Matrix,
    /// How many products.
    pub batch: u32,
}

/// Where a matrix lies, or the first of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// The buffer.
    pub buffer: BufferId,
    /// Where the first element is, in bytes: a multiple of the element's size.
    pub offset: u64,
    /// Elements from one column to the next: at least as many as there are rows, and at least 1.
    pub leading: u32,
    /// Elements from one matrix of the batch to the next.
    pub stride: u64,
    /// Whether rows and columns are exchanged when it is used.
    pub transpose: bool,
}

/// The floats that there are products of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "named like the elements")]
pub enum Float {
    Float16,
    Bfloat16,
    Float32,
    Float64,
}

impl Float {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }
}

/// A matrix whose every element, in every batch, lies in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidatedMatrix {
    /// From the first element to the last of the whole batch.
    pub span: Span,
    /// Rows as it lies in memory.
    pub rows: usize,
    /// Columns as it lies in memory.
    pub columns: usize,
    /// Elements from one column to the next.
    pub leading: usize,
    /// Elements from one matrix of the batch to the next.
    pub stride: usize,
    /// Whether rows and columns are exchanged when it is used.
    pub transpose: bool,
}

/// A product that a device can carry out without looking at it again. Neither `m`, `n` nor `batch` is 0, and no element of `c` is part of two batches, or of
/// `a` or `b`.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedGemm {
    /// Of all three matrices.
    pub element: Float,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Products in each sum; where it is 0, `a` and `b` may not be touched.
    pub k: usize,
    /// Multiplies the product.
    pub alpha: f64,
    /// The left factor.
    pub a: ValidatedMatrix,
    /// The right factor.
    pub b: ValidatedMatrix,
    /// Multiplies what `c` held before.
    pub beta: f64,
    /// The result.
    pub c: ValidatedMatrix,
    /// How many products.
    pub batch: usize,
}

impl ValidatedGemm {
    /// Whether `a` and `b` matter at all; where they don't, they are not read.
    pub fn needs_factors(&self) -> bool {
        self.k > 0 && self.alpha != 0.0
    }

    /// Checks `gemm`; none where there is nothing to do. `size` answers the size of a live buffer.
    pub(super) fn new(gemm: &Gemm, size: impl Fn(BufferId) -> Option<u64>) -> Result<Option<Self>> {
        let element = float(gemm.element)?;
        let (m, n, k, batch) = (gemm.m, gemm.n, gemm.k, gemm.batch);
        if gemm.c.transpose {
            return Err(DeviceError::argument("gemm: c cannot be transposed; exchange a and b instead"));
        }
        let check = |name, matrix: &Matrix, rows, columns| {
            Operand { name, matrix, rows, columns, batch, element }.validate(size(matrix.buffer))
        };
        let a = check("a", &gemm.a, m, k)?;
        let b = check("b", &gemm.b, k, n)?;
        let c = check("c", &gemm.c, m, n)?;
        if m == 0 || n == 0 || batch == 0 {
            return Ok(None);
        }
        check_batches(&c, batch)?;
        for (name, other) in [("a", &a), ("b", &b)] {
            if overlap(&c, other, element.bytes()) {
                return Err(DeviceError::InvalidArgument(format!("gemm: c overlaps {name} in the same buffer")));
            }
        }
        let [m, n, k, batch] = [m, n, k, batch].map(|count| count as usize);
        Ok(Some(Self { element, m, n, k, alpha: gemm.alpha, a, b, beta: gemm.beta, c, batch }))
    }
}

fn float(element: Element) -> Result<Float> {
    match element {
        Element::Float16 => Ok(Float::Float16),
        Element::Bfloat16 => Ok(Float::Bfloat16),
        Element::Float32 => Ok(Float::Float32),
        Element::Float64 => Ok(Float::Float64),
        Element::Byte | Element::Int32 | Element::Int64 => {
            let text =
                format!("gemm: there are products of float16, bfloat16, float32 and float64, and not of {element:?}");
            Err(DeviceError::InvalidArgument(text.to_lowercase()))
        }
    }
}

/// A matrix that is being checked.
struct Operand<'a> {
    name: &'a str,
    matrix: &'a Matrix,
    /// As it is used.
    rows: u32,
    columns: u32,
    batch: u32,
    element: Float,
}

impl Operand<'_> {
    fn validate(&self, size: Option<u64>) -> Result<ValidatedMatrix> {
        let Matrix { buffer, offset, leading, stride, transpose } = *self.matrix;
        let size = size.ok_or_else(|| self.refusal("is a buffer that was dropped"))?;
        let (rows, columns) = if transpose { (self.columns, self.rows) } else { (self.rows, self.columns) };
        if leading < rows.max(1) {
            let text = format!(
                "has {rows} rows in memory, and its leading dimension is {leading}: it must be at least {}",
                rows.max(1)
            );
            return Err(self.refusal(&text));
        }
        let unit = self.element.bytes();
        if !offset.is_multiple_of(unit) {
            return Err(self.refusal(&format!("begins at byte {offset}, which is no multiple of {unit}")));
        }
        let bytes = self.extent(rows, columns) * u128::from(unit);
        if u128::from(offset) + bytes > u128::from(size) {
            let text =
                format!("reaches from byte {offset} to {}, and its buffer has {size}", u128::from(offset) + bytes);
            return Err(self.refusal(&text));
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        // A stride that no second matrix uses may be anything.
        let stride = if self.batch > 1 { usize::try_from(stride).unwrap_or(usize::MAX) } else { 0 };
        let [rows, columns, leading] = [rows, columns, leading].map(|count| count as usize);
        Ok(ValidatedMatrix { span: Span { buffer, offset, bytes }, rows, columns, leading, stride, transpose })
    }

    /// Elements from the first to the last, all batches together; no overflow, whatever the numbers.
    fn extent(&self, rows: u32, columns: u32) -> u128 {
        if rows == 0 || columns == 0 || self.batch == 0 {
            return 0;
        }
        let batches = u128::from(self.batch - 1) * u128::from(self.matrix.stride);
        batches + u128::from(columns - 1) * u128::from(self.matrix.leading) + u128::from(rows)
    }

    fn refusal(&self, text: &str) -> DeviceError {
        DeviceError::InvalidArgument(format!("gemm: {} {text}", self.name))
    }
}

/// Matrices of `c` may lie one after the other, or side by side within the leading dimension.
fn check_batches(c: &ValidatedMatrix, batch: u32) -> Result<()> {
    let behind = (c.columns - 1) * c.leading + c.rows;
    let beside = (batch as usize - 1).checked_mul(c.stride).is_some_and(|last| last + c.rows <= c.leading);
    if batch == 1 || c.stride >= behind || (c.stride >= c.rows && beside) {
        return Ok(());
    }
    let text = format!("gemm: c's stride is {}, and its matrices would overlap: at least {behind} is needed", c.stride);
    Err(DeviceError::InvalidArgument(text))
}

/// Whether an element of `c` may be one of `other`. Blocks of columns within one larger matrix are told apart by rows.
fn overlap(c: &ValidatedMatrix, other: &ValidatedMatrix, unit: u64) -> bool {
    let (first, second) = (c.span, other.span);
    let apart = first.buffer != second.buffer
        || first.bytes == 0
        || second.bytes == 0
        || first.offset + first.bytes <= second.offset
        || second.offset + second.bytes <= first.offset;
    !apart && !side_by_side(c, other, unit)
}

/// Whether both are rows of one larger matrix, and different ones.
fn side_by_side(c: &ValidatedMatrix, other: &ValidatedMatrix, unit: u64) -> bool {
    let leading = c.leading as u64;
    let rows = |matrix: &ValidatedMatrix| {
        let first = matrix.span.offset / unit % leading;
        // Batches that lie within the leading dimension, or a whole number of columns apart.
        let whole = (matrix.stride as u64).is_multiple_of(leading);
        whole.then_some(first..first + matrix.rows as u64)
    };
    let (Some(ours), Some(theirs)) = (rows(c), rows(other)) else { return false };
    c.leading == other.leading
        && ours.end <= leading
        && theirs.end <= leading
        && (ours.end <= theirs.start || theirs.end <= ours.start)
}

#[cfg(test)]
mod tests;
