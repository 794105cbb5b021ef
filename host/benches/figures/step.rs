//! An empty step through the host's loop.
//!
//! *Subject*: `steadfast run` of a guest that only counts, from its start to its end, less what it takes for one step; so all
//! that the loop's thread does around a step is in it: watch, pace, marks, metrics, progress, requests to stop, news of the saver.
//! *Baseline*: the same export of the same component, called in a loop through wasmtime's typed function.
//! Reported beside it: the plugin module's part of that, `Guest::step` called in a loop, against the same baseline.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Result, ensure};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use steadfast::plugin::Runtime;

use crate::bare::{Bare, plain};
use crate::digits::{job, settings};
use crate::measure::{Row, cpu_of, cpu_seconds, in_turn};
use crate::places;

const STEPS: u32 = 1_000_000;
const ROUNDS: usize = 11;

pub fn figures() -> Result<Vec<Row>> {
    let component = places::component("idles")?;
    let folder = places::in_memory().map_or_else(places::on_disk, Ok)?;
    let mut bare = Bare::compile(&component, &config(u64::MAX)).map_err(plain)?;

    let whole = in_turn(
        &mut bare,
        ROUNDS,
        |_| {
            let start_up = run(&component, folder.path(), 1)?;
            Ok(run(&component, folder.path(), u64::from(STEPS) + 1)? - start_up)
        },
        bare_steps,
    )?;

    let settings = settings(folder.path().to_owned());
    let mut guest = Runtime::new(None)?.load(&component, &|_| {})?.instantiate(settings)?;
    guest.start(&job(), &config(u64::MAX))?;
    let of_guest = in_turn(
        &mut bare,
        ROUNDS,
        |_| {
            cpu_seconds(|| {
                for _ in 0..STEPS {
                    black_box(guest.step()?);
                }
                Ok(())
            })
        },
        bare_steps,
    )?;
    Ok(vec![
        whole.row("an empty step in the host's loop : bare call", f64::from(STEPS), Some(1.3)),
        of_guest.row("of that, `Guest::step` : bare call", f64::from(STEPS), None),
    ])
}

fn config(steps: u64) -> String {
    format!(r#"{{"steps": {steps}}}"#)
}

fn run(component: &Path, folder: &Path, steps: u64) -> Result<f64> {
    let place = tempfile::tempdir_in(folder)?;
    let mut run = places::host_run(component, &config(steps), place.path(), &folder.join("cache"));
    let mut child = run.spawn()?;
    let pid = Pid::from_child(&child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let seconds = cpu_of(&child.id().to_string())?;
    let status = child.wait()?;
    ensure!(status.success(), "the run of {steps} steps ended with {status}");
    Ok(seconds)
}

fn bare_steps(bare: &mut Bare) -> Result<f64> {
    cpu_seconds(|| {
        for _ in 0..STEPS {
            black_box(bare.step().map_err(plain)?);
        }
        Ok(())
    })
}
