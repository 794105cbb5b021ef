//! From PTX to machine code, and back from the cache.
//!
//! A module's entries are translated when it is loaded, so that what cannot run is said there; each is compiled when it is first launched, since few
//! plugins launch all that a library of kernels holds. An entry that the cache has needs neither, and of a text that it knows nothing is even read: what
//! the text declares is kept with the word that all its entries could be translated.
//!
//! What reaches the window only has addresses of 32 bits. When buffers come to lie beyond it, an entry is translated and compiled once more at its next launch.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use steadfast_ptx::kernel::{Form, Kernel, Options};
use steadfast_ptx::module::{Function, FunctionId, Module, Position};
use steadfast_ptx::parse::parse;
use steadfast_ptx::translate::translate;
use wasmparser::{Operator, Parser, Payload};
use wasmtime::Engine;

use super::arena::Reach;
use super::engine::{NARROW_BYTES, engine_key};
use crate::compiled::Cache;
use crate::device::{DeviceError, Known, Result, Stopper};

/// Compiled kernels and outlines that are kept: a few dozen modules.
const MOST_KEPT: usize = 2048;

/// A kernel that can be launched.
pub(super) struct Compiled {
    /// Never the same for two kernels in a process.
    pub(super) id: u64,
    pub(super) reach: Reach,
    /// How long a block took in the last launch, in nanoseconds; 0 if there was none.
    pub(super) pace: AtomicU64,
    /// Without its WebAssembly.
    pub(super) kernel: Kernel,
    pub(super) module: wasmtime::Module,
}

/// An entry of a module.
pub(super) struct Entry {
    text: Arc<Text>,
    function: Box<Function>,
    /// From when the module was loaded, until it is compiled.
    translated: Option<(Reach, Box<Kernel>)>,
    /// By what it reaches.
    compiled: [Option<Arc<Compiled>>; 2],
}

impl Entry {
    fn new(text: &Arc<Text>, function: &Function) -> Self {
        let function = Box::new(function.clone());
        Self { text: text.clone(), function, translated: None, compiled: [None, None] }
    }

    /// Whether it can be launched at once.
    pub(super) fn is_compiled(&self, reach: Reach) -> bool {
        self.compiled[reach as usize].is_some()
    }

    /// Its kernels, of all reaches.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &Compiled> {
        self.compiled.iter().flatten().map(Arc::as_ref)
    }
}

/// The text of a module.
struct Text {
    hash: blake3::Hash,
    ptx: Box<str>,
}

fn hash(text: &str) -> blake3::Hash {
    blake3::hash(text.as_bytes())
}

/// Stands where an entry's name does; no entry has this one.
const OUTLINE: &str = "(outline)";

/// What is kept of a module: variables that nothing names keep their places, and nothing else.
fn outline(module: &Module) -> Module {
    let mut outline = module.clone();
    for variable in outline.variables.iter_mut().filter(|variable| !variable.named) {
        variable.name.clear();
        variable.initial.clear();
    }
    outline
}

/// Makes kernels of entries.
pub(super) struct Compiler {
    engine: Engine,
    stopper: Stopper,
    /// For a kernel that reaches all memory.
    options: Options,
    cache: Option<Cache>,
}

impl Compiler {
    /// `folder` is that of all compiled code; without one, every kernel is compiled again.
    pub(super) fn new(engine: Engine, stopper: Stopper, options: Options, folder: Option<&Path>) -> Self {
        let key = || engine_key(&engine, options.canonical_nans);
        let cache = folder.map(|folder| Cache::new(folder.join("kernels"), MOST_KEPT, key()));
        Self { engine, stopper, options, cache }
    }

    /// What a text declares of which all entries were translated before.
    pub(super) fn known(&self, text: &str) -> Option<Known> {
        let hash = hash(text);
        let digest = self.digest(&hash, OUTLINE, &self.options);
        let outline = self.cache.as_ref()?.get(&digest, |outline, _| postcard::from_bytes(outline).ok())?;
        Some(Known { outline: Arc::new(outline), hash })
    }

    /// All entries of a text that is known.
    pub(super) fn known_entries(text: &str, known: &Known) -> Vec<(String, Entry)> {
        let text = Arc::new(Text { hash: known.hash, ptx: text.into() });
        let entries = known.outline.functions.iter().filter(|function| function.entry);
        entries.map(|function| (function.name.clone(), Entry::new(&text, function))).collect()
    }

    /// All entries of a module, to reach so far as is needed now.
    pub(super) fn entries(&self, text: &str, module: &Module, reach: Reach) -> Result<Vec<(String, Entry)>> {
        let text = Arc::new(Text { hash: hash(text), ptx: text.into() });
        let functions = (0..).map(FunctionId).zip(&module.functions);
        let entries = functions.filter(|(_, function)| function.entry);
        let entry = |(id, function): (FunctionId, &Function)| {
            let mut entry = Entry::new(&text, function);
            match self.kept(&entry, reach) {
                Some(kept) => entry.compiled[reach as usize] = Some(kept),
                None => entry.translated = Some((reach, Box::new(self.translated(module, id, reach)?))),
            }
            Ok((function.name.clone(), entry))
        };
        let entries = entries.map(entry).collect::<Result<_>>()?;
        if let (Some(cache), Ok(outline)) = (&self.cache, postcard::to_stdvec(&outline(module))) {
            cache.put(&self.digest(&text.hash, OUTLINE, &self.options), &outline, Ok(Vec::new()));
        }
        Ok(entries)
    }

    fn translated(&self, module: &Module, id: FunctionId, reach: Reach) -> Result<Kernel> {
        if self.stopper.is_stopped() {
            return Err(DeviceError::Stopped);
        }
        let name = || &module.functions[id.0 as usize].name;
        translate(module, id, &self.options_of(reach))
            .map_err(|error| DeviceError::InvalidModule(format!("kernel `{}`, {error}", name())))
    }

    fn options_of(&self, reach: Reach) -> Options {
        match reach {
            Reach::Window => Options { memory_bytes: NARROW_BYTES, wide: false, ..self.options },
            Reach::All => self.options,
        }
    }

    /// The compiled kernel of an entry; the entry keeps it.
    pub(super) fn compiled(&self, entry: &mut Entry, reach: Reach) -> Result<Arc<Compiled>> {
        if let Some(compiled) = &entry.compiled[reach as usize] {
            return Ok(compiled.clone());
        }
        let compiled = match entry.translated.take().filter(|(translated, _)| *translated == reach) {
            Some((_, kernel)) => Arc::new(self.compile(entry, &kernel, reach)?),
            None => match self.kept(entry, reach) {
                Some(kept) => kept,
                None => Arc::new(self.compile(entry, &self.translated_anew(entry, reach)?, reach)?),
            },
        };
        Ok(entry.compiled[reach as usize].insert(compiled).clone())
    }

    /// An entry that nobody launched before, or none so far, or whose code the cache has lost.
    fn translated_anew(&self, entry: &Entry, reach: Reach) -> Result<Kernel> {
        let name = &entry.function.name;
        let module = parse(&entry.text.ptx).map_err(|error| DeviceError::InvalidModule(error.to_string()))?;
        let is_it = |function: &Function| function.entry && function.name == *name;
        let missing = || DeviceError::InvalidModule(format!("the text has no kernel `{name}`"));
        let index = module.functions.iter().position(is_it).ok_or_else(missing)?;
        self.translated(&module, FunctionId(index as u32), reach)
    }

    fn compile(&self, entry: &Entry, kernel: &Kernel, reach: Reach) -> Result<Compiled> {
        let cannot = |why| DeviceError::InvalidModule(format!("kernel `{}` cannot be compiled: {why}", kernel.name));
        if reaches_in_bulk(&kernel.wasm).map_err(|error| cannot(error.to_string()))? {
            return Err(cannot("it would have the host reach into device memory".into()));
        }
        let module = wasmtime::Module::new(&self.engine, &kernel.wasm).map_err(|error| cannot(format!("{error:#}")))?;
        let kernel = Kernel { wasm: Vec::new(), ..kernel.clone() };
        if let (Some(cache), Ok(record)) = (&self.cache, postcard::to_stdvec(&Record::of(&kernel))) {
            cache.put(&self.digest_of(entry, reach), &record, module.serialize());
        }
        Ok(Compiled { id: next_id(), reach, pace: AtomicU64::new(0), kernel, module })
    }

    fn kept(&self, entry: &Entry, reach: Reach) -> Option<Arc<Compiled>> {
        self.cache.as_ref()?.get(&self.digest_of(entry, reach), |record, code| {
            let record: Record = postcard::from_bytes(record).ok()?;
            let module = code.module(&self.engine)?;
            let kernel = record.kernel(&entry.function);
            Some(Arc::new(Compiled { id: next_id(), reach, pace: AtomicU64::new(0), kernel, module }))
        })
    }

    fn digest_of(&self, entry: &Entry, reach: Reach) -> String {
        self.digest(&entry.text.hash, &entry.function.name, &self.options_of(reach))
    }

    /// Names everything that an entry's machine code, or the outline, depends on, beside the engine.
    fn digest(&self, text: &blake3::Hash, part: &str, options: &Options) -> String {
        let Options { memory_bytes, wide, canonical_nans, vectors } = options;
        let translation = steadfast_ptx::TRANSLATION;
        let whole = format!("kernel {text} {memory_bytes} {wide} {canonical_nans} {vectors} {translation} {part}");
        blake3::hash(whole.as_bytes()).to_hex().to_string()
    }
}

/// Whether a kernel has instructions on the device memory that wasmtime carries out in the host: reaching between two buffers would be no trap there, but the
/// end of the process. A translation has none.
fn reaches_in_bulk(wasm: &[u8]) -> wasmparser::Result<bool> {
    const DEVICE: u32 = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload? else { continue };
        for operator in body.get_operators_reader()? {
            let memories = match operator? {
                Operator::MemoryFill { mem } | Operator::MemoryInit { mem, .. } => [mem, mem],
                Operator::MemoryCopy { dst_mem, src_mem } => [dst_mem, src_mem],
                _ => continue,
            };
            if memories.contains(&DEVICE) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn next_id() -> u64 {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    GIVEN.fetch_add(1, Ordering::Relaxed)
}

/// What the cache keeps of a kernel, beside what its entry in the text says.
#[derive(Serialize, Deserialize)]
struct Record {
    parameter_bytes: u32,
    static_shared: u32,
    local_bytes: u32,
    frame_base: u32,
    frame_bytes: u32,
    sequential: bool,
    form: Form,
    /// Offset, line, column.
    places: Vec<(u32, u32, u32)>,
}

impl Record {
    fn of(kernel: &Kernel) -> Self {
        Self {
            parameter_bytes: kernel.parameter_bytes,
            static_shared: kernel.static_shared,
            local_bytes: kernel.local_bytes,
            frame_base: kernel.frame_base,
            frame_bytes: kernel.frame_bytes,
            sequential: kernel.sequential,
            form: kernel.form,
            places: kernel.places.iter().map(|(offset, place)| (*offset, place.line, place.column)).collect(),
        }
    }

    fn kernel(self, function: &Function) -> Kernel {
        let places = self.places.into_iter().map(|(offset, line, column)| (offset, Position { line, column }));
        Kernel {
            name: function.name.clone(),
            wasm: Vec::new(),
            parameters: function.parameters.clone(),
            parameter_bytes: self.parameter_bytes,
            max_threads: function.max_threads,
            required_threads: function.required_threads,
            static_shared: self.static_shared,
            local_bytes: self.local_bytes,
            frame_base: self.frame_base,
            frame_bytes: self.frame_bytes,
            sequential: self.sequential,
            form: self.form,
            places: places.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn instructions_that_the_host_would_carry_out_are_found() {
        let found = |body: &str| {
            let memories = r#"(import "device" "memory" (memory i64 1 1)) (memory $private 1)"#;
            let text = format!("(module {memories} (data $d \"x\") (func nop) (func {body}))");
            reaches_in_bulk(&wat::parse_str(text).unwrap()).unwrap()
        };
        let (zero, long) = ("(i32.const 0)", "(i64.const 0)");
        assert!(found(&format!("(memory.fill 0 {long} {zero} {long})")));
        assert!(found(&format!("(memory.copy 0 $private {long} {zero} {zero})")));
        assert!(found(&format!("(memory.copy $private 0 {zero} {long} {zero})")));
        assert!(found(&format!("(memory.init 0 $d {long} {zero} {zero})")));
        assert!(!found(&format!("(memory.fill $private {zero} {zero} {zero}) (i32.store 0 {long} {zero})")));
    }
}
