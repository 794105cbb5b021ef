//! Right, but its `snapshot` traps from the step `snapshot_fails_from` on.

use steadfast_guest::{Result, plugin};
use test_guests::swapping::{Options, Release, Swapped};

struct SnapshotFails;

impl Release for SnapshotFails {
    const NUMBER: u32 = 17;
    const STATE_VERSION: u32 = 2;

    fn snapshot(options: &Options, next_step: u64) -> Result<()> {
        assert!(next_step < options.snapshot_fails_from, "this release cannot be saved at step {next_step}");
        Ok(())
    }
}

plugin!(Swapped<SnapshotFails>);
