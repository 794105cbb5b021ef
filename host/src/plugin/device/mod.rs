//! `steadfast:job/device`: what one guest holds of the device, and what of that a checkpoint keeps.
//!
//! ```text
//!  guest ──► imports ──► Holdings ──► device::Context
//!                │           │ freeze · thaw
//!              files      Snapshot::device
//!      /input · /output
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `imports` | the functions of the interface, one by one |
//! | `holdings` | buffers and modules by name, the budget, and the way into a snapshot and back |
//! | `sections` | what device state is called in a snapshot |
//! | `files` | the guest's two folders, for transfers that do not pass through the guest |
//! | `failure` | why a call was not done, as the guest is told it |
//!
//! A guest has a device of its own, opened when it is made and closed with it: nothing of one guest is there for the next, but for what went
//! through a snapshot. Deliberately absent: which device that is (the job's business), and checks of arguments that [`Context`] makes.
//!
//! [`Context`]: crate::device::Context

mod failure;
mod files;
mod holdings;
mod imports;
mod sections;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::device::{self, BufferId, Device, ModuleId};

pub(super) use failure::is_repeatable;
pub(super) use files::Folders;
pub(super) use holdings::Holdings;
pub(super) use imports::add_to_linker;
pub use sections::{DeviceKind, DeviceSection};

/// Opens the device of a guest.
pub type OpenDevice = Arc<dyn Fn() -> device::Result<Box<dyn Device>> + Send + Sync>;

/// The `buffer` resource.
#[derive(Debug)]
pub struct Buffer {
    id: BufferId,
    bytes: u64,
    /// None for a scratch buffer.
    name: Option<String>,
    restored: bool,
}

/// The `module` resource.
#[derive(Debug)]
pub struct Module {
    id: ModuleId,
    /// The text's digest, where there are variables that a checkpoint keeps.
    digest: Option<String>,
}
