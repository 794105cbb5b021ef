//! One attempt: a child process in its own process group, conducted by its marks.
//!
//! The conductor sees every mark before the attempt goes on, and may strike: with SIGKILL at once, or with SIGTERM, the
//! grace time and SIGKILL to the whole group, as a platform does. It waits for the child without reaping it until all
//! signals are sent, so that no signal can ever reach another process that got the same number.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use serde::Serialize;

use super::marks::{Listener, MARKS_VARIABLE, Mark, Phase, Track, Waiting};
use super::spec::RehearsalError;

/// Variables by which engines speak to a program, or which aim it at a real volume: an attempt sees only the rehearsal's.
const OTHER_ENGINES: [&str; 9] = [
    "CLOUD_RUN_",
    "JOB_COMPLETION_INDEX",
    "KUBERNETES_",
    "SLURM_",
    "AWS_BATCH_",
    "NOMAD_",
    "STEADFAST_VOLUME",
    "STEADFAST_FAULT",
    "STEADFAST_REHEARSAL",
];

/// How often a waiting conductor looks whether it is interrupted itself.
const LOOK: Duration = Duration::from_millis(20);

/// How an attempt's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(9) => f.write_str("SIGKILL"),
            Self::Signal(15) => f.write_str("SIGTERM"),
            Self::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// Where the attempt truly was when it was struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// What its main thread did.
    pub phase: Phase,
    /// What its saver did, if it was at work.
    pub saver: Option<Phase>,
    /// The next step to run.
    pub step: u64,
    /// Whether it had to be killed at the end of the grace time.
    pub outlived_grace: bool,
}

/// What the conductor wants at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Go on.
    Not,
    /// Strike now, while the attempt waits at its mark.
    Now,
    /// Strike this long after the mark.
    After(Duration),
}

/// What to start, and how to stop it.
pub struct Attempt<'a> {
    /// The program.
    pub program: &'a PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its variables, beside what it inherits.
    pub variables: Vec<(&'static str, OsString)>,
    /// Where its marks go; a short path, for sockets allow no long ones.
    pub socket: PathBuf,
    /// Gets what it prints.
    pub stdout: PathBuf,
    /// Gets what it logs.
    pub stderr: PathBuf,
    /// SIGKILL at once.
    pub kill: bool,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Strike this long after its start, whatever it does.
    pub timer: Option<Duration>,
}

/// How an attempt went.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// How it ended.
    pub ending: Ending,
    /// Whether and where it was struck.
    pub hit: Option<Hit>,
    /// Its marks.
    pub track: Track,
    /// When it was gone.
    pub end: Instant,
}

enum Event {
    Marked(Mark, Waiting),
    Ended(Ending),
    Lost(std::io::Error),
}

impl Attempt<'_> {
    /// Runs it to its end. `conduct` is asked at every mark.
    pub fn run(
        &self,
        interrupted: &AtomicBool,
        conduct: &mut dyn FnMut(&Mark) -> Strike,
    ) -> Result<Attempted, RehearsalError> {
        let (send, events) = channel();
        let _listener = Listener::bind(&self.socket, send.clone(), Event::Marked)
            .map_err(|cause| RehearsalError::Files { operation: "listen at", path: self.socket.clone(), cause })?;
        let mut child = Started { child: self.start()?, cleared: false };
        watch(child.pid(), send);
        let mut conductor = Conductor::new(self, child.pid());
        let ending = conductor.follow(&events, interrupted, conduct)?;
        conductor.take_queued(&events);
        child.clear();
        Ok(Attempted { ending, hit: conductor.hit, track: conductor.track, end: Instant::now() })
    }

    fn start(&self) -> Result<Child, RehearsalError> {
        let capture = |path: &PathBuf| {
            File::create(path).map_err(|cause| RehearsalError::Files { operation: "create", path: path.clone(), cause })
        };
        let mut command = Command::new(self.program);
        for (name, _) in std::env::vars_os() {
            if OTHER_ENGINES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).env(MARKS_VARIABLE, &self.socket).process_group(0).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(capture(&self.stdout)?).stderr(capture(&self.stderr)?);
        command.spawn().map_err(RehearsalError::Child)
    }
}

/// Tells `events` of the child's end, leaving it to be reaped by its owner.
fn watch(pid: Pid, events: Sender<Event>) {
    std::thread::spawn(move || {
        let event = loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) | Ok(None) => {}
                Err(errno) => break Event::Lost(errno.into()),
                Ok(Some(status)) => {
                    let exit = status.exit_status().map(Ending::Exit);
                    break Event::Ended(exit.unwrap_or(Ending::Signal(status.terminating_signal().unwrap_or(0))));
                }
            }
        };
        let _ = events.send(event);
    });
}

/// A child that does not outlive its conductor.
struct Started {
    child: Child,
    cleared: bool,
}

impl Started {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Ends what is left of the group, then reaps its leader; in this order the group's number is still its own.
    fn clear(&mut self) {
        if !std::mem::replace(&mut self.cleared, true) {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.clear();
    }
}

struct Conductor<'a> {
    attempt: &'a Attempt<'a>,
    pid: Pid,
    track: Track,
    hit: Option<Hit>,
    strike_at: Option<Instant>,
    kill_at: Option<Instant>,
}

impl<'a> Conductor<'a> {
    fn new(attempt: &'a Attempt<'a>, pid: Pid) -> Self {
        let strike_at = attempt.timer.map(|timer| Instant::now() + timer);
        Self { attempt, pid, track: Track::default(), hit: None, strike_at, kill_at: None }
    }

    fn follow(
        &mut self,
        events: &Receiver<Event>,
        interrupted: &AtomicBool,
        conduct: &mut dyn FnMut(&Mark) -> Strike,
    ) -> Result<Ending, RehearsalError> {
        loop {
            if interrupted.load(Ordering::SeqCst) {
                return Err(RehearsalError::Interrupted);
            }
            let next = [self.strike_at, self.kill_at].into_iter().flatten().min();
            let wait = next.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()).min(LOOK));
            match events.recv_timeout(wait) {
                Ok(Event::Marked(mark, waiting)) => self.marked(mark, waiting, conduct),
                Ok(Event::Ended(ending)) => return Ok(ending),
                Ok(Event::Lost(cause)) => return Err(RehearsalError::Child(cause)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RehearsalError::Child(std::io::Error::other("its watcher is gone")));
                }
            }
            self.on_time();
        }
    }

    fn marked(&mut self, mark: Mark, waiting: Waiting, conduct: &mut dyn FnMut(&Mark) -> Strike) {
        self.track.marks.push(mark);
        let wanted = if self.hit.is_none() && self.strike_at.is_none() { conduct(&mark) } else { Strike::Not };
        match wanted {
            Strike::Not => waiting.go(),
            Strike::After(time) => {
                self.strike_at = Some(mark.at + time);
                waiting.go();
            }
            Strike::Now => {
                self.strike();
                // A killed attempt gets no answer; it would otherwise have an instant to go on.
                if !self.attempt.kill {
                    waiting.stopping();
                }
            }
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if self.strike_at.is_some_and(|at| at <= now) {
            self.strike();
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            let _ = kill_process_group(self.pid, Signal::KILL);
            if let Some(hit) = &mut self.hit {
                hit.outlived_grace = true;
            }
        }
    }

    fn strike(&mut self) {
        self.strike_at = None;
        if self.hit.is_some() {
            return;
        }
        let (phase, step) = self.track.here();
        self.hit = Some(Hit { phase, saver: self.track.saver(), step, outlived_grace: false });
        if self.attempt.kill {
            let _ = kill_process_group(self.pid, Signal::KILL);
        } else {
            // To the one process, as platforms do: what it started is its own to look after.
            let _ = kill_process(self.pid, Signal::TERM);
            self.kill_at = Some(Instant::now() + self.attempt.grace);
        }
    }

    /// Marks that came before the end but were not looked at yet.
    fn take_queued(&mut self, events: &Receiver<Event>) {
        while let Ok(event) = events.try_recv() {
            if let Event::Marked(mark, _) = event {
                self.track.marks.push(mark);
            }
        }
    }
}
