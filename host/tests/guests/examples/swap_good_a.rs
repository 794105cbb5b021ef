//! Right: the first release of a plugin that is swapped while it runs.

use steadfast_guest::plugin;
use test_guests::swapping::{Release, Swapped};

struct Good;

impl Release for Good {
    const NUMBER: u32 = 1;
    const STATE_VERSION: u32 = 1;
}

plugin!(Swapped<Good>);
