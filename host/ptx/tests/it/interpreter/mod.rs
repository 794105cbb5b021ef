//! Runs a translated kernel without compiling it: an interpreter of as much of WebAssembly as the translation writes.
//!
//! | module | what it is for |
//! |---|---|
//! | `code` | a module taken apart: functions with their jumps resolved |
//! | `run` | executes them: control and memory |
//! | `numeric` | what one operation makes of its operands |
//! | `vector` | the same for vectors |
//!
//! A random kernel runs for a tenth of the time that its compilation takes, so most of them are run here. What is taken for granted is that the module is valid, which the
//! rig sees to, and that jumps leave nothing on the stack, as is so in what the translation writes: a function that leaves more than its results
//! is found out.

mod code;
mod numeric;
mod run;
mod vector;

use steadfast_ptx::kernel::{Kernel, PARAMETERS};

use crate::machine::Part;
use code::Code;
use run::State;

/// A kernel, taken apart.
pub(crate) struct Interpreter<'a> {
    kernel: &'a Kernel,
    /// Of the device memory.
    bytes: u64,
    code: Code<'a>,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(kernel: &'a Kernel, bytes: u64) -> Result<Self, String> {
        Ok(Self { kernel, bytes, code: Code::of(&kernel.wasm).map_err(|error| error.to_string())? })
    }

    /// Runs the parts over a device memory that begins like this; what they leave there, or why one ended early.
    pub(crate) fn run(&self, parts: &[Part], parameters: &[u8], start: &[u8]) -> Result<Vec<u8>, String> {
        let mut device = vec![0; self.bytes as usize];
        device[..start.len()].copy_from_slice(start);
        for part in parts {
            let mut private = vec![0; self.kernel.private_bytes(part.launch.block.iter().product()) as usize];
            let record = part.launch.encode();
            private[..record.len()].copy_from_slice(&record);
            private[PARAMETERS as usize..][..parameters.len()].copy_from_slice(parameters);
            let mut state = State::new(&self.code, device, private);
            state.run(part.blocks.start, part.blocks.end)?;
            device = state.into_device();
        }
        device.truncate(start.len());
        Ok(device)
    }
}
