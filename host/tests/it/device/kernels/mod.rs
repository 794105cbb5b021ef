//! Real kernels, as NVRTC compiles them, against references in f64.
//!
//! Tolerances are what CUDA's documentation allows the functions that a kernel uses, with room for another order of additions: they hold on every device.

mod plain;
mod special;
mod training;

pub use plain::{axpy4, ballots, dot_products, halves, heat, histogram, matmul, philox, reductions, saxpy};
pub use special::{constants, fractal, locals_and_calls, locks, structures, switches};
use steadfast::device::ModuleId;
pub use training::{adamw, functions, layernorm, softmax};

use super::lab::Lab;

/// PTX that a test of the translation has as well.
pub fn source(name: &str) -> &'static str {
    match name {
        "adam" => include_str!("../../../../ptx/tests/kernels/adam.ptx"),
        "half" => include_str!("../../../../ptx/tests/kernels/half.ptx"),
        "heat" => include_str!("../../../../ptx/tests/kernels/heat.ptx"),
        "matmul" => include_str!("../../../../ptx/tests/kernels/matmul.ptx"),
        "misc" => include_str!("../../../../ptx/tests/kernels/misc.ptx"),
        "reduce" => include_str!("../../../../ptx/tests/kernels/reduce.ptx"),
        "saxpy" => include_str!("../../../../ptx/tests/kernels/saxpy.ptx"),
        "softmax" => include_str!("../../../../ptx/tests/kernels/softmax.ptx"),
        other => panic!("no kernels are called {other}"),
    }
}

fn load(lab: &mut Lab, name: &str) -> ModuleId {
    lab.context.load(source(name)).unwrap()
}

/// The kernels of `misc` but its last, which calls a function that nobody defines: no device accepts that.
fn load_misc(lab: &mut Lab) -> ModuleId {
    let (text, _) = source("misc").split_once(".visible .entry dp4(").unwrap();
    lab.context.load(text).unwrap()
}

/// Wider numbers, for references.
fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|number| f64::from(*number)).collect()
}
