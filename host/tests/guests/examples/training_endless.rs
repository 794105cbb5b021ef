//! A bad release of `digits`: its first step never ends.

use steadfast_guest::plugin;
use test_guests::training::{Release, Trained};

struct Endless;

impl Release for Endless {
    const NUMBER: u32 = 13;

    fn first_step() {
        loop {
            std::hint::black_box(());
        }
    }
}

plugin!(Trained<Endless>);
