//! Tiles of the matrices that a product writes, and the products of one tile by crate `matrixmultiply`.
//!
//! A tile is a part of `c` that no other tile shares an element with, so tiles can be computed in any order on any number of threads. How `c` is cut
//! depends on its size alone, never on the number of threads, so results do not either.
#![expect(
    unsafe_code,
    reason = "tiles lie between each other's columns, where no slice can separate them; and `matrixmultiply` takes pointers"
)]

use std::marker::PhantomData;

use crate::device::gemm::ValidatedGemm;

/// Rows and columns of a tile: large enough that packing the factors again for each costs nothing, small enough for many cores.
const TILE_ROWS: usize = 1024;
const TILE_COLUMNS: usize = 256;

/// A float that `matrixmultiply` has a product for.
pub(super) trait Real: Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn of(number: f64) -> Self;
    fn times(self, other: Self) -> Self;
    /// # Safety
    ///
    /// As of `matrixmultiply::sgemm`.
    unsafe fn gemm(
        size: [usize; 3],
        alpha: Self,
        a: (*const Self, Strides),
        b: (*const Self, Strides),
        beta: Self,
        c: (*mut Self, Strides),
    );
}

/// Elements from one row, and from one column, to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) row: usize,
    pub(super) column: usize,
}

macro_rules! real {
    ($real:ty, $gemm:path) => {
        impl Real for $real {
            const ZERO: Self = 0.0;

            fn of(number: f64) -> Self {
                number as $real
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            unsafe fn gemm(
                [m, k, n]: [usize; 3],
                alpha: Self,
                (a, sa): (*const Self, Strides),
                (b, sb): (*const Self, Strides),
                beta: Self,
                (c, sc): (*mut Self, Strides),
            ) {
                let [ra, ca, rb, cb, rc, cc] =
                    [sa.row, sa.column, sb.row, sb.column, sc.row, sc.column].map(|stride| stride as isize);
                // SAFETY: the caller's promise.
                unsafe { $gemm(m, k, n, alpha, a, ra, ca, b, rb, cb, beta, c, rc, cc) };
            }
        }
    };
}
real!(f32, matrixmultiply::sgemm);
real!(f64, matrixmultiply::dgemm);

/// A factor, or a part of one, to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor<'a, T> {
    numbers: &'a [T],
    strides: Strides,
    rows: usize,
    columns: usize,
}

impl<'a, T: Copy> Factor<'a, T> {
    /// # Panics
    ///
    /// Where an element would lie behind the end of `numbers`.
    pub(super) fn new(numbers: &'a [T], strides: Strides, rows: usize, columns: usize) -> Self {
        let last = (rows.max(1) - 1) * strides.row + (columns.max(1) - 1) * strides.column;
        assert!(rows == 0 || columns == 0 || last < numbers.len(), "a factor that is larger than its memory");
        Self { numbers, strides, rows, columns }
    }

    /// A part.
    pub(super) fn part(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> Self {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "a part that is larger than the whole");
        if rows.is_empty() || columns.is_empty() {
            return Self { numbers: &[], strides: self.strides, rows: rows.len(), columns: columns.len() };
        }
        let first = rows.start * self.strides.row + columns.start * self.strides.column;
        Self::new(&self.numbers[first..], self.strides, rows.len(), columns.len())
    }

    /// Its elements by columns, each changed by `change`.
    pub(super) fn gather<U>(&self, into: &mut Vec<U>, change: impl Fn(T) -> U) {
        into.clear();
        for column in 0..self.columns {
            let at = |row| self.numbers[row * self.strides.row + column * self.strides.column];
            into.extend((0..self.rows).map(|row| change(at(row))));
        }
    }
}

/// Where a tile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) batch: usize,
    pub(super) rows: std::ops::Range<usize>,
    pub(super) columns: std::ops::Range<usize>,
}

/// The tiles of a result, given out one by one.
pub(super) struct Tiles<'a, T> {
    c: *mut T,
    size: [usize; 3],
    leading: usize,
    stride: usize,
    next: usize,
    _c: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for the exclusive borrow of a slice of plain numbers.
unsafe impl<T: Send> Send for Tiles<'_, T> {}

impl<'a, T> Tiles<'a, T> {
    /// All tiles of `gemm.c`, which lies in `c` from its beginning on.
    ///
    /// # Panics
    ///
    /// Where an element would lie behind the end of `c`.
    pub(super) fn new(gemm: &ValidatedGemm, c: &'a mut [T]) -> Self {
        let (leading, stride) = (gemm.c.leading, gemm.c.stride);
        let last = (gemm.batch - 1) * stride + (gemm.n - 1) * leading + gemm.m - 1;
        assert!(last < c.len(), "a result that is larger than its memory");
        Self { c: c.as_mut_ptr(), size: [gemm.m, gemm.n, gemm.batch], leading, stride, next: 0, _c: PhantomData }
    }
}

impl<'a, T> Iterator for Tiles<'a, T> {
    type Item = Tile<'a, T>;

    fn next(&mut self) -> Option<Tile<'a, T>> {
        let [m, n, batch] = self.size;
        let (down, across) = (m.div_ceil(TILE_ROWS), n.div_ceil(TILE_COLUMNS));
        let index = self.next;
        let (which, rest) = (index / (down * across), index % (down * across));
        if which >= batch {
            return None;
        }
        self.next += 1;
        let (row, column) = (rest % down * TILE_ROWS, rest / down * TILE_COLUMNS);
        let rows = row..m.min(row + TILE_ROWS);
        let columns = column..n.min(column + TILE_COLUMNS);
        let first = which * self.stride + columns.start * self.leading + rows.start;
        // SAFETY: `first` is an element of the result, all of which lie in the slice.
        let c = unsafe { self.c.add(first) };
        Some(Tile { c, leading: self.leading, place: Place { batch: which, rows, columns }, _c: PhantomData })
    }
}

/// A part of a result that nobody else writes to: the matrices of a validated product share no elements, and tiles of one matrix neither.
pub(super) struct Tile<'a, T> {
    c: *mut T,
    leading: usize,
    pub(super) place: Place,
    _c: PhantomData<&'a mut [T]>,
}

impl<T: Copy> Tile<'_, T> {
    /// Its columns, one after the other.
    pub(super) fn columns(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (c, leading, rows) = (self.c, self.leading, self.place.rows.len());
        (0..self.place.columns.len()).map(move |column| {
            // SAFETY: the tile's own elements, as `Tiles` promises; columns do not overlap, since the leading dimension is at least a column's length.
            unsafe { std::slice::from_raw_parts_mut(c.add(column * leading), rows) }
        })
    }
}

impl<T: Real> Tile<'_, T> {
    /// `alpha · a × b + beta · self`, where `a` and `b` are the tile's rows and columns of the factors. Does not read the tile where `beta` is 0.
    pub(super) fn product(&mut self, alpha: T, a: &Factor<'_, T>, b: &Factor<'_, T>, beta: T) {
        let (m, n, k) = (self.place.rows.len(), self.place.columns.len(), a.columns);
        assert!(a.rows == m && b.columns == n && b.rows == k, "factors of another size");
        let strides = Strides { row: 1, column: self.leading };
        // SAFETY: every element of the factors lies in their slices, as `Factor` checked; the tile's elements are ours alone, and distinct.
        unsafe {
            T::gemm(
                [m, k, n],
                alpha,
                (a.numbers.as_ptr(), a.strides),
                (b.numbers.as_ptr(), b.strides),
                beta,
                (self.c, strides),
            );
        }
    }
}

/// `c = alpha · a × b + c` for whole matrices of floats that lie in columns without gaps.
pub(super) fn accumulate(alpha: f32, a: &[f32], b: &[f32], c: &mut [f32], [m, k, n]: [usize; 3]) {
    assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n, "matrices of another size");
    let [sa, sb] = [m, k].map(|column| Strides { row: 1, column });
    // SAFETY: the slices hold all elements, as was just checked, and `c` is borrowed exclusively.
    unsafe { f32::gemm([m, k, n], alpha, (a.as_ptr(), sa), (b.as_ptr(), sb), 1.0, (c.as_mut_ptr(), sa)) };
}
