//! Steadfast runs long GPU batch jobs whose logic is a WebAssembly component, and carries them through preemption.

pub mod checkpoint;
pub mod cli;
pub mod job;
pub mod platform;
pub mod plugin;
pub mod report;
pub mod supervise;
