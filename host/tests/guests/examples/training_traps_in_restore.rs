//! A bad release of `digits`: traps in `restore`, once the state was read.

use steadfast_guest::{Result, plugin};
use test_guests::training::{Release, Trained};

struct TrapsInRestore;

impl Release for TrapsInRestore {
    const NUMBER: u32 = 11;

    fn restored() -> Result<()> {
        panic!("this release traps in restore")
    }
}

plugin!(Trained<TrapsInRestore>);
