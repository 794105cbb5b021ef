//! What comes of a sequence of releases of `digits`: one plugin that trains as each of them did, in one piece, by a script in its configuration.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, plugin};
use test_guests::append;
use test_guests::training::digits::{Config, Digits, Schedule};
use test_guests::training::{Constant, Falling, Halving, Release, TAKEN};

/// The releases in turn: the first begins with step 0.
#[derive(Deserialize)]
struct Script {
    segments: Vec<Segment>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Segment {
    /// The first step that the release runs.
    from: u64,
    /// Its number.
    release: u32,
    /// The configuration that it is given.
    digits: Config,
}

impl Segment {
    fn config(&self) -> Result<Config> {
        Ok(self.digits.clone().with_schedule(schedule(self.release)?))
    }
}

#[derive(Serialize, Deserialize)]
struct Scripted {
    digits: Digits,
    segments: Vec<Segment>,
    step: u64,
}

impl Plugin for Scripted {
    type Config = Script;

    fn start(job: &Job, Script { segments }: Script) -> Result<Self> {
        let first = segments.first().ok_or_else(|| Error::invalid("the script has no release"))?;
        Ok(Self { digits: Digits::start(job, first.config()?)?, segments, step: 0 })
    }

    fn step(&mut self) -> Result<Outcome> {
        for segment in self.segments.iter().filter(|segment| segment.from == self.step) {
            append(TAKEN, &format!("{},{}", self.step, segment.release))?;
            self.digits.configure(segment.config()?)?;
        }
        self.step += 1;
        self.digits.step()
    }
}

fn schedule(release: u32) -> Result<Schedule> {
    match release {
        Constant::NUMBER => Ok(Constant::SCHEDULE),
        Falling::NUMBER => Ok(Falling::SCHEDULE),
        Halving::NUMBER => Ok(Halving::SCHEDULE),
        other => Err(Error::invalid(format!("there is no good release {other}"))),
    }
}

plugin!(Scripted);
