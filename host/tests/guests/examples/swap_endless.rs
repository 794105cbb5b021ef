//! A bad release: its first step never ends; with `"sleeps": true` in a call of the host.

use std::thread;
use std::time::Duration;

use steadfast_guest::{Result, plugin};
use test_guests::swapping::{Options, Release, Swapped};

struct Endless;

impl Release for Endless {
    const NUMBER: u32 = 13;
    const STATE_VERSION: u32 = 2;

    fn first_step(options: &Options) -> Result<()> {
        println!("this release never ends its first step");
        loop {
            if options.sleeps {
                thread::sleep(Duration::from_secs(3600));
            }
            std::hint::black_box(());
        }
    }
}

plugin!(Swapped<Endless>);
