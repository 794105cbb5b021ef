#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

const SIZES: [u64; 3] = [1000, 1000, 1000];

fn matrix(buffer: u64, leading: u32, stride: u64) -> Matrix {
    Matrix { buffer: BufferId(buffer), offset: 0, leading, stride, transpose: false }
}

/// 4 × 6 times 6 × 5.
fn product() -> Gemm {
    let (a, b, c) = (matrix(0, 4, 24), matrix(1, 6, 30), matrix(2, 4, 20));
    Gemm { element: Element::Float32, m: 4, n: 5, k: 6, alpha: 1.0, a, b, beta: 0.0, c, batch: 2 }
}

fn validate(gemm: &Gemm) -> Result<Option<ValidatedGemm>> {
    ValidatedGemm::new(gemm, |buffer| SIZES.get(buffer.0 as usize).copied())
}

fn refusal(change: impl FnOnce(&mut Gemm)) -> String {
    let mut gemm = product();
    change(&mut gemm);
    let DeviceError::InvalidArgument(text) = validate(&gemm).unwrap_err() else { panic!("another kind") };
    text
}

fn accepted(change: impl FnOnce(&mut Gemm)) -> Option<ValidatedGemm> {
    let mut gemm = product();
    change(&mut gemm);
    validate(&gemm).unwrap()
}

#[test]
fn refusals_name_the_matrix_and_the_numbers() {
    insta::assert_snapshot!(
        [
            refusal(|gemm| gemm.element = Element::Int32),
            refusal(|gemm| gemm.c.transpose = true),
            refusal(|gemm| gemm.a.leading = 3),
            refusal(|gemm| { gemm.a.transpose = true; gemm.a.leading = 5 }),
            refusal(|gemm| { gemm.k = 0; gemm.b.leading = 0 }),
            refusal(|gemm| gemm.b.offset = 2),
            refusal(|gemm| gemm.b.offset = 764),
            refusal(|gemm| gemm.a.buffer = BufferId(7)),
            refusal(|gemm| gemm.c.stride = 19),
            refusal(|gemm| gemm.c.stride = 0),
            refusal(|gemm| { gemm.batch = u32::MAX; gemm.a.stride = u64::MAX }),
            refusal(|gemm| { gemm.b.buffer = gemm.c.buffer; gemm.b.offset = 156 }),
            refusal(|gemm| gemm.a.buffer = gemm.c.buffer),
        ]
        .join("\n"),
        @r"
        gemm: there are products of float16, bfloat16, float32 and float64, and not of int32
        gemm: c cannot be transposed; exchange a and b instead
        gemm: a has 4 rows in memory, and its leading dimension is 3: it must be at least 4
        gemm: a has 6 rows in memory, and its leading dimension is 5: it must be at least 6
        gemm: b has 0 rows in memory, and its leading dimension is 0: it must be at least 1
        gemm: b begins at byte 2, which is no multiple of 4
        gemm: b reaches from byte 764 to 1004, and its buffer has 1000
        gemm: a is a buffer that was dropped
        gemm: c's stride is 19, and its matrices would overlap: at least 20 is needed
        gemm: c's stride is 0, and its matrices would overlap: at least 20 is needed
        gemm: a reaches from byte 0 to 316912649909483397767319519336, and its buffer has 1000
        gemm: c overlaps b in the same buffer
        gemm: c overlaps a in the same buffer
        "
    );
}

#[test]
fn the_last_element_may_be_the_buffer_s_last() {
    // The second matrix of b ends 60 elements, 240 bytes, behind its offset.
    assert!(accepted(|gemm| gemm.b.offset = 760).is_some());
    // A stride that nobody uses may be anything, and 0 repeats a matrix.
    assert!(accepted(|gemm| (gemm.batch, gemm.a.stride, gemm.c.stride) = (1, u64::MAX, 0)).is_some());
    assert!(accepted(|gemm| (gemm.a.stride, gemm.b.stride) = (0, 0)).is_some());
}

#[test]
fn nothing_to_do_is_nothing() {
    assert!(accepted(|gemm| gemm.m = 0).is_none());
    assert!(accepted(|gemm| gemm.n = 0).is_none());
    assert!(accepted(|gemm| gemm.batch = 0).is_none());
    assert!(accepted(|gemm| gemm.k = 0).is_some());
}

#[test]
fn batches_and_factors_may_lie_side_by_side() {
    let beside = |gemm: &mut Gemm| (gemm.c.leading, gemm.c.stride) = (8, 4);
    assert!(accepted(beside).is_some());
    // Rows 0 to 3 of every column are c, rows 4 to 7 are a.
    let parts = |gemm: &mut Gemm| {
        (gemm.batch, gemm.a.buffer, gemm.a.offset, gemm.a.leading, gemm.c.leading) = (1, gemm.c.buffer, 16, 8, 8);
    };
    assert!(accepted(parts).is_some());
    assert!(
        refusal(|gemm| {
            parts(gemm);
            gemm.a.offset = 12;
        })
        .contains("overlaps a")
    );
}
