//! Names on the volume. A name carries all that correctness needs: which attempt wrote the file, and what it is.
//!
//! Every name that an attempt writes begins with its [`Tenure`], so two attempts never write one name, not even when both
//! believe that they are epoch 4. Numbers are compared as numbers, never as text: `e10000` comes after `e9999`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The epoch and nonce under which one attempt writes. Ordered by epoch, then nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tenure {
    /// Counts the attempts at a task, from 1. Two attempts that started at once may share one.
    pub epoch: u32,
    /// Random, so that even those differ.
    pub nonce: u32,
}

impl Tenure {
    /// A tenure in `epoch` with a nonce from the system's randomness.
    pub fn begin(epoch: u32) -> std::io::Result<Self> {
        let mut bytes = [0; 4];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self { epoch, nonce: u32::from_le_bytes(bytes) })
    }
}

impl fmt::Display for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{:04}-{:08x}", self.epoch, self.nonce)
    }
}

/// A text that is no name of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name that Steadfast writes")]
pub struct ForeignName(String);

impl FromStr for Tenure {
    type Err = ForeignName;

    fn from_str(text: &str) -> Result<Self, ForeignName> {
        // Only the one way to write it, as for names below.
        split_tenure(text)
            .filter(|(tenure, rest)| rest.is_empty() && tenure.to_string() == text)
            .map(|(tenure, _)| tenure)
            .ok_or_else(|| ForeignName(text.into()))
    }
}

impl TryFrom<String> for Tenure {
    type Error = ForeignName;
    fn try_from(text: String) -> Result<Self, ForeignName> {
        text.parse()
    }
}

impl From<Tenure> for String {
    fn from(tenure: Tenure) -> Self {
        tenure.to_string()
    }
}

/// What a file or folder in a task's folder is, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// An attempt's claim of the task.
    Claim(Tenure),
    /// How an attempt goes and how it ended.
    Attempt(Tenure),
    /// A checkpoint, with the next step to run.
    Checkpoint(Tenure, u64),
    /// Output bytes published with a checkpoint; numbered from 1 within a tenure.
    Segment(Tenure, u32),
    /// Not yet complete.
    Stage(Tenure, String),
    /// The finished outputs.
    Output(Tenure),
    /// The finished record of metrics.
    Metrics(Tenure),
    /// Written last; names the finished outputs.
    Done(Tenure),
}

impl FileName {
    /// Reads a name; none if it is not one of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("output-") {
            return rest.parse().ok().map(Self::Output);
        }
        let (tenure, rest) = split_tenure(name)?;
        let found = match rest {
            ".claim" => Self::Claim(tenure),
            ".attempt.json" => Self::Attempt(tenure),
            ".done.json" => Self::Done(tenure),
            ".metrics.jsonl" => Self::Metrics(tenure),
            _ => {
                if let Some(of) = rest.strip_prefix(".stage-") {
                    Self::Stage(tenure, of.to_owned())
                } else if let Some(step) = rest.strip_prefix('-').and_then(|rest| rest.strip_suffix(".ckpt")) {
                    Self::Checkpoint(tenure, number(step)?)
                } else {
                    Self::Segment(tenure, number(rest.strip_prefix('-')?.strip_suffix(".seg")?)?)
                }
            }
        };
        // Only the one way to write a name is a name: `e1-…` beside `e0001-…` would be two names for one thing.
        (found.to_string() == name).then_some(found)
    }

    /// Who wrote it.
    #[must_use]
    pub fn tenure(&self) -> Tenure {
        match *self {
            Self::Claim(tenure)
            | Self::Attempt(tenure)
            | Self::Checkpoint(tenure, _)
            | Self::Segment(tenure, _)
            | Self::Stage(tenure, _)
            | Self::Output(tenure)
            | Self::Metrics(tenure)
            | Self::Done(tenure) => tenure,
        }
    }

    /// The name of the file in which this one is made before it is complete.
    #[must_use]
    pub fn stage(&self) -> Self {
        let full = self.to_string();
        let own = full.strip_prefix(&self.tenure().to_string()).unwrap_or(&full);
        Self::Stage(self.tenure(), own.trim_start_matches(['-', '.']).to_owned())
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(tenure) => write!(f, "{tenure}.claim"),
            Self::Attempt(tenure) => write!(f, "{tenure}.attempt.json"),
            Self::Checkpoint(tenure, step) => write!(f, "{tenure}-{step:012}.ckpt"),
            Self::Segment(tenure, index) => write!(f, "{tenure}-{index:04}.seg"),
            Self::Stage(tenure, of) => write!(f, "{tenure}.stage-{of}"),
            Self::Output(tenure) => write!(f, "output-{tenure}"),
            Self::Metrics(tenure) => write!(f, "{tenure}.metrics.jsonl"),
            Self::Done(tenure) => write!(f, "{tenure}.done.json"),
        }
    }
}

/// The folder of one task of an array job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskFolder {
    /// Which task, from 0.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

impl TaskFolder {
    /// Reads a folder's name; none if it is not one of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (index, count) = name.strip_prefix("task-")?.split_once("-of-")?;
        let found = Self { index: number(index)?, count: number(count)? };
        (found.to_string() == name).then_some(found)
    }
}

impl fmt::Display for TaskFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task-{:05}-of-{:05}", self.index, self.count)
    }
}

fn number<T: FromStr>(digits: &str) -> Option<T> {
    // `parse` alone would take `+7`.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn split_tenure(text: &str) -> Option<(Tenure, &str)> {
    let (epoch, rest) = text.strip_prefix('e')?.split_once('-')?;
    let (nonce, rest) = rest.split_at_checked(8)?;
    let hex = nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let nonce = hex.then(|| u32::from_str_radix(nonce, 16).ok()).flatten()?;
    Some((Tenure { epoch: number(epoch)?, nonce }, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(tenure: Tenure, step: u64, index: u32) -> [FileName; 8] {
        [
            FileName::Claim(tenure),
            FileName::Attempt(tenure),
            FileName::Checkpoint(tenure, step),
            FileName::Segment(tenure, index),
            FileName::Checkpoint(tenure, step).stage(),
            FileName::Output(tenure),
            FileName::Metrics(tenure),
            FileName::Done(tenure),
        ]
    }

    proptest! {
        #[test]
        fn names_are_read_as_they_were_written(epoch: u32, nonce: u32, step: u64, index: u32) {
            for name in names(Tenure { epoch, nonce }, step, index) {
                prop_assert_eq!(FileName::parse(&name.to_string()), Some(name));
            }
            let folder = TaskFolder { index, count: epoch };
            prop_assert_eq!(TaskFolder::parse(&folder.to_string()), Some(folder));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text: String) {
            let _ = (FileName::parse(&text), TaskFolder::parse(&text), text.parse::<Tenure>());
        }
    }

    #[test]
    fn order_is_numeric_across_a_power_of_ten() {
        for (less, more) in [(9, 10), (9_999, 10_000), (999_999_999_999, 1_000_000_000_000)] {
            let at = |step| FileName::Checkpoint(Tenure { epoch: 1, nonce: 5 }, step);
            assert!(at(less) < at(more));
        }
        let epoch = |epoch| Tenure { epoch, nonce: u32::MAX - epoch };
        assert!(epoch(9_999) < epoch(10_000));
    }

    #[test]
    fn lookalikes_are_foreign() {
        for name in [
            "e1-9c1f2a3b.claim",
            "e0001-9C1F2A3B.claim",
            "e0001-9c1f2a3b-12.ckpt",
            "e+001-9c1f2a3b.claim",
            "output-",
            "output-e1-9c1f2a3b",
            "output-e00001-9c1f2a3b",
            "set-aside",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
        for text in ["e1-9c1f2a3b", "e00001-9c1f2a3b", "e0001-9c1f2a3b.claim"] {
            assert!(text.parse::<Tenure>().is_err(), "{text}");
        }
    }
}
