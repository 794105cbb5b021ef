//! The intermediate form to WebAssembly, for one thread at a time, or as the lanes of vectors for four and for several times four side by side.
//!
//! | module | what it is for |
//! |---|---|
//! | [`module`] | the sections, and what is where |
//! | [`form`] | for threads one by one, or for groups of four |
//! | [`unit`] | one WebAssembly function from a function of the intermediate form, or a part of it |
//! | [`plan`] | which values get a local, and which are computed where they are used |
//! | [`structure`] | blocks and jumps as nested `block`, `loop`, `if` |
//! | [`ops`] | one operation |
//! | [`vector`], [`vector_ops`] | the same for four threads at once: values in their shapes, operations |
//! | [`agree`] | whether they agree on a branch, and on what is one number for all |
//! | [`masked`] | what they run for some of their lanes |
//! | [`vector_routine`] | functions for what WebAssembly lacks, for four lanes at once |
//! | [`clear`] | what a block finds in its memory: zeros |
//! | [`flat`] | `run` for kernels whose threads never wait: the loop over threads round the body |
//! | [`groups`] | the same for groups of four threads, and one thread after the other where they do not go together |
//! | [`region`] | a region of a body whose threads wait |
//! | [`frames`], [`outcome`] | what threads keep while they wait, and what a region tells the scheduler |
//! | [`lockstep`] | a region for groups of four threads, and for those of a warp side by side |
//! | [`exchange`] | what the groups of a whole warp exchange |
//! | [`schedule`], [`meet`] | `run` for those: who runs next, and what lanes exchange |

mod agree;
mod clear;
mod exchange;
mod flat;
mod form;
mod frames;
mod groups;
mod lockstep;
mod masked;
mod meet;
mod module;
mod ops;
mod outcome;
mod plan;
mod region;
mod schedule;
mod structure;
mod unit;
mod vector;
mod vector_ops;
mod vector_routine;

pub use module::kernel;
