//! Loading what this program compiled itself a moment ago, the unsafe step of the smallest program.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Engine, Result};

/// The component in a file that [`Component::serialize`] made.
#[expect(unsafe_code, reason = "wasmtime cannot verify machine code, so loading it is unsafe")]
pub fn deserialize(file: &Path) -> Result<Component> {
    // SAFETY: the file was written by the process that started this one, into a folder of its own, and it waits for our end.
    unsafe { Component::deserialize_file(&Engine::default(), file) }
}
