//! The wasmtime engine, set up so that runs repeat, and the linker: everything that a guest can import.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime::{Config, Engine, WasmBacktraceDetails};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi::runtime::in_tokio;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::device::{self, Folders, Holdings};
use super::limits::MemoryBudget;
use super::{GuestEvents, Interrupter, Plugin, PluginError, bindings, load, state};
use crate::compiled::{Cache, EngineKey};

/// The native stack that guest code may use. A thread that calls guests needs this and as much again for the host.
const GUEST_STACK: usize = 1 << 20;
/// Compiled plugins that are kept.
const MOST_COMPILED: usize = 32;
/// Enough to get past the frames of a panic.
const BACKTRACE_FRAMES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// The bits of a NaN that arithmetic makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nans {
    /// The processor's. One kind of processor always makes the same; x86 and Arm, for one, set another sign. All other numbers are
    /// the same everywhere anyway.
    #[default]
    AsComputed,
    /// The same everywhere, for up to twice the time of all arithmetic with floats.
    Canonical,
}

/// Compiles and runs plugins. One for a process is enough; clones are the same.
#[derive(Clone)]
pub struct Runtime {
    pub(super) engine: Engine,
    pub(super) linker: Arc<Linker<GuestState>>,
    pub(super) cache: Option<Cache>,
}

impl Runtime {
    /// Sets the engine up. `cache` is a folder for compiled plugins; without one, every load compiles.
    pub fn new(cache: Option<PathBuf>) -> Result<Self, PluginError> {
        Self::with(Nans::default(), cache)
    }

    /// The same, with a choice about NaNs.
    pub fn with(nans: Nans, cache: Option<PathBuf>) -> Result<Self, PluginError> {
        let failed = |error: wasmtime::Error| PluginError::Engine { cause: format!("{error:#}") };
        let engine = Engine::new(&config(nans)).map_err(failed)?;
        let linker = Arc::new(linker(&engine).map_err(failed)?);
        let cache = cache.map(|folder| Cache::new(folder, MOST_COMPILED, EngineKey::of(&engine)));
        Ok(Self { engine, linker, cache })
    }

    /// Reads, checks and compiles the component in `file`, or finds it compiled. `compiling` is called, with its digest, when the file is found to
    /// be a plugin that has to be compiled, which can take seconds.
    pub fn load(&self, file: &Path, compiling: &dyn Fn(&str)) -> Result<Plugin, PluginError> {
        self.compile(file, &load::read(file)?, compiling)
    }

    /// The same for bytes that are at hand; `label` names them in messages.
    pub fn compile(&self, label: &Path, bytes: &[u8], compiling: &dyn Fn(&str)) -> Result<Plugin, PluginError> {
        load::plugin(self, label, bytes, compiling)
    }

    /// The same where nobody waits to hear of it.
    pub fn load_bytes(&self, label: &Path, bytes: &[u8]) -> Result<Plugin, PluginError> {
        load::plugin(self, label, bytes, &|_| {})
    }
}

/// What belongs to one guest, reachable from its imports.
pub(super) struct GuestState {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) memory: MemoryBudget,
    pub(super) events: Arc<dyn GuestEvents>,
    pub(super) dropped_metrics: u64,
    pub(super) holdings: Holdings,
    pub(super) folders: Folders,
    pub(super) interrupter: Interrupter,
}

impl GuestState {
    /// Waits for writes to files that a guest began and did not wait for, so that `/output` holds what the guest wrote.
    pub(super) fn settle_files(&mut self) {
        for entry in self.table.iter_mut() {
            let entry: &mut dyn std::any::Any = entry;
            if let Some(stream) = entry.downcast_mut::<DynOutputStream>() {
                in_tokio(stream.ready());
            }
        }
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn config(nans: Nans) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        // The same numbers on every machine: no freedom for relaxed SIMD, and none for NaNs where that was asked for.
        .cranelift_nan_canonicalization(nans == Nans::Canonical)
        .relaxed_simd_deterministic(true)
        // Threads would make runs differ, and shared memories escape the memory limit.
        .wasm_threads(false)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        .wasm_backtrace_max_frames(Some(BACKTRACE_FRAMES));
    config
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
    bindings::steadfast::job::telemetry::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    bindings::steadfast::job::types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    state::add_to_linker(&mut linker)?;
    device::add_to_linker(&mut linker)?;
    Ok(linker)
}

impl bindings::steadfast::job::types::Host for GuestState {}
