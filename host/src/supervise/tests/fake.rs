//! A stand-in for `steadfast run`: speaks the marks protocol, and keeps its checkpoints in the real store.
//!
//! Its job draws a number a step from a generator that is part of its state, and writes it down. Each bug is one that people
//! make, switched on by a word among its arguments. It saves on its only thread.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::checkpoint::faults;
use crate::checkpoint::format::{Compression, SectionKind, SectionRef, encode};
use crate::checkpoint::metadata::{Metadata, PluginFacts, Progress};
use crate::checkpoint::names::{FileName, TaskFolder};
use crate::checkpoint::outputs::{Manifest, Segments, Tracker, rebuild};
use crate::checkpoint::store::{ClaimRequest, Draft, History, SavePhase, Session, Store, Wish};
use crate::checkpoint::volume::Disk;
use crate::job::spec::JobName;

/// Steps of the job.
pub(super) const STEPS: u64 = 12;
/// Steps between checkpoints.
const EVERY: u64 = 4;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

struct Fake {
    bugs: Vec<String>,
    output: PathBuf,
    told: Arc<AtomicBool>,
    marks: Option<(UnixStream, BufReader<UnixStream>)>,
    state: State,
    saved: Option<u64>,
}

#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct State {
    step: u64,
    generator: u64,
}

/// Plays an attempt with these arguments and says what the process should exit with.
pub(super) fn attempt(arguments: &str) -> i32 {
    let words: Vec<&str> = arguments.split(' ').collect();
    let after = |option: &str| {
        let index = words.iter().position(|word| *word == option).unwrap();
        PathBuf::from(words[index + 1])
    };
    assert_eq!(words[0], "run");
    assert!(std::env::var_os("SLURM_JOB_ID").is_none() && std::env::var("STEADFAST_REHEARSAL").unwrap() == "1");
    let bugs: Vec<String> = words.iter().filter_map(|word| word.strip_prefix("bug=")).map(str::to_owned).collect();
    let output = after("--scratch").join("output");
    std::fs::create_dir(&output).unwrap();
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&told)).unwrap();
    let marks = std::env::var_os("STEADFAST_MARKS").map(|path| {
        let stream = UnixStream::connect(path).unwrap();
        (stream.try_clone().unwrap(), BufReader::new(stream))
    });
    let mut fake = Fake { bugs, output, told, marks, state: State::default(), saved: None };
    if fake.has("fails") {
        eprintln!("this job fails");
        return 75;
    }
    fake.run(after("--volume")).unwrap_or_else(|error| {
        eprintln!("{error}");
        if error.to_string().contains("none of the") { 70 } else { 75 }
    })
}

impl Fake {
    fn has(&self, bug: &str) -> bool {
        self.bugs.iter().any(|other| other == bug)
    }

    fn mark(&mut self, phase: &str) {
        let Some((stream, answers)) = &mut self.marks else { return };
        let mut answer = String::new();
        let _ = writeln!(stream, "mark {phase} {}", self.state.step);
        let _ = answers.read_line(&mut answer);
        if answer == "stopping\n" {
            while !self.told.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
    }

    fn run(&mut self, volume: PathBuf) -> Fallible<i32> {
        self.mark("start-up");
        let volume = faults::from_env(Arc::new(Disk::new(volume)))?;
        let job = JobName::new(std::env::var("CLOUD_RUN_JOB")?)?;
        let store = Store::new(volume, &job, TaskFolder { index: 0, count: 1 });
        let survey = store.survey()?;
        let (choice, done) = store.choose(&survey, Wish::GoOn, None)?;
        if done.is_some() {
            return Ok(0);
        }
        self.mark("compilation");
        let keep = NonZeroU32::MIN.saturating_add(1);
        let (engine, machine) = (String::new(), String::new());
        let request = ClaimRequest { wish: Wish::GoOn, execution: None, engine, machine, adopt: None, keep };
        let mut session = store.prepare(survey, choice, &request)?;
        session.begin()?;
        self.mark("restore");
        let decision = session.load(&History::default(), "", &mut Default::default())?;
        session.settle(&decision.damaged);
        let mut outputs = Manifest::default();
        match decision.loaded {
            Some(loaded) => {
                self.state = serde_json::from_slice(&loaded.sections[0].bytes)?;
                self.saved = Some(self.state.step);
                if self.has("forgets-generator") {
                    self.state.generator = 0;
                }
                outputs = loaded.metadata.outputs;
                let volume = session.volume();
                let mut segments = Segments::new(&*volume, store.folder());
                rebuild(&outputs, &mut segments, &self.output, &self.output.with_extension("metrics"))?;
                if loaded.metadata.finished.is_some() {
                    return self.finish(&mut session, outputs);
                }
            }
            None => self.mark("start"),
        }
        let metrics = self.output.with_extension("metrics");
        let mut tracker = Tracker::new(self.output.clone(), metrics, session.tenure(), &outputs);
        if self.state.step == 0 {
            self.save(&mut session, &mut tracker, None)?;
        }
        self.steps(&mut session, &mut tracker)
    }

    fn steps(&mut self, session: &mut Session, tracker: &mut Tracker) -> Fallible<i32> {
        while self.state.step < STEPS {
            self.mark("step");
            if self.told.load(Ordering::SeqCst) {
                return self.stop(session, tracker);
            }
            self.step()?;
            if self.state.step.is_multiple_of(EVERY)
                && self.state.step < STEPS
                && let Err(error) = self.save(session, tracker, None)
            {
                eprintln!("a save failed: {error}");
            }
        }
        let outputs = self.save(session, tracker, Some("done"))?;
        self.finish(session, outputs)
    }

    fn step(&mut self) -> std::io::Result<()> {
        let state = &mut self.state;
        state.generator =
            state.generator.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let file = std::fs::OpenOptions::new().append(true).create(true).open(self.output.join("numbers.txt"));
        writeln!(file?, "{} {}", state.step, state.generator >> 33)?;
        state.step += 1;
        Ok(())
    }

    fn stop(&mut self, session: &mut Session, tracker: &mut Tracker) -> Fallible<i32> {
        while self.has("ignores-stop") {
            std::thread::park();
        }
        if self.saved != Some(self.state.step) {
            self.save(session, tracker, None)?;
        }
        self.mark("end");
        Ok(if self.has("stops-with-1") { 1 } else { 143 })
    }

    fn save(&mut self, session: &mut Session, tracker: &mut Tracker, finished: Option<&str>) -> Fallible<Manifest> {
        let frozen = tracker.freeze()?;
        let bytes = serde_json::to_vec(&self.state)?;
        let section = SectionRef { kind: SectionKind::State, name: "state", bytes: &bytes };
        let metadata = self.metadata(session, &frozen.manifest, finished);
        let segment = frozen.segment.as_ref().map(|(name, _)| name.clone());
        if let (true, EVERY, Some(segment)) = (self.has("writes-in-place"), self.state.step, &segment) {
            tracker.distrust(segment);
            let metadata = Metadata { outputs: Manifest::default(), ..metadata };
            let name = FileName::Checkpoint(session.tenure(), self.state.step);
            let mut file = session.volume().create_new(&session.store().folder().join(name.to_string()))?;
            encode(&mut file, &[section], &serde_json::to_vec(&metadata)?, Compression::default())?;
            file.close()?;
            return Ok(frozen.manifest);
        }
        let draft = Draft { metadata, sections: vec![section], segment: frozen.segment };
        let this = std::cell::RefCell::new(&mut *self);
        let saved = session.save(draft, &|phase| match phase {
            SavePhase::Save => this.borrow_mut().mark("save"),
            SavePhase::Prune => this.borrow_mut().mark("prune"),
        });
        self.mark("idle");
        if let (Err(_), Some(segment)) = (&saved, segment) {
            tracker.distrust(&segment);
        }
        saved?;
        self.saved = Some(self.state.step);
        Ok(frozen.manifest)
    }

    fn metadata(&self, session: &Session, outputs: &Manifest, finished: Option<&str>) -> Metadata {
        Metadata {
            host_version: String::new(),
            made: String::new(),
            job: session.store().job_folder().display().to_string(),
            task_index: 0,
            task_count: 1,
            lineage: session.lineage(),
            tenure: session.tenure(),
            next_step: self.state.step,
            finished: finished.map(str::to_owned),
            progress: Progress::default(),
            plugin: PluginFacts { name: String::new(), digest: String::new(), state_version: 1, artifact: None },
            config: String::new(),
            input: None,
            seed: 1,
            random: self.state.step.into(),
            device: String::new(),
            elapsed_ms: 0,
            outputs: outputs.clone(),
        }
    }

    fn finish(&mut self, session: &mut Session, outputs: Manifest) -> Fallible<i32> {
        self.mark("final-write");
        let said = if self.has("not-repeatable") { std::process::id().to_string() } else { "done".to_owned() };
        let metadata = self.metadata(session, &outputs, Some(&said));
        if self.has("not-repeatable") {
            std::fs::write(self.output.join("numbers.txt"), said)?;
        }
        session.finish(&metadata, &self.output, &self.output.with_extension("metrics"))?;
        self.mark("end");
        Ok(0)
    }
}
