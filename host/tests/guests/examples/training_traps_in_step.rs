//! A bad release of `digits`: traps in its first step.

use steadfast_guest::plugin;
use test_guests::training::{Release, Trained};

struct TrapsInStep;

impl Release for TrapsInStep {
    const NUMBER: u32 = 12;

    fn first_step() {
        panic!("this release traps in its first step")
    }
}

plugin!(Trained<TrapsInStep>);
