//! What comes of a sequence of releases of `digits`, computed natively and undisturbed: the same code without a host.
//!
//! ```text
//! usage   training_reference SEED INPUT-FOLDER OUTPUT-FOLDER
//! stdin   a line for each release that takes over: its number, 1 to 3, how many steps it takes at most, its configuration
//! ```

#[cfg(not(target_family = "wasm"))]
fn main() -> steadfast_guest::Result<()> {
    use std::io::stdin;

    use steadfast_guest::testing::{Harness, Snapshot, job, set_folders};
    use steadfast_guest::{Error, Job, Result};
    use test_guests::training::{Constant, Falling, Halving, Release, Trained};

    fn steps<R: Release>(job: &Job, before: Option<Snapshot>, count: u64, config: &str) -> Result<Snapshot> {
        let mut run = match before {
            None => Harness::<Trained<R>>::start_as(job.clone(), config)?,
            Some(before) => Harness::restored_as(job.clone(), config, &before)?,
        };
        run.steps(count)?;
        run.snapshot()
    }

    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [seed, input, output] = &arguments[..] else {
        return Err(Error::invalid("usage: training_reference SEED INPUT-FOLDER OUTPUT-FOLDER"));
    };
    set_folders(input, output);
    let job = Job { seed: seed.parse().map_err(Error::invalid)?, ..job() };
    let mut state = None;
    for line in stdin().lines() {
        let line = line?;
        let mut words = line.splitn(3, ' ');
        let (Some(number), Some(count), Some(config)) = (words.next(), words.next(), words.next()) else {
            return Err(Error::invalid(format!("no release, count and configuration: `{line}`")));
        };
        let count = count.parse().map_err(Error::invalid)?;
        state = Some(match number {
            "1" => steps::<Constant>(&job, state, count, config)?,
            "2" => steps::<Falling>(&job, state, count, config)?,
            "3" => steps::<Halving>(&job, state, count, config)?,
            other => return Err(Error::invalid(format!("there is no good release {other}"))),
        });
    }
    Ok(())
}

/// All examples are built for guests too, where this one has nothing to do.
#[cfg(target_family = "wasm")]
fn main() {}
