//! Saves checkpoints on a thread of their own, while the guest runs on. Of a device with memory of its own the state is then still on its way, and
//! comes while what is here is compressed and written.
//!
//! The thread owns the session: whatever is written to the volume after the attempt has begun is written there, one thing at a
//! time. It also keeps the attempt's record fresh and looks for newer attempts from time to time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::journal::Journal;
use super::marks::{Marks, Phase};
use super::state;
use crate::checkpoint::metadata::Metadata;
use crate::checkpoint::names::FileName;
use crate::checkpoint::outputs::Frozen;
use crate::checkpoint::store::{AttemptRecord, Draft, SaveError, SavePhase, Saved, Session, Standing};
use crate::plugin::{Plugin, Snapshot};

/// How often the record is refreshed and newer attempts are looked for.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// A checkpoint to be saved: everything is frozen, the guest may run on.
pub struct Parcel {
    /// What the checkpoint says about itself.
    pub metadata: Metadata,
    /// Whose state it is.
    pub plugin: Plugin,
    /// The guest's state; another plugin may go on from it meanwhile.
    pub snapshot: Arc<Snapshot>,
    /// What changed of its outputs.
    pub frozen: Frozen,
}

/// How a save went.
pub struct Report {
    /// The result.
    pub result: Result<Saved, SaveError>,
    /// The state's buffers, to be used again.
    pub snapshot: Arc<Snapshot>,
    /// The segment that the save would have published.
    pub segment: Option<FileName>,
}

/// The saving thread's other end.
pub struct Saver {
    orders: Option<Sender<Parcel>>,
    reports: Receiver<Message>,
    thread: Option<JoinHandle<Session>>,
    busy: bool,
}

enum Message {
    Saved(Box<Report>),
    Fenced(crate::checkpoint::names::Tenure),
}

/// What the saver has to say.
pub enum News {
    /// A save ended.
    Saved(Box<Report>),
    /// A newer attempt is at work.
    Fenced(crate::checkpoint::names::Tenure),
}

/// The saving thread is gone, which only a fault of this program explains.
#[derive(Debug, thiserror::Error)]
#[error("the thread that saves checkpoints ended unexpectedly")]
pub struct SaverGone;

impl Saver {
    /// Starts the thread.
    pub fn start(session: Session, journal: Arc<Journal>, marks: Marks) -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let (outbox, reports) = channel();
        let work = move || serve(session, &journal, &marks, &inbox, &outbox);
        let thread = thread::Builder::new().name("saver".into()).spawn(work)?;
        Ok(Self { orders: Some(orders), reports, thread: Some(thread), busy: false })
    }

    /// Whether a save is running.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Begins a save. One at a time: the caller looks at [`is_busy`](Self::is_busy) first.
    pub fn save(&mut self, parcel: Parcel) -> Result<(), SaverGone> {
        self.busy = true;
        self.orders.as_ref().and_then(|orders| orders.send(parcel).ok()).ok_or(SaverGone)
    }

    /// News, if there is any; does not wait.
    pub fn poll(&mut self) -> Result<Option<News>, SaverGone> {
        match self.reports.try_recv() {
            Ok(message) => Ok(Some(self.news(message))),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(SaverGone),
        }
    }

    /// Waits for the running save, if there is one.
    pub fn wait(&mut self) -> Result<Option<News>, SaverGone> {
        if !self.is_busy() {
            return self.poll();
        }
        let message = self.reports.recv().map_err(|_| SaverGone)?;
        Ok(Some(self.news(message)))
    }

    /// Ends the thread and takes the session back.
    pub fn end(mut self) -> Result<Session, SaverGone> {
        self.orders = None;
        self.thread.take().and_then(|thread| thread.join().ok()).ok_or(SaverGone)
    }

    fn news(&mut self, message: Message) -> News {
        match message {
            Message::Saved(report) => {
                self.busy = false;
                News::Saved(report)
            }
            Message::Fenced(by) => News::Fenced(by),
        }
    }
}

fn serve(
    mut session: Session,
    journal: &Journal,
    marks: &Marks,
    inbox: &Receiver<Parcel>,
    outbox: &Sender<Message>,
) -> Session {
    let mut kept = journal.record().plugin.clone();
    loop {
        match inbox.recv_timeout(HEARTBEAT) {
            Ok(parcel) => {
                // The component is on the volume before a checkpoint that it made.
                if parcel.plugin.digest() != kept {
                    keep_plugin(&session, &parcel.plugin);
                    parcel.plugin.digest().clone_into(&mut kept);
                }
                let report = save(&mut session, parcel, marks);
                note(&mut journal.record(), &report, &session);
                journal.write();
                if outbox.send(Message::Saved(Box::new(report))).is_err() {
                    return session;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                journal.write();
                match session.look() {
                    Ok(Standing::Fenced(by)) => {
                        let _ = outbox.send(Message::Fenced(by));
                    }
                    Ok(Standing::Alone | Standing::Reclaimed(_)) => {}
                    Err(error) => tracing::warn!("Cannot look for newer attempts: {error}"),
                }
            }
            Err(RecvTimeoutError::Disconnected) => return session,
        }
    }
}

/// Keeps the component on the volume; failing that is worth a warning, not the attempt.
pub fn keep_plugin(session: &Session, plugin: &Plugin) {
    if let Err(error) = session.keep_plugin(plugin.digest(), plugin.bytes()) {
        tracing::warn!("Cannot keep the plugin on the volume: {error}");
    }
}

fn save(session: &mut Session, parcel: Parcel, marks: &Marks) -> Report {
    let Parcel { metadata, plugin: _, snapshot, frozen } = parcel;
    let step = metadata.next_step;
    let segment = frozen.segment.as_ref().map(|(name, _)| name.clone());
    let saved = state::while_it_arrives(&snapshot, |sections| {
        let draft = Draft { metadata, sections, segment: frozen.segment };
        session.save(draft, &|phase| match phase {
            SavePhase::Save => marks.at(Phase::Save, step),
            SavePhase::Prune => marks.at(Phase::Prune, step),
        })
    });
    // What the volume was never given is not the volume's fault.
    let result = saved.map_err(|error| match (error, state::failure(&snapshot)) {
        (SaveError::Volume(_), Some(why)) => SaveError::State(why.to_string()),
        (error, _) => error,
    });
    marks.at(Phase::Idle, step);
    Report { result, snapshot, segment }
}

fn note(record: &mut AttemptRecord, report: &Report, session: &Session) {
    record.tenure = session.tenure();
    match &report.result {
        Ok(saved) => {
            record.safe_step = Some(saved.next_step);
            record.next_step = record.next_step.max(saved.next_step);
            record.saves.done += 1;
            record.saves.last_bytes = saved.file_bytes;
            record.saves.last_ms = u64::try_from(saved.took.as_millis()).unwrap_or(u64::MAX);
        }
        Err(_) => record.saves.failed += 1,
    }
}
