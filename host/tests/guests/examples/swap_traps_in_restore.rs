//! A bad release: traps in `restore`, once the state was read.

use steadfast_guest::{Result, plugin};
use test_guests::swapping::{Release, Swapped};

struct TrapsInRestore;

impl Release for TrapsInRestore {
    const NUMBER: u32 = 11;
    const STATE_VERSION: u32 = 2;

    fn restored() -> Result<()> {
        panic!("this release traps in restore")
    }
}

plugin!(Swapped<TrapsInRestore>);
