//! A bad release: in its first step it overwrites and deletes what is in `/output`, then traps.

use std::fs;

use steadfast_guest::{Result, output, plugin};
use test_guests::swapping::{LATEST, LINES, Options, Release, Swapped};

struct Scribbles;

impl Release for Scribbles {
    const NUMBER: u32 = 16;
    const STATE_VERSION: u32 = 2;

    fn first_step(_: &Options) -> Result<()> {
        fs::write(output("scribbled.txt"), "by a release that traps")?;
        fs::write(output(LATEST), "scribbled over")?;
        // Not there yet in an attempt that begins at step 0.
        let _ = fs::remove_file(output(LINES));
        panic!("this release traps after it scribbled over the outputs")
    }
}

plugin!(Swapped<Scribbles>);
