//! Where an attempt is: the listening end of the marks protocol.
//!
//! ```text
//!  attempt ── mark <phase> <step> ──► rehearsal        the attempt waits for one line in answer to each mark:
//!          ◄── go | stopping ────────                  `go` on, or `stopping`: a signal was just sent, see to it first
//! ```
//!
//! Because the attempt waits, a preemption can be placed exactly: at a mark, or a measured time after it. A line that means
//! nothing is answered with `go`, so that a newer attempt than this rehearsal is not held up.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use crate::job::marks::{MARKS_VARIABLE, Phase};

/// The phases in which a preemption can be placed.
pub const STRUCK: [Phase; 7] =
    [Phase::StartUp, Phase::Compilation, Phase::Restore, Phase::Step, Phase::Save, Phase::Prune, Phase::FinalWrite];

/// Whether the saver does this, beside whatever else goes on.
#[must_use]
pub fn is_savers(phase: Phase) -> bool {
    matches!(phase, Phase::Save | Phase::Prune | Phase::Idle)
}

/// One line of an attempt: it is about to do this, and the next step to run is that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it is about to do.
    pub phase: Phase,
    /// The next step to run; 0 where there is none.
    pub step: u64,
    /// When the line came.
    pub at: Instant,
}

impl Mark {
    /// Reads `mark <phase> <step>`.
    #[must_use]
    pub fn parse(line: &str, at: Instant) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let ("mark", phase, step, None) = (words.next()?, words.next()?, words.next()?, words.next()) else {
            return None;
        };
        Some(Self { phase: Phase::ALL.into_iter().find(|known| known.word() == phase)?, step: step.parse().ok()?, at })
    }
}

/// The attempt waits for this answer.
#[derive(Debug)]
pub struct Waiting(UnixStream);

impl Waiting {
    /// Let it go on. An attempt that is gone by now needs no answer, so a failure means nothing.
    pub fn go(mut self) {
        let _ = self.0.write_all(b"go\n");
    }

    /// Tell it that a stop signal is on its way, to be seen before it goes on.
    pub fn stopping(mut self) {
        let _ = self.0.write_all(b"stopping\n");
    }
}

/// Listens for the marks of one attempt; stops listening when dropped.
pub struct Listener {
    stop: Arc<AtomicBool>,
    path: std::path::PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at `path` and hands each mark to `marks`, with what its attempt waits for.
    pub fn bind<E: Send + 'static>(
        path: &Path,
        marks: Sender<E>,
        event: impl Fn(Mark, Waiting) -> E + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (marks, event) = (marks.clone(), event.clone());
                // Ends by itself when the attempt's end of the socket is closed, at its death at the latest.
                std::thread::spawn(move || read_lines(stream, &marks, &event));
            }
        });
        Ok(Self { stop, path: path.to_owned(), thread: Some(thread) })
    }
}

fn read_lines<E>(stream: UnixStream, marks: &Sender<E>, event: &impl Fn(Mark, Waiting) -> E) {
    let Ok(answers) = stream.try_clone() else { return };
    for line in BufReader::new(stream).lines() {
        let (Ok(line), Ok(answer)) = (line, answers.try_clone()) else { return };
        let waiting = Waiting(answer);
        match Mark::parse(&line, Instant::now()) {
            None => waiting.go(),
            // Nobody conducts any more: closing the socket tells the attempt to go on unmarked.
            Some(mark) => {
                if marks.send(event(mark, waiting)).is_err() {
                    return;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The thread stands in `accept`; one more connection lets it see the flag.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// All marks of one attempt, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// The marks.
    pub marks: Vec<Mark>,
}

impl Track {
    /// What the main thread is doing, and at which step.
    #[must_use]
    pub fn here(&self) -> (Phase, u64) {
        let main = self.marks.iter().rev().find(|mark| !is_savers(mark.phase));
        main.map_or((Phase::StartUp, 0), |mark| (mark.phase, mark.step))
    }

    /// What the saver is doing, if it is at work.
    #[must_use]
    pub fn saver(&self) -> Option<Phase> {
        let last = self.marks.iter().rev().find(|mark| is_savers(mark.phase) || mark.phase == Phase::End)?;
        (is_savers(last.phase) && last.phase != Phase::Idle).then_some(last.phase)
    }

    /// The first step that this attempt ran or was about to.
    #[must_use]
    pub fn first_step(&self) -> Option<u64> {
        self.marks.iter().find(|mark| mark.phase == Phase::Step).map(|mark| mark.step)
    }

    /// The highest step that was known to be next: every one before it is done.
    #[must_use]
    pub fn reached(&self) -> Option<u64> {
        self.marks
            .iter()
            .filter(|mark| matches!(mark.phase, Phase::Step | Phase::FinalWrite))
            .map(|mark| mark.step)
            .max()
    }

    /// How often the attempt came to a phase.
    #[must_use]
    pub fn count(&self, phase: Phase) -> usize {
        self.marks.iter().filter(|mark| mark.phase == phase).count()
    }

    /// How long each occurrence of `phase` took: to the next mark of the same thread, or to `end`.
    #[must_use]
    pub fn durations(&self, phase: Phase, end: Instant) -> Vec<Duration> {
        let same_thread = |other: &&Mark| is_savers(other.phase) == is_savers(phase) || other.phase == Phase::End;
        let begun = self.marks.iter().enumerate().filter(|(_, mark)| mark.phase == phase);
        begun
            .map(|(index, mark)| {
                let next = self.marks[index + 1..].iter().find(same_thread).map_or(end, |next| next.at);
                next.saturating_duration_since(mark.at)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn track(words: &[(&str, u64, u64)]) -> (Track, Instant) {
        let start = Instant::now();
        let mark = |&(word, step, millis): &(&str, u64, u64)| Mark {
            phase: Phase::ALL.into_iter().find(|phase| phase.word() == word).unwrap(),
            step,
            at: start + Duration::from_millis(millis),
        };
        (Track { marks: words.iter().map(mark).collect() }, start + Duration::from_millis(100))
    }

    #[test]
    fn only_whole_marks_are_read() {
        let now = Instant::now();
        let mark = Mark { phase: Phase::FinalWrite, step: 7, at: now };
        assert_eq!(Mark::parse("mark final-write 7", now), Some(mark));
        for line in ["", "mark", "mark step", "mark step x", "mark step -1", "mark nap 1", "mark step 1 2", "step 1 2"]
        {
            assert_eq!(Mark::parse(line, now), None, "{line}");
        }
    }

    #[test]
    fn the_saver_is_followed_beside_the_main_thread() {
        let (track, end) = track(&[
            ("start-up", 0, 0),
            ("start", 0, 2),
            ("step", 0, 10),
            ("save", 1, 12),
            ("step", 1, 15),
            ("prune", 1, 18),
            ("step", 2, 20),
        ]);
        assert_eq!(track.here(), (Phase::Step, 2));
        assert_eq!(track.saver(), Some(Phase::Prune));
        assert_eq!((track.first_step(), track.reached()), (Some(0), Some(2)));
        let millis = |phase| track.durations(phase, end).iter().map(Duration::as_millis).collect::<Vec<_>>();
        assert_eq!(millis(Phase::Save), [6]);
        assert_eq!(millis(Phase::Step), [5, 5, 80]);
        assert_eq!(millis(Phase::Start), [8]);
        assert_eq!(track.count(Phase::Step), 3);
    }

    #[test]
    fn an_idle_saver_and_an_ending_attempt_are_at_no_save() {
        assert_eq!(track(&[("save", 1, 0), ("prune", 1, 1), ("idle", 1, 2)]).0.saver(), None);
        assert_eq!(track(&[("save", 1, 0), ("end", 1, 1)]).0.saver(), None);
        assert_eq!(Track::default().here(), (Phase::StartUp, 0));
    }

    #[test]
    fn a_mark_waits_for_its_answer_and_nonsense_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        let (send, receive) = std::sync::mpsc::channel();
        let listener = Listener::bind(&path, send, |mark, waiting| (mark, waiting)).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
        writeln!(&stream, "hello").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "go");
        writeln!(&stream, "mark step 3").unwrap();
        let (mark, waiting) = receive.recv().unwrap();
        assert_eq!((mark.phase, mark.step), (Phase::Step, 3));
        waiting.stopping();
        assert_eq!(answers.next().unwrap().unwrap(), "stopping");
        drop(listener);
        assert!(!path.exists());
    }
}
