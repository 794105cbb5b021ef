//! What the environment says, and which call is to fail.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

pub(crate) static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::read);

pub(crate) struct Settings {
    pub(crate) lazy: bool,
    pub(crate) cuda: i32,
    pub(crate) gpus: i32,
    pub(crate) memory: u64,
    fail: Option<(String, u64, u32)>,
    trace: Option<File>,
    calls: Mutex<HashMap<&'static str, u64>>,
}

impl Settings {
    fn read() -> Self {
        let variable = |name: &str| std::env::var(format!("CUDA_DOUBLE_{name}")).ok();
        let number = |name: &str, usual: u64| variable(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
        let fail = variable("FAIL").and_then(|text| {
            let mut parts = text.split(':');
            Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        });
        let trace = variable("TRACE").and_then(|file| OpenOptions::new().append(true).create(true).open(file).ok());
        Self {
            lazy: number("LAZY", 0) == 1,
            cuda: number("CUDA", 12_020) as i32,
            gpus: number("GPUS", 1) as i32,
            memory: number("MEMORY", 4 << 30),
            fail,
            trace,
            calls: Mutex::default(),
        }
    }

    /// Notes a call, and answers the code that it has to fail with, if it has to.
    pub(crate) fn called(&self, name: &'static str) -> Result<(), u32> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(name).or_default();
        *count += 1;
        if let Some(mut trace) = self.trace.as_ref() {
            let _ = writeln!(trace, "{name}");
        }
        match &self.fail {
            Some((call, which, code)) if call == name && which == count => Err(*code),
            _ => Ok(()),
        }
    }
}
