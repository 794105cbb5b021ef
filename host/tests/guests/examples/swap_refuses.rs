//! A bad release: refuses in `restore` the state that it says it reads.

use steadfast_guest::{Error, Result, plugin};
use test_guests::swapping::{Release, Swapped};

struct Refuses;

impl Release for Refuses {
    const NUMBER: u32 = 14;
    const STATE_VERSION: u32 = 2;

    fn restored() -> Result<()> {
        Err(Error::incompatible_state("this release does not go on from any state"))
    }
}

plugin!(Swapped<Refuses>);
