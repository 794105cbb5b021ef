//! Modules of wasm-smith, made components: see `steadfast_fuzz::plugin`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::plugin::run_component(bytes));
