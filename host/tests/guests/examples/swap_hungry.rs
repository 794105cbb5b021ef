//! A bad release: takes memory in `restore` until it gets no more.

use steadfast_guest::{Result, plugin};
use test_guests::swapping::{Release, Swapped};

struct Hungry;

impl Release for Hungry {
    const NUMBER: u32 = 15;
    const STATE_VERSION: u32 = 2;

    fn restored() -> Result<()> {
        let mut taken = Vec::new();
        loop {
            taken.push(std::hint::black_box(vec![1_u8; 16 << 20]));
        }
    }
}

plugin!(Swapped<Hungry>);
