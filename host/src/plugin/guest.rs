//! One running guest and its typed calls.
//!
//! A call that traps, exits or is interrupted leaves the guest's memory in the middle of something, so the guest is never
//! called again: every later call answers with an error that says so.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Resource, ResourceTable};

use super::bindings::Plugin as Bindings;
use super::bindings::exports::steadfast::job::workload::Guest as Workload;
use super::bindings::steadfast::job::types as wit;
use super::device::{self, Folders, Holdings};
use super::engine::GuestState;
use super::failure::{self, CallError, GuestError};
use super::limits::MemoryBudget;
use super::random::{Random, RandomPosition};
use super::state::{Reader, Snapshot, Writer};
use super::stdio::Lines;
use super::{
    DeviceSection, GuestSettings, GuestStream, Interrupter, Interruption, JobInfo, Plugin, PluginError, Step, wasi,
    world,
};
use crate::device::DeviceError;

const SMALLEST_HOSTCALL_FUEL: u64 = 1 << 20;
/// Streams, files and pollables that a guest may hold at once.
const MOST_RESOURCES: usize = 100_000;

/// A running plugin. Its calls need a thread with at least 2 MiB of stack.
pub struct Guest {
    store: Store<GuestState>,
    bindings: Bindings,
    random: Random,
    stdout: Lines,
    stderr: Lines,
    interrupter: Interrupter,
    state_limit: u64,
    ended: Option<String>,
}

impl Guest {
    pub(super) fn new(plugin: &Plugin, settings: GuestSettings) -> Result<Self, PluginError> {
        let stdout = Lines::new(GuestStream::Stdout, settings.events.clone());
        let stderr = Lines::new(GuestStream::Stderr, settings.events.clone());
        let random = Random::new(settings.seed);
        let wasi = wasi::context(&settings, &stdout, &stderr, &random)?;
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_RESOURCES);
        let memory = MemoryBudget::new(settings.memory_limit);
        let folders = Folders::open(&settings)?;
        let interrupter = plugin.interrupter();
        let mut holdings = Holdings::new(settings.device, settings.device_memory, interrupter.clone());
        if plugin.uses_device() {
            let failed =
                |error: DeviceError| PluginError::Device { path: plugin.path().to_owned(), cause: error.to_string() };
            holdings.open().map_err(failed)?;
        }
        let state = GuestState {
            wasi,
            table,
            memory,
            events: settings.events,
            dropped_metrics: 0,
            holdings,
            folders,
            interrupter: interrupter.clone(),
        };

        let mut store = Store::new(plugin.pre().engine(), state);
        store.limiter(|state| &mut state.memory);
        let deadline = interrupter.clone();
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| deadline.at_deadline());
        let fuel = settings.memory_limit.max(SMALLEST_HOSTCALL_FUEL);
        store.set_hostcall_fuel(usize::try_from(fuel).unwrap_or(usize::MAX));

        let bindings = plugin.pre().instantiate(&mut store).map_err(|error| {
            let refusal = store.data().memory.refusal();
            if is_type_mismatch(&error) {
                let problems = vec![world::type_mismatch(&error)];
                return PluginError::World { path: plugin.path().to_owned(), problems };
            }
            if !failure::is_the_guest_s(&error, refusal) {
                return PluginError::Engine { cause: format!("{error:#}") };
            }
            stderr.flush();
            let why = failure::explain(&error, refusal, &stderr.last_words());
            PluginError::Instantiate { path: plugin.path().to_owned(), cause: why.to_string() }
        })?;
        let state_limit = settings.state_limit;
        Ok(Self { store, bindings, random, stdout, stderr, interrupter, state_limit, ended: None })
    }

    /// Begins the task from step 0.
    pub fn start(&mut self, job: &JobInfo, config: &str) -> Result<(), CallError> {
        let job = job_record(job);
        self.call(|workload, store| workload.call_start(store, &job, config))
    }

    /// One unit of work.
    pub fn step(&mut self) -> Result<Step, CallError> {
        match self.call(|workload, store| workload.call_step(store))? {
            wit::Outcome::More(wit::Progress { done, total }) => Ok(Step::More { done, total }),
            wit::Outcome::Done(line) => {
                self.store.data_mut().settle_files();
                Ok(Step::Done(line))
            }
        }
    }

    /// The guest's state, and what the device holds for it. The buffers of `reuse`, an earlier snapshot, are used again for sections of the
    /// same names.
    pub fn snapshot(&mut self, reuse: Snapshot) -> Result<Snapshot, CallError> {
        let mut writer = Writer::new(reuse.sections, self.state_limit, self.store.data().holdings.state_bytes());
        writer.has_room().map_err(|error| CallError::Trap { message: error.to_string() })?;
        let (version, writer) =
            self.call_with(writer, |workload, store, rep| workload.call_snapshot(store, Resource::new_borrow(rep)))?;
        self.store.data_mut().settle_files();
        let device = self.freeze_device(reuse.device)?;
        Ok(Snapshot { version, sections: writer.finish(), device })
    }

    fn freeze_device(&mut self, reuse: Vec<DeviceSection>) -> Result<Vec<DeviceSection>, CallError> {
        let frozen = self.store.data_mut().holdings.freeze(reuse);
        frozen.map_err(|error| self.device_failed(error))
    }

    /// Goes on from `state`, instead of [`start`](Self::start). The guest reads it in place, and lets go of it before this returns.
    pub fn restore(&mut self, job: &JobInfo, config: &str, state: &Arc<Snapshot>) -> Result<(), CallError> {
        let thawed = self.store.data_mut().holdings.thaw(&state.device);
        thawed.map_err(|error| self.device_failed(error))?;
        let job = job_record(job);
        let lent = Reader::new(Arc::clone(state));
        self.call_with(lent, |workload, store, rep| {
            workload.call_restore(store, &job, config, Resource::new_borrow(rep))
        })
        .map(|((), _)| ())
    }

    /// Where the guest's random streams are: part of every checkpoint.
    pub fn random_position(&self) -> RandomPosition {
        self.random.position()
    }

    /// Puts the random streams where a checkpoint says that they were.
    pub fn set_random_position(&mut self, position: RandomPosition) {
        self.random.set_position(position);
    }

    /// Hands over what was printed without a line end.
    pub fn flush_output(&self) {
        self.stdout.flush();
        self.stderr.flush();
    }

    /// Bytes in all memories and tables.
    pub fn memory_used(&self) -> u64 {
        self.store.data().memory.used()
    }

    /// Bytes of all its buffers on the device.
    pub fn device_used(&self) -> u64 {
        self.store.data().holdings.bytes()
    }

    /// How many metrics were dropped because of their names.
    pub fn dropped_metrics(&self) -> u64 {
        self.store.data().dropped_metrics
    }

    /// A call that is lent `resource`, for as long as it lasts.
    fn call_with<T: Send + 'static, R>(
        &mut self,
        resource: T,
        call: impl FnOnce(&Workload, &mut Store<GuestState>, u32) -> wasmtime::Result<Result<R, wit::Error>>,
    ) -> Result<(R, T), CallError> {
        let lent = self.store.data_mut().table.push(resource).map_err(|error| host_failure(&error))?;
        let rep = lent.rep();
        let outcome = self.call(|workload, store| call(workload, store, rep));
        let back = self.store.data_mut().table.delete(lent);
        Ok((outcome?, back.map_err(|error| host_failure(&error))?))
    }

    fn call<R>(
        &mut self,
        call: impl FnOnce(&Workload, &mut Store<GuestState>) -> wasmtime::Result<Result<R, wit::Error>>,
    ) -> Result<R, CallError> {
        if let Some(why) = &self.ended {
            return Err(CallError::Trap {
                message: format!("the guest cannot be called any more, since it ended: {why}"),
            });
        }
        self.store.data_mut().memory.begin_call();
        self.stderr.begin_call();
        let outcome = call(self.bindings.steadfast_job_workload(), &mut self.store);
        // Of what the device did wrong a guest may know nothing, or make an error or a trap of its own.
        let finished = self.store.data_mut().holdings.finish();
        let interrupted = outcome.as_ref().is_err_and(|error| error.is::<Interruption>());
        match (outcome, finished) {
            (_, Err(error)) if !interrupted => Err(self.device_failed(error)),
            (Err(error), _) => {
                self.flush_output();
                let why = failure::explain(&error, self.store.data().memory.refusal(), &self.stderr.last_words());
                Err(self.end(why))
            }
            (Ok(Ok(answer)), _) => Ok(answer),
            (Ok(Err(error)), _) => Err(CallError::Guest(guest_error(error))),
        }
    }

    /// The guest is never called again.
    fn end(&mut self, why: CallError) -> CallError {
        self.ended = Some(why.to_string().lines().next().unwrap_or_default().to_owned());
        why
    }

    #[cold]
    fn device_failed(&mut self, error: DeviceError) -> CallError {
        self.flush_output();
        self.end(match error {
            // A wish that was taken back in the meantime was that for a stop: a limit is looked at again after the call.
            DeviceError::Stopped => CallError::Interrupted(self.interrupter.wish().unwrap_or(Interruption::GraceEnds)),
            DeviceError::Lost(text) if device::is_repeatable(self.store.data().holdings.backend()) => {
                CallError::KernelFault(text)
            }
            other => CallError::Device(other.to_string()),
        })
    }
}

/// Types of imports are compared when the plugin is loaded, those of exports only here. wasmtime has no type for that error, so
/// it is told by its words; without them it would count as the machine's fault, and be tried again for ever.
fn is_type_mismatch(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.to_string().starts_with("failed to convert function to given type"))
}

fn job_record(job: &JobInfo) -> wit::Job {
    let JobInfo { name, task_index, task_count, attempt, seed } = job;
    wit::Job { name: name.clone(), task_index: *task_index, task_count: *task_count, attempt: *attempt, seed: *seed }
}

fn guest_error(error: wit::Error) -> GuestError {
    match error {
        wit::Error::Invalid(text) => GuestError::Invalid(text),
        wit::Error::Retryable(text) => GuestError::Retryable(text),
        wit::Error::IncompatibleState(text) => GuestError::IncompatibleState(text),
    }
}

/// The guest holds so many resources that none can be lent to it, or the like.
fn host_failure(error: &wasmtime::component::ResourceTableError) -> CallError {
    CallError::Trap { message: format!("the call cannot be made: {error}") }
}
