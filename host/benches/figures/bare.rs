//! A component called with nothing but wasmtime: what the host adds is measured against this.
//!
//! Default settings of the engine, so neither epochs nor canonical NaNs; no limiter, no watch, no record. WASI is linked since
//! components of Rust import it. What `state` and `telemetry` would do is a trap: `start` and `step` of these guests need neither.

use std::path::Path;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentType, Instance, Lift, Linker, Lower, ResourceTable, ResourceType,
    TypedFunc,
};
use wasmtime::{Engine, Result, Store, format_err};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// A running component.
pub struct Bare {
    store: Store<State>,
    step: TypedFunc<(), (Result<Outcome, Error>,)>,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct Job {
    name: String,
    #[component(name = "task-index")]
    task_index: u32,
    #[component(name = "task-count")]
    task_count: u32,
    attempt: u32,
    seed: u64,
}

#[derive(ComponentType, Lift)]
#[component(record)]
struct Progress {
    done: u64,
    total: Option<u64>,
}

#[derive(ComponentType, Lift)]
#[component(variant)]
enum Outcome {
    #[component(name = "more")]
    More(Progress),
    #[component(name = "done")]
    Done(String),
}

#[derive(ComponentType, Lift)]
#[component(variant)]
enum Error {
    #[component(name = "invalid")]
    Invalid(String),
    #[component(name = "retryable")]
    Retryable(String),
    #[component(name = "incompatible-state")]
    IncompatibleState(String),
}

impl Error {
    fn told(self) -> wasmtime::Error {
        let (Self::Invalid(text) | Self::Retryable(text) | Self::IncompatibleState(text)) = self;
        format_err!("the guest failed: {text}")
    }
}

impl Bare {
    /// Compiles a component, instantiates it and calls its `start`.
    pub fn compile(component: &Path, config: &str) -> Result<Self> {
        let engine = Engine::default();
        Self::start(&Component::from_file(&engine, component)?, config)
    }

    /// Instantiates a component and calls its `start`.
    pub fn start(component: &Component, config: &str) -> Result<Self> {
        let mut linker = Linker::new(component.engine());
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
        trap_our_own(&mut linker, component)?;
        let wasi = WasiCtx::builder().inherit_stdout().build();
        let mut store = Store::new(component.engine(), State { wasi, table: ResourceTable::new() });
        let instance = linker.instantiate(&mut store, component)?;

        let start = export(&instance, &mut store, "start")?;
        let start = instance.get_typed_func::<(Job, &str), (Result<(), Error>,)>(&mut store, &start)?;
        let job = Job { name: "bare".to_owned(), task_index: 0, task_count: 1, attempt: 0, seed: 1 };
        let (started,) = start.call(&mut store, (job, config))?;
        started.map_err(Error::told)?;
        let step = export(&instance, &mut store, "step")?;
        let step = instance.get_typed_func(&mut store, step)?;
        Ok(Self { store, step })
    }

    /// One step; the units that the guest says are done, or none when it says that all are.
    pub fn step(&mut self) -> Result<Option<u64>> {
        match self.step.call(&mut self.store, ())?.0 {
            Ok(Outcome::More(Progress { done, total })) => Ok(Some(total.map_or(done, |total| done.min(total)))),
            Ok(Outcome::Done(line)) => {
                drop(line);
                Ok(None)
            }
            Err(error) => Err(error.told()),
        }
    }
}

/// Not wasmtime's own way to let unknown imports trap: that takes WASI of another patch version for unknown.
fn trap_our_own(linker: &mut Linker<State>, component: &Component) -> Result<()> {
    let engine = component.engine();
    for (interface, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(items) = item.ty else { continue };
        if !interface.starts_with("steadfast:") {
            continue;
        }
        let mut instance = linker.instance(interface)?;
        for (name, item) in items.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    instance.func_new(name, |_, _, _, _| Err(format_err!("this program cannot do that")))?;
                }
                ComponentItem::Resource(_) => instance.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn export(instance: &Instance, store: &mut Store<State>, function: &str) -> Result<ComponentExportIndex> {
    let workload = instance.get_export_index(&mut *store, None, "steadfast:job/workload@0.1.0");
    let function = workload.and_then(|workload| instance.get_export_index(store, Some(&workload), function));
    function.ok_or_else(|| format_err!("the component does not export `workload`"))
}

/// Wasmtime's errors are no standard errors.
#[expect(clippy::needless_pass_by_value, reason = "goes into `map_err`")]
pub fn plain(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}
