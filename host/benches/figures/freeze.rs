//! How long a guest waits while its state is copied out of it.
//!
//! *Subject*: `Guest::snapshot` of a guest that only hands over what lies in its memory, into the buffers of an earlier one, as
//! the loop does at every save but the first. *Baseline*: a copy of as many bytes between two buffers that were used before.

use std::hint::black_box;

use anyhow::{Result, ensure};
use steadfast::plugin::{Runtime, Snapshot};

use crate::digits::{job, settings};
use crate::measure::{Row, cpu_seconds, in_turn};
use crate::places;

const MEBIBYTES: usize = 256;
const ROUNDS: usize = 15;

pub fn figures() -> Result<Vec<Row>> {
    let folder = places::on_disk()?;
    let plugin = Runtime::new(None)?.load(&places::component("big_state")?, &|_| {})?;
    let settings = settings(folder.path().to_owned());
    let mut guest = plugin.instantiate(settings)?;
    guest.start(&job(), &format!(r#"{{"mebibytes": {MEBIBYTES}, "sections": 4}}"#))?;

    let mut buffers = Snapshot::default();
    let from = vec![1_u8; MEBIBYTES << 20];
    let mut to = vec![2_u8; MEBIBYTES << 20];
    let rounds = in_turn(
        &mut (),
        ROUNDS,
        |()| {
            let reused = std::mem::take(&mut buffers);
            cpu_seconds(|| {
                buffers = guest.snapshot(reused)?;
                Ok(())
            })
        },
        |()| {
            cpu_seconds(|| {
                to.copy_from_slice(black_box(&from));
                black_box(&mut to);
                Ok(())
            })
        },
    )?;
    let bytes: usize = buffers.sections.iter().map(|section| section.bytes.len()).sum();
    ensure!(bytes >= MEBIBYTES << 20, "the snapshot has {bytes} bytes only");
    Ok(vec![rounds.row("freezing 256 MiB of state : memcpy to warm memory", 1.0, Some(1.5))])
}
