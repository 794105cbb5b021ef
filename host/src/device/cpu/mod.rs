//! The device on any machine: the PTX of a kernel, translated to WebAssembly and compiled by wasmtime, on all cores.
//!
//! | file | what it holds |
//! |---|---|
//! | `memory_unsafe` | the reservation of addresses that is the sandbox, and what maps it into kernels |
//! | `arena` | where in it buffers lie |
//! | `margin` | the end of a buffer to the byte |
//! | `engine` | wasmtime's settings |
//! | `kernel` | PTX to machine code, and the cache of it |
//! | `run`, `crew` | blocks to instances, on all cores |
//! | `fault` | a trap in words |
//! | `gemm`, `product_unsafe` | products of matrices |
//!
//! Everything is done when the call returns. Results depend neither on the number of cores nor on addresses.

mod arena;
mod crew;
mod engine;
mod fault;
mod gemm;
mod kernel;
mod margin;
mod memory_unsafe;
mod product_unsafe;
mod run;

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_ptx::kernel::{Launch, Options};
use steadfast_ptx::layout::Layout;
use steadfast_ptx::module::{Module, Space};

use self::arena::Arena;
use self::crew::Crew;
use self::fault::Given;
use self::kernel::{Compiled, Compiler, Entry};
use self::margin::Placed;
use self::memory_unsafe::Memory;
use self::run::{Job, Scratch, Seats};
use super::error::size;
use super::{
    Backend, BufferId, Code, Device, DeviceError, Facts, Known, ModuleId, RandomFill, Result, Source, Span, Stopper,
    ValidatedGemm, ValidatedLaunch, VariableSpan,
};

/// Addresses of a device, if its budget needs no more.
pub(crate) const ADDRESSES: u64 = 64 << 30;
/// The fewest that are worth trying for.
const FEWEST_ADDRESSES: u64 = 1 << 30;
/// What random numbers are written in: a piece of work for one core.
const PIECE: usize = 1 << 20;

/// How to set the device up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes that buffers may have together.
    pub memory_bytes: u64,
    /// Threads to run kernels on.
    pub cores: NonZeroUsize,
    /// The folder of compiled code; without one, every kernel is compiled in each attempt.
    pub cache: Option<PathBuf>,
    /// Every NaN that arithmetic makes has the bits that PTX says, for some of its speed; else the processor's.
    pub canonical_nans: bool,
    /// Kernels that can run as lanes of vectors do; else all run thread by thread, to the same bits. For comparisons: it only costs.
    pub vectors: bool,
}

impl Settings {
    /// All cores that this process may use.
    pub fn all_cores() -> NonZeroUsize {
        std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not even addresses can be had.
    #[error("cannot reserve addresses for the device's memory: {0}")]
    Memory(#[source] io::Error),
    /// No threads can be had.
    #[error("cannot start the device's threads: {0}")]
    Threads(#[source] io::Error),
    /// The WebAssembly engine does not come up.
    #[error("the WebAssembly engine failed: {0}")]
    Engine(String),
}

/// The device.
pub struct CpuDevice {
    facts: Facts,
    stopper: Stopper,
    arena: Arena,
    buffers: HashMap<BufferId, Placed>,
    /// Whether a kernel has run since the margins were looked at.
    launched: bool,
    modules: HashMap<ModuleId, LoadedModule>,
    compiler: Compiler,
    crew: Crew,
    seats: Seats,
    scratch: Vec<SeatScratch>,
}

/// Bytes of device memory.
#[derive(Debug, Clone, Copy, Default)]
struct Section {
    start: u64,
    bytes: u64,
}

impl Section {
    fn range(self, offset: u64, bytes: u64) -> Range<u64> {
        self.start + offset..self.start + offset + bytes
    }
}

struct LoadedModule {
    entries: HashMap<String, Entry>,
    /// Of each variable, by its index in the module.
    variables: Vec<Option<u64>>,
    globals: Section,
    constants: Section,
}

/// Shared and local memory of one seat.
#[derive(Debug, Clone, Copy, Default)]
struct SeatScratch {
    shared: Option<Section>,
    local: Option<Section>,
}

impl CpuDevice {
    /// Sets the device up. Only addresses are taken, no memory yet.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let (memory, bytes) = reserve(settings.memory_bytes).map_err(OpenError::Memory)?;
        let failed = |error: wasmtime::Error| OpenError::Engine(format!("{error:#}"));
        let engine = engine::engine(memory.creator(), settings.canonical_nans).map_err(failed)?;
        let window = (bytes >= engine::RESERVATION).then_some(engine::NARROW_BYTES - engine::MARGIN);
        let device = |bytes, wide| engine::device_module(&engine, bytes, wide).map_err(failed);
        let near = window.map(|_| device(engine::NARROW_BYTES, false)).transpose()?;
        let devices = [near, Some(device(bytes, true)?)];
        let arena = Arena::new(memory, bytes, window, settings.memory_bytes).map_err(OpenError::Memory)?;
        let crew = Crew::new(settings.cores.get(), engine::THREAD_STACK).map_err(OpenError::Threads)?;
        let ticked = engine.clone();
        let stopper = Stopper::new(move || ticked.increment_epoch());
        let Settings { canonical_nans, vectors, .. } = *settings;
        let options = Options { memory_bytes: bytes, wide: true, canonical_nans, vectors };
        let cores = settings.cores.get();
        let name = format!("the CPU ({cores} {})", if cores == 1 { "core" } else { "cores" });
        Ok(Self {
            facts: Facts { backend: Backend::Cpu, name, memory_bytes: settings.memory_bytes },
            stopper: stopper.clone(),
            arena,
            buffers: HashMap::new(),
            launched: false,
            modules: HashMap::new(),
            compiler: Compiler::new(engine.clone(), stopper.clone(), options, settings.cache.as_deref()),
            seats: Seats::new(engine, devices, stopper, crew.seats()),
            scratch: vec![SeatScratch::default(); crew.seats()],
            crew,
        })
    }

    fn range(&self, span: Span) -> Range<u64> {
        self.section(span.buffer).range(span.offset, span.bytes)
    }

    /// Where a live buffer is.
    fn section(&self, buffer: BufferId) -> Section {
        self.buffers
            .get(&buffer)
            .map_or_else(Section::default, |placed| Section { start: placed.start, bytes: placed.bytes })
    }

    fn variable(&self, span: VariableSpan, bytes: usize) -> Range<u64> {
        let module = self.modules.get(&span.module);
        let start = module.and_then(|module| Some(module.globals.start + module.variables[span.variable]?));
        let start = start.unwrap_or_default() + span.offset;
        start..start + bytes as u64
    }

    /// Before a buffer is refused, instances go that are only kept for later launches: what they hold is of the same budget.
    fn make_room(&self, bytes: u64) {
        if self.arena.free_bytes() < self.seats.frame_bytes().saturating_add(bytes) {
            self.seats.clear();
        }
    }

    fn section_of(&mut self, bytes: u64) -> Result<Section> {
        self.make_room(self.arena.whole(bytes));
        Ok(Section { start: self.arena.allocate(bytes)?, bytes })
    }

    /// Memory for what a module declares, with its initial content.
    fn place_variables(&mut self, module: &Module, entries: HashMap<String, Entry>) -> Result<LoadedModule> {
        let layout = Layout::of(module);
        let globals = self.section_of(layout.global_bytes)?;
        let constants = self.section_of(layout.const_bytes).inspect_err(|_| self.arena.free(globals.start))?;
        for (space, section) in [(Space::Global, globals), (Space::Const, constants)] {
            let image = layout.image(module, space, globals.start, constants.start);
            self.arena.memory.bytes_mut(section.range(0, section.bytes)).copy_from_slice(&image);
        }
        if constants.bytes > 0
            && let Err(error) = self.arena.memory.seal(constants.start)
        {
            [globals, constants].iter().for_each(|section| self.arena.free(section.start));
            return Err(DeviceError::OutOfMemory(format!("the module's constants cannot be protected: {error}")));
        }
        Ok(LoadedModule { entries, variables: layout.offsets, globals, constants })
    }

    /// Room for what the threads of a launch keep while they wait.
    fn room_for_frames(&self, compiled: &Compiled, threads: u32, seats: usize) -> Result<()> {
        let bytes = run::frame_bytes(&compiled.kernel, threads).saturating_mul(seats as u64);
        let free = self.arena.free_bytes();
        if bytes > free {
            let (name, bytes, free) = (&compiled.kernel.name, size(bytes), size(free));
            let text = format!(
                "the threads of kernel `{name}` need {bytes} for what they keep while they wait, and of the device's memory {free} are free; smaller blocks, or fewer --device-threads, need less"
            );
            return Err(DeviceError::OutOfMemory(text));
        }
        if bytes > 0 {
            self.make_room(bytes);
        }
        Ok(())
    }

    /// A copy in the host's memory, if there is room.
    fn copied(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.arena.memory.bytes(range);
        let mut copy = Vec::new();
        let refused =
            |_| DeviceError::OutOfMemory(format!("there is no room for {} of a factor", size(bytes.len() as u64)));
        copy.try_reserve_exact(bytes.len()).map_err(refused)?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    /// The kernel of a launch, to reach so far as is needed now, and where its module's variables are: global, then constant.
    fn compiled(&mut self, launch: &ValidatedLaunch) -> Result<(Arc<Compiled>, u64, u64)> {
        let unknown = || DeviceError::InvalidArgument(format!("the module has no entry `{}`", launch.entry()));
        let module = self.modules.get_mut(&launch.module()).ok_or_else(unknown)?;
        let entry = module.entries.get_mut(launch.entry()).ok_or_else(unknown)?;
        let compiled = self.compiler.compiled(entry, self.arena.reach())?;
        Ok((compiled, module.globals.start, module.constants.start))
    }

    /// Shared and local memory for the seats that a launch may take.
    fn scratch_for(&mut self, compiled: &Compiled, launch: &ValidatedLaunch) -> Result<Vec<Scratch>> {
        let kernel = &compiled.kernel;
        let threads: u32 = launch.block().iter().product();
        let shared = kernel.shared_bytes(launch.shared_bytes());
        let local = u64::from(kernel.local_bytes) * u64::from(threads);
        let blocks = launch.grid().iter().fold(1_u64, |product, count| product * u64::from(*count));
        let seats =
            if kernel.sequential { 1 } else { usize::try_from(blocks).unwrap_or(usize::MAX).min(self.crew.seats()) };
        (0..seats)
            .map(|seat| {
                let mut scratch = self.scratch[seat];
                let shared = self.at_least(&mut scratch.shared, shared)?;
                let local = self.at_least(&mut scratch.local, local)?;
                self.scratch[seat] = scratch;
                Ok(Scratch { shared, local })
            })
            .collect()
    }

    /// A section that is large enough: the one that there is, or a new one in its place.
    fn at_least(&mut self, section: &mut Option<Section>, bytes: u64) -> Result<u64> {
        match section {
            Some(there) if there.bytes >= bytes => Ok(there.start),
            _ => {
                if let Some(small) = section.take() {
                    self.arena.free(small.start);
                }
                Ok(section.insert(self.section_of(bytes)?).start)
            }
        }
    }

    /// The parameter block with addresses in it, and where they point, for messages.
    fn parameters(&self, launch: &ValidatedLaunch) -> (Vec<u8>, Vec<Given>) {
        let mut parameters = launch.parameters().to_vec();
        let given = launch.buffers().iter().map(|argument| {
            let section = self.section(argument.buffer);
            let at = argument.at as usize;
            parameters[at..at + 8].copy_from_slice(&(section.start + argument.offset).to_le_bytes());
            let number = launch.offsets().iter().position(|offset| *offset == argument.at).unwrap_or_default() + 1;
            Given { argument: number, start: section.start, bytes: section.bytes }
        });
        let given = given.collect();
        (parameters, given)
    }
}

/// Addresses: many more than the budget, so that buffers lie far apart; fewer where the system gives no more.
fn reserve(budget: u64) -> io::Result<(Memory, u64)> {
    let mut bytes = budget.saturating_mul(4).max(ADDRESSES).checked_next_power_of_two().unwrap_or(ADDRESSES);
    loop {
        match Memory::reserve(bytes, engine::GUARD) {
            Ok(memory) => return Ok((memory, bytes)),
            Err(error) if bytes <= FEWEST_ADDRESSES => return Err(error),
            Err(_) => bytes /= 2,
        }
    }
}

impl Device for CpuDevice {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()> {
        let pages = self.section_of(bytes)?.start;
        self.buffers.insert(buffer, Placed::new(pages, self.arena.whole(bytes), bytes));
        Ok(())
    }

    fn free(&mut self, buffer: BufferId) {
        if let Some(placed) = self.buffers.remove(&buffer) {
            self.arena.free(placed.pages);
        }
    }

    fn write(&mut self, to: Span, bytes: &[u8]) -> Result<()> {
        let range = self.range(to);
        self.arena.memory.bytes_mut(range).copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, from: Span, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(self.arena.memory.bytes(self.range(from)));
        Ok(())
    }

    fn fill(&mut self, span: Span, pattern: u32) -> Result<()> {
        let range = self.range(span);
        let (words, _) = self.arena.memory.bytes_mut(range).as_chunks_mut::<4>();
        words.fill(pattern.to_le_bytes());
        Ok(())
    }

    fn copy(&mut self, to: Span, from: Span) -> Result<()> {
        self.arena.memory.copy(self.range(to).start, self.range(from));
        Ok(())
    }

    fn fill_random(&mut self, to: Span, fill: &RandomFill) -> Result<()> {
        let range = self.range(to);
        let bytes = self.arena.memory.bytes_mut(range);
        let seats = if bytes.len() <= PIECE { 1 } else { self.crew.seats() };
        let pieces = Mutex::new(bytes.chunks_mut(PIECE).enumerate());
        let stopped = AtomicBool::new(false);
        self.crew.work(seats, |_| {
            let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((index, piece)) = next() {
                if self.stopper.is_stopped() {
                    stopped.store(true, Ordering::Relaxed);
                    return;
                }
                fill.write((index * (PIECE / 4)) as u64, piece);
            }
        });
        if stopped.into_inner() { Err(DeviceError::Stopped) } else { Ok(()) }
    }

    fn known(&self, text: &str) -> Option<Known> {
        self.compiler.known(text)
    }

    fn load(&mut self, id: ModuleId, source: Source<'_>) -> Result<()> {
        let (entries, module) = match source {
            Source::Parsed { text, module } => (self.compiler.entries(text, &module, self.arena.reach())?, module),
            Source::Known { text, known } => (Compiler::known_entries(text, &known), known.outline),
            Source::CudaOnly { .. } => {
                return Err(DeviceError::InvalidModule("the CPU runs nothing but PTX that it can read".into()));
            }
        };
        let loaded = self.place_variables(&module, entries.into_iter().collect())?;
        self.modules.insert(id, loaded);
        Ok(())
    }

    fn unload(&mut self, module: ModuleId) {
        if let Some(module) = self.modules.remove(&module) {
            self.arena.free(module.globals.start);
            self.arena.free(module.constants.start);
            for compiled in module.entries.values().flat_map(Entry::kernels) {
                self.seats.forget(compiled.id);
            }
        }
    }

    fn write_variable(&mut self, to: VariableSpan, bytes: &[u8]) -> Result<()> {
        let range = self.variable(to, bytes.len());
        self.arena.memory.bytes_mut(range).copy_from_slice(bytes);
        Ok(())
    }

    fn read_variable(&mut self, from: VariableSpan, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(self.arena.memory.bytes(self.variable(from, bytes.len())));
        Ok(())
    }

    fn prepare(&mut self, module: ModuleId, entry: &str) -> Result<bool> {
        let reach = self.arena.reach();
        let entry = self.modules.get_mut(&module).and_then(|module| module.entries.get_mut(entry));
        match entry.filter(|entry| !entry.is_compiled(reach)) {
            None => Ok(false),
            Some(entry) => self.compiler.compiled(entry, reach).map(|_| true),
        }
    }

    fn code(&self, module: ModuleId, entry: &str) -> Option<Code> {
        let compiled = self.modules.get(&module)?.entries.get(entry)?.kernels().next()?;
        Some(Code { form: compiled.kernel.form, one_core: compiled.kernel.sequential })
    }

    fn launch(&mut self, launch: &ValidatedLaunch) -> Result<()> {
        let (mut compiled, globals, constants) = self.compiled(launch)?;
        let scratch = self.scratch_for(&compiled, launch)?;
        if compiled.reach != self.arena.reach() {
            // It was that memory that no longer fitted into the window.
            (compiled, ..) = self.compiled(launch)?;
        }
        self.room_for_frames(&compiled, launch.block().iter().product(), scratch.len())?;
        let (parameters, given) = self.parameters(launch);
        self.launched = true;
        let dynamic_shared = launch.shared_bytes();
        let (grid, block) = (launch.grid(), launch.block());
        // Shared and local memory are each instance's own: filled in there.
        let record = Launch { grid, block, dynamic_shared, globals, constants, shared: 0, local: 0 };
        let job =
            Job { compiled: &compiled, launch: record, parameters: &parameters, scratch: &scratch, given: &given };
        self.seats.run(&self.crew, &job, self.arena.memory.lend())
    }

    fn gemm(&mut self, gemm: &ValidatedGemm) -> Result<()> {
        let c = self.range(gemm.c.span);
        let factors = [gemm.a.span, gemm.b.span].map(|span| if gemm.needs_factors() { self.range(span) } else { 0..0 });
        // Blocks of columns of one larger matrix lie between each other: no slice of one is apart from the other.
        let between = |factor: &Range<u64>| factor.start < c.end && c.start < factor.end;
        let copy = |factor: &Range<u64>| between(factor).then(|| self.copied(factor.clone())).transpose();
        let copies = [copy(&factors[0])?, copy(&factors[1])?];
        let beside = factors.map(|factor| if between(&factor) { 0..0 } else { factor });
        let (c, beside) = self.arena.memory.bytes_beside(c, beside);
        let [a, b] = [0, 1].map(|index| copies[index].as_deref().unwrap_or(beside[index]));
        gemm::multiply(gemm, gemm::Operands { a, b, c }, &self.crew, &self.stopper)
    }

    fn synchronize(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.launched) {
            return Ok(());
        }
        let trespasses =
            self.buffers.iter().filter_map(|(id, placed)| Some((id, placed.trespass(&self.arena.memory)?)));
        trespasses.min_by_key(|(id, _)| **id).map_or(Ok(()), |(_, what)| Err(DeviceError::Lost(what)))
    }
}
