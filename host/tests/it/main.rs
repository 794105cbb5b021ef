//! What a user sees: the real program as a process, with real guests, real signals, and the fault layer on the real path.
//!
//! | module | what it is about |
//! |---|---|
//! | `failures` | how checkpointing failed others, each kind a test named after it |
//! | `stops` | signals, deadlines and limits, at every moment of an attempt |
//! | `life` | from the first attempt to the done record, and what begins it anew |
//! | `changes` | what may differ between attempts, and what is refused |
//! | `swaps` | another plugin in the place of the one that runs |
//! | `volume` | the volume must be the volume; more of it in `refusals::volumes` |
//! | `memory` | what a container allows |
//! | `buffers` | a plugin whose state is on the device: what checkpoints keep of it, and how its kernels end an attempt |
//! | `kernels` | what is told of a plugin's kernels |
//! | `outputs` | `/output` and metrics across attempts |
//! | `rehearsals` | rehearsals find nothing where all is right, and find what is wrong |
//! | `device` | what every device must do: the conformance suite |
//! | `cuda` | jobs on a double of NVIDIA's driver: moving, faults, failing calls, missing libraries |
//! | `commands` | the commands that only look, and what is printed |
//! | `plugins` | what a plugin says of itself; making one, and trying one on a job's checkpoints |
//! | `examples` | the example plugins: that their maths is right, and older states of theirs |
//! | `hostile` | what others do to the folders that an attempt works in |
//! | `registry` | plugins by reference, against a real registry and a misbehaving one |
//! | `refusals` | everything that can be wrong from outside: what the message says, and the exit code |
//! | `support` | places, attempts, what an attempt left behind |
//!
//! Attempts are stopped at their marks (`steadfast::job::marks`), so nothing here sleeps, and nothing depends on how fast
//! anything is. Every wait has a limit at which the attempt is killed and the test fails.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod buffers;
mod changes;
mod commands;
mod cuda;
mod device;
mod examples;
mod failures;
mod hostile;
mod kernels;
mod life;
mod memory;
mod outputs;
mod plugins;
mod refusals;
mod registry;
mod rehearsals;
mod stops;
mod support;
mod swaps;
mod volume;
