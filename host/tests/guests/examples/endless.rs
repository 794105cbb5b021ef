//! Never comes back: `{"in": "step", "at": 7}`.

use serde::Deserialize;
use steadfast_guest::{Result, plugin};
use test_guests::{Trouble, Troubled};

#[derive(Deserialize)]
struct Endless {}

impl Trouble for Endless {
    type Options = Self;

    fn strike(_: &Self) -> Result<()> {
        println!("going round for ever");
        loop {
            std::hint::black_box(());
        }
    }
}

plugin!(Troubled<Endless>);
