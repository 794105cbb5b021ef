//! Claims and lineages: who works on a task, and which sequence of attempts a new one goes on in.

use serde::{Deserialize, Serialize};

use crate::checkpoint::names::Tenure;

/// An attempt's claim of a task. Written once, before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Under which the attempt writes.
    pub tenure: Tenure,
    /// The first tenure of the lineage it goes on in; its own if it begins one.
    pub lineage: Tenure,
    /// Why the lineage was begun, and from what.
    pub begun: Begun,
    /// The engine's id of the execution in which the lineage was begun.
    pub begun_in: Option<String>,
    /// The engine's id of the execution that this attempt belongs to.
    pub execution: Option<String>,
    /// The engine's name.
    pub engine: String,
    /// The machine.
    pub machine: String,
    /// The process.
    pub process: u32,
    /// When (microseconds since 1970). Only tells which of two attempts to end early.
    pub since_us: i64,
    /// The version of the program.
    pub host_version: String,
}

/// Why a lineage was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begun {
    /// There was none.
    First,
    /// `--fresh`.
    Fresh,
    /// `--from STEP`: it goes on from this checkpoint of an earlier lineage.
    From {
        /// The step asked for.
        step: u64,
        /// The checkpoint's file name.
        checkpoint: String,
    },
    /// `--if-done restart`, and the one before was done.
    Restart,
}

/// What the command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on where the task is.
    GoOn,
    /// `--fresh`.
    Fresh,
    /// `--from STEP`.
    From(u64),
    /// Begin anew if the task is done.
    RestartIfDone,
}

/// Which lineage an attempt belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The newest.
    GoOn(Claim),
    /// A new one.
    Begin,
}

/// Decides from the newest lineage's newest claim. A flag begins a lineage once an execution: a retry within the execution
/// carries the same flag, and must go on in the lineage that the flag began. `done_before`: another execution has done it.
#[must_use]
pub fn choose(newest: Option<&Claim>, done_before: bool, wish: Wish, execution: Option<&str>) -> Choice {
    let Some(newest) = newest else { return Choice::Begin };
    let begun_here = execution.is_some() && newest.begun_in.as_deref() == execution;
    let begin = match wish {
        Wish::GoOn => false,
        Wish::Fresh => !(begun_here && newest.begun == Begun::Fresh),
        Wish::From(step) => !(begun_here && matches!(newest.begun, Begun::From { step: same, .. } if same == step)),
        Wish::RestartIfDone => done_before && !begun_here,
    };
    if begin { Choice::Begin } else { Choice::GoOn(newest.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(begun: Begun, execution: Option<&str>) -> Claim {
        let tenure = Tenure { epoch: 3, nonce: 1 };
        Claim {
            tenure,
            lineage: tenure,
            begun,
            begun_in: execution.map(Into::into),
            execution: execution.map(Into::into),
            engine: String::new(),
            machine: String::new(),
            process: 1,
            since_us: 0,
            host_version: String::new(),
        }
    }

    fn begins(claim: &Claim, done: bool, wish: Wish, execution: Option<&str>) -> bool {
        choose(Some(claim), done, wish, execution) == Choice::Begin
    }

    #[test]
    fn the_first_claim_begins_a_lineage() {
        assert_eq!(choose(None, false, Wish::GoOn, None), Choice::Begin);
    }

    #[test]
    fn without_a_flag_the_newest_lineage_goes_on() {
        for execution in [None, Some("a"), Some("b")] {
            assert!(!begins(&claim(Begun::Fresh, Some("a")), true, Wish::GoOn, execution));
        }
    }

    #[test]
    fn a_flag_begins_a_lineage_once_an_execution() {
        let step = || Begun::From { step: 5, checkpoint: "c".into() };
        for (begun, wish) in
            [(Begun::Fresh, Wish::Fresh), (step(), Wish::From(5)), (Begun::Restart, Wish::RestartIfDone)]
        {
            assert!(!begins(&claim(begun.clone(), Some("a")), true, wish, Some("a")), "a retry goes on");
            assert!(begins(&claim(begun.clone(), Some("a")), true, wish, Some("b")), "another execution begins");
            assert!(begins(&claim(begun, None), true, wish, None), "each command on a plain machine begins");
        }
        assert!(begins(&claim(step(), Some("a")), false, Wish::From(6), Some("a")), "another step is another wish");
    }

    #[test]
    fn restart_goes_on_with_what_is_not_done() {
        assert!(!begins(&claim(Begun::First, Some("a")), false, Wish::RestartIfDone, Some("b")));
        assert!(
            !begins(&claim(Begun::First, Some("a")), true, Wish::RestartIfDone, Some("a")),
            "done by this very execution"
        );
    }
}
