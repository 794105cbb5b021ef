//! A context: its queue, and the thread that works it off.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use steadfast::device::Stopper;

use crate::bench::Bench;
use crate::code;
use crate::settings::SETTINGS;

/// A piece of work, in its turn.
pub(crate) type Work = Box<dyn FnOnce(&mut Bench) -> Result<(), u32> + Send>;

/// A context.
pub(crate) struct Gpu {
    queue: Mutex<Queue>,
    changed: Condvar,
    bench: Mutex<Bench>,
    stopper: Stopper,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    /// By the streams' handles.
    streams: BTreeMap<u64, Stream>,
    /// Events, by handle: a stream, and the pieces of it that they stand behind.
    events: HashMap<u64, (u64, u64)>,
    /// What every call answers since a kernel failed.
    sticky: Option<u32>,
    closing: bool,
}

#[derive(Default)]
struct Stream {
    waiting: VecDeque<Work>,
    /// Pieces that were given, that are done, and up to which somebody has asked.
    given: u64,
    done: u64,
    asked: u64,
}

impl Queue {
    /// The next piece of work and its stream: of the newest stream first, so that whoever does not wait for an older one is found out.
    fn next(&mut self) -> Option<(u64, Work)> {
        self.streams.iter_mut().rev().find_map(|(handle, stream)| {
            let due = !SETTINGS.lazy || stream.done < stream.asked;
            Some((*handle, stream.waiting.pop_front_if(|_| due)?))
        })
    }
}

static CONTEXTS: LazyLock<Mutex<HashMap<u64, Arc<Gpu>>>> = LazyLock::new(Mutex::default);

/// A handle, which no other thing has.
pub(crate) fn handle() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0xDB_0000);
    NEXT.fetch_add(16, Ordering::Relaxed)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    /// Makes a context, and answers its handle.
    pub(crate) fn open() -> Result<u64, u32> {
        let bench = Bench::open()?;
        let stopper = bench.stopper();
        let gpu = Arc::new(Self {
            queue: Mutex::default(),
            changed: Condvar::new(),
            bench: Mutex::new(bench),
            stopper,
            worker: Mutex::default(),
        });
        let working = Arc::clone(&gpu);
        let worker = std::thread::Builder::new().name("double".into()).spawn(move || working.work());
        *lock(&gpu.worker) = Some(worker.map_err(|_| code::UNKNOWN)?);
        let context = handle();
        lock(&CONTEXTS).insert(context, gpu);
        Ok(context)
    }

    pub(crate) fn of(context: u64) -> Result<Arc<Self>, u32> {
        lock(&CONTEXTS).get(&context).cloned().ok_or(code::INVALID_CONTEXT)
    }

    /// Ends a context, and what is under way in it.
    pub(crate) fn close(context: u64) -> Result<(), u32> {
        let gpu = lock(&CONTEXTS).remove(&context).ok_or(code::INVALID_CONTEXT)?;
        lock(&gpu.queue).closing = true;
        gpu.stopper.stop();
        gpu.changed.notify_all();
        if let Some(worker) = lock(&gpu.worker).take() {
            let _ = worker.join();
        }
        Ok(())
    }

    /// What a failed kernel has every call answer.
    pub(crate) fn well(&self) -> Result<(), u32> {
        lock(&self.queue).sticky.map_or(Ok(()), Err)
    }

    /// The GPU's things, for a call that is not in the order of the stream.
    pub(crate) fn bench(&self) -> MutexGuard<'_, Bench> {
        lock(&self.bench)
    }

    /// The same, unless work under way has it.
    pub(crate) fn bench_if_free(&self) -> Option<MutexGuard<'_, Bench>> {
        match self.bench.try_lock() {
            Ok(bench) => Some(bench),
            Err(TryLockError::Poisoned(bench)) => Some(bench.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn new_stream(&self) -> u64 {
        let stream = handle();
        lock(&self.queue).streams.insert(stream, Stream::default());
        stream
    }

    pub(crate) fn order(
        &self,
        stream: u64,
        work: impl FnOnce(&mut Bench) -> Result<(), u32> + Send + 'static,
    ) -> Result<(), u32> {
        let mut queue = lock(&self.queue);
        let stream = queue.streams.get_mut(&stream).ok_or(code::INVALID_HANDLE)?;
        stream.waiting.push_back(Box::new(work));
        stream.given += 1;
        self.changed.notify_all();
        Ok(())
    }

    pub(crate) fn new_event(&self) -> u64 {
        let event = handle();
        lock(&self.queue).events.insert(event, (0, 0));
        event
    }

    pub(crate) fn record(&self, event: u64, stream: u64) -> Result<(), u32> {
        let mut queue = lock(&self.queue);
        let given = queue.streams.get(&stream).ok_or(code::INVALID_HANDLE)?.given;
        *queue.events.get_mut(&event).ok_or(code::INVALID_HANDLE)? = (stream, given);
        Ok(())
    }

    pub(crate) fn query(&self, event: u64) -> Result<(), u32> {
        let mut queue = lock(&self.queue);
        let (stream, behind) = *queue.events.get(&event).ok_or(code::INVALID_HANDLE)?;
        if let Some(sticky) = queue.sticky {
            return Err(sticky);
        }
        // An event that was never recorded stands behind nothing.
        let Some(stream) = queue.streams.get_mut(&stream).filter(|stream| stream.done < behind) else { return Ok(()) };
        stream.asked = stream.asked.max(behind);
        self.changed.notify_all();
        Err(code::NOT_READY)
    }

    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closing {
                return;
            }
            match queue.next() {
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some((stream, work)) => {
                    let ill = queue.sticky.is_some();
                    drop(queue);
                    // After a fault nothing runs any more.
                    let outcome = if ill { Ok(()) } else { work(&mut lock(&self.bench)) };
                    queue = lock(&self.queue);
                    if let Some(stream) = queue.streams.get_mut(&stream) {
                        stream.done += 1;
                    }
                    if let Err(code) = outcome {
                        queue.sticky = Some(code);
                    }
                }
            }
        }
    }
}
