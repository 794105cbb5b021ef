//! What to rehearse: the validated form of `steadfast rehearse`'s own options.
//!
//! [`Preempt`] and [`Faults`] are written on the command line as they are printed here, so that the command which repeats
//! a difference can be put together from the values themselves.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::job::spec::{DeviceChoice, JobSpec};

/// A rehearsal of one job.
#[derive(Clone, Debug)]
pub struct RehearsalSpec {
    /// The job as the children will understand it; read here for its name, grace time and retention.
    pub job: JobSpec,
    /// What follows `run` on each child's command line: target and options, without `--volume`, `--output`, `--scratch`
    /// and `--dry-run`, which the rehearsal gives itself.
    pub run_args: Vec<OsString>,
    /// The program to start; this one where none is given.
    pub program: Option<PathBuf>,
    /// When attempts are stopped.
    pub preempt: Preempt,
    /// SIGKILL at once, instead of SIGTERM, the grace time, SIGKILL.
    pub kill: bool,
    /// Which volume operations fail.
    pub faults: Option<Faults>,
    /// Damage the newest checkpoint before each resume (never the only usable one).
    pub damage: bool,
    /// How often an attempt that fails by itself is tried again. Preemptions by the schedule don't count.
    pub max_retries: u32,
    /// How many threads run kernels: in each attempt the next of these, again and again. Empty: what the job says.
    pub device_threads: Vec<NonZeroU32>,
    /// What runs kernels: in each attempt the next of these, again and again. Empty: what the job says.
    pub devices: Vec<DeviceChoice>,
    /// Where all chance comes from: the same seed gives the same schedule.
    pub chaos_seed: u64,
    /// Where the volumes of the rehearsal are made; the system's temporary folder where none is given.
    pub work: Option<PathBuf>,
}

/// When the rehearsal stops an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Preempt {
    /// Never.
    #[default]
    Never,
    /// At the boundary of each step, once each, in ascending order.
    EveryStep,
    /// At this many random instants, balanced over the phases of an attempt.
    Times(u32),
    /// Before these steps, ascending.
    At(Vec<u64>),
    /// This long after each attempt began.
    Every(Duration),
}

/// Which volume operations of an attempt fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Each operation of an undisturbed run and of a resuming attempt, in turn, in each way that makes sense for it.
    EveryOperation,
    /// One operation, in each way that makes sense for it.
    Nth(u64),
    /// Exactly this plan of the fault layer (`12:fail-close,20:kill`), in the attempt of this number.
    Plan {
        /// The attempt under the fault, from 0.
        attempt: u32,
        /// What the fault layer is told.
        plan: String,
    },
}

/// Why an option of a rehearsal cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    /// Not one of the forms of `--preempt`.
    #[error("`{0}` is no preemption schedule: write `every-step`, `times:10`, `at:7,19` or `every:2s`")]
    Preempt(String),
    /// Not one of the forms of `--faults`.
    #[error("`{0}` names no fault: write `every-operation`, an operation's number, or `ATTEMPT/NUMBER:KIND`")]
    Faults(String),
}

impl Preempt {
    /// Whether strikes come by the clock, wherever the job is then.
    #[must_use]
    pub fn is_by_time(&self) -> bool {
        matches!(self, Self::Every(_))
    }
}

impl FromStr for Preempt {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let bad = || BadOption::Preempt(text.to_owned());
        match text.split_once(':') {
            None if text == "every-step" => Ok(Self::EveryStep),
            None if text == "never" => Ok(Self::Never),
            Some(("times", count)) => count.parse().ok().filter(|count| *count > 0).map(Self::Times).ok_or_else(bad),
            Some(("at", steps)) => {
                let mut steps: Vec<u64> =
                    steps.split(',').map(|step| step.trim().parse()).collect::<Result<_, _>>().map_err(|_| bad())?;
                steps.sort_unstable();
                steps.dedup();
                Ok(Self::At(steps))
            }
            Some(("every", time)) => {
                humantime::parse_duration(time).ok().filter(|time| !time.is_zero()).map(Self::Every).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Preempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::EveryStep => f.write_str("every-step"),
            Self::Times(count) => write!(f, "times:{count}"),
            Self::At(steps) => {
                let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
                write!(f, "at:{}", steps.join(","))
            }
            Self::Every(time) => {
                let time = humantime::format_duration(*time).to_string();
                write!(f, "every:{}", time.replace(' ', ""))
            }
        }
    }
}

impl FromStr for Faults {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let bad = || BadOption::Faults(text.to_owned());
        if text == "every-operation" {
            return Ok(Self::EveryOperation);
        }
        if let Ok(number) = text.parse::<u64>() {
            return if number > 0 { Ok(Self::Nth(number)) } else { Err(bad()) };
        }
        let (attempt, plan) = match text.split_once('/') {
            Some((attempt, plan)) => (attempt.parse().map_err(|_| bad())?, plan),
            None => (0, text),
        };
        let looks_right = |part: &str| {
            let number = part.split_once(':').and_then(|(number, kind)| Some((number.parse::<u64>().ok()?, kind)));
            number.is_some_and(|(number, kind)| number > 0 && !kind.is_empty())
        };
        if plan.split(',').all(looks_right) { Ok(Self::Plan { attempt, plan: plan.to_owned() }) } else { Err(bad()) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryOperation => f.write_str("every-operation"),
            Self::Nth(number) => write!(f, "{number}"),
            Self::Plan { attempt, plan } => write!(f, "{attempt}/{plan}"),
        }
    }
}

/// How far a rehearsal is, told to whoever shows it.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What is going on, for people.
    pub stage: String,
    /// Preemptions, or runs under a fault, so far.
    pub done: u64,
    /// How many there will be, if that is known.
    pub total: Option<u64>,
}

/// Why a rehearsal came to no verdict.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// A file or folder of the rehearsal itself.
    #[error("cannot {operation} `{}`: {cause}", path.display())]
    Files {
        /// What was tried, as a verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// A child process could not be started or waited for.
    #[error("cannot run an attempt: {0}")]
    Child(std::io::Error),
    /// The job does not come to its end even when nothing disturbs it.
    #[error("the job fails without any disturbance: the undisturbed run {how}\n{last_words}\nhint: everything it said is in `{}`", log.display())]
    Undisturbed {
        /// How its last attempt ended.
        how: String,
        /// The end of what it said.
        last_words: String,
        /// Where the rest is.
        log: PathBuf,
    },
    /// What an undisturbed run left behind cannot be read.
    #[error("cannot read what the undisturbed run left: {0}")]
    Unreadable(String),
    /// The schedule lets the job get nowhere.
    #[error(
        "the job gets nowhere: {attempts} attempts in a row were stopped before step {step} was done\nhint: a longer time between preemptions lets a step be finished"
    )]
    NoProgress {
        /// How many.
        attempts: u32,
        /// The step that never gets done.
        step: u64,
    },
    /// The rehearsal itself was told to stop; its children are gone.
    #[error("interrupted; the attempts were stopped")]
    Interrupted,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_back() {
        for text in ["never", "every-step", "times:100", "at:7,19", "every:2s", "every:1m30s"] {
            assert_eq!(text.parse::<Preempt>().unwrap().to_string(), text);
        }
        for text in ["every-operation", "17", "0/12:fail-close,20:kill", "1/3:eio"] {
            assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        }
        assert_eq!("12:kill".parse::<Faults>().unwrap().to_string(), "0/12:kill");
        assert_eq!("at:19, 7,7".parse::<Preempt>().unwrap(), Preempt::At(vec![7, 19]));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in ["", "every", "every:", "every:0s", "times:0", "times:-1", "at:", "at:x", "sometimes"] {
            assert!(text.parse::<Preempt>().is_err(), "{text}");
        }
        for text in ["", "0", "all", "0:kill", "3:", "x/3:kill", "1/"] {
            assert!(text.parse::<Faults>().is_err(), "{text}");
        }
    }
}
