//! Jobs on the CUDA device, which here is a double of the driver.
//!
//! | module | what it is about |
//! |---|---|
//! | `jobs` | the same results as on the CPU, moving from one to the other, faults, kernels without end |
//! | `calls` | each call of the driver fails in turn, in several ways |
//! | `libraries` | drivers and libraries that are not there, too old, or incomplete |

mod calls;
mod jobs;
mod libraries;

use crate::support::{Double, Place, Run};

/// An attempt on the double.
fn run(place: &Place, guest: &str) -> Run {
    on_double(place.run(guest)).args("--device cuda")
}

/// Has a program find the double.
fn on_double(run: Run) -> Run {
    run.env("LD_LIBRARY_PATH", Double::new().folder())
}
