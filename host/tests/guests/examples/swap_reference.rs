//! What comes of a sequence of releases that take one step each, computed natively and undisturbed: the same code without a host.
//!
//! ```text
//! usage   swap_reference SEED OUTPUT-FOLDER
//! stdin   the number of a release, 1 to 3, a line for each step
//! ```

#[cfg(not(target_family = "wasm"))]
fn main() -> steadfast_guest::Result<()> {
    use std::io::stdin;

    use steadfast_guest::Error;
    use steadfast_guest::testing::{Harness, Snapshot, job, set_folders};
    use steadfast_guest::{Job, Result};
    use test_guests::swapping::{Release, Swapped};

    struct Good<const NUMBER: u32>;
    impl<const NUMBER: u32> Release for Good<NUMBER> {
        const NUMBER: u32 = NUMBER;
        const STATE_VERSION: u32 = NUMBER;
    }

    fn steps<R: Release>(job: &Job, before: Option<Snapshot>, count: u64) -> Result<Snapshot> {
        let mut run = Harness::<Swapped<R>>::start_as(job.clone(), r#"{"steps": 1000000000}"#)?;
        if let Some(before) = before {
            run.restore(&before)?;
        }
        run.steps(count)?;
        run.snapshot()
    }

    let mut arguments = std::env::args().skip(1);
    let (Some(seed), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err(Error::invalid("usage: swap_reference SEED OUTPUT-FOLDER"));
    };
    set_folders(".", output);
    let job = Job { seed: seed.parse().map_err(Error::invalid)?, ..job() };
    let mut numbers = Vec::new();
    for line in stdin().lines() {
        numbers.push(line?.trim().parse::<u32>().map_err(Error::invalid)?);
    }
    let mut state = None;
    for run in numbers.chunk_by(|one, next| one == next) {
        let count = run.len() as u64;
        state = Some(match run[0] {
            1 => steps::<Good<1>>(&job, state, count)?,
            2 => steps::<Good<2>>(&job, state, count)?,
            3 => steps::<Good<3>>(&job, state, count)?,
            other => return Err(Error::invalid(format!("there is no good release {other}"))),
        });
    }
    Ok(())
}

/// All examples are built for guests too, where this one has nothing to do.
#[cfg(target_family = "wasm")]
fn main() {}
