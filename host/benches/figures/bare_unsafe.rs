//! The unsafe steps of the smallest programs: loading what this program compiled itself a moment ago, and a product of matrices.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Engine, Result};

/// The component in a file that [`Component::serialize`] made.
#[expect(unsafe_code, reason = "wasmtime cannot verify machine code, so loading it is unsafe")]
pub fn deserialize(file: &Path) -> Result<Component> {
    // SAFETY: the file was written by the process that started this one, into a folder of its own, and it waits for our end.
    unsafe { Component::deserialize_file(&Engine::default(), file) }
}

/// Two square matrices and their product.
pub struct Product {
    size: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Product {
    /// Matrices of so many rows and columns.
    pub fn new(size: usize) -> Self {
        let values: Vec<f32> = (0..size * size).map(|i| (i % 977) as f32 / 977.0).collect();
        Self { size, a: values.clone(), b: values, c: vec![0.0; size * size] }
    }

    /// Multiplies once, on this thread.
    #[expect(unsafe_code, reason = "the crate takes addresses")]
    pub fn multiply(&mut self) {
        let n = self.size;
        let stride = n as isize;
        let (a, b, c) = (self.a.as_ptr(), self.b.as_ptr(), self.c.as_mut_ptr());
        // SAFETY: each of the three has n × n elements, those of a column side by side, and `c` is borrowed by nobody else.
        unsafe { matrixmultiply::sgemm(n, n, n, 1.0, a, 1, stride, b, 1, stride, 0.0, c, 1, stride) }
    }
}
