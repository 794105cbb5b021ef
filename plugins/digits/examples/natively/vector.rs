//! The inner loops, a block of elements a turn.
//!
//! The order of the additions is written down here and left to no compiler, so that sums are the same everywhere; and it is
//! one in which lanes do not wait for one another. A turn is long, so that what a guest pays for each (a look whether it was
//! interrupted) hardly counts.

/// Sums that grow side by side: eight SIMD registers of four, half of those that there are.
const LANES: usize = 32;
/// Elements a turn where nothing has to be kept in registers.
const BLOCK: usize = 64;

/// Σ a·b.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let quarter = |lane: usize| (sums[lane] + sums[lane + 4]) + (sums[lane + 8] + sums[lane + 12]);
    let half = |lane: usize| quarter(lane) + quarter(lane + 16);
    (half(0) + half(1)) + (half(2) + half(3)) + rest
}

/// to += scale · from.
#[inline(always)]
pub(crate) fn add_scaled(to: &mut [f32], scale: f32, from: &[f32]) {
    let ((to, to_rest), (from, from_rest)) = (to.as_chunks_mut::<BLOCK>(), from.as_chunks::<BLOCK>());
    for (to, from) in to.iter_mut().zip(from) {
        for i in 0..BLOCK {
            to[i] += scale * from[i];
        }
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to += scale * from;
    }
}
