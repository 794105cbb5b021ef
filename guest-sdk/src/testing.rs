//! Runs a plugin natively, without a host: in `cargo test`, with a debugger, under a profiler.
//!
//! [`Harness`] starts a plugin from its JSON configuration, steps it, and resumes it from a snapshot as the host would:
//! into a new instance, through bytes. [`assert_resumes`] does that before every step and compares.
//!
//! What it deliberately does not do: play the platform. Signals, kills, the volume and the output folder are the business of
//! `steadfast rehearse`, which runs the real component.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::state::{Reader, Sink, Source, Writer};
use crate::{Error, Job, Outcome, Plugin, Result, config};

thread_local! {
    static METRICS: RefCell<Vec<(String, f64)>> = const { RefCell::new(Vec::new()) };
    static FOLDERS: RefCell<Option<(PathBuf, PathBuf)>> = const { RefCell::new(None) };
}

/// A job as a plain machine would name it: `test`, task 0 of 1, attempt 0, seed 1.
pub fn job() -> Job {
    Job { name: "test".to_owned(), task_index: 0, task_count: 1, attempt: 0, seed: 1 }
}

/// From now on, on this thread, [`input`](crate::input) and [`output`](crate::output) are in these folders.
pub fn set_folders(input: impl Into<PathBuf>, output: impl Into<PathBuf>) {
    FOLDERS.with_borrow_mut(|folders| *folders = Some((input.into(), output.into())));
}

pub(crate) fn folders() -> (PathBuf, PathBuf) {
    FOLDERS.with_borrow(|folders| {
        folders.clone().unwrap_or_else(|| (Path::new("/input").to_owned(), Path::new("/output").to_owned()))
    })
}

pub(crate) fn record_metric(name: &str, value: f64) {
    METRICS.with_borrow_mut(|metrics| metrics.push((name.to_owned(), value)));
}

/// A value that the plugin reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The step that reported it, counted from 0.
    pub step: u64,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// What a plugin wrote in `snapshot`: a checkpoint without the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The `STATE_VERSION` of the plugin that wrote it.
    pub version: u32,
    /// Names and bytes, in the order in which they were begun.
    pub sections: Vec<(String, Vec<u8>)>,
}

impl Snapshot {
    fn get(&self, section: &str) -> Option<&[u8]> {
        self.sections.iter().find(|(name, _)| name == section).map(|(_, bytes)| bytes.as_slice())
    }
}

impl Sink for Snapshot {
    fn write(&mut self, section: &str, bytes: &[u8]) {
        match self.sections.iter_mut().find(|(name, _)| name == section) {
            Some((_, have)) => have.extend_from_slice(bytes),
            None => self.sections.push((section.to_owned(), bytes.to_owned())),
        }
    }
}

impl Source for Snapshot {
    fn version(&self) -> u32 {
        self.version
    }

    fn sections(&self) -> Vec<String> {
        self.sections.iter().map(|(name, _)| name.clone()).collect()
    }

    fn size(&self, section: &str) -> Option<u64> {
        self.get(section).map(|bytes| bytes.len() as u64)
    }

    fn read(&self, section: &str, offset: u64, len: u64) -> Vec<u8> {
        let bytes = self.get(section).unwrap_or_default();
        let from = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let to = bytes.len().min(from.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)));
        bytes[from..to].to_owned()
    }
}

/// A running plugin.
pub struct Harness<P> {
    /// The plugin, to look into.
    pub plugin: P,
    job: Job,
    config: String,
    step: u64,
    metrics: Vec<Metric>,
}

impl<P: Plugin> Harness<P> {
    /// Starts a plugin with a JSON configuration, as [`job()`].
    pub fn start(config: &str) -> Result<Self> {
        Self::start_as(job(), config)
    }

    /// Starts a plugin with a JSON configuration.
    pub fn start_as(job: Job, config: &str) -> Result<Self> {
        METRICS.take();
        let plugin = P::start(&job, config::parse(config)?)?;
        Ok(Self { plugin, job, config: config.to_owned(), step: 0, metrics: Vec::new() })
    }

    /// Goes on from a snapshot, perhaps another plugin's, without having started: as after a change of plugin. The steps are
    /// counted from 0.
    pub fn restored_as(job: Job, config: &str, snapshot: &Snapshot) -> Result<Self> {
        METRICS.take();
        let plugin = P::restore(&job, config::parse(config)?, &Reader::new(snapshot))?;
        Ok(Self { plugin, job, config: config.to_owned(), step: 0, metrics: Vec::new() })
    }

    /// One step.
    pub fn step(&mut self) -> Result<Outcome> {
        METRICS.take();
        let outcome = self.plugin.step()?;
        let step = self.step;
        self.metrics.extend(METRICS.take().into_iter().map(|(name, value)| Metric { step, name, value }));
        self.step += 1;
        Ok(outcome)
    }

    /// This many steps, or fewer if the plugin is done before; the last outcome, if there was one.
    pub fn steps(&mut self, count: u64) -> Result<Option<Outcome>> {
        let mut last = None;
        for _ in 0..count {
            last = Some(self.step()?);
            if matches!(last, Some(Outcome::Done(_))) {
                break;
            }
        }
        Ok(last)
    }

    /// Steps until the plugin is done; its line.
    pub fn run(&mut self) -> Result<String> {
        loop {
            if let Outcome::Done(line) = self.step()? {
                return Ok(line);
            }
        }
    }

    /// What a checkpoint would hold now.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot { version: P::STATE_VERSION, sections: Vec::new() };
        self.plugin.snapshot(&mut Writer::new(&mut snapshot))?;
        Ok(snapshot)
    }

    /// The next attempt: a new instance, restored from a snapshot of this one.
    pub fn resume(&mut self) -> Result<()> {
        let snapshot = self.snapshot()?;
        self.restore(&snapshot)
    }

    /// The next attempt: a new instance, restored from a snapshot. The steps are counted on.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.job.attempt += 1;
        self.plugin = P::restore(&self.job, config::parse(&self.config)?, &Reader::new(snapshot))?;
        Ok(())
    }

    /// What was reported so far.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Steps taken so far.
    pub fn steps_taken(&self) -> u64 {
        self.step
    }
}

/// Runs a plugin to its end twice, once undisturbed and once resumed before every step, and panics where the two differ in
/// what they reported, in their last line or in their final state.
///
/// Files in `/output` are not compared: the plugin writes them itself, twice. `steadfast rehearse` compares those.
pub fn assert_resumes<P: Plugin>(config: &str) {
    let undisturbed = run_resuming::<P>(config, false);
    let resumed = run_resuming::<P>(config, true);
    let (undisturbed, resumed) = match (undisturbed, resumed) {
        (Ok(undisturbed), Ok(resumed)) => (undisturbed, resumed),
        (Err(error), _) => panic!("the undisturbed run failed: {error}"),
        (_, Err(error)) => panic!("the resumed run failed: {error}"),
    };
    let differs = undisturbed.0.iter().zip(&resumed.0).find(|(left, right)| !same(left, right));
    assert!(differs.is_none(), "reports differ after a resume: {differs:?}");
    assert_eq!(undisturbed.0.len(), resumed.0.len(), "the number of reports differs after a resume");
    assert_eq!(undisturbed.1, resumed.1, "the last line differs after a resume");
    assert!(undisturbed.2 == resumed.2, "the final state differs after a resume");
}

/// Equal to the bit: NaN is NaN, and 0 is not -0.
fn same(left: &Metric, right: &Metric) -> bool {
    left.step == right.step && left.name == right.name && left.value.to_bits() == right.value.to_bits()
}

fn run_resuming<P: Plugin>(config: &str, resuming: bool) -> Result<(Vec<Metric>, String, Snapshot), Error> {
    let mut run = Harness::<P>::start(config)?;
    loop {
        if resuming {
            run.resume()?;
        }
        if let Outcome::Done(line) = run.step()? {
            return Ok((run.metrics.clone(), line, run.snapshot()?));
        }
    }
}
