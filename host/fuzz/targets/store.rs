//! A task's folder: see `steadfast_fuzz::store`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::store::run(bytes));
