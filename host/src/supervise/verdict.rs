//! The smallest preemption that shows a difference, and the command that repeats it.

use std::ffi::OsStr;

use super::spec::{Faults, Preempt, RehearsalError, RehearsalSpec};

/// Runs that are spent on looking for a smaller preemption.
const TRIES: usize = 24;

/// Looks for the fewest of `steps` whose preemption still makes a difference, as `differs` says: first for a single one, then
/// for an ever smaller part of them. Gives back none if only the whole schedule makes it.
pub(super) fn shrink(
    steps: &[u64],
    differs: &mut dyn FnMut(&[u64]) -> Result<bool, RehearsalError>,
) -> Result<Option<Vec<u64>>, RehearsalError> {
    let mut steps = steps.to_vec();
    steps.sort_unstable();
    steps.dedup();
    let mut tries = TRIES;
    for index in spread(steps.len()).into_iter().take(TRIES / 2) {
        tries -= 1;
        if differs(&steps[index..=index])? {
            return Ok(Some(vec![steps[index]]));
        }
    }
    if steps.is_empty() || !differs(&steps)? {
        return Ok(None);
    }
    // Halves, quarters …: leave a part out as long as the rest still makes the difference.
    let mut part = steps.len().div_ceil(2);
    while steps.len() > 1 && tries > 0 {
        let mut smaller = None;
        for start in (0..steps.len()).step_by(part) {
            let rest: Vec<u64> = [&steps[..start], &steps[(start + part).min(steps.len())..]].concat();
            if rest.is_empty() || tries == 0 {
                continue;
            }
            tries -= 1;
            if differs(&rest)? {
                smaller = Some(rest);
                break;
            }
        }
        match smaller {
            Some(rest) => {
                steps = rest;
                part = part.min(steps.len().div_ceil(2)).max(1);
            }
            None if part == 1 => break,
            None => part = part.div_ceil(2),
        }
    }
    Ok(Some(steps))
}

/// The middle, the ends, and then what lies between: the order in which single steps are tried.
fn spread(len: usize) -> Vec<usize> {
    let mut order = Vec::new();
    let mut push = |index: usize| {
        if index < len && !order.contains(&index) {
            order.push(index);
        }
    };
    push(len / 2);
    push(1);
    push(len.saturating_sub(1));
    push(0);
    let mut parts = 4;
    while parts < 2 * len.max(1) {
        (1..parts).step_by(2).for_each(|part| push(len * part / parts));
        parts *= 2;
    }
    (0..len).for_each(push);
    order
}

/// The command line that repeats a disturbance.
pub(super) fn repeat_command(spec: &RehearsalSpec, preempt: &Preempt, kill: bool, faults: Option<&Faults>) -> String {
    let mut words = vec!["steadfast".to_owned(), "rehearse".to_owned()];
    words.extend(spec.run_args.iter().map(|argument| quoted(argument)));
    words.extend(disturbance(preempt, kill, faults, spec.damage));
    if !spec.device_threads.is_empty() {
        let threads: Vec<_> = spec.device_threads.iter().map(ToString::to_string).collect();
        words.extend(["--threads-in-turn".to_owned(), threads.join(",")]);
    }
    if !spec.devices.is_empty() {
        let devices: Vec<_> = spec.devices.iter().map(ToString::to_string).collect();
        words.extend(["--devices".to_owned(), devices.join(",")]);
    }
    if spec.damage || matches!(preempt, Preempt::Times(_)) {
        words.extend(["--chaos-seed".to_owned(), spec.chaos_seed.to_string()]);
    }
    words.join(" ")
}

/// The options that describe a disturbance.
pub(super) fn disturbance(preempt: &Preempt, kill: bool, faults: Option<&Faults>, damage: bool) -> Vec<String> {
    let mut words = Vec::new();
    // Without a word, every step is preempted; under faults, none is.
    if *preempt != Preempt::Never || faults.is_none() {
        words.extend(["--preempt".to_owned(), preempt.to_string()]);
    }
    if kill {
        words.push("--kill".to_owned());
    }
    if let Some(faults) = faults {
        words.extend(["--faults".to_owned(), faults.to_string()]);
    }
    if damage {
        words.extend(["--damage".to_owned(), "newest".to_owned()]);
    }
    words
}

/// As a shell takes it.
fn quoted(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn shrunk(steps: &[u64], differs: impl Fn(&[u64]) -> bool) -> (Option<Vec<u64>>, usize) {
        let mut tries = 0;
        let found = shrink(steps, &mut |part| {
            tries += 1;
            Ok(differs(part))
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn one_step_is_found_where_one_is_enough() {
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(shrunk(&all, |_| true), (Some(vec![50]), 1));
        assert_eq!(shrunk(&all, |part| part.contains(&99)).0, Some(vec![99]));
    }

    #[test]
    fn a_rare_step_and_a_pair_are_narrowed_down() {
        let all: Vec<u64> = (0..40).collect();
        let (found, tries) = shrunk(&all, |part| part.contains(&23));
        assert!(found.unwrap().contains(&23));
        assert!(tries <= TRIES + 1, "{tries}");
        let (found, _) = shrunk(&[1, 2, 3, 4], |part| part.contains(&1) && part.contains(&4));
        assert_eq!(found, Some(vec![1, 4]));
    }

    #[test]
    fn what_no_boundary_repeats_is_not_narrowed() {
        assert_eq!(shrunk(&[1, 2, 3], |_| false).0, None);
        assert_eq!(shrunk(&[], |_| true).0, None);
    }

    #[test]
    fn every_step_is_tried_once() {
        for len in 0..20 {
            let mut order = spread(len);
            order.sort_unstable();
            assert_eq!(order, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted(OsStr::new("plugins/a.wasm")), "plugins/a.wasm");
        assert_eq!(quoted(OsStr::new(r#"{"steps": 5}"#)), r#"'{"steps": 5}'"#);
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(OsStr::new("")), "''");
    }
}
