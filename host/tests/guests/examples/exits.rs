//! Exits, as a program might that does not know it is a plugin: `{"in": "step", "at": 7, "code": 3}`.
//!
//! WASI 0.2 tells the host no more than whether the code was 0. Even then the task is not done: only `step` can say so.

use serde::Deserialize;
use steadfast_guest::{Result, plugin};
use test_guests::{Trouble, Troubled};

#[derive(Deserialize)]
struct Exits {
    #[serde(default = "three")]
    code: i32,
}

fn three() -> i32 {
    3
}

impl Trouble for Exits {
    type Options = Self;

    fn strike(options: &Self) -> Result<()> {
        std::process::exit(options.code)
    }
}

plugin!(Troubled<Exits>);
