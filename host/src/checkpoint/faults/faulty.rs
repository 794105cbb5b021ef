//! The layer itself.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use rustix::process::{Signal, getpid, kill_process};

use super::{FaultKind, FaultPlan};
use crate::checkpoint::format::ReadAt;
use crate::checkpoint::volume::{Entry, EntryKind, Operation, Volume, VolumeFile};

/// A volume some of whose operations fail.
pub struct Faulty {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Volume>,
    plan: FaultPlan,
    count: AtomicU64,
    trace: Option<Mutex<File>>,
    /// Held for reading during every operation, and for writing by the one that ends the process: nothing is under way, and
    /// nothing begins, while files are cut.
    gate: RwLock<()>,
    files: Mutex<Files>,
}

/// Files whose data is not sure.
#[derive(Default)]
struct Files {
    next: u64,
    unsure: HashMap<u64, PathBuf>,
}

impl Faulty {
    /// A layer over `inner` that follows the plan.
    pub fn new(inner: Arc<dyn Volume>, plan: FaultPlan) -> Self {
        Self {
            shared: Arc::new(Shared {
                inner,
                plan,
                count: AtomicU64::new(0),
                trace: None,
                gate: RwLock::new(()),
                files: Mutex::default(),
            }),
        }
    }

    /// The same, and every operation is appended to `file`. Only before the first operation.
    #[must_use]
    pub fn with_trace(mut self, file: File) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.trace = Some(Mutex::new(file));
        }
        self
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// What the end of the process does to the volume, for a test that goes on living: files whose data is not sure lose half
    /// of it.
    pub fn process_ends(&self) {
        let _nothing_else = self.shared.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.cut_unsure();
    }
}

/// An operation that may go ahead, unless a fault says otherwise.
struct Admitted<'a> {
    fault: Option<FaultKind>,
    _gate: RwLockReadGuard<'a, ()>,
}

impl Admitted<'_> {
    /// Every fault as an error: right for operations that have no kind of their own.
    fn or_fail(self) -> io::Result<Self> {
        match self.fault {
            Some(kind) => Err(kind.error()),
            None => Ok(self),
        }
    }
}

impl Shared {
    /// Counts an operation and finds its fault. Does not return from `kill`.
    fn admit(&self, operation: Operation, path: &Path) -> Admitted<'_> {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(trace) = &self.trace {
            let line = format!("{number} {} {}\n", operation.word(), path.display());
            // A trace that cannot be written is missed by whoever reads it; it must not change what is traced.
            let _ = trace.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        }
        let fault = self.plan.at(number);
        if fault == Some(FaultKind::Kill) {
            drop(gate);
            self.die();
        }
        Admitted { fault, _gate: gate }
    }

    fn die(&self) -> ! {
        let _nothing_else = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.cut_unsure();
        let _ = kill_process(getpid(), Signal::KILL);
        // The signal may take a moment to arrive.
        loop {
            std::thread::park();
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut_unsure(&self) {
        for (_, path) in self.files().unsure.drain() {
            self.cut(&path);
        }
    }

    /// Cuts a file to half of its length, past the layers below: this is what the disk does, not the process.
    fn cut(&self, path: &Path) {
        let path = self.inner.root().join(path);
        let cut =
            || OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(file.metadata()?.len() / 2));
        // The file may be gone already, and then there is nothing to lose.
        let _ = cut();
    }

    fn renamed(&self, from: &Path, to: &Path) {
        let mut files = self.files();
        // What had the name is gone with it.
        files.unsure.retain(|_, path| path != to);
        for path in files.unsure.values_mut().filter(|path| *path == from) {
            *path = to.to_owned();
        }
    }
}

impl Volume for Faulty {
    fn root(&self) -> &Path {
        self.shared.inner.root()
    }

    fn make_dirs(&self, dir: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::MakeDirs, dir).or_fail()?;
        self.shared.inner.make_dirs(dir)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let _admitted = self.shared.admit(Operation::Create, path).or_fail()?;
        let file = self.shared.inner.create_new(path)?;
        let mut files = self.shared.files();
        let id = files.next;
        files.next += 1;
        files.unsure.insert(id, path.to_owned());
        Ok(Box::new(FaultyFile { shared: Arc::clone(&self.shared), file, id, path: path.to_owned(), full: false }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Rename, to).or_fail()?;
        self.shared.inner.rename(from, to)?;
        self.shared.renamed(from, to);
        Ok(())
    }

    fn rename_over(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Rename, to).or_fail()?;
        self.shared.inner.rename_over(from, to)?;
        self.shared.renamed(from, to);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::SyncDir, dir).or_fail()?;
        self.shared.inner.sync_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        let _admitted = self.shared.admit(Operation::List, dir).or_fail()?;
        self.shared.inner.list(dir)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        let _admitted = self.shared.admit(Operation::Open, path).or_fail()?;
        let source = self.shared.inner.open(path)?;
        Ok(Box::new(FaultySource { shared: Arc::clone(&self.shared), source, path: path.to_owned() }))
    }

    fn look(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        let _admitted = self.shared.admit(Operation::Look, path).or_fail()?;
        self.shared.inner.look(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Remove, path).or_fail()?;
        self.shared.inner.remove_file(path)?;
        self.shared.files().unsure.retain(|_, unsure| unsure != path);
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Remove, dir).or_fail()?;
        self.shared.inner.remove_dir(dir)
    }

    fn free_bytes(&self) -> Option<u64> {
        // Asked only for the text of an error, so it is no operation that could be hit.
        self.shared.inner.free_bytes()
    }
}

struct FaultyFile {
    shared: Arc<Shared>,
    file: Box<dyn VolumeFile>,
    id: u64,
    path: PathBuf,
    /// After a short write the disk is full.
    full: bool,
}

impl Write for FaultyFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let admitted = self.shared.admit(Operation::Write, &self.path);
        if self.full {
            return Err(FaultKind::Enospc.error());
        }
        match admitted.fault {
            None => self.file.write(buf),
            Some(FaultKind::ShortWrite) => {
                self.full = true;
                match &buf[..buf.len() / 2] {
                    [] => Err(FaultKind::Enospc.error()),
                    half => self.file.write(half),
                }
            }
            Some(FaultKind::Corrupt) => {
                let mut other = buf.to_vec();
                let middle = other.len() / 2;
                if let Some(byte) = other.get_mut(middle) {
                    *byte ^= 0x10;
                }
                self.file.write(&other)
            }
            Some(kind) => Err(kind.error()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl VolumeFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Sync, &self.path).or_fail()?;
        self.file.sync()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        let Self { shared, file, id, path, .. } = *self;
        let admitted = shared.admit(Operation::Close, &path);
        let closed = file.close();
        match admitted.fault {
            None => {
                // If closing really failed, the data stays unsure.
                closed?;
                shared.files().unsure.remove(&id);
                Ok(())
            }
            Some(FaultKind::LoseClose) => Err(FaultKind::LoseClose.error()),
            Some(kind) => {
                let lost = shared.files().unsure.remove(&id);
                if kind == FaultKind::FailClose
                    && let Some(path) = lost
                {
                    shared.cut(&path);
                }
                Err(kind.error())
            }
        }
    }
}

struct FaultySource {
    shared: Arc<Shared>,
    source: Box<dyn ReadAt>,
    path: PathBuf,
}

impl ReadAt for FaultySource {
    fn len(&self) -> io::Result<u64> {
        self.source.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let _admitted = self.shared.admit(Operation::Read, &self.path).or_fail()?;
        self.source.read_exact_at(buf, offset)
    }
}
