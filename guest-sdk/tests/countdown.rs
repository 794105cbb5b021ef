//! A whole plugin, as the README shows it, run natively.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde::{Deserialize, Serialize};
use steadfast_guest::testing::{Harness, Snapshot, assert_resumes};
use steadfast_guest::{Error, Job, NoConfig, Outcome, Plugin, Reader, Result, Writer, decode, metric, plugin};

#[derive(Deserialize)]
struct Config {
    steps: u64,
}

#[derive(Serialize, Deserialize)]
struct Countdown {
    left: u64,
    total: u64,
}

impl Plugin for Countdown {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { left: config.steps, total: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        if self.left == 0 {
            return Ok(Outcome::done("lift-off"));
        }
        println!("{} to go", self.left);
        metric("left", self.left as f64);
        self.left -= 1;
        Ok(Outcome::progress(self.total - self.left, self.total))
    }
}

plugin!(Countdown);

#[test]
fn it_runs_to_its_end_and_reports_each_step() {
    let mut run = Harness::<Countdown>::start(r#"{"steps": 3}"#).unwrap();
    assert_eq!(run.step().unwrap(), Outcome::progress(1, 3));
    assert_eq!(run.run().unwrap(), "lift-off");
    let reported: Vec<_> = run.metrics().iter().map(|metric| (metric.step, metric.value)).collect();
    assert_eq!(reported, [(0, 3.0), (1, 2.0), (2, 1.0)]);
}

#[test]
fn it_goes_on_from_a_snapshot() {
    let mut run = Harness::<Countdown>::start(r#"{"steps": 3}"#).unwrap();
    run.step().unwrap();
    let snapshot = run.snapshot().unwrap();
    assert_eq!(snapshot, Snapshot { version: 1, sections: vec![("state".to_owned(), vec![2, 3])] });
    run.steps(2).unwrap();
    assert_eq!(run.plugin.left, 0);
    run.restore(&snapshot).unwrap();
    assert_eq!((run.plugin.left, run.plugin.total), (2, 3));
}

#[test]
fn it_is_the_same_when_resumed_before_every_step() {
    assert_resumes::<Countdown>(r#"{"steps": 10}"#);
}

#[test]
fn a_wrong_configuration_is_invalid() {
    let refused = Harness::<Countdown>::start(r#"{"steps": -1}"#).err().unwrap();
    let message = "configuration, at `steps`: invalid value: integer `-1`, expected u64";
    assert_eq!(refused, Error::Invalid(message.to_owned()));
}

/// The countdown of a later release, which counts in both directions, and reads what its older self saved.
#[derive(Serialize, Deserialize)]
struct CountdownTwo {
    done: u64,
    left: u64,
}

impl Plugin for CountdownTwo {
    type Config = Config;
    const STATE_VERSION: u32 = 2;
    const READS: &'static [u32] = &[1, 2];

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { done: 0, left: config.steps })
    }

    fn step(&mut self) -> Result<Outcome> {
        Ok(Outcome::done("at once"))
    }

    fn migrate(version: u32, bytes: &[u8]) -> Result<Self> {
        match version {
            1 => decode::<Countdown>(bytes).map(|old| Self { done: old.total - old.left, left: old.left }),
            other => Err(Error::incompatible_state(format!("version {other} is not one of ours"))),
        }
    }
}

#[test]
fn state_of_an_older_version_is_migrated() {
    let mut old = Harness::<Countdown>::start(r#"{"steps": 3}"#).unwrap();
    old.step().unwrap();
    let mut new = Harness::<CountdownTwo>::start(r#"{"steps": 3}"#).unwrap();
    new.restore(&old.snapshot().unwrap()).unwrap();
    assert_eq!((new.plugin.done, new.plugin.left), (1, 2));
}

#[test]
fn a_version_that_a_plugin_does_not_say_it_reads_is_refused_before_it_is_asked() {
    let mut new = Harness::<CountdownTwo>::start(r#"{"steps": 3}"#).unwrap();
    let state = Snapshot { version: 3, sections: vec![] };
    let message = "the saved state is of version 3; this plugin reads versions 1, 2";
    assert_eq!(new.restore(&state).err().unwrap(), Error::IncompatibleState(message.to_owned()));
}

#[test]
fn the_versions_stand_in_the_component_as_the_contract_says() {
    use steadfast_guest::export::{reads_its_own, state_versions, state_versions_len};
    assert_eq!(state_versions_len::<CountdownTwo>(), 12);
    assert_eq!(state_versions::<CountdownTwo, 12>(), [2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(state_versions::<Countdown, 8>(), [1, 0, 0, 0, 1, 0, 0, 0]);
    assert!(reads_its_own::<CountdownTwo>());
}

#[test]
fn state_that_does_not_fit_is_incompatible_and_says_why() {
    let mut run = Harness::<Countdown>::start(r#"{"steps": 3}"#).unwrap();
    let state = |version, bytes: &[u8]| Snapshot { version, sections: vec![("state".to_owned(), bytes.to_owned())] };
    for (snapshot, why) in [
        (state(2, &[1, 3]), "the saved state is of version 2; this plugin reads version 1"),
        (state(1, &[1]), "Hit the end of buffer"),
        (state(1, &[1, 3, 9]), "1 of 3 bytes are left over"),
        (Snapshot { version: 1, sections: vec![] }, "the state has no section `state`"),
    ] {
        match run.restore(&snapshot) {
            Err(Error::IncompatibleState(message)) => assert!(message.contains(why), "{message}"),
            other => panic!("expected incompatible state because of {why:?}, got {other:?}"),
        }
    }
}

/// A plugin that writes sections of its own, larger than one call to the host.
#[derive(Serialize, Deserialize)]
struct Large(#[serde(skip)] Vec<u8>);

impl Plugin for Large {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self((0..config.steps).map(|at| (at % 251) as u8).collect()))
    }

    fn step(&mut self) -> Result<Outcome> {
        Ok(Outcome::done("at once"))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        into.write("empty", &[]);
        into.encode("length", &self.0.len())?;
        into.write("bytes", &self.0);
        Ok(())
    }

    fn restore(_job: &Job, _config: Config, from: &Reader<'_>) -> Result<Self> {
        assert_eq!(from.sections(), ["empty", "length", "bytes"]);
        assert_eq!(from.size("empty"), Some(0));
        let bytes = from.bytes("bytes")?;
        assert_eq!(from.decode::<usize>("length")?, bytes.len());
        Ok(Self(bytes))
    }
}

#[test]
fn sections_of_its_own_come_back_in_order_and_whole() {
    let bytes = (64 << 20) + (4 << 20) + 3;
    let mut run = Harness::<Large>::start(&format!(r#"{{"steps": {bytes}}}"#)).unwrap();
    let before = run.plugin.0.clone();
    run.resume().unwrap();
    assert!(run.plugin.0 == before);
}

/// A plugin that has nothing to remember.
#[derive(Serialize, Deserialize)]
struct Stateless;

impl Plugin for Stateless {
    type Config = NoConfig;

    fn start(_job: &Job, _config: NoConfig) -> Result<Self> {
        Ok(Self)
    }

    fn step(&mut self) -> Result<Outcome> {
        Ok(Outcome::done("at once"))
    }
}

#[test]
fn state_of_no_bytes_is_state() {
    let run = Harness::<Stateless>::start("{}").unwrap();
    assert_eq!(run.snapshot().unwrap().sections, [("state".to_owned(), vec![])]);
    assert_resumes::<Stateless>("{}");
}
