//! The job: its specification, the loop that runs it, and how an attempt ends.

pub mod spec;
