//! A bad release of `digits`: refuses in `restore` the state that it says it reads.

use steadfast_guest::{Error, Result, plugin};
use test_guests::training::{Release, Trained};

struct Refuses;

impl Release for Refuses {
    const NUMBER: u32 = 14;

    fn restored() -> Result<()> {
        Err(Error::incompatible_state("this release does not go on from any state"))
    }
}

plugin!(Trained<Refuses>);
