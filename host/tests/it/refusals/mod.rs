//! Everything that can be wrong from outside: what a user reads of it is frozen, and so is the exit code, on which platforms act.
//!
//! | module | what is wrong |
//! |---|---|
//! | `plugin_files` | the file is no plugin, or one for another host |
//! | `guests` | traps, calls without end, too much memory, output or state |
//! | `configuration` | configurations and job files |
//! | `names` | names of jobs that would be paths |
//! | `volumes` | volumes missing, read-only, full, gone and back; strange files on them |
//! | `sandbox` | ways out of `/input` and `/output` |
//!
//! Tests that need a real mount, or another user, say `SKIPPED` where they may not have it.

mod configuration;
mod guests;
mod names;
mod plugin_files;
mod sandbox;
mod volumes;
