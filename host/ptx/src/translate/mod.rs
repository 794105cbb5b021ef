//! An entry of a module to WebAssembly.

mod build;
mod error;
mod frame;
mod graph;
mod helper;
mod ir;
mod liveness;
mod lower;
mod regions;
mod survey;
mod tidy;
mod uniform;

pub use error::TranslateError;

use crate::kernel::{Kernel, Options};
use crate::module::{FunctionId, Module, Position};

/// In the private memory, written by the generated code behind [`crate::kernel::Launch`]: bytes of local memory for each thread.
const LOCAL_BYTES: u32 = 104;

/// For what lanes of a warp meet.
mod meeting {
    /// Only to wait for each other.
    pub const SYNC: u32 = 0;
    /// Each gets the value of the lane that it names.
    pub const SHUFFLE: u32 = 1;
    /// Each gets who of the group brings something other than 0, and the group.
    pub const VOTE: u32 = 2;
    /// Each gets who brings the same as it, and the group.
    pub const MATCH: u32 = 3;
    /// Each gets the sum; and so on.
    pub const ADD: u32 = 4;
    pub const MIN: u32 = 5;
    pub const MAX: u32 = 6;
    pub const MIN_SIGNED: u32 = 7;
    pub const MAX_SIGNED: u32 = 8;
    pub const AND: u32 = 9;
    pub const OR: u32 = 10;
    pub const XOR: u32 = 11;
    /// Whoever has come to the same place when no lane can go on: their mask.
    pub const ACTIVE: u32 = 12;
}

use crate::kernel::trap;

/// Translates an entry of a module.
///
/// # Errors
///
/// If the entry uses what this translation does not have, with the place in the text.
pub fn translate(module: &Module, entry: FunctionId, options: &Options) -> Result<Kernel, TranslateError> {
    let Some(function) =
        module.functions.get(entry.0 as usize).filter(|function| function.entry && !function.declaration)
    else {
        return Err(TranslateError::new(Position::default(), "this is not an entry of the module"));
    };
    let built = build::program::Workshop::build(module, entry, options)?;
    lower::kernel(function, built, options)
}
