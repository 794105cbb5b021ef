//! Which volume operations fail, and how: from the trace of an undisturbed run to one plan of the fault layer after another.
//!
//! Every operation is the process's last once, and fails once in a way that its kind allows; the errors rotate, so that all
//! of them occur and the number of runs stays two or three an operation. A close that fails is tried in both ways in which
//! data goes missing: at once, and only when the process dies, some operations later.

use std::path::Path;

use super::spec::{Faults, RehearsalError};
pub use crate::checkpoint::faults::{FAULTS_VARIABLE, TRACE_VARIABLE};

/// One volume operation of a traced attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its number, from 1.
    pub number: u64,
    /// What it does.
    pub kind: String,
    /// On which path.
    pub path: String,
}

/// Reads a trace: lines of `N operation path`.
pub fn read_trace(file: &Path) -> Result<Vec<Operation>, RehearsalError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(parse_trace(&text)),
        // An attempt that never came to the volume leaves no trace.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(RehearsalError::Files { operation: "read", path: file.to_owned(), cause }),
    }
}

fn parse_trace(text: &str) -> Vec<Operation> {
    let operation = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (number, kind) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        Some(Operation { number, kind, path: words.next().unwrap_or_default().to_owned() })
    };
    text.lines().filter_map(operation).collect()
}

/// Every fault worth trying on `operations`, in order, in the attempt of this number.
#[must_use]
pub fn plans(operations: &[Operation], attempt: u32) -> Vec<Faults> {
    let modes = (0..operations.len()).flat_map(|index| modes(operations, index));
    modes.map(|plan| Faults::Plan { attempt, plan }).collect()
}

/// Every fault worth trying on one operation. One that is not in the trace is tried in the ways that fit any.
#[must_use]
pub fn plans_for(operations: &[Operation], number: u64, attempt: u32) -> Vec<Faults> {
    let plans = match operations.iter().position(|operation| operation.number == number) {
        Some(index) => modes(operations, index),
        None => vec![format!("{number}:kill"), format!("{number}:eio")],
    };
    plans.into_iter().map(|plan| Faults::Plan { attempt, plan }).collect()
}

fn modes(operations: &[Operation], index: usize) -> Vec<String> {
    let operation = &operations[index];
    let number = operation.number;
    // Damage that shows only after the process's death is worst when the older checkpoints are just gone.
    let removal = operations[index..].iter().find(|later| later.kind == "remove" && later.path.ends_with(".ckpt"));
    let after_removal = removal.map(|removal| removal.number + 1);
    let mut plans = vec![format!("{number}:kill")];
    let errors = errors_of(&operation.kind);
    if !errors.is_empty() {
        plans.push(format!("{number}:{}", errors[index % errors.len()]));
    }
    match operation.kind.as_str() {
        "close" => {
            plans.push(format!("{number}:fail-close"));
            let death = if index.is_multiple_of(2) { number + 2 } else { after_removal.unwrap_or(number + 5) };
            plans.push(format!("{number}:lose-close,{death}:kill"));
        }
        // Only what is read back at once, before anything is deleted for it, must survive being stored wrong; and only from
        // then on. So the death comes after the deletes.
        "write" if operation.path.ends_with(".ckpt") => {
            plans.extend(after_removal.map(|death| format!("{number}:corrupt,{death}:kill")));
        }
        _ => {}
    }
    plans
}

/// The errors that a kind of operation meets on real volumes.
fn errors_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "create" => &["enospc", "eacces", "eio", "estale"],
        "write" => &["enospc", "short-write", "eio"],
        "sync" => &["eio", "enospc"],
        "rename" => &["eio", "eacces", "estale"],
        "make-dirs" => &["enospc", "eacces", "eio"],
        "list" | "look" | "open" | "read" => &["eio", "estale", "eacces", "enotconn"],
        "remove" | "sync-dir" => &["eio", "eacces"],
        // How a close fails decides what is left of the data; it has modes of its own.
        "close" => &[],
        _ => &["eio"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "1 list job/task-00000-of-00001\n2 create job/e0001-aa.stage-1.ckpt\n3 write job/e0001-aa.stage-1.ckpt\n\
                         4 close job/e0001-aa.stage-1.ckpt\n5 rename job/e0001-aa.stage-1.ckpt\n6 remove job/with space.ckpt\nnonsense\n";

    #[test]
    fn a_trace_is_read_line_by_line() {
        let operations = parse_trace(TRACE);
        assert_eq!(operations.len(), 6);
        assert_eq!(operations[5], Operation { number: 6, kind: "remove".into(), path: "job/with space.ckpt".into() });
    }

    #[test]
    fn every_operation_is_the_last_once_and_fails_once() {
        let operations = parse_trace(TRACE);
        let plans: Vec<String> = plans(&operations, 1).iter().map(Faults::to_string).collect();
        for number in 1..=6 {
            assert!(plans.contains(&format!("1/{number}:kill")), "{number}: {plans:?}");
            let fails = plans.iter().any(|plan| plan.starts_with(&format!("1/{number}:")) && !plan.ends_with("kill"));
            assert!(fails, "{number}: {plans:?}");
        }
        assert!(plans.contains(&"1/4:fail-close".to_owned()));
        assert!(plans.iter().any(|plan| plan.starts_with("1/4:lose-close,") && plan.ends_with(":kill")));
        assert!(plans.contains(&"1/3:corrupt,7:kill".to_owned()));
        assert!(plans.iter().all(|plan| plan.parse::<Faults>().is_ok()), "{plans:?}");
    }

    #[test]
    fn an_operation_beyond_the_trace_is_tried_all_the_same() {
        assert_eq!(plans_for(&parse_trace(TRACE), 99, 0).len(), 2);
        assert!(plans_for(&parse_trace(TRACE), 4, 0).len() >= 3);
    }
}
