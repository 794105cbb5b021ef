//! From PTX to machine code, and back from the cache.
//!
//! A module's entries are translated when it is loaded, so that what cannot run is said there; each is compiled when it is first launched, since few
//! plugins launch all that a library of kernels holds. An entry that the cache has needs neither.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use steadfast_ptx::kernel::{Kernel, Options};
use steadfast_ptx::module::{Function, FunctionId, Module, Position};
use steadfast_ptx::translate::translate;
use wasmparser::{Operator, Parser, Payload};
use wasmtime::Engine;

use crate::compiled::Cache;
use crate::device::{DeviceError, Result};

/// Compiled kernels that are kept: a few dozen modules.
const MOST_KEPT: usize = 2048;

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
    Translated { kernel: Box<Kernel>, digest: String },
    Compiled(Arc<Compiled>),
}

/// Makes kernels of entries.
pub(super) struct Compiler {
    engine: Engine,
    options: Options,
    cache: Option<Cache>,
}

impl Compiler {
    /// `folder` is that of all compiled code; without one, every kernel is compiled again.
    pub(super) fn new(engine: Engine, options: Options, folder: Option<&Path>) -> Self {
        Self { engine, options, cache: folder.map(|folder| Cache::new(folder.join("kernels"), MOST_KEPT)) }
    }

    /// All entries of a module, by index of their function.
    pub(super) fn entries(&self, text: &str, module: &Module) -> Result<Vec<(String, Entry)>> {
        let text = blake3::hash(text.as_bytes());
        let functions = (0..).map(FunctionId).zip(&module.functions);
        let entries = functions.filter(|(_, function)| function.entry);
        entries.map(|(id, function)| Ok((function.name.clone(), self.entry(&text, module, id, function)?))).collect()
    }

    fn entry(&self, text: &blake3::Hash, module: &Module, id: FunctionId, function: &Function) -> Result<Entry> {
        let digest = self.digest(text, &function.name);
        if let Some(kept) = self.cache.as_ref().and_then(|cache| self.kept(cache, &digest, function)) {
            return Ok(Entry::Compiled(kept));
        }
        let kernel = translate(module, id, &self.options)
            .map_err(|error| DeviceError::InvalidModule(format!("kernel `{}`, {error}", function.name)))?;
        Ok(Entry::Translated { kernel: Box::new(kernel), digest })
    }

    /// The compiled kernel of an entry; it replaces what was only translated.
    pub(super) fn compiled(&self, entry: &mut Entry) -> Result<Arc<Compiled>> {
        match entry {
            Entry::Compiled(compiled) => Ok(compiled.clone()),
            Entry::Translated { kernel, digest } => {
                let compiled = Arc::new(self.compile(kernel, digest)?);
                *entry = Entry::Compiled(compiled.clone());
                Ok(compiled)
            }
        }
    }

    fn compile(&self, kernel: &Kernel, digest: &str) -> Result<Compiled> {
        let cannot = |why| DeviceError::InvalidModule(format!("kernel `{}` cannot be compiled: {why}", kernel.name));
        if reaches_in_bulk(&kernel.wasm).map_err(|error| cannot(error.to_string()))? {
            return Err(cannot("it would have the host reach into device memory".into()));
        }
        let module = wasmtime::Module::new(&self.engine, &kernel.wasm).map_err(|error| cannot(format!("{error:#}")))?;
        let kernel = Kernel { wasm: Vec::new(), ..kernel.clone() };
        if let (Some(cache), Ok(record)) = (&self.cache, serde_json::to_vec(&Record::of(&kernel))) {
            cache.put(&self.engine, digest, &record, module.serialize());
        }
        Ok(Compiled { id: next_id(), kernel, module })
    }

    fn kept(&self, cache: &Cache, digest: &str, function: &Function) -> Option<Arc<Compiled>> {
        cache.get(&self.engine, digest, |record, code| {
            let record: Record = serde_json::from_slice(record).ok()?;
            let module = code.module(&self.engine)?;
            Some(Arc::new(Compiled { id: next_id(), kernel: record.kernel(function), module }))
        })
    }

    /// Names everything that the machine code depends on, beside the engine.
    fn digest(&self, text: &blake3::Hash, entry: &str) -> String {
        let Options { memory_bytes, canonical_nans } = self.options;
        let translation = steadfast_ptx::TRANSLATION;
        let whole = format!("kernel {text} {memory_bytes} {canonical_nans} {translation} {entry}");
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
