//! A stand-in for `steadfast run`: speaks the marks protocol, saves checkpoints through the real volume, goes on from them.
//!
//! Its job draws a number a step from a generator that is part of its state, and writes it down. Each bug is one that people
//! make, switched on by a word among its arguments.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::checkpoint::faults;
use crate::checkpoint::format::{Compression, Reader, SectionKind, SectionRef, encode};
use crate::checkpoint::volume::{Disk, Volume, publish, publish_new};
use crate::supervise::place::CheckpointName;

/// Steps of the job.
pub(super) const STEPS: u64 = 12;
/// Steps between checkpoints.
const EVERY: u64 = 4;

struct Fake {
    bugs: Vec<String>,
    volume: Arc<dyn Volume>,
    task: PathBuf,
    epoch: u64,
    marks: Option<(UnixStream, BufReader<UnixStream>)>,
    told: Arc<AtomicBool>,
    state: State,
}

#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct State {
    step: u64,
    generator: u64,
    lines: Vec<String>,
}

/// Plays an attempt with these arguments and says what the process should exit with.
pub(super) fn attempt(arguments: &str) -> i32 {
    let words: Vec<&str> = arguments.split(' ').collect();
    let after = |option: &str| {
        let index = words.iter().position(|word| *word == option).unwrap();
        PathBuf::from(words[index + 1])
    };
    assert_eq!(words[0], "run");
    assert!(after("--scratch").is_dir());
    assert!(std::env::var_os("SLURM_JOB_ID").is_none() && std::env::var("STEADFAST_REHEARSAL").unwrap() == "1");
    let bugs: Vec<String> = words.iter().filter_map(|word| word.strip_prefix("bug=")).map(str::to_owned).collect();
    if bugs.iter().any(|bug| bug == "fails") {
        eprintln!("this job fails");
        return 75;
    }
    let volume = faults::from_env(Arc::new(Disk::new(after("--volume")))).unwrap();
    let task = Path::new(&std::env::var("CLOUD_RUN_JOB").unwrap()).join("task-00000-of-00001");
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&told)).unwrap();
    let marks = std::env::var_os("STEADFAST_MARKS").map(|path| {
        let stream = UnixStream::connect(path).unwrap();
        (stream.try_clone().unwrap(), BufReader::new(stream))
    });
    let mut fake = Fake { bugs, volume, task, epoch: 0, marks, told, state: State::default() };
    fake.run().unwrap_or(75)
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

    fn told_to_stop(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    fn run(&mut self) -> std::io::Result<i32> {
        self.mark("start-up");
        self.volume.make_dirs(&self.task)?;
        let names: Vec<String> =
            self.volume.list(&self.task)?.unwrap_or_default().into_iter().map(|entry| entry.name).collect();
        let epochs = names.iter().filter_map(|name| name.strip_prefix('e')?.split('-').next()?.parse().ok());
        self.epoch = epochs.max().unwrap_or(0) + 1;
        let claim = self.task.join(format!("e{:04}-aa.claim", self.epoch));
        publish_new(self.volume.as_ref(), &claim, |out| out.write_all(b"mine")).map_err(std::io::Error::other)?;
        self.mark("compilation");
        let candidates = names.iter().any(|name| name.ends_with(".ckpt"));
        match self.newest(&names)? {
            Some(state) => {
                self.mark("restore");
                self.state = state;
                if self.has("forgets-generator") {
                    self.state.generator = 0;
                }
            }
            None if candidates => return Ok(70),
            None => {
                self.mark("start");
                self.save()?;
            }
        }
        while self.state.step < STEPS {
            self.mark("step");
            if self.told_to_stop() {
                return self.stop();
            }
            self.step();
            if self.state.step.is_multiple_of(EVERY) && self.save().is_err() {
                eprintln!("a save failed");
            }
        }
        self.finish()?;
        self.mark("end");
        Ok(0)
    }

    fn step(&mut self) {
        let state = &mut self.state;
        state.generator =
            state.generator.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.lines.push(format!("{} {}", state.step, state.generator >> 33));
        state.step += 1;
    }

    fn stop(&mut self) -> std::io::Result<i32> {
        if self.has("ignores-stop") {
            loop {
                std::thread::park();
            }
        }
        self.save()?;
        self.mark("end");
        Ok(if self.has("stops-with-1") { 1 } else { 143 })
    }

    fn newest(&self, names: &[String]) -> std::io::Result<Option<State>> {
        let mut candidates: Vec<_> = names.iter().filter_map(|name| CheckpointName::parse(name)).collect();
        candidates.sort();
        for candidate in candidates.iter().rev() {
            let source = self.volume.open(&self.task.join(&candidate.file))?;
            if let Ok(bytes) = Reader::open(source.as_ref()).and_then(|reader| reader.read_section(0)) {
                return Ok(Some(serde_json::from_slice(&bytes)?));
            }
        }
        Ok(None)
    }

    fn save(&mut self) -> std::io::Result<()> {
        self.mark("save");
        let bytes = serde_json::to_vec(&self.state)?;
        let section = SectionRef { kind: SectionKind::State, name: "state", bytes: &bytes };
        let metadata = format!(r#"{{"random": {}}}"#, self.state.step);
        let target = self.task.join(format!("e{:04}-aa-{:012}.ckpt", self.epoch, self.state.step));
        let stage = self.task.join(format!("e{:04}-aa.stage-{}.ckpt", self.epoch, self.state.step));
        if self.volume.look(&target)?.is_none() {
            if self.has("writes-in-place") {
                let mut file = self.volume.create_new(&target)?;
                encode(&mut file, &[section], metadata.as_bytes(), Compression::default())?;
                file.close()?;
            } else {
                let write =
                    |mut out: &mut dyn Write| encode(&mut out, &[section], metadata.as_bytes(), Compression::default());
                publish(self.volume.as_ref(), &stage, &target, write).map_err(std::io::Error::other)?;
            }
        }
        self.mark("prune");
        self.prune();
        self.mark("idle");
        Ok(())
    }

    /// Keeps two.
    fn prune(&self) {
        let Ok(Some(entries)) = self.volume.list(&self.task) else { return };
        let mut checkpoints: Vec<_> = entries.iter().filter_map(|entry| CheckpointName::parse(&entry.name)).collect();
        checkpoints.sort();
        for old in checkpoints.iter().rev().skip(2) {
            let _ = self.volume.remove_file(&self.task.join(&old.file));
        }
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.mark("final-write");
        self.save()?;
        let output = format!("output-e{:04}-aa", self.epoch);
        let folder = self.task.join(&output);
        self.volume.make_dirs(&folder.join("empty"))?;
        let mut text = self.state.lines.join("\n");
        if self.has("not-repeatable") {
            text.push_str(&std::process::id().to_string());
        }
        let write = |text: String| move |out: &mut dyn Write| out.write_all(text.as_bytes());
        let publish_text = |name: PathBuf, text: String| {
            publish_new(self.volume.as_ref(), &name, write(text)).map_err(std::io::Error::other)
        };
        publish_text(folder.join("numbers.txt"), text)?;
        publish_text(self.task.join(format!("e{:04}-aa.done.json", self.epoch)), format!(r#"{{"output": "{output}"}}"#))
    }
}
