//! A GPU, through NVIDIA's driver and cuBLAS, both looked for at run time: the same program starts where there is neither.
//!
//! | file | what it holds |
//! |---|---|
//! | `driver_unsafe` | every call into the libraries, and why it is sound |
//! | `error` | what they answer, in words; why there is no GPU |
//! | `gpu` | a context and its one order of operations: waiting, and what a failure means |
//! | `memory` | buffers, and giving them back once nothing uses them |
//! | `transfer` | to and from the host, through pinned memory in two halves |
//! | `download` | the way of a checkpoint's buffers to the host, beside the guest |
//! | `module` | modules and their variables |
//! | `own` | kernels of our own: random fills, `beta · c` |
//! | `gemm` | products, by cuBLAS |
//!
//! Each device has a context of its own, so closing one gives back all that it had, and a fault in one is not another's. Operations go to one stream, and nobody but
//! this device waits for it. Nothing here waits without end: see `gpu`.
//!
//! # Promises
//!
//! - Results are the same, to the bit, on one model of GPU with one version of driver and cuBLAS. Another model, or the CPU, gives other last bits: in
//!   products, in kernels' approximate functions, and in nothing else that this device does by itself. Random fills are the same everywhere.
//! - Kernels are *not* in a sandbox: they reach whatever this process can reach on the GPU. On the CPU device they are.
//! - A fault is for good, as the driver has it: the context is of no use after it. What is lost is told with the kernels that were under way.
//! - A kernel that runs without end cannot be stopped. The call that waits for it can, and the process ends without waiting for it.
//!
//! # What was not tried
//!
//! No GPU was at hand when this was written. All of it runs against a double of the driver (`host/tests/cuda-double`), with every call failing in turn;
//! against a real driver, `cargo xtask test-gpu` runs the same suite.

mod download;
mod driver_unsafe;
mod error;
mod gemm;
mod gpu;
mod memory;
mod module;
mod own;
mod transfer;

use std::collections::HashMap;
use std::sync::Arc;

use self::download::{Downloads, Room};
use self::driver_unsafe::{Blas, Driver};
use self::error::{Failed, OUT_OF_RESOURCES};
use self::gemm::Multiplier;
use self::gpu::Gpu;
use self::memory::Memory;
use self::module::{Loaded, Variable, version_in_words};
use self::own::Own;
use self::transfer::Transfers;
use super::{
    Backend, BufferId, Content, Device, DeviceError, Facts, ModuleId, RandomFill, Result, Source, Span, Stopper,
    ValidatedGemm, ValidatedLaunch, VariableSpan,
};

pub use error::Absence;

/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: u32 = 1;

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Counted as the driver does, which hides what `CUDA_VISIBLE_DEVICES` leaves out.
    pub number: u32,
    /// Its model.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: [u32; 2],
    /// Its whole memory.
    pub memory_bytes: u64,
    /// The newest CUDA that its driver serves.
    pub cuda: String,
}

impl Found {
    /// Looks for a GPU, without taking anything of it.
    pub fn look(number: u32) -> Result<Self, Absence> {
        let driver = Driver::get()?;
        let ill = |failed: Failed| Absence::Ill(failed.to_string());
        let count = driver.count().map_err(Absence::of_init)?;
        if count == 0 {
            return Err(Absence::NoGpu);
        }
        if number >= count {
            return Err(Absence::NoSuchGpu { asked: number, count });
        }
        let found = || {
            let device = driver.device(number)?;
            let (name, capability) = (driver.name(device)?, driver.capability(device)?);
            let (memory_bytes, version) = (driver.memory(device)?, driver.version()?);
            Ok(Self { number, name, capability, memory_bytes, cuda: version_in_words(version) })
        };
        found().map_err(ill)
    }

    /// Bytes that buffers may have together where nobody says: the GPU but for what driver, cuBLAS and kernels need.
    #[must_use]
    pub fn usual_budget(&self) -> u64 {
        const OTHERS: u64 = 1 << 30;
        (self.memory_bytes - self.memory_bytes / 16).saturating_sub(OTHERS).max(self.memory_bytes / 2)
    }
}

/// Why cuBLAS is not to be had, if it is not.
#[must_use]
pub fn lacks_blas() -> Option<Absence> {
    Blas::get().err()
}

/// How to set the device up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Which GPU.
    pub number: u32,
    /// The most bytes that buffers may have together.
    pub memory_bytes: u64,
}

/// The device.
pub struct CudaDevice {
    facts: Facts,
    capability: [u32; 2],
    memory: Memory,
    transfers: Transfers,
    modules: HashMap<ModuleId, Loaded>,
    own: Own,
    multiplier: Multiplier,
    downloads: Option<Arc<Downloads>>,
    /// Last, so that it is dropped last: all else belongs to its context.
    gpu: Gpu,
}

impl CudaDevice {
    /// Sets the device up.
    pub fn open(settings: &Settings) -> Result<Self, Absence> {
        let Found { number, name, capability, .. } = Found::look(settings.number)?;
        let driver = Driver::get()?;
        let opened = driver.device(number).and_then(|device| Gpu::open(driver, device));
        let gpu = opened.map_err(|failed| Absence::Ill(failed.to_string()))?;
        let memory_bytes = settings.memory_bytes;
        Ok(Self {
            facts: Facts { backend: Backend::Cuda, name, memory_bytes },
            capability,
            memory: Memory::new(memory_bytes),
            transfers: Transfers::default(),
            modules: HashMap::new(),
            own: Own::default(),
            multiplier: Multiplier::default(),
            downloads: None,
            gpu,
        })
    }

    fn module(&mut self, module: ModuleId) -> Result<(&mut Loaded, &mut Gpu)> {
        let unknown = || DeviceError::InvalidArgument("the module was dropped".to_owned());
        Ok((self.modules.get_mut(&module).ok_or_else(unknown)?, &mut self.gpu))
    }

    /// Gives up the room of copies that nobody needs; whether there was any.
    fn bury_copies(&mut self) -> bool {
        let spare = self.downloads.as_ref().map(|downloads| downloads.spare()).unwrap_or_default();
        spare.iter().for_each(|room| self.memory.bury(room.address, room.bytes));
        !spare.is_empty()
    }

    /// What a download needs, and room for a copy on the GPU; none where there is no memory for it.
    fn prepare_download(&mut self, bytes: u64) -> Result<Option<(Arc<Downloads>, Room)>> {
        let downloads = match &self.downloads {
            Some(downloads) => downloads,
            None => match Downloads::new(&self.gpu) {
                Err(failed) if failed.is_out_of_memory() => return Ok(None),
                made => self.downloads.insert(Arc::new(self.gpu.done(made)?)),
            },
        };
        if let Some(room) = downloads.room(bytes) {
            return Ok(Some((Arc::clone(downloads), room)));
        }
        let address = match self.gpu.driver.allocate(bytes) {
            Err(failed) if failed.is_out_of_memory() => return Ok(None),
            address => self.gpu.done(address)?,
        };
        let made = self.gpu.driver.event();
        Ok(Some((Arc::clone(downloads), Room { address, bytes, made: self.gpu.done(made)? })))
    }

    /// Between addresses whose ranges are apart.
    fn order_copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<()> {
        let copied = self.gpu.driver.copy(to, from, bytes, self.gpu.stream);
        self.gpu.order(copied)
    }

    /// The block of parameters, with addresses in it.
    fn parameters(&self, launch: &ValidatedLaunch) -> Vec<u8> {
        let mut block = launch.parameters().to_vec();
        for argument in launch.buffers() {
            let at = argument.at as usize;
            let address = self.memory.start(argument.buffer) + argument.offset;
            block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        block
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Where something is still under way, its memory has to stay.
        if self.gpu.comes_to_rest() {
            self.transfers.close(&self.gpu);
            self.multiplier.close();
        }
    }
}

impl Device for CudaDevice {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stopper(&self) -> Stopper {
        self.gpu.stopper.clone()
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()> {
        self.gpu.enter()?;
        match self.memory.allocate(&mut self.gpu, buffer, bytes) {
            // What copies for checkpoints took is the first to make way.
            Err(DeviceError::OutOfMemory(_)) if self.bury_copies() => {
                self.memory.allocate(&mut self.gpu, buffer, bytes)
            }
            outcome => outcome,
        }
    }

    fn free(&mut self, buffer: BufferId) {
        self.memory.free(buffer);
    }

    fn write(&mut self, to: Span, bytes: &[u8]) -> Result<()> {
        self.gpu.enter()?;
        self.transfers.upload(&mut self.gpu, self.memory.address(to), bytes)
    }

    fn read(&mut self, from: Span, bytes: &mut [u8]) -> Result<()> {
        self.gpu.enter()?;
        if bytes.is_empty() {
            return self.gpu.settle();
        }
        self.transfers.download(&mut self.gpu, self.memory.address(from), bytes)
    }

    fn begin_read(&mut self, from: Span, spare: Vec<Vec<u8>>) -> Result<Content> {
        self.gpu.enter()?;
        let (mut address, bytes) = (self.memory.address(from), from.bytes());
        let mut memory = download::memory_for(bytes, spare)?;
        if bytes == 0 {
            self.gpu.settle()?;
        } else if let Some((downloads, room)) = self.prepare_download(bytes)? {
            self.order_copy(room.address, address, bytes)?;
            self.gpu.mark(room.made)?;
            return Ok(Content::coming(bytes, download::parts(downloads, room, memory)));
        }
        for part in &mut memory {
            self.transfers.download(&mut self.gpu, address, part)?;
            address += part.len() as u64;
        }
        Ok(Content::in_parts(memory))
    }

    fn fill(&mut self, span: Span, pattern: u32) -> Result<()> {
        self.gpu.enter()?;
        if span.bytes() == 0 {
            return Ok(());
        }
        let filled = self.gpu.driver.fill(self.memory.address(span), pattern, span.bytes() / 4, self.gpu.stream);
        self.gpu.order(filled)
    }

    fn copy(&mut self, to: Span, from: Span) -> Result<()> {
        self.gpu.enter()?;
        let (target, source, bytes) = (self.memory.address(to), self.memory.address(from), from.bytes());
        if bytes == 0 || target == source {
            return Ok(());
        }
        if target.abs_diff(source) >= bytes {
            return self.order_copy(target, source, bytes);
        }
        // The driver's copy is not defined between ranges that overlap.
        let between = self.memory.take(&mut self.gpu, bytes)?;
        self.order_copy(between, source, bytes)?;
        self.order_copy(target, between, bytes)?;
        self.memory.bury(between, bytes);
        Ok(())
    }

    fn fill_random(&mut self, to: Span, fill: &RandomFill) -> Result<()> {
        self.gpu.enter()?;
        self.own.fill_random(&mut self.gpu, self.memory.address(to), fill)
    }

    fn load(&mut self, module: ModuleId, source: Source<'_>) -> Result<()> {
        self.gpu.enter()?;
        let loaded = Loaded::load(&mut self.gpu, self.capability, &source)?;
        self.modules.insert(module, loaded);
        Ok(())
    }

    fn unload(&mut self, module: ModuleId) {
        if let Some(loaded) = self.modules.remove(&module) {
            self.memory.bury_module(loaded.handle);
        }
    }

    fn write_variable(&mut self, to: VariableSpan, bytes: &[u8]) -> Result<()> {
        self.gpu.enter()?;
        let offset = to.offset();
        let (module, gpu) = self.module(to.module())?;
        match module.variable(gpu, to.variable())? {
            Variable::Device(address) => self.transfers.upload(&mut self.gpu, address + offset, bytes),
            Variable::Host(content) => {
                let offset = offset as usize;
                content[offset..offset + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn read_variable(&mut self, from: VariableSpan, bytes: &mut [u8]) -> Result<()> {
        self.gpu.enter()?;
        let offset = from.offset();
        let (module, gpu) = self.module(from.module())?;
        match module.variable(gpu, from.variable())? {
            Variable::Device(address) => self.transfers.download(&mut self.gpu, address + offset, bytes),
            Variable::Host(content) => {
                let offset = offset as usize;
                bytes.copy_from_slice(&content[offset..offset + bytes.len()]);
                self.gpu.settle()
            }
        }
    }

    fn launch(&mut self, launch: &ValidatedLaunch) -> Result<()> {
        self.gpu.enter()?;
        let parameters = self.parameters(launch);
        let (entry, shape) = (launch.entry(), [launch.grid(), launch.block()]);
        let (module, gpu) = self.module(launch.module())?;
        let function = module.function(gpu, entry, parameters.len())?;
        let parsed = module.is_parsed();
        gpu.launched(entry);
        match gpu.driver.launch(function, shape, launch.shared_bytes(), &parameters, gpu.stream) {
            Err(failed) if failed.code == OUT_OF_RESOURCES || (failed.code == INVALID_VALUE && !parsed) => {
                let threads: u32 = launch.block().iter().product();
                let text = format!("launch of `{entry}` in blocks of {threads} threads: {failed}; take smaller blocks");
                Err(DeviceError::InvalidArgument(text))
            }
            ordered => gpu.order(ordered),
        }
    }

    fn gemm(&mut self, gemm: &ValidatedGemm) -> Result<()> {
        self.gpu.enter()?;
        if gemm.needs_factors() {
            return self.multiplier.multiply(&mut self.gpu, &mut self.memory, gemm);
        }
        self.own.scale(&mut self.gpu, self.memory.address(gemm.c.span), gemm)
    }

    fn synchronize(&mut self) -> Result<()> {
        self.gpu.enter()?;
        self.memory.clear(&mut self.gpu)
    }
}
