//! What can be said without a device. The training itself is tested in the host, with `digits` as a component.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use steadfast_guest::testing::{Harness, set_folders};
use tempfile::TempDir;

use super::*;

/// The real data, and a fresh output folder for as long as the answer lives.
fn folders() -> TempDir {
    let output = tempfile::tempdir().unwrap();
    set_folders(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"), output.path());
    output
}

#[test]
fn a_schedule_is_a_function_of_the_place() {
    let cosine = Schedule::Cosine { floor: 0.25 };
    assert_eq!([0.0, 0.5, 1.0].map(|share| cosine.rate(1.25, 0, share)), [1.25, 0.75, 0.25]);
    let step = Schedule::Step { every_epochs: 2.try_into().unwrap(), factor: 0.5 };
    assert_eq!([0, 1, 2, 5].map(|epoch| step.rate(1.0, epoch, 0.0)), [1.0, 1.0, 0.5, 0.25]);
}

#[test]
fn an_epoch_takes_every_row_once() {
    let mut order: Vec<u32> = (0..1438).collect();
    shuffle(&mut order, &mut Pcg32::seed_from_u64(1));
    assert!(!order.is_sorted());
    order.sort_unstable();
    assert!(order.into_iter().eq(0..1438));
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
