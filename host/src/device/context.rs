//! What the host uses of a device: handles, checks, and when an error is told.
//!
//! Every argument is checked here, before any device hears of it, so a refusal reads the same everywhere and leaves everything as it was.
//!
//! # When a fault is told
//!
//! ```text
//!            launch faults                read, read_variable, finish_step
//!  working ───────────────► faulted ──────────────────────────────────────► lost
//!                             orders that return no data are dropped          every call answers the same sentence
//! ```
//!
//! So on every device a fault surfaces at the next call that returns data, or at the end of the step, even where it was known at once. A device that
//! was told to stop is lost too: what it was at is half done.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use steadfast_ptx::module::{Module, Space, Variable};
use steadfast_ptx::parse::parse;

use super::launch::EntryFacts;
use super::{
    Backend, BufferId, Content, Device, DeviceError, Facts, Gemm, Launch, ModuleId, Purpose, RandomFill, Result,
    Source, Span, Stopper, ValidatedGemm, ValidatedLaunch, VariableSpan,
};

/// A device in use: its buffers, its modules, and whether it is still well.
pub struct Context {
    device: Box<dyn Device>,
    buffers: HashMap<BufferId, u64>,
    modules: HashMap<ModuleId, LoadedModule>,
    given: u64,
    health: Health,
}

enum Health {
    Working,
    /// A fault that nobody was told of yet.
    Faulted(String),
    Lost(String),
}

/// What is known of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedModule {
    /// None for a module that was not parsed.
    entries: Option<HashMap<String, EntryFacts>>,
    variables: Vec<MutableVariable>,
}

/// A variable that kernels may write, and that a checkpoint therefore keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutableVariable {
    /// As the PTX names it; once in a module.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    index: usize,
    /// Where it begins with addresses of other variables, in order.
    addresses: Vec<Range<u64>>,
}

impl MutableVariable {
    fn of(index: usize, variable: &Variable) -> Self {
        let mut addresses: Vec<_> =
            variable.relocations.iter().map(|place| place.at..place.at + u64::from(place.bytes)).collect();
        addresses.sort_by_key(|place| place.start);
        Self { name: variable.name.clone(), bytes: variable.bytes, index, addresses }
    }
}

impl LoadedModule {
    fn of(module: &Module) -> Self {
        let entries = module.functions.iter().filter(|function| function.entry);
        let variables = module.variables.iter().enumerate();
        // NVRTC leaves dozens of variables of its headers behind that no kernel names.
        let mutable =
            variables.filter(|(_, variable)| variable.space == Space::Global && !variable.external && variable.named);
        Self {
            entries: Some(entries.map(|entry| (entry.name.clone(), EntryFacts::of(module, entry))).collect()),
            variables: mutable.map(|(index, variable)| MutableVariable::of(index, variable)).collect(),
        }
    }

    /// Its entries, if it was parsed.
    pub fn entries(&self) -> Option<&HashMap<String, EntryFacts>> {
        self.entries.as_ref()
    }

    /// The variables that kernels may write, in the order of the text. None is known of a module that was not parsed.
    pub fn variables(&self) -> &[MutableVariable] {
        &self.variables
    }
}

impl Context {
    /// Takes a device into use.
    pub fn new(device: Box<dyn Device>) -> Self {
        let (buffers, modules) = (HashMap::new(), HashMap::new());
        Self { device, buffers, modules, given: 0, health: Health::Working }
    }

    /// What the device is.
    pub fn facts(&self) -> &Facts {
        self.device.facts()
    }

    /// What ends the device's work, from another thread.
    pub fn stopper(&self) -> Stopper {
        self.device.stopper()
    }

    /// A new buffer, all 0.
    pub fn allocate(&mut self, bytes: u64) -> Result<BufferId> {
        let buffer = BufferId(self.next());
        self.order(|device| device.allocate(buffer, bytes))?;
        self.buffers.insert(buffer, bytes);
        Ok(buffer)
    }

    /// Gives a buffer back. What was ordered before still has it; one that was given back already is left alone.
    pub fn free(&mut self, buffer: BufferId) {
        if self.buffers.remove(&buffer).is_some() && matches!(self.health, Health::Working) {
            self.device.free(buffer);
        }
    }

    /// The size of all buffers together.
    pub fn bytes(&self) -> u64 {
        self.buffers.values().sum()
    }

    /// A buffer's size.
    pub fn size(&self, buffer: BufferId) -> Result<u64> {
        self.buffers.get(&buffer).copied().ok_or_else(|| DeviceError::argument("the buffer was dropped"))
    }

    /// Bytes of all buffers.
    pub fn used(&self) -> u64 {
        self.buffers.values().sum()
    }

    /// Writes `bytes` from `offset` on.
    pub fn write(&mut self, buffer: BufferId, offset: u64, bytes: &[u8]) -> Result<()> {
        let to = self.span("write", buffer, offset, bytes.len() as u64)?;
        self.order(|device| device.write(to, bytes))
    }

    /// Reads from `offset` on, as much as `bytes` holds.
    pub fn read(&mut self, buffer: BufferId, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let from = self.span("read", buffer, offset, bytes.len() as u64)?;
        self.ask(|device| device.read(from, bytes))
    }

    /// Reads all of a buffer, or begins to: what is ordered later does not change what arrives. The memory of `spare` is used for it.
    pub fn begin_read(&mut self, buffer: BufferId, spare: Vec<Vec<u8>>) -> Result<Content> {
        let bytes = self.size(buffer)?;
        let from = self.span("read", buffer, 0, bytes)?;
        self.ask(|device| device.begin_read(from, spare))
    }

    /// Repeats the four bytes of `pattern`, little-endian. Offset and length are multiples of 4.
    pub fn fill(&mut self, buffer: BufferId, offset: u64, bytes: u64, pattern: u32) -> Result<()> {
        let span = self.span("fill", buffer, offset, bytes)?;
        aligned("fill", "its offset", offset, 4)?;
        aligned("fill", "its length", bytes, 4)?;
        self.order(|device| device.fill(span, pattern))
    }

    /// Copies `bytes` bytes. Source and destination may overlap: what arrives is what the source held before.
    pub fn copy(&mut self, to: (BufferId, u64), from: (BufferId, u64), bytes: u64) -> Result<()> {
        let from = self.span("copy: the source", from.0, from.1, bytes)?;
        let to = self.span("copy: the destination", to.0, to.1, bytes)?;
        self.order(|device| device.copy(to, from))
    }

    /// Writes random `f32`s from byte `offset`, a multiple of 4, on: see [`random`](super::random).
    pub fn fill_random(&mut self, buffer: BufferId, offset: u64, fill: &RandomFill) -> Result<()> {
        let bytes = fill.count.checked_mul(4).ok_or_else(|| too_many(fill))?;
        fill.position.checked_add(fill.count).ok_or_else(|| too_many(fill))?;
        let span = self.span("random fill", buffer, offset, bytes)?;
        aligned("random fill", "its offset", offset, 4)?;
        self.order(|device| device.fill_random(span, fill))
    }

    /// Makes a module of PTX that every device understands.
    pub fn load(&mut self, text: &str) -> Result<ModuleId> {
        self.well()?;
        if let Some(known) = self.device.known(text) {
            let facts = LoadedModule::of(&known.outline);
            return self.load_source(Source::Known { text, known }, facts);
        }
        let module = parse(text).map_err(|error| DeviceError::InvalidModule(error.to_string()))?;
        let module = Arc::new(module);
        let facts = LoadedModule::of(&module);
        self.load_source(Source::Parsed { text, module }, facts)
    }

    /// Makes a module of PTX that only the driver reads.
    pub fn load_cuda_only(&mut self, text: &str) -> Result<ModuleId> {
        if self.facts().backend != Backend::Cuda {
            let name = &self.facts().name;
            let text = format!(
                "this module is for the CUDA driver only, and the device here is {name}; run with --device cuda, or ship PTX that every device understands"
            );
            return Err(DeviceError::InvalidModule(text));
        }
        if let Some(at) = text.find('\0') {
            return Err(DeviceError::InvalidModule(format!("byte {at} of the text is NUL")));
        }
        self.load_source(Source::CudaOnly { text }, LoadedModule { entries: None, variables: Vec::new() })
    }

    fn load_source(&mut self, source: Source<'_>, facts: LoadedModule) -> Result<ModuleId> {
        let module = ModuleId(self.next());
        self.order(|device| device.load(module, source))?;
        self.modules.insert(module, facts);
        Ok(module)
    }

    /// Gives a module back. What was ordered before still has it; one that was given back already is left alone.
    pub fn unload(&mut self, module: ModuleId) {
        if self.modules.remove(&module).is_some() && matches!(self.health, Health::Working) {
            self.device.unload(module);
        }
    }

    /// What is known of a module.
    pub fn module(&self, module: ModuleId) -> Result<&LoadedModule> {
        self.modules.get(&module).ok_or_else(|| DeviceError::argument("the module was dropped"))
    }

    /// Writes a variable that kernels may write, from `offset` on. Addresses that it began with stay: those of another placement would be of no use.
    pub fn write_variable(&mut self, module: ModuleId, name: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let (index, pieces) = self.variable(module, name, offset, bytes.len() as u64)?;
        pieces.into_iter().try_for_each(|piece| {
            let to = VariableSpan { module, variable: index, offset: piece.start };
            let bytes = &bytes[(piece.start - offset) as usize..(piece.end - offset) as usize];
            self.order(|device| device.write_variable(to, bytes))
        })
    }

    /// Reads a variable that kernels may write, from `offset` on. Addresses that it began with read as 0, so that what is read says the same in every attempt.
    pub fn read_variable(&mut self, module: ModuleId, name: &str, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (index, pieces) = self.variable(module, name, offset, bytes.len() as u64)?;
        bytes.fill(0);
        self.ask(|device| {
            pieces.into_iter().try_for_each(|piece| {
                let from = VariableSpan { module, variable: index, offset: piece.start };
                device.read_variable(from, &mut bytes[(piece.start - offset) as usize..(piece.end - offset) as usize])
            })
        })
    }

    /// Says what the next operations are for.
    pub fn serve(&mut self, purpose: Purpose) {
        if matches!(self.health, Health::Working) {
            self.device.serve(purpose);
        }
    }

    /// Runs a kernel of a module.
    pub fn launch(&mut self, module: ModuleId, launch: &Launch<'_>) -> Result<()> {
        let entry = self.entry(module, launch.entry)?;
        let validated = ValidatedLaunch::new(module, entry, launch, |buffer| self.buffers.get(&buffer).copied())?;
        self.order(|device| device.launch(&validated))
    }

    /// Multiplies matrices.
    pub fn gemm(&mut self, gemm: &Gemm) -> Result<()> {
        let validated = ValidatedGemm::new(gemm, |buffer| self.buffers.get(&buffer).copied())?;
        match validated {
            Some(validated) => self.order(|device| device.gemm(&validated)),
            None => self.well(),
        }
    }

    /// Returns when all that was ordered is done. The end of a step, and before a checkpoint.
    pub fn finish_step(&mut self) -> Result<()> {
        self.ask(|device| device.synchronize())
    }

    fn next(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    fn well(&self) -> Result<()> {
        match &self.health {
            Health::Lost(why) => Err(DeviceError::Lost(why.clone())),
            Health::Working | Health::Faulted(_) => Ok(()),
        }
    }

    /// An operation that returns no data: a fault of it, or before it, is told later.
    fn order(&mut self, operation: impl FnOnce(&mut dyn Device) -> Result<()>) -> Result<()> {
        self.well()?;
        if matches!(self.health, Health::Faulted(_)) {
            return Ok(());
        }
        let outcome = self.carry_out(operation);
        match outcome {
            Err(DeviceError::Lost(why)) => {
                self.health = Health::Faulted(why);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// An operation that waits: whatever went wrong up to its end is told now.
    fn ask<T>(&mut self, operation: impl FnOnce(&mut dyn Device) -> Result<T>) -> Result<T> {
        let outcome = match &self.health {
            Health::Faulted(why) | Health::Lost(why) => Err(DeviceError::Lost(why.clone())),
            Health::Working => self.carry_out(operation),
        };
        if let Err(DeviceError::Lost(why)) = &outcome {
            self.health = Health::Lost(why.clone());
        }
        outcome
    }

    fn carry_out<T>(&mut self, operation: impl FnOnce(&mut dyn Device) -> Result<T>) -> Result<T> {
        let outcome = operation(&mut *self.device);
        if matches!(outcome, Err(DeviceError::Stopped)) {
            self.health = Health::Lost("the device was stopped in the middle of its work".into());
        }
        outcome
    }

    fn span(&self, what: &str, buffer: BufferId, offset: u64, bytes: u64) -> Result<Span> {
        self.well()?;
        let refuse = |text: String| DeviceError::InvalidArgument(format!("{what}: {text}"));
        let size = self.buffers.get(&buffer).ok_or_else(|| refuse("the buffer was dropped".into()))?;
        if offset.checked_add(bytes).is_none_or(|end| end > *size) {
            return Err(refuse(format!(
                "{bytes} bytes from offset {offset} on do not lie in a buffer of {size} bytes"
            )));
        }
        Ok(Span { buffer, offset, bytes })
    }

    /// A variable's index, and what of the range is no address that it began with.
    fn variable(&self, module: ModuleId, name: &str, offset: u64, bytes: u64) -> Result<(usize, Vec<Range<u64>>)> {
        self.well()?;
        let facts = self.module(module)?;
        let variable = facts.variables.iter().find(|variable| variable.name == name);
        let variable = variable
            .ok_or_else(|| DeviceError::InvalidArgument(format!("the module has no .global variable `{name}`")))?;
        let size = variable.bytes;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let text =
                format!("{bytes} bytes from offset {offset} on do not lie in the variable `{name}` of {size} bytes");
            return Err(DeviceError::InvalidArgument(text));
        }
        Ok((variable.index, without(offset..offset + bytes, &variable.addresses)))
    }

    fn entry(&self, module: ModuleId, name: &str) -> Result<Option<&EntryFacts>> {
        self.well()?;
        let Some(entries) = &self.module(module)?.entries else {
            return match name.find('\0') {
                Some(_) => Err(DeviceError::argument("the name of the entry holds a NUL")),
                None => Ok(None),
            };
        };
        entries.get(name).map(Some).ok_or_else(|| {
            let mut known: Vec<_> = entries.keys().map(String::as_str).collect();
            known.sort_unstable();
            DeviceError::InvalidArgument(format!("the module has no entry `{name}`; it has {}", list(&known)))
        })
    }
}

fn list(names: &[&str]) -> String {
    const MOST: usize = 8;
    match names {
        [] => "none".into(),
        names if names.len() <= MOST => format!("`{}`", names.join("`, `")),
        names => format!("`{}` and {} others", names[..MOST].join("`, `"), names.len() - MOST),
    }
}

fn aligned(what: &str, which: &str, value: u64, unit: u64) -> Result<()> {
    if value.is_multiple_of(unit) {
        return Ok(());
    }
    Err(DeviceError::InvalidArgument(format!("{what}: {which}, {value}, is no multiple of {unit}")))
}

fn too_many(fill: &RandomFill) -> DeviceError {
    let RandomFill { position, count, .. } = fill;
    DeviceError::InvalidArgument(format!("random fill: there are no {count} numbers from position {position} on"))
}

/// What of a range lies in none of the holes, which are in order and apart.
fn without(range: Range<u64>, holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let starts = std::iter::once(0).chain(holes.iter().map(|hole| hole.end));
    let ends = holes.iter().map(|hole| hole.start).chain([u64::MAX]);
    let pieces = starts.zip(ends).map(|(start, end)| start.max(range.start)..end.min(range.end));
    pieces.filter(|piece| piece.start < piece.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_holes() {
        let holes = [4..8, 8..12, 20..24];
        for (start, end, pieces) in [
            (0, 30, &[(0, 4), (12, 20), (24, 30)][..]),
            (5, 11, &[]),
            (6, 21, &[(12, 20)]),
            (13, 14, &[(13, 14)]),
            (24, 24, &[]),
            (24, 25, &[(24, 25)]),
        ] {
            let found: Vec<_> = without(start..end, &holes).into_iter().map(|piece| (piece.start, piece.end)).collect();
            assert_eq!(found, pieces);
        }
        assert_eq!(without(3..5, &[]).len(), 1);
    }
}
