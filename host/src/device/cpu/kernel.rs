//! From PTX to machine code, and back from the cache.
//!
//! A module's entries are translated when it is loaded, so that what cannot run is said there; each is compiled when it is first launched, since few
//! plugins launch all that a library of kernels holds. An entry that the cache has needs neither, and of a text that it knows nothing is even read: what
//! the text declares is kept with the word that all its entries could be translated.

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

use super::engine::engine_key;
use crate::compiled::Cache;
use crate::device::{DeviceError, Known, Result, Stopper};

/// Compiled kernels and outlines that are kept: a few dozen modules.
const MOST_KEPT: usize = 2048;
/// A longer text is parsed in every attempt: while it is loaded, one that is known stays in memory.
const LONGEST_KNOWN: usize = 4 << 20;

/// A kernel that can be launched.
pub(super) struct Compiled {
    /// Never the same for two kernels in a process.
    pub(super) id: u64,
    /// Without its WebAssembly.
    pub(super) kernel: Kernel,
    pub(super) module: wasmtime::Module,
}

/// An entry of a module.
pub(super) enum Entry {
    /// Of a text that is known.
    Known {
        text: Arc<Text>,
        function: Box<Function>,
    },
    Translated {
        kernel: Box<Kernel>,
        digest: String,
    },
    Compiled(Arc<Compiled>),
}

/// A text that is known.
pub(super) struct Text {
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
        let cache = self.cache.as_ref().filter(|_| text.len() <= LONGEST_KNOWN)?;
        let hash = hash(text);
        let outline = cache.get(&self.digest(&hash, OUTLINE), |outline, _| postcard::from_bytes(outline).ok())?;
        Some(Known { outline: Arc::new(outline), hash })
    }

    /// All entries of a text that is known.
    pub(super) fn known_entries(text: &str, known: &Known) -> Vec<(String, Entry)> {
        let text = Arc::new(Text { hash: known.hash, ptx: text.into() });
        let entries = known.outline.functions.iter().filter(|function| function.entry);
        let known = |function: &Function| Entry::Known { text: text.clone(), function: Box::new(function.clone()) };
        entries.map(|function| (function.name.clone(), known(function))).collect()
    }

    /// All entries of a module.
    pub(super) fn entries(&self, text: &str, module: &Module) -> Result<Vec<(String, Entry)>> {
        let hash = hash(text);
        let functions = (0..).map(FunctionId).zip(&module.functions);
        let entries = functions.filter(|(_, function)| function.entry);
        let entry = |(id, function): (FunctionId, &Function)| {
            let digest = self.digest(&hash, &function.name);
            let entry = match self.kept(&digest, function) {
                Some(kept) => Entry::Compiled(kept),
                None => Entry::Translated { kernel: Box::new(self.translated(module, id)?), digest },
            };
            Ok((function.name.clone(), entry))
        };
        let entries = entries.map(entry).collect::<Result<_>>()?;
        if let (Some(cache), Ok(outline)) = (&self.cache, postcard::to_stdvec(&outline(module)))
            && text.len() <= LONGEST_KNOWN
        {
            cache.put(&self.digest(&hash, OUTLINE), &outline, Ok(Vec::new()));
        }
        Ok(entries)
    }

    fn translated(&self, module: &Module, id: FunctionId) -> Result<Kernel> {
        if self.stopper.is_stopped() {
            return Err(DeviceError::Stopped);
        }
        let name = || &module.functions[id.0 as usize].name;
        translate(module, id, &self.options)
            .map_err(|error| DeviceError::InvalidModule(format!("kernel `{}`, {error}", name())))
    }

    /// The compiled kernel of an entry; it replaces what was only known or translated.
    pub(super) fn compiled(&self, entry: &mut Entry) -> Result<Arc<Compiled>> {
        let compiled = match entry {
            Entry::Compiled(compiled) => return Ok(compiled.clone()),
            Entry::Translated { kernel, digest } => Arc::new(self.compile(kernel, digest)?),
            Entry::Known { text, function } => {
                let digest = self.digest(&text.hash, &function.name);
                match self.kept(&digest, function) {
                    Some(kept) => kept,
                    None => Arc::new(self.compile(&self.translated_anew(&text.ptx, &function.name)?, &digest)?),
                }
            }
        };
        *entry = Entry::Compiled(compiled.clone());
        Ok(compiled)
    }

    /// An entry that nobody launched before, or whose code the cache has lost.
    fn translated_anew(&self, text: &str, name: &str) -> Result<Kernel> {
        let module = parse(text).map_err(|error| DeviceError::InvalidModule(error.to_string()))?;
        let is_it = |function: &Function| function.entry && function.name == name;
        let missing = || DeviceError::InvalidModule(format!("the text has no kernel `{name}`"));
        let index = module.functions.iter().position(is_it).ok_or_else(missing)?;
        self.translated(&module, FunctionId(index as u32))
    }

    fn compile(&self, kernel: &Kernel, digest: &str) -> Result<Compiled> {
        let cannot = |why| DeviceError::InvalidModule(format!("kernel `{}` cannot be compiled: {why}", kernel.name));
        if reaches_in_bulk(&kernel.wasm).map_err(|error| cannot(error.to_string()))? {
            return Err(cannot("it would have the host reach into device memory".into()));
        }
        let module = wasmtime::Module::new(&self.engine, &kernel.wasm).map_err(|error| cannot(format!("{error:#}")))?;
        let kernel = Kernel { wasm: Vec::new(), ..kernel.clone() };
        if let (Some(cache), Ok(record)) = (&self.cache, postcard::to_stdvec(&Record::of(&kernel))) {
            cache.put(digest, &record, module.serialize());
        }
        Ok(Compiled { id: next_id(), kernel, module })
    }

    fn kept(&self, digest: &str, function: &Function) -> Option<Arc<Compiled>> {
        self.cache.as_ref()?.get(digest, |record, code| {
            let record: Record = postcard::from_bytes(record).ok()?;
            let module = code.module(&self.engine)?;
            Some(Arc::new(Compiled { id: next_id(), kernel: record.kernel(function), module }))
        })
    }

    /// Names everything that an entry's machine code, or the outline, depends on, beside the engine.
    fn digest(&self, text: &blake3::Hash, part: &str) -> String {
        let Options { memory_bytes, canonical_nans, vectors } = self.options;
        let translation = steadfast_ptx::TRANSLATION;
        let whole = format!("kernel {text} {memory_bytes} {canonical_nans} {vectors} {translation} {part}");
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
