//! Checkpoint files: see `steadfast_fuzz::checkpoint`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::checkpoint::run(bytes));
