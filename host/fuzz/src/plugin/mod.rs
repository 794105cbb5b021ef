//! Targets `component` and `plugin_bytes`: plugins that nobody wrote.
//!
//! `component` makes a module of `wasm-smith` a component that fits the world (`module`), loads it with the real
//! [`Runtime`], and calls it as an attempt would: start, some steps, a snapshot, and restore in a fresh guest. Most bodies
//! are nonsense, and most of them end in a trap or without an end; what must hold is that the host says so. At least half of
//! the inputs must come as far as `step`, else the target proves little: it counts, and `cargo xtask fuzz` checks the count.
//!
//! `plugin_bytes` takes the bytes of a plugin's file as they are; the texts of PTX in it are looked for, too.

mod component;
mod module;
mod share;
mod watchdog;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use steadfast::doctor::kernels::in_component;
use steadfast::plugin::{
    CallError, Guest, GuestEvents, GuestLevel, GuestSettings, GuestStream, JobInfo, Plugin, PluginError, Runtime,
    Snapshot, inspect,
};

use share::Share;
use watchdog::Watchdog;

/// What the guests of these targets may have: little, so that limits are met.
const MEMORY_LIMIT: u64 = 24 << 20;

/// Steps that a guest is asked for before and after a snapshot.
const STEPS: usize = 3;

/// One input of `component`.
pub fn run_component(bytes: &[u8]) {
    let share = Share::of_process();
    let reached = component::build(bytes).map_or(Reached::Nothing, |component| play(&component));
    share.count(reached >= Reached::Step);
}

/// The component that an input of `component` becomes: a seed for `plugin_bytes`.
#[cfg(test)]
pub(crate) fn component_of(bytes: &[u8]) -> Option<Vec<u8>> {
    component::build(bytes)
}

/// One input of `plugin_bytes`.
pub fn run_bytes(bytes: &[u8]) {
    let inspection = inspect(bytes);
    assert_eq!(inspection.bytes, bytes.len() as u64);
    for problem in &inspection.problems {
        assert!(!problem.what.is_empty());
    }
    assert!(!inspection.kind.to_string().is_empty());
    if let Ok(texts) = in_component(bytes) {
        let refused = texts.iter().filter_map(|text| text.kernels.as_ref().err());
        refused.for_each(|why| assert!(!why.message.is_empty(), "{why}"));
    }
    let loads = inspection.problems.is_empty();
    if play(bytes) >= Reached::Step {
        assert!(loads, "it was called, although {:?}", inspection.problems);
    }
}

/// One engine for the process, as in the host.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new(None).expect("the engine comes up"))
}

/// How far a plugin comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// It does not load, or does not start.
    Nothing,
    /// It started, and is asked for steps.
    Step,
    /// A fresh guest went on from its snapshot.
    Restored,
}

/// Loads and calls a plugin.
fn play(component: &[u8]) -> Reached {
    let plugin = match runtime().load_bytes(Path::new("fuzzed.wasm"), component) {
        Ok(plugin) => plugin,
        Err(error) => {
            check_plugin_error(&error);
            return Reached::Nothing;
        }
    };
    assert!(plugin.facts().problems.is_empty());
    let Some(mut guest) = instantiate(&plugin) else { return Reached::Nothing };
    let started = call(&plugin, &mut guest, |guest| guest.start(&job(), "{}"));
    if !started {
        return Reached::Nothing;
    }
    for _ in 0..STEPS {
        call(&plugin, &mut guest, |guest| guest.step().map(drop));
    }
    let snapshot = snapshot(&plugin, &mut guest).or_else(|| {
        // Most guests do not survive their first step; one that was asked for none can still say what it holds.
        let mut other = instantiate(&plugin)?;
        call(&plugin, &mut other, |guest| guest.start(&job(), "{}"));
        snapshot(&plugin, &mut other)
    });
    if restore(&plugin, &guest, snapshot.unwrap_or_default()) { Reached::Restored } else { Reached::Step }
}

fn snapshot(plugin: &Plugin, guest: &mut Guest) -> Option<Snapshot> {
    let mut snapshot = None;
    call(plugin, guest, |guest| guest.snapshot(Snapshot::default()).map(|taken| snapshot = Some(taken)));
    if let Some(taken) = &snapshot {
        check_snapshot(taken);
    }
    snapshot
}

/// Goes on from a snapshot in a fresh guest, and answers whether that could be done.
fn restore(plugin: &Plugin, before: &Guest, snapshot: Snapshot) -> bool {
    let Some(mut guest) = instantiate(plugin) else { return false };
    guest.set_random_position(before.random_position());
    let state = Arc::new(snapshot);
    if !call(plugin, &mut guest, |guest| guest.restore(&job(), "{}", &state)) {
        return false;
    }
    let Ok(back) = Arc::try_unwrap(state) else { panic!("the guest keeps the state that it was lent") };
    for _ in 0..STEPS {
        call(plugin, &mut guest, |guest| guest.step().map(drop));
    }
    call(plugin, &mut guest, |guest| guest.snapshot(back).map(|taken| check_snapshot(&taken)));
    true
}

fn instantiate(plugin: &Plugin) -> Option<Guest> {
    let settings = GuestSettings {
        input: None,
        output: output_folder().to_owned(),
        memory_limit: MEMORY_LIMIT,
        state_limit: 4 * MEMORY_LIMIT,
        device: None,
        device_memory: 0,
        seed: 7,
        events: Arc::new(Checker),
    };
    match Watchdog::of_process().watch(&plugin.interrupter(), || plugin.instantiate(settings)) {
        Ok(guest) => Some(guest),
        Err(error) => {
            check_plugin_error(&error);
            None
        }
    }
}

/// Makes a call that ends, and answers whether it succeeded. A guest that ended by it is never called again.
fn call(plugin: &Plugin, guest: &mut Guest, make: impl FnOnce(&mut Guest) -> Result<(), CallError>) -> bool {
    let outcome = Watchdog::of_process().watch(&plugin.interrupter(), || make(guest));
    assert!(guest.memory_used() <= MEMORY_LIMIT);
    let Err(error) = outcome else { return true };
    assert!(!error.to_string().is_empty());
    if let CallError::MemoryLimit { wanted, limit } = error {
        assert!(wanted > limit && limit == MEMORY_LIMIT);
    }
    // A guest that holds so many resources that it can be lent no other was not called, and goes on.
    let called = !error.to_string().starts_with("the call cannot be made");
    if called && !matches!(error, CallError::Guest(_)) {
        let again = guest.step().expect_err("a guest that ended answered").to_string();
        assert!(again.contains("cannot be called any more"), "{again}");
    }
    false
}

fn check_plugin_error(error: &PluginError) {
    let message = error.to_string();
    assert!(!message.is_empty());
    // The machine is not at fault in any of these.
    let own = matches!(
        error,
        PluginError::NotAComponent { .. }
            | PluginError::World { .. }
            | PluginError::Compile { .. }
            | PluginError::Instantiate { .. }
    );
    assert!(own, "{message}");
}

fn check_snapshot(snapshot: &Snapshot) {
    let mut names = std::collections::HashSet::new();
    for section in &snapshot.sections {
        assert!((1..=255).contains(&section.name.len()));
        assert!(names.insert(&section.name), "two sections are called `{}`", section.name);
    }
}

fn job() -> JobInfo {
    JobInfo { name: "fuzz".to_owned(), task_index: 0, task_count: 1, attempt: 0, seed: 7 }
}

/// The guests import nothing that writes files, so all of them can share a folder.
fn output_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join("steadfast-fuzz-output");
        std::fs::create_dir_all(&folder).expect("a folder for outputs");
        folder
    })
}

/// Holds what guests report against what the host promises of it.
struct Checker;

impl GuestEvents for Checker {
    fn line(&self, _: GuestStream, line: &str) {
        // Bytes that are no text become characters of three bytes each.
        assert!(line.len() <= 3 * 8 * 1024 && !line.contains('\n'));
    }

    fn log(&self, _: GuestLevel, message: &str) {
        assert!(message.len() <= 64 * 1024);
    }

    fn metric(&self, name: &str, _: f64) {
        assert!((1..=255).contains(&name.len()) && !name.contains(char::is_control));
    }
}

#[cfg(test)]
mod tests;
