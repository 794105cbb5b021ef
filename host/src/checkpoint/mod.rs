//! Checkpoints: their format, the volume they live on, and which of them counts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@format`] | bytes only: sections and metadata under hashes |
//! | [`metadata`], [`names`] | what a checkpoint says about itself; what a file's name says |
//! | [`volume`], [`faults`] | the only code that touches the checkpoint filesystem; its failures on request |
//! | [`store`] | claim, load, save, prune, finish |
//! | [`outputs`], [`input`] | the guest's files across attempts; the digest of what it reads |
//! | [`browse`] | looking at a volume from outside of any attempt |
//!
//! Deliberately absent: the guest, and when to save. A checkpoint's sections are named bytes here.

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
