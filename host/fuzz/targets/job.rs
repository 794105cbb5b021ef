//! Job files, configurations, options, engines' variables: see `steadfast_fuzz::job`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| steadfast_fuzz::job::run(bytes));
