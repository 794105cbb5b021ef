//! The `steadfast` program.

fn main() {}
