//! The program as a process: started, followed by its marks, stopped, and what it said.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use steadfast::supervise::marks::{Listener, Mark, Waiting};

use super::{Phase, Place, cache, stable};

/// Far beyond what anything here takes; an attempt that is silent for so long is killed, and its test fails.
const LIMIT: Duration = Duration::from_secs(180);

/// How often a log is read again by whoever waits for a line of it.
const LOOK: Duration = Duration::from_millis(2);

/// Variables that would make an attempt believe it is somewhere else.
const FOREIGN: [&str; 8] =
    ["CLOUD_RUN_", "JOB_COMPLETION_INDEX", "JOB_NAME", "KUBERNETES_", "SLURM_", "AWS_BATCH_", "NOMAD_", "STEADFAST_"];

/// A command line in the making.
#[derive(Clone)]
pub(crate) struct Run {
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
    folder: PathBuf,
    deaf: bool,
    unread: bool,
    user: Option<User>,
}

/// Another user that a program runs as.
#[derive(Clone)]
struct User {
    id: u32,
    program: PathBuf,
}

impl Run {
    /// Logs and sockets go to `folder`, in which the program also runs.
    pub(super) fn new(folder: &Path) -> Self {
        let variables = vec![("STEADFAST_CACHE".to_owned(), cache().into())];
        Self { arguments: Vec::new(), variables, folder: folder.to_owned(), deaf: false, unread: false, user: None }
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Several arguments, as they would be typed.
    pub(crate) fn args(self, arguments: &str) -> Self {
        arguments.split_whitespace().fold(self, |run, argument| run.arg(argument))
    }

    pub(crate) fn config(self, json: &str) -> Self {
        self.arg("--config").arg(json)
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Lets operations on the volume fail: `N:kind,…`.
    pub(crate) fn faults(self, plan: &str) -> Self {
        self.env("STEADFAST_FAULTS", plan)
    }

    /// As attempt `attempt` of an execution on Cloud Run, played on this machine.
    pub(crate) fn on_cloud_run(self, job: &str, execution: &str, attempt: u32) -> Self {
        self.env("CLOUD_RUN_JOB", job)
            .env("CLOUD_RUN_EXECUTION", execution)
            .env("CLOUD_RUN_TASK_INDEX", "0")
            .env("CLOUD_RUN_TASK_COUNT", "1")
            .env("CLOUD_RUN_TASK_ATTEMPT", attempt.to_string())
            .env("STEADFAST_REHEARSAL", "1")
    }

    /// All that it says meets a full disk.
    pub(crate) fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }

    /// Its standard output is a pipe from which nobody reads.
    pub(crate) fn unread(mut self) -> Self {
        self.unread = true;
        self
    }

    /// As another user, from a copy of the program that this user can reach. No marks: the socket is not this user's.
    pub(crate) fn for_user(mut self, id: u32, program: PathBuf) -> Self {
        self.user = Some(User { id, program });
        self
    }

    /// Starts it, to be followed mark by mark.
    #[track_caller]
    pub(crate) fn start(&self) -> Attempt {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let log = self.folder.join(format!("log-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let (send, events) = channel();
        let socket = log.with_extension("socket");
        let listener = Listener::bind(&socket, send.clone(), Event::Marked).unwrap();
        let mut command = match &self.user {
            Some(user) => Command::new(&user.program),
            None => Command::new(env!("CARGO_BIN_EXE_steadfast")),
        };
        if let Some(User { id, .. }) = self.user {
            command.uid(id).gid(id);
        }
        for (name, _) in std::env::vars_os() {
            if FOREIGN.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).env("STEADFAST_MARKS", &socket).current_dir(&self.folder).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        for extension in ["out", "err"] {
            File::create(log.with_extension(extension)).unwrap();
        }
        let stream = |extension| {
            let path = if self.deaf { "/dev/full".into() } else { log.with_extension(extension) };
            File::options().append(true).open(path).unwrap()
        };
        command.stdout(stream("out")).stderr(stream("err"));
        let unread = self.unread.then(|| {
            let (reader, writer) = std::io::pipe().unwrap();
            command.stdout(writer);
            reader
        });
        let child = command.spawn().unwrap();
        watch(Pid::from_child(&child), send);
        Attempt { child, events, waiting: None, ended: None, marks: Vec::new(), log, unread, _listener: listener }
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn end(&self) -> Ended {
        self.start().end()
    }

    /// Runs it to its end, which has to be this exit code.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> Ended {
        self.end().expect_code(code)
    }

    /// Runs it until the job is done.
    #[track_caller]
    pub(crate) fn done(&self) -> Ended {
        self.exits(0)
    }

    /// Stops it with SIGTERM where it is about to do this, and lets it come to its end.
    #[track_caller]
    pub(crate) fn term_at(&self, phase: Phase, step: u64) -> Ended {
        let mut attempt = self.start();
        attempt.until(phase, step);
        attempt.term();
        attempt.end()
    }

    /// Kills it where it is about to do this.
    #[track_caller]
    pub(crate) fn kill_at(&self, phase: Phase, step: u64) -> Ended {
        let mut attempt = self.start();
        attempt.until(phase, step);
        attempt.kill()
    }

    /// Runs it to its end and answers the operations on its volume: operation and path, in order.
    #[track_caller]
    pub(crate) fn trace(&self) -> (Ended, Vec<(String, String)>) {
        let file = self.folder.join("trace");
        let _ = fs::remove_file(&file);
        let ended = self.clone().env("STEADFAST_FAULT_TRACE", &file).end();
        let text = fs::read_to_string(&file).unwrap_or_default();
        let operation = |line: &str| {
            let mut words = line.splitn(3, ' ').skip(1).map(str::to_owned);
            (words.next().unwrap(), words.next().unwrap())
        };
        (ended, text.lines().map(operation).collect())
    }
}

enum Event {
    Marked(Mark, Waiting),
    Gone,
}

/// Tells of the child's end, leaving it to be reaped by its owner: until then no other process can get its number.
fn watch(pid: Pid, events: Sender<Event>) {
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) | Ok(None) = waitid(WaitId::Pid(pid), options) {}
        let _ = events.send(Event::Gone);
    });
}

/// A running attempt, which waits at its latest mark.
pub(crate) struct Attempt {
    child: Child,
    events: Receiver<Event>,
    waiting: Option<Waiting>,
    ended: Option<()>,
    marks: Vec<(Phase, u64)>,
    log: PathBuf,
    unread: Option<std::io::PipeReader>,
    _listener: Listener,
}

impl Attempt {
    /// Lets it go on to its next mark; none if it ended instead.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<(Phase, u64)> {
        self.go();
        if self.ended.is_some() {
            return None;
        }
        match self.events.recv_timeout(LIMIT) {
            Ok(Event::Marked(mark, waiting)) => {
                self.waiting = Some(waiting);
                self.marks.push((mark.phase, mark.step));
                Some((mark.phase, mark.step))
            }
            Ok(Event::Gone) => {
                self.ended = Some(());
                None
            }
            Err(_) => {
                let _ = self.child.kill();
                panic!("it came to no mark and to no end: {}", self.said());
            }
        }
    }

    /// Answers its mark, if it waits at one.
    pub(crate) fn go(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.go();
        }
    }

    /// Lets it go on until it is about to do this.
    #[track_caller]
    pub(crate) fn until(&mut self, phase: Phase, step: u64) {
        self.until_any(&format!("{phase} {step}"), |at| at == (phase, step));
    }

    /// Lets it go on until it waits at a mark like this.
    #[track_caller]
    pub(crate) fn until_any(&mut self, what: &str, wanted: impl Fn((Phase, u64)) -> bool) -> (Phase, u64) {
        loop {
            match self.next() {
                Some(mark) if wanted(mark) => return mark,
                Some(_) => {}
                None => panic!("it never came to {what}; marks {:?}; {}", self.marks, self.said()),
            }
        }
    }

    /// Sends a signal, which it is told to have seen before it goes on if it waits at a mark.
    #[track_caller]
    pub(crate) fn term(&mut self) {
        self.signal(Signal::TERM);
        self.stopping();
    }

    /// Says that a signal was sent: to be seen before it goes on.
    pub(crate) fn stopping(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.stopping();
        }
    }

    /// Waits until it said this, on any stream, while it works or waits.
    #[track_caller]
    pub(crate) fn until_said(&mut self, text: &str) {
        let deadline = Instant::now() + LIMIT;
        while !self.all_said().contains(text) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("it never said `{text}`: {}", self.said());
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Waits until it has made this file or folder, while it works.
    #[track_caller]
    pub(crate) fn until_there(&mut self, path: &Path) {
        let deadline = Instant::now() + LIMIT;
        while !path.exists() {
            assert!(Instant::now() < deadline, "it never made `{}`: {}", path.display(), self.said());
            std::thread::park_timeout(LOOK);
        }
    }

    /// The same, letting it go on at every mark.
    #[track_caller]
    pub(crate) fn go_on_until_said(&mut self, text: &str) {
        self.go();
        let deadline = Instant::now() + LIMIT;
        while !self.all_said().contains(text) {
            match self.events.try_recv() {
                Ok(Event::Marked(mark, waiting)) => {
                    self.marks.push((mark.phase, mark.step));
                    waiting.go();
                }
                Ok(Event::Gone) => panic!("it ended without saying `{text}`: {}", self.said()),
                Err(_) => std::thread::park_timeout(LOOK),
            }
            assert!(Instant::now() < deadline, "it never said `{text}`: {}", self.said());
        }
    }

    /// Lets it go on at every mark until the pipe that nobody reads from is full, or nearly so: what is written next waits for a
    /// reader.
    #[track_caller]
    pub(crate) fn go_on_until_unread(&mut self) {
        const NEARLY: u64 = 60_000;
        self.go();
        let deadline = Instant::now() + LIMIT;
        let pipe = self.unread.as_ref().unwrap();
        while rustix::io::ioctl_fionread(pipe).unwrap() < NEARLY {
            if let Ok(Event::Marked(_, waiting)) = self.events.try_recv() {
                waiting.go();
            }
            assert!(Instant::now() < deadline, "it never said enough: {}", self.said());
            std::thread::park_timeout(LOOK);
        }
    }

    fn all_said(&self) -> String {
        let out = fs::read(self.log.with_extension("out")).unwrap();
        self.said() + &String::from_utf8_lossy(&out)
    }

    /// Sends a signal while it goes on with whatever it does, or waits.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL, wherever it is; where it waits at a mark it does not come any further.
    #[track_caller]
    pub(crate) fn kill(mut self) -> Ended {
        self.signal(Signal::KILL);
        self.waiting = None;
        self.end()
    }

    /// Lets it go on to its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        while self.next().is_some() {}
        let status = self.child.wait().unwrap();
        let read = |extension| String::from_utf8_lossy(&fs::read(self.log.with_extension(extension)).unwrap()).into();
        Ended { code: status.code(), stdout: read("out"), stderr: read("err"), marks: std::mem::take(&mut self.marks) }
    }

    /// What it logged so far.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log.with_extension("err")).unwrap()).into()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How an attempt ended.
pub(crate) struct Ended {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) marks: Vec<(Phase, u64)>,
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "marks {:?}\n{}", self.marks, self.stderr);
        self
    }

    /// It said this to people.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn never_says(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "`{text}` in\n{}", self.stderr);
        self
    }

    /// Its last words, as a user reads them: from the error on.
    #[track_caller]
    pub(crate) fn refusal(&self, place: &Place) -> String {
        let from = self.stderr.rfind("\nsteadfast: ").map(|at| at + 1);
        let from = from.or_else(|| self.stderr.starts_with("steadfast: ").then_some(0));
        stable(place, &self.stderr[from.unwrap_or_else(|| panic!("no refusal in\n{}", self.stderr))..])
    }

    /// Its lines in which one of these stands, as a user reads them.
    pub(crate) fn lines(&self, place: &Place, wanted: &[&str]) -> String {
        let lines = self.stderr.lines().filter(|line| wanted.iter().any(|text| line.contains(text)));
        stable(place, &lines.map(|line| line.to_owned() + "\n").collect::<String>())
    }

    /// The step from which it went on; none from step 0.
    #[track_caller]
    pub(crate) fn resumed_from(&self) -> Option<u64> {
        let words = "Resuming from checkpointed step ";
        let line = self.stderr.lines().find_map(|line| line.strip_prefix(words));
        assert!(
            line.is_some() != self.stderr.contains("No checkpoint found"),
            "it says neither or both:\n{}",
            self.stderr
        );
        line.map(|step| step.parse().unwrap())
    }

    /// Whether it came to a phase.
    pub(crate) fn came_to(&self, phase: Phase) -> bool {
        self.marks.iter().any(|(at, _)| *at == phase)
    }
}
