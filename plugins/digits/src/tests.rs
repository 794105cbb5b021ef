//! Natively, without a host.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use steadfast_guest::testing::{Harness, Snapshot, assert_resumes, set_folders};
use tempfile::TempDir;

use super::*;

/// The real data, and a fresh output folder for as long as the answer lives.
fn folders() -> TempDir {
    let output = tempfile::tempdir().unwrap();
    set_folders(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"), output.path());
    output
}

#[test]
fn it_learns_to_read() {
    let output = folders();
    let mut run = Harness::<Digits>::start("{}").unwrap();
    let line = run.run().unwrap();
    let accuracy: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(accuracy >= 95.0, "{line}");
    assert_eq!(run.steps_taken(), 20 * 45);

    let metrics = fs::read_to_string(output.path().join(METRICS)).unwrap();
    let lines: Vec<_> = metrics.lines().collect();
    assert_eq!(lines[0], "epoch,loss,accuracy");
    assert_eq!(lines.len(), 1 + 20);
    assert!(lines[20].starts_with("20,"));

    let model = fs::read(output.path().join(MODEL)).unwrap();
    let model = safetensors::SafeTensors::deserialize(&model).unwrap();
    assert_eq!(model.tensor("hidden.weight").unwrap().shape(), [64, 64]);
    assert_eq!(model.tensor("output.bias").unwrap().shape(), [10]);
}

#[test]
fn it_is_the_same_when_resumed_before_every_step() {
    let _output = folders();
    assert_resumes::<Digits>(r#"{"epochs": 2}"#);
}

#[test]
fn schedules_resume_too_and_change_what_is_learned() {
    let _output = folders();
    let after = |schedule: &str| {
        let config = format!(r#"{{"epochs": 2, "hidden_units": 8, "schedule": {schedule}}}"#);
        assert_resumes::<Digits>(&config);
        let mut run = Harness::<Digits>::start(&config).unwrap();
        run.run().unwrap();
        run.plugin.network.flat()
    };
    let constant = after(r#""constant""#);
    assert!(constant != after(r#"{"cosine": {"floor": 0.0}}"#));
    assert!(constant != after(r#"{"step": {"every_epochs": 1, "factor": 0.5}}"#));
    assert!(constant == after(r#"{"step": {"every_epochs": 1, "factor": 1}}"#));
}

#[test]
fn a_schedule_is_a_function_of_the_place() {
    let cosine = Schedule::Cosine { floor: 0.25 };
    assert_eq!([0.0, 0.5, 1.0].map(|share| cosine.rate(1.25, 0, share)), [1.25, 0.75, 0.25]);
    let step = Schedule::Step { every_epochs: 2.try_into().unwrap(), factor: 0.5 };
    assert_eq!([0, 1, 2, 5].map(|epoch| step.rate(1.0, epoch, 0.0)), [1.0, 1.0, 0.5, 0.25]);
}

const VERSION_1: &str = r#"{"epochs": 2, "hidden_units": 8}"#;

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)).unwrap()
}

fn state(version: u32) -> Snapshot {
    Snapshot { version, sections: vec![("state".to_owned(), golden("version-1.state"))] }
}

#[test]
fn state_of_version_1_goes_on_as_the_program_of_version_1_did() {
    let output = folders();
    let mut run = Harness::<Digits>::start(VERSION_1).unwrap();
    run.restore(&state(1)).unwrap();
    // As the host rebuilds it with the state.
    fs::write(output.path().join(METRICS), golden("version-1.begun.csv")).unwrap();
    run.run().unwrap();
    assert_eq!(run.steps_taken(), 2 * 45 - 50);
    assert!(fs::read(output.path().join(MODEL)).unwrap() == golden("version-1.safetensors"));
    assert!(fs::read(output.path().join(METRICS)).unwrap() == golden("version-1.metrics.csv"));
}

#[test]
fn what_was_migrated_is_state_of_version_2_to_the_bit() {
    let _output = folders();
    let mut new = Harness::<Digits>::start(VERSION_1).unwrap();
    new.steps(50).unwrap();
    let mut old = Harness::<Digits>::start(VERSION_1).unwrap();
    old.restore(&state(1)).unwrap();
    assert!(old.snapshot().unwrap() == new.snapshot().unwrap());
    assert_eq!(new.snapshot().unwrap().version, 2);
}

#[test]
fn state_of_other_versions_and_of_another_form_is_refused() {
    let _output = folders();
    let mut run = Harness::<Digits>::start(VERSION_1).unwrap();
    for (version, said) in [(3, "is of version 3; this plugin reads versions 1, 2"), (2, "is not one of")] {
        match run.restore(&state(version)) {
            Err(Error::IncompatibleState(message)) => assert!(message.contains(said), "{message}"),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

#[test]
fn another_seed_is_another_network() {
    let _output = folders();
    let after = |seed| {
        let job = Job { seed, ..steadfast_guest::testing::job() };
        let mut run = Harness::<Digits>::start_as(job, "{}").unwrap();
        run.steps(3).unwrap();
        run.snapshot().unwrap()
    };
    assert!(after(1) == after(1));
    assert!(after(1) != after(2));
}

#[test]
fn an_epoch_takes_every_row_once() {
    let _output = folders();
    let mut run = Harness::<Digits>::start("{}").unwrap();
    run.steps(45).unwrap();
    assert_eq!((run.plugin.epoch, run.plugin.cursor), (1, 0));
    let mut order = run.plugin.order.clone();
    assert!(!order.is_sorted());
    order.sort_unstable();
    assert!(order.into_iter().eq(0..1438));
}

/// The gradient agrees with differences of the loss.
#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    let _output = folders();
    let run = Harness::<Digits>::start(r#"{"hidden_units": 6}"#).unwrap();
    let batch: Vec<_> = run.plugin.data.training[..8].iter().collect();
    let (_, gradient) = run.plugin.network.loss_and_gradient(&batch);
    for probe in (0..gradient.flat().len()).step_by(7) {
        let loss = |shift: f32| {
            let mut network = run.plugin.network.clone();
            network.nudge(probe, shift);
            network.loss_and_gradient(&batch).0 / batch.len() as f64
        };
        let slope = (loss(1e-3) - loss(-1e-3)) / 2e-3;
        let told = f64::from(gradient.flat()[probe]);
        assert!((slope - told).abs() < 2e-3 + 0.02 * told.abs(), "value {probe}: told {told}, measured {slope}");
    }
}

#[test]
fn configuration_out_of_bounds_is_invalid() {
    let _output = folders();
    let refusal = |config: &str| Harness::<Digits>::start(config).err();
    let invalid = |message: &str| Some(Error::Invalid(message.to_owned()));
    assert_eq!(refusal(r#"{"epochs": 0}"#), invalid("configuration, at `epochs`: must be at least 1"));
    assert_eq!(refusal(r#"{"learning_rate": -1}"#), invalid("configuration, at `learning_rate`: must be above 0"));
    for (schedule, said) in [
        (
            r#"{"cosine": {"floor": 1}}"#,
            "configuration, at `schedule.cosine.floor`: must be between 0 and the learning rate",
        ),
        (
            r#"{"step": {"every_epochs": 2, "factor": 0}}"#,
            "configuration, at `schedule.step.factor`: must be above 0, at most 1",
        ),
    ] {
        assert_eq!(refusal(&format!(r#"{{"schedule": {schedule}}}"#)), invalid(said));
    }
    let unknown = refusal(r#"{"schedule": {"step": {"every_epochs": 0, "factor": 1}}}"#);
    assert!(
        matches!(&unknown, Some(Error::Invalid(message)) if message.starts_with("configuration, at `schedule.step.every_epochs`: ")),
        "{unknown:?}"
    );
    assert!(
        matches!(refusal(r#"{"epoch": 3}"#), Some(Error::Invalid(message)) if message.contains("unknown field `epoch`"))
    );
}

/// What `start` says about an input file with this content, less its folder.
fn refusal(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(INPUT), content).unwrap();
    refusal_of(folder.path().to_owned())
}

fn refusal_of(folder: PathBuf) -> String {
    set_folders(&folder, &folder);
    match Harness::<Digits>::start("{}").err() {
        Some(Error::Invalid(message)) => message.replace(&format!("{}/", folder.display()), ""),
        other => panic!("expected invalid input, got {other:?}"),
    }
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[test]
fn input_that_is_missing_or_garbled_is_invalid_and_named_by_file_and_line() {
    let row = format!("{}7\n", "0,".repeat(64));
    assert_eq!(refusal_of("/nowhere".into()), "there is no `digits.csv.gz`: give its folder with --input");
    assert_eq!(refusal(b"0,1,2,3,4,5,6,7"), "`digits.csv.gz`, line 1: invalid gzip header");
    assert_eq!(refusal(&packed(&row)), "`digits.csv.gz` has fewer than 5 lines");
    assert_eq!(
        refusal(&packed(&format!("{row}1,2,3\n"))),
        "`digits.csv.gz`, line 2: expected 64 pixels and a label, found 3 fields"
    );
    assert_eq!(
        refusal(&packed(&format!("{row}{row}17,{}7\n", "0,".repeat(63)))),
        "`digits.csv.gz`, line 3: pixel 1: expected 0 to 16, found `17`"
    );
    assert_eq!(
        refusal(&packed(&format!("{}ten\n", "0,".repeat(64)))),
        "`digits.csv.gz`, line 1: label: expected 0 to 9, found `ten`"
    );
    let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(INPUT)).unwrap();
    assert!(refusal(&whole[..whole.len() / 2]).contains(", line "), "half a file is not a smaller file");
}

/// An input that cannot be read now may be readable elsewhere.
#[test]
fn an_unreadable_input_is_retryable() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(INPUT)).unwrap();
    set_folders(folder.path(), folder.path());
    assert!(matches!(Harness::<Digits>::start("{}").err(), Some(Error::Retryable(_))));
}
