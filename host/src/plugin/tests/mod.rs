//! Guests in WebAssembly text, run through the real engine.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

mod build;
mod calls;
mod files;
mod limits;

use super::{Guest, GuestEvents, GuestLevel, GuestSettings, GuestStream, JobInfo, Plugin, Runtime};

/// Keeps what a guest reports.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl GuestEvents for Recorder {
    fn line(&self, _: GuestStream, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn log(&self, level: GuestLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{level:?}: {message}"));
    }

    fn metric(&self, name: &str, value: f64) {
        self.0.lock().unwrap().push(format!("{name} = {value}"));
    }
}

fn settings(events: Arc<dyn GuestEvents>) -> GuestSettings {
    GuestSettings {
        input: None,
        output: std::env::temp_dir(),
        memory_limit: 64 << 20,
        state_limit: 64 << 20,
        device: None,
        device_memory: 0,
        seed: 1,
        events,
    }
}

fn job(seed: u64) -> JobInfo {
    JobInfo { name: "test".to_owned(), task_index: 0, task_count: 1, attempt: 0, seed }
}

fn plugin(text: &build::Guest) -> Plugin {
    Runtime::new(None).unwrap().load_bytes("test.wasm".as_ref(), &text.build()).unwrap()
}

fn guest(text: &build::Guest) -> (Guest, Plugin, Arc<Recorder>) {
    let (plugin, recorder) = (plugin(text), Recorder::new());
    (plugin.instantiate(settings(recorder.clone())).unwrap(), plugin, recorder)
}
