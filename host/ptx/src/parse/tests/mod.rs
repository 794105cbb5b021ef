//! Texts and what becomes of them.

mod any;
mod arithmetic;
mod errors;
mod floats;
mod form;
mod memory;
mod modules;
mod readme;
mod tensor;
mod types;
