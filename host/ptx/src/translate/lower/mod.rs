//! The intermediate form to WebAssembly, for one thread at a time.
//!
//! | module | what it is for |
//! |---|---|
//! | [`module`] | the sections, and what is where |
//! | [`unit`] | one WebAssembly function from a function of the intermediate form, or a part of it |
//! | [`plan`] | which values get a local, and which are computed where they are used |
//! | [`structure`] | blocks and jumps as nested `block`, `loop`, `if` |
//! | [`ops`] | one operation |
//! | [`clear`] | what a block finds in its memory: zeros |
//! | [`flat`] | `run` for kernels whose threads never wait: the loop over threads round the body |
//! | [`region`] | a region of a body whose threads wait |
//! | [`schedule`], [`meet`] | `run` for those: who runs next, and what lanes exchange |

mod clear;
mod flat;
mod meet;
mod module;
mod ops;
mod plan;
mod region;
mod schedule;
mod structure;
mod unit;

pub use module::kernel;
