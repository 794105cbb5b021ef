//! What products of matrices are made of.

use steadfast_guest::device::{Bf16, Float};

/// A type that products are made of, with the kernels that read and write it.
pub(crate) trait Number: Float {
    const KERNELS: &'static str;
    const ONE: Self;

    fn widened(self) -> f32;
}

impl Number for f32 {
    const KERNELS: &'static str = include_str!("../kernels/float32.ptx");
    const ONE: Self = 1.0;

    fn widened(self) -> f32 {
        self
    }
}

impl Number for Bf16 {
    const KERNELS: &'static str = include_str!("../kernels/bfloat16.ptx");
    const ONE: Self = Self(0x3f80);

    fn widened(self) -> f32 {
        self.to_f32()
    }
}
