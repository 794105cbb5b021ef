//! Products of matrices, by cuBLAS: always the same sums in the same order on one model of GPU and one version of the library.
//!
//! Its workspace is fixed and given from here, since what it finds for itself decides which algorithm it takes. Floats of 32 and 64 bits are
//! multiplied as they are (no TF32); of 16 bits, in 32.

use cudarc::cublas::sys::{cublasComputeType_t as Sums, cudaDataType as Numbers};

use super::driver_unsafe::{Blas, BlasHandle, Operand, Product, Scale};
use super::error::Failed;
use super::gpu::Gpu;
use super::memory::Memory;
use crate::device::gemm::{Float, ValidatedGemm, ValidatedMatrix};
use crate::device::{DeviceError, Result};

/// What NVIDIA recommends for its newest GPUs; older ones need less.
const WORKSPACE: u64 = 32 << 20;

/// cuBLAS, opened when it is first needed.
#[derive(Default)]
pub(super) struct Multiplier(Option<Opened>);

#[derive(Clone, Copy)]
struct Opened {
    blas: &'static Blas,
    handle: BlasHandle,
}

impl Multiplier {
    /// Orders a product whose factors matter.
    pub(super) fn multiply(&mut self, gpu: &mut Gpu, memory: &mut Memory, gemm: &ValidatedGemm) -> Result<()> {
        let Opened { blas, handle } = match self.0 {
            Some(opened) => opened,
            None => *self.0.insert(open(gpu, memory)?),
        };
        let ordered = blas.multiply(handle, &product(memory, gemm)?);
        gpu.launched("gemm");
        match ordered {
            Err(failed) if failed.is_out_of_memory() => Err(no_memory(failed)),
            ordered => gpu.order(ordered),
        }
    }

    /// Closes it. Nothing may be under way.
    pub(super) fn close(&mut self) {
        if let Some(Opened { blas, handle }) = self.0.take() {
            let _ = blas.destroy(handle);
        }
    }
}

fn open(gpu: &mut Gpu, memory: &mut Memory) -> Result<Opened> {
    let blas = Blas::get().map_err(|absence| DeviceError::Lost(format!("gemm: {absence}; {}", absence.hint())))?;
    let workspace = memory.take(gpu, WORKSPACE)?;
    match blas.handle(gpu.stream, (workspace, WORKSPACE)) {
        Ok(handle) => Ok(Opened { blas, handle }),
        Err(failed) => {
            memory.bury(workspace, WORKSPACE);
            Err(if failed.is_out_of_memory() { no_memory(failed) } else { gpu.lost(failed) })
        }
    }
}

fn no_memory(failed: Failed) -> DeviceError {
    DeviceError::OutOfMemory(format!("gemm: the GPU has no memory left for cuBLAS: {failed}"))
}

fn product(memory: &Memory, gemm: &ValidatedGemm) -> Result<Product> {
    let (numbers, sums) = match gemm.element {
        Float::Float16 => (Numbers::CUDA_R_16F, Sums::CUBLAS_COMPUTE_32F),
        Float::Bfloat16 => (Numbers::CUDA_R_16BF, Sums::CUBLAS_COMPUTE_32F),
        Float::Float32 => (Numbers::CUDA_R_32F, Sums::CUBLAS_COMPUTE_32F_PEDANTIC),
        Float::Float64 => (Numbers::CUDA_R_64F, Sums::CUBLAS_COMPUTE_64F_PEDANTIC),
    };
    let scale = |number: f64| match gemm.element {
        Float::Float64 => Scale::Double(number),
        Float::Float16 | Float::Bfloat16 | Float::Float32 => Scale::Single(number as f32),
    };
    let operand = |matrix: &ValidatedMatrix| {
        Ok(Operand {
            address: memory.address(matrix.span),
            leading: signed(matrix.leading)?,
            stride: signed(matrix.stride)?,
            transpose: matrix.transpose,
        })
    };
    Ok(Product {
        numbers,
        sums,
        shape: [signed(gemm.m)?, signed(gemm.n)?, signed(gemm.k)?],
        alpha: scale(gemm.alpha),
        a: operand(&gemm.a)?,
        b: operand(&gemm.b)?,
        beta: scale(gemm.beta),
        c: operand(&gemm.c)?,
        batch: signed(gemm.batch)?,
    })
}

fn signed(number: usize) -> Result<i64> {
    i64::try_from(number).map_err(|_| DeviceError::InvalidArgument(format!("gemm: {number} is more than cuBLAS takes")))
}
