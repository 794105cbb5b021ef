//! A bad release: traps in its first step.

use steadfast_guest::{Result, plugin};
use test_guests::swapping::{Options, Release, Swapped};

struct TrapsInStep;

impl Release for TrapsInStep {
    const NUMBER: u32 = 12;
    const STATE_VERSION: u32 = 2;

    fn first_step(_: &Options) -> Result<()> {
        panic!("this release traps in its first step")
    }
}

plugin!(Swapped<TrapsInStep>);
