//! A kernel from its text, run by the oracle and as the translation, over the same memory.
//!
//! ```text
//!  0          unused                       then     shared memory of each instance
//!  GLOBALS    .global variables            then     local memory of each instance
//!  CONSTANTS  .const variables
//!  BUFFERS    what the test puts there
//! ```
//!
//! Only what lies below the end of the buffers is filled and compared: the rest is fresh memory, which costs nothing until it is touched.

use std::ops::Range;
use std::sync::OnceLock;

use steadfast_ptx::kernel::{Form, Kernel as Translation, Launch, Options};
use steadfast_ptx::layout::Layout;
use steadfast_ptx::module::{FunctionId, Module, Space};

use crate::interpreter::Interpreter;
use crate::machine::{Machine, Part};
use crate::oracle::{self, Schedule, Trap};

pub(crate) const GLOBALS: u64 = 0x1_0000;
const CONSTANTS: u64 = 0x1_8000;
pub(crate) const BUFFERS: u64 = 0x2_0000;
/// How many instances there is room for.
const INSTANCES: u64 = 4;

/// Where everything else lies.
struct Map {
    /// Where the buffers must end.
    shared: u64,
    /// From one instance to the next.
    shared_stride: u64,
    local: u64,
    local_stride: u64,
    bytes: u64,
}

/// For large buffers and blocks.
const LARGE: Map =
    Map { shared: SHARED, shared_stride: 0x2_0000, local: 0x40_0000, local_stride: 0x10_0000, bytes: BYTES };
/// For random kernels, each of which has to clear all of it.
const SMALL: Map =
    Map { shared: 0x6_0000, shared_stride: 0x4000, local: 0x7_0000, local_stride: 0x2_0000, bytes: 0x10_0000 };
/// Where the buffers of most kernels must end, and their device memory.
pub(crate) const SHARED: u64 = 0x38_0000;
pub(crate) const BYTES: u64 = 0x80_0000;

/// What a launch is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) parameters: Vec<u8>,
}

impl Run {
    fn blocks(&self) -> u64 {
        self.grid.iter().map(|blocks| u64::from(*blocks)).product()
    }

    fn launch(&self, map: &Map, instance: u64) -> Launch {
        Launch {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
            globals: GLOBALS,
            constants: CONSTANTS,
            shared: map.shared + instance * map.shared_stride,
            local: map.local + instance * map.local_stride,
        }
    }
}

/// The device memory before a launch, as far as the end of the buffers.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) memory: Vec<u8>,
}

impl Start {
    /// With the module's variables in it, and zeros in the buffers, which end at `end`.
    pub(crate) fn of(kernel: &Kernel, end: u64) -> Self {
        assert!(end <= kernel.map.shared, "there is no room for the buffers");
        let mut memory = vec![0; end as usize];
        let layout = Layout::of(&kernel.module);
        for (space, base) in [(Space::Global, GLOBALS), (Space::Const, CONSTANTS)] {
            let image = layout.image(&kernel.module, space, GLOBALS, CONSTANTS);
            memory[base as usize..][..image.len()].copy_from_slice(&image);
        }
        Self { memory }
    }
}

/// A kernel, parsed and translated.
pub(crate) struct Kernel {
    pub(crate) module: Module,
    pub(crate) translation: Translation,
    machine: OnceLock<Machine>,
    /// One thread at a time, where the other runs four.
    scalar: Option<(Translation, OnceLock<Machine>)>,
    map: &'static Map,
}

impl Kernel {
    pub(crate) fn new(text: &str, entry: &str) -> Result<Self, String> {
        Self::with(text, entry, &LARGE, true)
    }

    /// With the processor's NaNs, of which the oracle knows nothing.
    pub(crate) fn with_any_nans(text: &str, entry: &str) -> Result<Self, String> {
        Self::with(text, entry, &LARGE, false)
    }

    /// With little memory.
    pub(crate) fn small(text: &str, entry: &str) -> Result<Self, String> {
        Self::with(text, entry, &SMALL, true)
    }

    fn with(text: &str, entry: &str, map: &'static Map, canonical_nans: bool) -> Result<Self, String> {
        let module = parse(text)?;
        let id = module.functions.iter().position(|function| function.name == entry).ok_or("no such entry")?;
        let translate = |vectors: bool| {
            // Every other kernel the other way round.
            let wide = vectors == text.len().is_multiple_of(2);
            let options = Options { memory_bytes: map.bytes, wide, canonical_nans, vectors };
            let translation = steadfast_ptx::translate::translate(&module, FunctionId(id as u32), &options)
                .map_err(|error| error.to_string())?;
            let mut validator = wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all());
            validator.validate_all(&translation.wasm).map_err(|error| error.to_string())?;
            Ok::<_, String>(translation)
        };
        let translation = translate(true)?;
        let scalar = match translation.form {
            Form::Vector => Some((translate(false)?, OnceLock::new())),
            Form::Scalar(_) => None,
        };
        Ok(Self { module, translation, machine: OnceLock::new(), scalar, map })
    }

    /// Compiled when it first runs so.
    fn machine(&self) -> Result<&Machine, String> {
        self.compiled(&self.translation, &self.machine)
    }

    fn compiled<'a>(&self, translation: &Translation, place: &'a OnceLock<Machine>) -> Result<&'a Machine, String> {
        if let Some(machine) = place.get() {
            return Ok(machine);
        }
        let machine = Machine::new(translation)?;
        Ok(place.get_or_init(|| machine))
    }

    /// What the oracle leaves in variables and buffers.
    pub(crate) fn oracle(&self, run: &Run, start: &Start) -> Result<Vec<u8>, Trap> {
        self.oracle_with(run, start, Schedule::LowestFirst)
    }

    pub(crate) fn oracle_with(&self, run: &Run, start: &Start, schedule: Schedule) -> Result<Vec<u8>, Trap> {
        let mut memory = vec![0; self.map.bytes as usize];
        memory[..start.memory.len()].copy_from_slice(&start.memory);
        oracle::run(
            &self.module,
            &self.translation.name,
            run.launch(self.map, 0),
            &run.parameters,
            &mut memory,
            schedule,
        )?;
        memory.truncate(start.memory.len());
        Ok(memory)
    }

    /// What the translation leaves there. If it has a vector form, what it leaves without that has to be the same.
    pub(crate) fn translation(&self, run: &Run, start: &Start) -> Result<Vec<u8>, String> {
        self.split(run, start, 1)
    }

    /// The same with the blocks divided among so many instances, of which the last begins.
    pub(crate) fn split(&self, run: &Run, start: &Start, instances: u64) -> Result<Vec<u8>, String> {
        let parts = self.parts(run, instances);
        let memory = self.machine()?.run(&parts, &run.parameters, &start.memory);
        if let Some((scalar, machine)) = &self.scalar {
            let other = self.compiled(scalar, machine)?.run(&parts, &run.parameters, &start.memory);
            if let Some(difference) = difference(&memory, &other) {
                return Err(difference);
            }
        }
        memory
    }

    /// The same without compiling anything.
    pub(crate) fn interpreted(&self, run: &Run, start: &Start, instances: u64) -> Result<Vec<u8>, String> {
        let parts = self.parts(run, instances);
        let memory =
            |translation| Interpreter::new(translation, self.map.bytes)?.run(&parts, &run.parameters, &start.memory);
        let own = memory(&self.translation);
        let difference = self.scalar.as_ref().and_then(|(scalar, _)| difference(&own, &memory(scalar)));
        difference.map_or(own, Err)
    }

    fn parts(&self, run: &Run, instances: u64) -> Vec<Part> {
        assert!(instances <= INSTANCES, "there is no room for {instances} instances");
        let threads: u32 = run.block.iter().product();
        let needed = (
            u64::from(self.translation.local_bytes) * u64::from(threads),
            self.translation.shared_bytes(run.dynamic_shared),
        );
        let Map { local_stride, shared_stride, .. } = *self.map;
        assert!(needed.0 <= local_stride && needed.1 <= shared_stride, "there is no room for {needed:?} bytes");
        (0..instances)
            .rev()
            .map(|instance| Part {
                launch: run.launch(self.map, instance),
                blocks: share(run.blocks(), instance, instances),
            })
            .collect()
    }
}

impl Kernel {
    /// Runs some of the blocks only.
    pub(crate) fn blocks(&self, run: &Run, start: &Start, blocks: Range<u64>) -> Result<Vec<u8>, String> {
        self.machine()?.run(&[Part { launch: run.launch(self.map, 0), blocks }], &run.parameters, &start.memory)
    }

    /// Runs until the clock interrupts it.
    pub(crate) fn interrupt(&self, run: &Run, start: &Start) -> Result<Vec<u8>, String> {
        let part = Part { launch: run.launch(self.map, 0), blocks: 0..run.blocks() };
        self.machine()?.interrupt(&[part], &run.parameters, &start.memory)
    }
}

pub(crate) fn parse(text: &str) -> Result<Module, String> {
    steadfast_ptx::parse::parse(text).map_err(|error| error.to_string())
}

/// How what vectors left differs from what one thread after the other did. Where both end early, it may be at different places.
fn difference(vectors: &Result<Vec<u8>, String>, threads: &Result<Vec<u8>, String>) -> Option<String> {
    match (vectors, threads) {
        (Ok(vectors), Ok(threads)) => {
            let at = vectors.iter().zip(threads).position(|(one, other)| one != other)?;
            let (got, expected) = (vectors[at], threads[at]);
            Some(format!("vectors leave {got:#x} at {at:#x}, one thread after the other {expected:#x}"))
        }
        (Err(error), Ok(_)) => Some(format!("only vectors end early: {error}")),
        (Ok(_), Err(error)) => Some(format!("vectors do not end early: {error}")),
        (Err(_), Err(_)) => None,
    }
}

/// The instance's share of the blocks.
fn share(blocks: u64, instance: u64, instances: u64) -> Range<u64> {
    blocks * instance / instances..blocks * (instance + 1) / instances
}
