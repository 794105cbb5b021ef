//! Whole rehearsals of a stand-in for the real program: this test binary started again, behind a small script.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::attempt::Ending;
use super::compare::Difference;
use super::marks::Phase;
use super::spec::{Faults, Preempt, RehearsalError, RehearsalSpec};
use super::{RehearsalReport, Verdict, rehearse};
use crate::checkpoint::names::FileName;
use crate::job::spec::{Every, IfDone, InputDigest, JobSpec, LogFormat};

/// Hands the stand-in its arguments, and makes the test below be it.
const ARGUMENTS: &str = "STEADFAST_TEST_ATTEMPT";

/// Not a test of its own: what the script starts.
#[test]
fn stand_in() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        std::process::exit(fake::attempt(&arguments));
    }
}

/// The script is written by a shell of its own, for a file that any process of ours has open for writing cannot be started.
fn program(folder: &Path) -> PathBuf {
    let script = folder.join("steadfast");
    let text = format!(
        "#!/bin/sh\n{ARGUMENTS}=\"$*\" exec '{}' --exact supervise::tests::stand_in --nocapture\n",
        std::env::current_exe().unwrap().display()
    );
    let writer = r#"printf %s "$1" > "$2" && chmod +x "$2""#;
    let status = std::process::Command::new("/bin/sh").args(["-c", writer, "sh", &text]).arg(&script).status();
    assert!(status.unwrap().success());
    script
}

fn spec(folder: &TempDir, bugs: &[&str]) -> RehearsalSpec {
    let job = JobSpec {
        plugin: "numbers.wasm".into(),
        job_file: None,
        name: None,
        run_id: None,
        config: "{}".into(),
        volume: None,
        input: None,
        output: None,
        scratch: None,
        seed: None,
        every: Every::Steps(4),
        keep: NonZeroU32::MIN.saturating_add(1),
        grace: Some(Duration::from_secs(60)),
        memory_limit: Some(1 << 30),
        state_limit: None,
        device: Default::default(),
        device_memory: None,
        device_threads: None,
        plugin_digest: None,
        plugin_from: None,
        watch: false,
        canonical_nans: false,
        profile: false,
        step_timeout: None,
        attempt_deadline: None,
        if_done: IfDone::Skip,
        fresh: false,
        from: None,
        accept_changed: Default::default(),
        volume_is_ephemeral: false,
        max_stalled: NonZeroU32::MIN,
        max_save_failures: NonZeroU32::MIN,
        input_digest: InputDigest::Names,
        log: LogFormat::Human,
        dry_run: false,
    };
    let mut run_args = vec!["numbers.wasm".into()];
    run_args.extend(bugs.iter().map(|bug| format!("bug={bug}").into()));
    RehearsalSpec {
        job,
        run_args,
        program: Some(program(folder.path())),
        preempt: Preempt::Never,
        kill: false,
        faults: None,
        damage: false,
        max_retries: 3,
        device_threads: Vec::new(),
        devices: Vec::new(),
        chaos_seed: 1,
        work: Some(folder.path().to_owned()),
    }
}

fn played(change: impl FnOnce(&mut RehearsalSpec), bugs: &[&str]) -> RehearsalReport {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(&folder, bugs);
    change(&mut spec);
    rehearse(&spec, &|_| {}).unwrap()
}

fn differences(report: &RehearsalReport) -> (&[Difference], &str) {
    match &report.verdict {
        Verdict::Different { differences, repeat, .. } => (differences, repeat),
        other => panic!("{other:?}\n{}", report.to_text()),
    }
}

#[track_caller]
fn assert_same(report: &RehearsalReport) {
    assert!(matches!(report.verdict, Verdict::Same), "{}", report.to_text());
    assert_eq!((report.exit_code(), &report.kept), (0, &None));
}

#[test]
fn a_job_that_keeps_its_state_survives_a_stop_at_every_boundary() {
    let report = played(|spec| spec.preempt = Preempt::EveryStep, &[]);
    assert_same(&report);
    let struck: Vec<_> = report.attempts.iter().filter_map(|row| row.hit.map(|hit| (hit.phase, hit.step))).collect();
    assert_eq!(struck, (0..fake::STEPS).map(|step| (Phase::Step, step)).collect::<Vec<_>>());
    assert!(report.attempts.iter().all(|row| row.steps_lost == 0));
    assert_eq!(report.attempts[3].ending, Ending::Exit(143));
    assert_eq!(report.attempts.last().unwrap().ending, Ending::Exit(0));
    assert!(report.checkpoints.count > 0 && report.save_micros.count > 0);
}

#[test]
fn and_a_kill_at_every_boundary_with_what_that_costs() {
    let report = played(
        |spec| {
            spec.preempt = Preempt::EveryStep;
            spec.kill = true;
        },
        &[],
    );
    assert_same(&report);
    let row = &report.attempts[3];
    assert_eq!((row.ending, row.first_step, row.steps_run, row.steps_lost), (Ending::Signal(9), Some(0), 3, 3));
    assert_eq!(report.attempts[7].first_step, Some(4));
}

#[test]
fn a_forgotten_generator_is_found_and_one_step_is_enough_to_show_it() {
    let report = played(|spec| spec.preempt = Preempt::EveryStep, &["forgets-generator"]);
    let (found, repeat) = differences(&report);
    assert!(matches!(&found[0], Difference::Section { name, .. } if name == "state"), "{found:?}");
    assert!(found.iter().any(|it| matches!(it, Difference::File { path, .. } if path == "numbers.txt")), "{found:?}");
    assert_eq!(repeat, "steadfast rehearse numbers.wasm bug=forgets-generator --preempt at:6");
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn a_job_that_differs_from_itself_is_told_apart() {
    let report = played(|spec| spec.preempt = Preempt::EveryStep, &["not-repeatable"]);
    assert!(matches!(&report.verdict, Verdict::NotRepeatable { differences } if differences.len() == 1));
    assert!(report.attempts.is_empty());
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn a_job_that_fails_by_itself_gets_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let error = rehearse(&spec(&folder, &["fails"]), &|_| {}).unwrap_err();
    let RehearsalError::Undisturbed { how, last_words, log } = error else { panic!("{error}") };
    assert!(how.contains("exit 75") && last_words.contains("this job fails") && log.is_file(), "{how} {last_words}");
}

#[test]
fn random_instants_hit_every_phase() {
    let report = played(|spec| spec.preempt = Preempt::Times(21), &[]);
    assert_same(&report);
    let hits = report.hits.unwrap();
    assert_eq!(hits.values().sum::<u32>(), 21, "{hits:?}");
}

#[test]
fn a_wrong_exit_code_after_a_stop_is_a_difference() {
    let report = played(|spec| spec.preempt = Preempt::At(vec![5]), &["stops-with-1"]);
    let (found, _) = differences(&report);
    assert_eq!(found[0], Difference::WrongEnding { attempt: 0, how: "exit 1".into() });
}

#[test]
fn an_attempt_that_outlives_its_grace_is_killed() {
    let report = played(
        |spec| {
            spec.preempt = Preempt::At(vec![5]);
            spec.job.grace = Some(Duration::from_millis(50));
        },
        &["ignores-stop"],
    );
    assert_same(&report);
    assert_eq!(report.attempts[0].ending, Ending::Signal(9));
    assert!(report.attempts[0].hit.unwrap().outlived_grace);
}

#[test]
fn a_damaged_newest_checkpoint_costs_steps_and_nothing_else() {
    let report = played(
        |spec| {
            spec.preempt = Preempt::At(vec![9, 10]);
            spec.damage = true;
        },
        &[],
    );
    assert_same(&report);
    assert_eq!(report.attempts[1].damaged.as_deref().and_then(FileName::parse).and_then(step_of), Some(9));
    assert_eq!(report.attempts[1].first_step, Some(8));
}

#[test]
fn every_volume_operation_may_fail_or_be_the_last() {
    let report = played(|spec| spec.faults = Some(Faults::EveryOperation), &[]);
    assert_same(&report);
    let figures = report.faults.unwrap();
    assert!(figures.operations > 20 && figures.resume_operations > 20 && figures.runs > 100, "{figures:?}");
    assert!(report.attempts.iter().any(|row| row.fault.is_some() && row.ending == Ending::Signal(9)));
}

#[test]
fn a_checkpoint_written_in_place_is_caught_in_the_act() {
    let report = played(|spec| spec.faults = Some(Faults::EveryOperation), &["writes-in-place"]);
    let (found, repeat) = differences(&report);
    assert!(matches!(&found[0], Difference::BrokenCheckpoint { .. }), "{found:?}");
    assert!(repeat.contains("--faults 0/") && report.kept.is_some(), "{repeat}");
}

fn step_of(name: FileName) -> Option<u64> {
    match name {
        FileName::Checkpoint(_, step) => Some(step),
        _ => None,
    }
}
