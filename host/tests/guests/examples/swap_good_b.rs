//! Right: the second release of a plugin that is swapped while it runs.

use steadfast_guest::plugin;
use test_guests::swapping::{Release, Swapped};

struct Good;

impl Release for Good {
    const NUMBER: u32 = 2;
    const STATE_VERSION: u32 = 2;
}

plugin!(Swapped<Good>);
