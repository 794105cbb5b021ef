//! The same training without a host, on request: the baseline of what running as a guest costs.
//!
//! ```text
//! usage   natively INPUT-FOLDER OUTPUT-FOLDER CONFIG
//! stdin   a number of steps, a line each time
//! stdout  `taken` when they are, among what the training prints
//! ```
//!
//! A program of its own since the host's benchmark cannot link it: guests ask dependencies for features that would have
//! wasmtime built twice.

#[cfg(not(target_family = "wasm"))]
fn main() -> std::io::Result<()> {
    use std::io::{Error, Write, stdin, stdout};

    use digits::Digits;
    use steadfast_guest::testing::{Harness, set_folders};

    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(output), Some(config)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::other("usage: natively INPUT-FOLDER OUTPUT-FOLDER CONFIG"));
    };
    set_folders(input, output);
    let mut training = Harness::<Digits>::start(&config).map_err(Error::other)?;
    for line in stdin().lines() {
        let steps = line?.trim().parse().map_err(Error::other)?;
        training.steps(steps).map_err(Error::other)?;
        writeln!(stdout(), "taken")?;
    }
    Ok(())
}

/// All examples are built for guests too, where this one has nothing to do.
#[cfg(target_family = "wasm")]
fn main() {}
