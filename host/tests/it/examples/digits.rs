//! `digits` learns, and goes on from what its older programs saved.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::Arc;

use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Device, DeviceError};
use steadfast::plugin::{
    CallError, Guest, GuestError, GuestEvents, GuestLevel, GuestSettings, GuestStream, JobInfo, Runtime, Snapshot,
    StateSection, Step,
};
use tempfile::TempDir;

use super::{source, tensor, trained};
use crate::support::{Place, component};

#[test]
fn it_learns_to_read() {
    let finished = trained("digits", "{}");
    let lines: Vec<_> = finished.text("metrics.csv").lines().collect();
    assert_eq!((lines[0], lines.len(), finished.steps), ("epoch,loss,accuracy", 1 + 20, 20 * 45));
    let accuracy: f64 = lines[20].rsplit(',').next().unwrap().parse().unwrap();
    assert!(accuracy >= 0.95, "{}", lines[20]);
    let model = finished.outputs["model.safetensors"].as_deref().unwrap();
    assert_eq!(tensor(model, "hidden.weight").0, [64, 64]);
    assert_eq!(tensor(model, "output.bias").0, [10]);
}

#[test]
fn schedules_change_what_is_learned() {
    let after = |schedule: &str| {
        let finished = trained("digits", &format!(r#"{{"epochs": 2, "hidden_units": 8, "schedule": {schedule}}}"#));
        finished.outputs["model.safetensors"].clone()
    };
    let constant = after(r#""constant""#);
    assert!(constant != after(r#"{"cosine": {"floor": 0.0}}"#));
    assert!(constant != after(r#"{"step": {"every_epochs": 1, "factor": 0.5}}"#));
    assert!(constant == after(r#"{"step": {"every_epochs": 1, "factor": 1}}"#));
}

const CONFIGS: [&str; 2] = [
    r#"{"epochs": 2, "hidden_units": 8}"#,
    r#"{"epochs": 2, "hidden_units": 8, "schedule": {"cosine": {"floor": 0.0005}}}"#,
];

fn golden(version: u32, file: &str) -> Vec<u8> {
    fs::read(source("digits/golden").join(format!("version-{version}.{file}"))).unwrap()
}

/// A guest that was given a state, without a job around it.
struct Restored {
    guest: Guest,
    output: TempDir,
}

fn restored(version: u32, state: Vec<u8>, config: &str) -> Result<Restored, CallError> {
    let output = tempfile::tempdir().unwrap();
    let plugin = Runtime::new(None).unwrap().load(&component("digits"), &|_| {}).unwrap();
    let room = 1 << 30;
    let mut guest = plugin
        .instantiate(GuestSettings {
            input: Some(source("digits/data")),
            output: output.path().to_owned(),
            memory_limit: room,
            state_limit: room,
            device: Some(Arc::new(device)),
            device_memory: room,
            seed: 1,
            events: Arc::new(Deaf),
        })
        .unwrap();
    let sections = vec![StateSection { name: "state".to_owned(), bytes: state }];
    let snapshot = Snapshot { version, sections, ..Snapshot::default() };
    let job = JobInfo { name: "digits".to_owned(), task_index: 0, task_count: 1, attempt: 1, seed: 1 };
    guest.restore(&job, config, &Arc::new(snapshot)).map(|()| Restored { guest, output })
}

fn device() -> Result<Box<dyn Device>, DeviceError> {
    let settings =
        Settings { memory_bytes: 1 << 30, cores: NonZeroUsize::MIN, cache: None, canonical_nans: false, vectors: true };
    Ok(Box::new(CpuDevice::open(&settings).unwrap()))
}

struct Deaf;

impl GuestEvents for Deaf {
    fn line(&self, _: GuestStream, _: &str) {}
    fn log(&self, _: GuestLevel, _: &str) {}
    fn metric(&self, _: &str, _: f64) {}
}

/// The older programs trained in the guest's memory, whose sums were made in another order: the same end, but for the last digits.
#[test]
fn states_of_older_versions_go_on_to_the_end_that_they_came_to() {
    for (version, config) in (1..).zip(CONFIGS) {
        let Restored { mut guest, output } = restored(version, golden(version, "state"), config).unwrap();
        fs::write(output.path().join("metrics.csv"), golden(version, "begun.csv")).unwrap();
        assert_eq!(guest.snapshot(Snapshot::default()).unwrap().version, 3);
        let steps = (1..).find(|_| matches!(guest.step().unwrap(), Step::Done(_))).unwrap();
        assert_eq!(steps, 2 * 45 - 50);
        let now = fs::read(output.path().join("model.safetensors")).unwrap();
        for name in ["hidden.weight", "hidden.bias", "output.weight", "output.bias"] {
            let ((shape, values), (golden_shape, golden)) =
                (tensor(&now, name), tensor(&golden(version, "safetensors"), name));
            assert_eq!(shape, golden_shape);
            let apart = values.iter().zip(&golden).map(|(now, then)| (now - then).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-4, "version {version}, {name}: {apart} apart");
        }
        let (metrics, golden) = (fs::read(output.path().join("metrics.csv")).unwrap(), golden(version, "metrics.csv"));
        assert_eq!(metrics.split(|byte| *byte == b'\n').count(), golden.split(|byte| *byte == b'\n').count());
    }
}

#[test]
fn states_of_other_versions_and_of_another_form_are_refused() {
    for (version, said) in [(4, "is of version 4; this plugin reads versions 1, 2, 3"), (3, "is not one of")] {
        match restored(version, golden(1, "state"), CONFIGS[0]).err() {
            Some(CallError::Guest(GuestError::IncompatibleState(message))) => {
                assert!(message.contains(said), "{message}");
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

#[test]
fn another_seed_is_another_network() {
    let after = |seed: &str| {
        let place = Place::new();
        let run = place.run("digits").config(r#"{"epochs": 1}"#).args(seed).arg("--input").arg(source("digits/data"));
        run.done();
        place.finished("digits").outputs["model.safetensors"].clone()
    };
    assert!(after("--seed 1") == after("--seed 1"));
    assert!(after("--seed 1") != after("--seed 2"));
}
