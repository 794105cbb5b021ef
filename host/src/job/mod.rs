//! The job: its specification, the loop that runs it, and how an attempt ends.
//!
//! The only module that knows plugin and checkpoint both, so that the rules about order stand in one place:
//!
//! | file | what it holds |
//! |---|---|
//! | `run` | one attempt from its first look at the volume to its exit code |
//! | `scene` | who and where the attempt is; what is refused before anything is written |
//! | `memory`, `device` | whether guest, device, state and host fit into the memory that is allowed; which device it is |
//! | `begin` | which checkpoint it goes on from, and the guest brought to that point |
//! | `steps` | the loop: step, save when due, stop when asked |
//! | `source`, `wanted` | a file or a registry; which component is loaded from there, or from the volume |
//! | `loading` | the plugin, read and compiled while requests to stop are heard |
//! | `journal` | the attempt's record of itself, which several threads write |
//! | `state` | a guest's snapshot as the sections of a checkpoint, and back |
//! | `saver` | the thread that owns the session and writes checkpoints |
//! | `offers` | another plugin for the running job, noticed and compiled |
//! | `watch` | the thread that keeps time |
//! | `pace` | when a save is due, and what it is predicted to take |
//! | `choice` | which plugin goes on: the file's or the job's |
//! | `changes`, `events`, `opening`, `marks` | what differs from the checkpoint; what the guest says; the opening block; a rehearsal's view |
//! | `profile` | where the device's time went, at the attempt's end |
//! | `exit`, `error` | exit codes, and which error gets which |
//!
//! No filesystem calls, wasmtime types or CUDA types here: those live in `checkpoint`, `plugin` and `device`.

mod begin;
mod changes;
mod choice;
mod device;
mod error;
mod events;
mod exit;
mod journal;
mod loading;
pub mod marks;
mod memory;
mod offers;
mod opening;
mod pace;
mod profile;
mod run;
mod saver;
mod scene;
pub mod source;
pub mod spec;
pub(crate) mod state;
mod steps;
mod wanted;
mod watch;

pub use device::DevicePlan;
pub use error::RunError;
pub use exit::ExitCode;
pub use memory::{Limits, MemoryPlan, Room};
pub use run::run;
