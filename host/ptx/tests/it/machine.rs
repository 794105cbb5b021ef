//! Runs a translated kernel in wasmtime, as the device does it, but one instance after the other.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_ptx::kernel::{Kernel, Launch, PARAMETERS};
use wasmtime::{Config, Engine, Extern, Instance, Memory, Module, Store};

/// Between two ticks of the clock, and how many a kernel has that is to be interrupted.
const TICK: Duration = Duration::from_millis(1);
const TICKS: u64 = 20;

/// What one instance does.
pub(crate) struct Part {
    pub(crate) launch: Launch,
    pub(crate) blocks: Range<u64>,
}

/// A compiled kernel.
pub(crate) struct Machine {
    kernel: Kernel,
    module: Module,
}

/// One for all tests.
fn engine() -> &'static Engine {
    static ENGINE: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut config = Config::new();
        config.wasm_memory64(true).wasm_multi_memory(true).wasm_relaxed_simd(true).relaxed_simd_deterministic(true);
        config.epoch_interruption(true).parallel_compilation(false).memory_reservation(0).memory_guard_size(0);
        Engine::new(&config).unwrap()
    })
}

impl Machine {
    pub(crate) fn new(kernel: &Kernel) -> Result<Self, String> {
        let module = Module::new(engine(), &kernel.wasm).map_err(|error| format!("{error:#}"))?;
        Ok(Self { kernel: kernel.clone(), module })
    }

    /// Runs the parts over a device memory that begins like this; what they leave there, or why one ended early.
    pub(crate) fn run(&self, parts: &[Part], parameters: &[u8], start: &[u8]) -> Result<Vec<u8>, String> {
        // No test ticks so often.
        self.run_until(u64::MAX / 2, parts, parameters, start)
    }

    /// The same, but the clock ticks until it has ended: after so many ticks it is interrupted.
    pub(crate) fn interrupt(&self, parts: &[Part], parameters: &[u8], start: &[u8]) -> Result<Vec<u8>, String> {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    engine().increment_epoch();
                    std::thread::sleep(TICK);
                }
            });
            let outcome = self.run_until(TICKS, parts, parameters, start);
            ended.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn run_until(&self, ticks: u64, parts: &[Part], parameters: &[u8], start: &[u8]) -> Result<Vec<u8>, String> {
        let mut store = Store::new(engine(), ());
        store.set_epoch_deadline(ticks);
        let import = self.module.imports().next().unwrap();
        let memory = Memory::new(&mut store, import.ty().memory().unwrap().clone()).unwrap();
        memory.write(&mut store, 0, start).unwrap();
        for part in parts {
            let instance = Instance::new(&mut store, &self.module, &[Extern::Memory(memory)])
                .map_err(|error| format!("{error:#}"))?;
            let private = instance.get_memory(&mut store, "private").unwrap();
            let needed = self.kernel.private_bytes(part.launch.block.iter().product()).div_ceil(65536);
            let has = private.size(&store);
            private.grow(&mut store, needed.saturating_sub(has)).unwrap();
            private.write(&mut store, 0, &part.launch.encode()).unwrap();
            private.write(&mut store, PARAMETERS as usize, parameters).unwrap();
            let run =
                instance.get_typed_func::<(i64, i64), ()>(&mut store, "run").map_err(|error| format!("{error:#}"))?;
            run.call(&mut store, (part.blocks.start as i64, part.blocks.end as i64))
                .map_err(|error| format!("{error:#}"))?;
        }
        Ok(memory.data(&store)[..start.len()].to_vec())
    }
}
