//! PTX: see `steadfast_fuzz::ptx`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::ptx::run(bytes));
