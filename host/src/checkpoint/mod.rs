//! Checkpoints: their format, the volume they live on, and which of them counts.

pub mod faults;
pub mod format;
pub(crate) mod sabotage;
pub mod volume;
