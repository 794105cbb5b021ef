//! Kernels of our own, made from `kernels.cu`: random fills, and products of which nothing is left but `beta · c`.

use super::driver_unsafe::{Function, Module};
use super::gpu::Gpu;
use super::module::OWN;
use crate::device::gemm::{Float, ValidatedGemm};
use crate::device::{DeviceError, Distribution, RandomFill, Result};

/// Threads of a block, and the most blocks: each thread takes items in turn.
const THREADS: u32 = 256;
const MOST_BLOCKS: u64 = 4096;

/// The module, loaded when it is first needed.
#[derive(Default)]
pub(super) struct Own(Option<Module>);

impl Own {
    /// Writes random numbers to an address.
    pub(super) fn fill_random(&mut self, gpu: &mut Gpu, to: u64, fill: &RandomFill) -> Result<()> {
        if fill.count == 0 {
            return Ok(());
        }
        let name = match fill.distribution {
            Distribution::Uniform => c"fill_uniform",
            Distribution::Normal => c"fill_normal",
        };
        let blocks_of_four = fill.count / 4 + 2;
        self.launch(gpu, name, blocks_of_four, [to, fill.seed, fill.position, fill.count])
    }

    /// Scales the result of a product whose factors do not matter, at this address.
    pub(super) fn scale(&mut self, gpu: &mut Gpu, c: u64, gemm: &ValidatedGemm) -> Result<()> {
        let name = match gemm.element {
            Float::Float16 => c"scale_float16",
            Float::Bfloat16 => c"scale_bfloat16",
            Float::Float32 => c"scale_float32",
            Float::Float64 => c"scale_float64",
        };
        let [rows, columns, batch] = [gemm.m, gemm.n, gemm.batch].map(|count| count as u64);
        let [leading, stride] = [gemm.c.leading, gemm.c.stride].map(|count| count as u64);
        let items = rows.saturating_mul(columns).saturating_mul(batch);
        self.launch(gpu, name, items, [c, rows, columns, leading, stride, batch, gemm.beta.to_bits()])
    }

    /// All parameters have eight bytes.
    fn launch<const N: usize>(
        &mut self,
        gpu: &mut Gpu,
        name: &std::ffi::CStr,
        items: u64,
        parameters: [u64; N],
    ) -> Result<()> {
        let function = self.function(gpu, name)?;
        let blocks = items.div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32;
        let block: Vec<u8> = parameters.iter().flat_map(|parameter| parameter.to_le_bytes()).collect();
        let ordered = gpu.driver.launch(function, [[blocks, 1, 1], [THREADS, 1, 1]], 0, &block, gpu.stream);
        gpu.launched(&name.to_string_lossy());
        gpu.order(ordered)
    }

    fn function(&mut self, gpu: &mut Gpu, name: &std::ffi::CStr) -> Result<Function> {
        let module = match self.0 {
            Some(module) => module,
            None => *self.0.insert(load(gpu)?),
        };
        let found = gpu.driver.function(module, name);
        let function = gpu.done(found)?;
        function.ok_or_else(|| DeviceError::Lost(format!("the driver does not find the host's own kernel {name:?}")))
    }
}

fn load(gpu: &mut Gpu) -> Result<Module> {
    gpu.driver.load_module(OWN).map_err(|(failed, log)| {
        if failed.is_out_of_memory() {
            return DeviceError::OutOfMemory(format!("the host's own kernels have no place on the GPU: {failed}"));
        }
        match gpu.lost(failed) {
            DeviceError::Lost(text) => DeviceError::Lost(format!("{text}, for the host's own kernels: {log}")),
            other => other,
        }
    })
}
