//! The subject: a device, and a kernel on it.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context as _, Result};
use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Argument, BufferId, Context, Launch, ModuleId};

use super::measured::{Form, Measured, N};
use crate::measure::seconds;
use crate::places;

/// A device of so many cores with four buffers of numbers between 0 and 1, those of `native.c`.
pub fn device(cores: usize, form: Form, cache: Option<&Path>) -> Result<(Context, [BufferId; 4])> {
    let cores = NonZeroUsize::new(cores).context("no cores")?;
    let cache = cache.map(Path::to_owned);
    let vectors = form == Form::Lanes;
    let settings = Settings { memory_bytes: 1 << 30, cores, cache, canonical_nans: false, vectors };
    let mut context = Context::new(Box::new(CpuDevice::open(&settings)?));
    let mut buffers = Vec::new();
    let values: Vec<u8> = (0..N).flat_map(|i| ((i % 977) as f32 / 977.0).to_le_bytes()).collect();
    for _ in 0..4 {
        let buffer = context.allocate(4 * u64::from(N))?;
        context.write(buffer, 0, &values)?;
        buffers.push(buffer);
    }
    let buffers = buffers.try_into().ok().context("four buffers")?;
    Ok((context, buffers))
}

/// A kernel on a device of its own.
pub struct Subject<'a> {
    kernel: &'a Measured,
    context: Context,
    buffers: [BufferId; 4],
    module: ModuleId,
    arguments: Vec<Argument<'static>>,
}

impl<'a> Subject<'a> {
    pub fn new(kernel: &'a Measured, cores: usize, form: Form) -> Result<Self> {
        let (mut context, buffers) = device(cores, form, None)?;
        let text = std::fs::read_to_string(places::repository().join(kernel.file))?;
        let module = context.load(&text)?;
        Ok(Self { kernel, context, buffers, module, arguments: (kernel.arguments)(buffers) })
    }

    /// The seconds that so many launches take, waited for.
    pub fn run(&mut self, times: u32) -> Result<f64> {
        let Measured { entry, grid, block, shared_bytes, .. } = *self.kernel;
        seconds(|| {
            for _ in 0..times {
                let launch = Launch { entry, grid, block, shared_bytes, arguments: &self.arguments };
                self.context.launch(self.module, &launch)?;
            }
            Ok(self.context.finish_step()?)
        })
    }

    /// What the buffers hold, one after the other.
    pub fn numbers(&mut self) -> Result<Vec<u8>> {
        let mut all = vec![0; 16 * N as usize];
        for (buffer, bytes) in self.buffers.iter().zip(all.chunks_exact_mut(4 * N as usize)) {
            self.context.read(*buffer, 0, bytes)?;
        }
        Ok(all)
    }
}
