//! PTX to the intermediate form.
//!
//! | module | what it is for |
//! |---|---|
//! | [`ssa`] | variables become values, blocks get parameters |
//! | [`arithmetic`] | the vocabulary: one method for an operation |
//! | [`program`] | what is shared by all functions of a kernel: helpers, routines, where variables lie |
//! | [`body`] | statements, guards and branches of one function |
//! | [`operand`] | operands as values, results into registers |
//! | [`calls`] | calls: inlined, direct, through a register |
//! | the others | one family of instructions each |

pub mod arithmetic;
pub mod atomics;
pub mod bits;
pub mod body;
pub mod calls;
pub mod compare;
pub mod convert;
pub mod float;
pub mod integer;
pub mod matrix;
pub mod mbarrier;
pub mod memory;
pub mod operand;
pub mod program;
pub mod ssa;
pub mod warp;
