//! Reads PTX, the assembly language of NVIDIA GPUs, and translates it to core WebAssembly, so that a kernel runs on any machine.
//!
//! ```text
//!  text ──► parse (lexer, parser) ──► module (typed instructions) ──► translate (control flow, SSA, lowering) ──► WebAssembly
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`parse`] | text to a [`Module`](module::Module) |
//! | [`module`] | the typed form of a PTX module: what everything else reads |
//! | [`layout`] | where a module's variables lie |
//! | [`translate`](translate::translate) | an entry of a module to a [`Kernel`](kernel::Kernel) |
//! | [`kernel`] | what a translated kernel is, and how it is run |
//!
//! What of PTX there is, and what not, stands in `README.md` beside this crate's manifest.
//!
//! Pure: no files, no devices, no WebAssembly engine. Whatever text comes in, the answer is a module or an error with its place.
#![forbid(unsafe_code)]

/// Names the translation: it changes whenever the source of this crate does. Part of the name under which compiled code is kept.
pub const TRANSLATION: &str = env!("STEADFAST_PTX_TRANSLATION");

pub mod kernel;
pub mod layout;
pub mod module;
pub mod parse;
pub mod translate;
