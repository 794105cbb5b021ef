//! One container: followed line by line, stopped, and its exit code.
//!
//! Every container is as closed as a platform could wish: no network, a root file system that nobody can write to, a little
//! scratch space, and the volume. Nothing waits for a time: what is waited for is a line of the log.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::room::{Room, ask};
use crate::step;

/// Far beyond what anything here takes; a container that is silent for so long is killed, and its check fails.
const LIMIT: Duration = Duration::from_secs(120);

const CLOSED: [&str; 7] =
    ["--rm", "--network", "none", "--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp:rw,size=256m,mode=1777"];

/// A container in the making.
pub(super) struct Launch<'a> {
    room: &'a Room,
    image: &'a str,
    options: Vec<String>,
    arguments: Vec<String>,
}

impl<'a> Launch<'a> {
    /// Of this image, with nothing but scratch space.
    pub(super) fn new(room: &'a Room, image: &'a str) -> Self {
        Self { room, image, options: Vec::new(), arguments: Vec::new() }
    }

    /// An option of podman.
    pub(super) fn option(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.options.extend([name.to_owned(), value.as_ref().to_owned()]);
        self
    }

    /// A folder of this machine, mounted; `place` may end in `:ro`.
    pub(super) fn mount(self, folder: &Path, place: &str) -> Self {
        self.option("--volume", format!("{}:{place}", folder.display()))
    }

    /// With the variables of a job on Cloud Run.
    pub(super) fn on_cloud_run(self, job: &str, attempt: u32) -> Self {
        self.option("--env", format!("CLOUD_RUN_JOB={job}"))
            .option("--env", format!("CLOUD_RUN_EXECUTION={job}-x"))
            .option("--env", "CLOUD_RUN_TASK_INDEX=0")
            .option("--env", "CLOUD_RUN_TASK_COUNT=1")
            .option("--env", format!("CLOUD_RUN_TASK_ATTEMPT={attempt}"))
    }

    /// What the program is told.
    pub(super) fn arguments<'s>(mut self, arguments: impl IntoIterator<Item = &'s str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// Starts it, to be followed.
    pub(super) fn start(self) -> Result<Container<'a>> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let name = format!("rack-{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut command = self.room.podman(["run", "--name", &name]);
        command.args(CLOSED).args(&self.options).arg(self.image).args(&self.arguments);
        println!("$ {}", typed(&self));
        Container::follow(self.room, name, command)
    }

    /// Runs it to its end.
    pub(super) fn end(self) -> Result<Ended> {
        self.start()?.end()
    }
}

/// The command without what all of them have in common.
fn typed(launch: &Launch<'_>) -> String {
    let mut command = Command::new("podman");
    command.arg("run").args(&launch.options).arg(launch.image).args(&launch.arguments);
    step::text(&command)
}

/// A container that was started.
pub(super) struct Container<'a> {
    room: &'a Room,
    name: String,
    child: Child,
    lines: Receiver<String>,
    log: Vec<String>,
}

/// A container that came to its end.
pub(super) struct Ended {
    /// The exit code of process 1, or podman's own from 125 on.
    pub(super) code: i32,
    /// All that it said.
    pub(super) log: Vec<String>,
}

impl<'a> Container<'a> {
    /// Follows a container of this name that `command` starts and stays with.
    pub(super) fn follow(room: &'a Room, name: String, mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| step::text(&command))?;
        let (send, lines) = channel();
        pass_on(child.stdout.take(), send.clone());
        pass_on(child.stderr.take(), send);
        Ok(Self { room, name, child, lines, log: Vec::new() })
    }

    /// Waits for a line with these words.
    pub(super) fn says(&mut self, words: &str) -> Result<()> {
        let until = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let found = line.contains(words);
                    self.log.push(line);
                    if found {
                        return Ok(());
                    }
                }
                Err(_) => bail!("it never said `{words}`; the last that it said: {}", tail(&self.log)),
            }
        }
    }

    /// The number of its process 1, as this machine sees it.
    pub(super) fn process(&self) -> Result<u32> {
        Ok(ask(&mut self.room.podman(["inspect", "--format", "{{.State.Pid}}", &self.name]))?.parse()?)
    }

    /// SIGTERM, as an engine sends it.
    pub(super) fn terminate(&self) -> Result<()> {
        ask(&mut self.room.podman(["kill", "--signal", "TERM", &self.name])).map(drop)
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Result<Ended> {
        let until = Instant::now() + LIMIT;
        // The lines end when nobody holds their other end any more.
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.log.push(line);
        }
        if Instant::now() >= until {
            bail!("it did not end; the last that it said: {}", tail(&self.log));
        }
        let code = self.child.wait()?.code().context("podman was killed")?;
        Ok(Ended { code, log: std::mem::take(&mut self.log) })
    }
}

impl Drop for Container<'_> {
    /// One that is still there belongs to a check that failed.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let mut remove = self.room.podman(["rm", "--force", "--ignore", "--time", "0", &self.name]);
            let _ = remove.stdout(Stdio::null()).stderr(Stdio::null()).status();
            let _ = self.child.wait();
        }
    }
}

impl Ended {
    /// It has to be this exit code.
    pub(super) fn code(self, expected: i32) -> Result<Self> {
        if self.code != expected {
            bail!("exit code {}, not {expected}; the last that it said: {}", self.code, tail(&self.log));
        }
        Ok(self)
    }

    /// The first line with these words.
    pub(super) fn said(&self, words: &str) -> Result<&str> {
        let line = self.log.iter().find(|line| line.contains(words));
        line.map(String::as_str).with_context(|| format!("it never said `{words}`, but: {}", tail(&self.log)))
    }

    /// The number behind these words.
    pub(super) fn number(&self, words: &str) -> Result<u64> {
        let line = self.said(words)?;
        number_behind(line, words).with_context(|| format!("no number behind `{words}` in `{line}`"))
    }

    /// The plugin came out of the image's cache.
    pub(super) fn compiled_nothing(&self) -> Result<()> {
        self.said("compiled before").map(drop)
    }
}

fn number_behind(line: &str, words: &str) -> Option<u64> {
    let rest = line.split_once(words)?.1.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// The last lines, in one.
fn tail(log: &[String]) -> String {
    let last = log.len().saturating_sub(6);
    log[last..].join(" | ")
}

fn pass_on(from: Option<impl Read + Send + 'static>, to: Sender<String>) {
    let Some(from) = from else { return };
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_words() {
        assert_eq!(number_behind("Resuming from checkpointed step 1350", "checkpointed step"), Some(1350));
        assert_eq!(number_behind("Saved step 12 in 2 ms", "Saved step"), Some(12));
        assert_eq!(number_behind("Saved step", "Saved step"), None);
    }

    #[test]
    fn the_last_lines_are_told() {
        let log: Vec<_> = (0..9).map(|line| line.to_string()).collect();
        assert_eq!(tail(&log), "3 | 4 | 5 | 6 | 7 | 8");
        assert_eq!(tail(&[]), "");
    }
}
