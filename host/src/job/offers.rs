//! Another plugin for the running job: noticed, read whole, compiled, and held ready for the loop to take between two steps.
//!
//! A thread of its own looks at the plugin's file, from time to time (`--watch`) and when it is asked to (SIGHUP). A file is read
//! once it has stood unchanged from one look to the next, and counts only if it is the same file afterwards: what is being
//! copied is left alone. A registry is asked on SIGHUP alone, which is a user's wish that a moved tag count from now on. Nothing here
//! touches the job; a file that is no plugin is told of, and looked at again when it changes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::platform::StopRequests;
use crate::plugin::{self, Plugin, PluginError, Runtime};
use crate::registry::Reference;

use super::RunError;
use super::source::{Component, PluginSource};
use super::spec::JobSpec;

/// From one look at the file to the next. Short enough that people who just copied a file need not wait, and long enough that a
/// copy which goes on has changed the file's time or length.
const LOOK: Duration = Duration::from_millis(250);

/// What the loop may take.
pub struct Offers {
    /// Whether there is something: asked before every step.
    ready: Arc<AtomicBool>,
    inbox: Mutex<Receiver<Plugin>>,
}

impl Offers {
    /// Begins to look. The source holds the plugin `current` now, or did when the attempt began, or the job did.
    pub fn watch(spec: &JobSpec, stops: &StopRequests, runtime: Runtime, current: &Plugin) -> std::io::Result<Self> {
        let (outbox, inbox) = channel();
        let ready = Arc::new(AtomicBool::new(false));
        let looker = Looker {
            source: spec.plugin.clone(),
            pinned: spec.plugin_digest.clone(),
            always: spec.watch,
            stops: stops.clone(),
            runtime,
            known: current.digest().to_owned(),
            // Not as it is now: it may have changed since the plugin was read.
            judged: None,
            outbox,
            ready: Arc::clone(&ready),
        };
        if let (PluginSource::Registry(reference), true) = (&spec.plugin, spec.watch) {
            tracing::info!("A registry is not asked from time to time: SIGHUP looks {reference} up again");
        }
        thread::Builder::new().name("offers".into()).spawn(move || looker.run())?;
        Ok(Self { ready, inbox: Mutex::new(inbox) })
    }

    /// Whether there is one that was not taken yet.
    pub fn are_there(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// The newest that was not taken yet.
    pub fn take(&self) -> Option<Plugin> {
        self.ready.store(false, Ordering::Relaxed);
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.try_iter().last()
    }
}

/// What a look at a file tells without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When the inode changed last: unlike the time of modification, no copy sets it.
    changed: (i64, i64),
}

impl Look {
    /// None while there is no file: between removing the old one and renaming the new one, say.
    fn at(file: &Path) -> Option<Self> {
        let facts = std::fs::metadata(file).ok()?;
        let changed = (facts.ctime(), facts.ctime_nsec());
        Some(Self { device: facts.dev(), inode: facts.ino(), bytes: facts.len(), changed })
    }
}

struct Looker {
    source: PluginSource,
    pinned: Option<String>,
    always: bool,
    stops: StopRequests,
    runtime: Runtime,
    /// The digest of what was offered last, or runs.
    known: String,
    /// The file as it was when it was last judged.
    judged: Option<Look>,
    outbox: Sender<Plugin>,
    ready: Arc<AtomicBool>,
}

impl Looker {
    fn run(self) {
        match self.source.clone() {
            PluginSource::File(file) => self.watch_file(&file),
            PluginSource::Registry(reference) => self.wait_for_wishes(&reference),
        }
    }

    fn watch_file(mut self, file: &Path) {
        let mut before = self.judged;
        let mut asked = false;
        while self.stops.wait_timeout(LOOK).is_none() {
            asked |= self.stops.take_reload_request();
            if !(self.always || asked) {
                continue;
            }
            let now = Look::at(file);
            let settled = now == before;
            before = now;
            if !settled || now.is_none() {
                continue;
            }
            if now != self.judged && !self.judge(file, now) {
                return;
            }
            asked = false;
        }
    }

    /// Reads the file and offers it, if it is another plugin; answers whether anybody still listens.
    fn judge(&mut self, file: &Path, now: Option<Look>) -> bool {
        let read = self.source.read();
        if Look::at(file) != now {
            return true;
        }
        self.judged = now;
        match read.and_then(|component| self.plugin(component)) {
            Ok(None) => true,
            Ok(Some(plugin)) => self.offer(plugin, "The plugin file"),
            Err(error) => {
                tracing::warn!("The changed plugin file is not used: {error}");
                true
            }
        }
    }

    fn wait_for_wishes(mut self, reference: &Reference) {
        while self.stops.wait_timeout(LOOK).is_none() {
            if self.stops.take_reload_request() && !self.look_up(reference) {
                return;
            }
        }
    }

    /// Looks the reference up and offers what it comes to, if that is another plugin; answers whether anybody still listens.
    fn look_up(&mut self, reference: &Reference) -> bool {
        if reference.digest().is_some() {
            tracing::info!("{reference} names a digest: it cannot come to another plugin");
            return true;
        }
        match self.source.read().and_then(|component| self.plugin(component)) {
            Ok(None) => {
                tracing::info!("{reference} comes to the plugin that it came to before");
                true
            }
            Ok(Some(plugin)) => self.offer(plugin, reference.as_str()),
            Err(error) => {
                tracing::warn!("{reference} was looked up, and the job goes on as before: {error}");
                true
            }
        }
    }

    fn offer(&self, plugin: Plugin, what: &str) -> bool {
        let line = format!("{what} is now {}, which is tried at the next step", plugin.short());
        let heard = self.outbox.send(plugin).is_ok();
        self.ready.store(true, Ordering::Relaxed);
        tracing::info!("{line}");
        heard
    }

    /// The plugin, compiled; none if it is the one that was offered last.
    fn plugin(&mut self, component: Component) -> Result<Option<Plugin>, RunError> {
        let found = plugin::digest(&component.bytes);
        if found == self.known {
            return Ok(None);
        }
        self.known = found.clone();
        match &self.pinned {
            Some(wanted) if *wanted != found => {
                Err(PluginError::Pinned { path: component.label, wanted: wanted.clone(), found }.into())
            }
            _ => Ok(Some(component.compile(&self.runtime, &|_| {})?)),
        }
    }
}
