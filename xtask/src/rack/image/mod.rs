//! The image as a platform would run it: built from the `Dockerfile`, then run as process 1 on a read-only disk, with a volume and
//! nothing else.
//!
//! ```text
//! room        where all of it is kept, and the commands that build and run containers
//! bases       the images that the Dockerfile builds on, made here where no registry can be reached
//! build       crates and the build itself; how large it all is
//! container   one container: followed line by line, stopped, its exit code
//! promises    what an image has to be before it is run
//! life        a job that is preempted and goes on
//! derived     a plugin of one's own on top of it
//! cuda        the stage with cuBLAS
//! memory      a container that is too small
//! start_up    how long it takes until the first step
//! ```

mod bases;
mod build;
mod container;
mod cuda;
mod derived;
mod life;
mod memory;
mod promises;
mod room;
mod start_up;

use anyhow::Result;

use crate::rack::ledger::Ledger;
use room::Room;

/// Builds the image and checks what it promises.
pub(super) fn run() -> Result<()> {
    let room = Room::open()?;
    let bases = bases::ensure(&room)?;
    let image = build::image(&room, &bases)?;

    let mut ledger = Ledger::default();
    promises::check(&room, &image, &mut ledger);
    life::check(&room, &image, &mut ledger);
    memory::check(&room, &image, &mut ledger);
    ledger.check("a plugin of one's own, as the README shows it", || derived::check(&room, &image));
    cuda::check(&room, &bases, &image, &mut ledger);
    ledger.figure("size", build::sizes(&room, &image));
    ledger.figure("start-up, fastest of 5", start_up::times(&room, &image));
    room.close();
    ledger.end()
}
