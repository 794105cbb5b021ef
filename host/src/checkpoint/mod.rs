//! Checkpoints: their format, the volume they live on, and which of them counts.

pub mod browse;
pub mod faults;
pub mod format;
pub mod input;
pub mod metadata;
pub mod names;
pub mod outputs;
pub(crate) mod sabotage;
pub mod store;
pub mod volume;
