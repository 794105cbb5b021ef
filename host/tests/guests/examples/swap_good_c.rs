//! Right: the third release of a plugin that is swapped while it runs.

use steadfast_guest::plugin;
use test_guests::swapping::{Release, Swapped};

struct Good;

impl Release for Good {
    const NUMBER: u32 = 3;
    const STATE_VERSION: u32 = 3;
}

plugin!(Swapped<Good>);
