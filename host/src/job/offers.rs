//! Another plugin for the running job: noticed, read whole, compiled, and held ready for the loop to take between two steps.
//!
//! A thread of its own looks at the plugin's file, from time to time (`--watch`) and when it is asked to (SIGHUP). A file is read
//! once it has stood unchanged from one look to the next, and counts only if it is the same file afterwards: what is being
//! copied is left alone. A registry is asked on SIGHUP alone, which is a user's wish that a moved tag count from now on. Nothing here
//! touches the job; a file that is no plugin is told of, and looked at again when it changes.
//!
//! With the plugin goes a device for its guest, opened here already where an idle one takes no memory: the job stands still for nothing that
//! can be made ready beside it.
//!
//! SIGHUP also has the job's file read again, which may name another plugin by now, or another digest as the only one. Whatever
//! else it changed is for the next attempt.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::device::Device;
use crate::platform::{StopRequests, Woken};
use crate::plugin::{self, OpenDevice, Plugin, PluginError, Runtime};
use crate::registry::Reference;

use super::RunError;
use super::source::{Component, PluginSource};
use super::spec::{JobFile, JobSpec, Named};

/// From one look at the file to the next. Short enough that people who just copied a file need not wait, and long enough that a
/// copy which goes on has changed the file's time or length.
const LOOK: Duration = Duration::from_millis(250);

/// A plugin that the job may go on under.
pub struct Offer {
    /// Compiled.
    pub plugin: Plugin,
    /// Its guest's, if it needs one and one could be made ready.
    pub device: Option<Box<dyn Device>>,
}

/// What the loop may take.
pub struct Offers {
    /// Whether there is something: asked before every step.
    ready: Arc<AtomicBool>,
    inbox: Mutex<Receiver<Offer>>,
}

impl Offers {
    /// Begins to look. The source holds the plugin `current` now, or did when the attempt began, or the job did. `open_device` opens a device beside that of the
    /// guest that runs; there is none where there may be no room for two.
    pub fn watch(
        spec: &JobSpec,
        stops: &StopRequests,
        runtime: Runtime,
        current: &Plugin,
        open_device: Option<OpenDevice>,
    ) -> std::io::Result<Self> {
        let (outbox, inbox) = channel();
        let ready = Arc::new(AtomicBool::new(false));
        let looker = Looker {
            job_file: spec.job_file.clone(),
            source: spec.plugin.clone(),
            pinned: spec.plugin_digest.clone(),
            always: spec.watch,
            stops: stops.clone(),
            runtime,
            known: current.digest().to_owned(),
            offered: current.digest().to_owned(),
            // Not as it is now: it may have changed since the plugin was read.
            judged: None,
            unnamed: spec.name.is_none(),
            named_anew: false,
            open_device,
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
    pub fn take(&self) -> Option<Offer> {
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
    job_file: Option<JobFile>,
    source: PluginSource,
    pinned: Option<String>,
    always: bool,
    stops: StopRequests,
    runtime: Runtime,
    /// The digest of what was judged last, or runs.
    known: String,
    /// The digest of what was offered last, or runs.
    offered: String,
    /// The file as it was when it was last judged.
    judged: Option<Look>,
    /// Whether nobody has given the job a name.
    unnamed: bool,
    /// Whether the job's file names another source since the last look.
    named_anew: bool,
    open_device: Option<OpenDevice>,
    outbox: Sender<Offer>,
    ready: Arc<AtomicBool>,
}

impl Looker {
    fn run(mut self) {
        let mut before = None;
        let mut asked = false;
        loop {
            // Without either there is nothing to wake up for.
            let next_look = self.file().filter(|_| self.always || asked).map(|_| LOOK);
            match self.stops.wait_for_look(next_look) {
                Woken::Stop => return,
                Woken::Look => {
                    self.read_job_file();
                    match self.source.clone() {
                        PluginSource::File(file) => (asked, before) = (true, Look::at(&file)),
                        PluginSource::Registry(reference) if !self.look_up(&reference) => return,
                        PluginSource::Registry(_) => {}
                    }
                    continue;
                }
                Woken::Time => {}
            }
            let Some(file) = self.file().map(Path::to_owned) else { continue };
            let now = Look::at(&file);
            let settled = now == before;
            before = now;
            if !settled || now.is_none() {
                continue;
            }
            if now != self.judged && !self.judge(&file, now) {
                return;
            }
            // Unless it changed under the eyes of the judge.
            asked &= now != self.judged;
        }
    }

    fn file(&self) -> Option<&Path> {
        match &self.source {
            PluginSource::File(file) => Some(file),
            PluginSource::Registry(_) => None,
        }
    }

    /// Looks whether the job's file names another plugin by now.
    fn read_job_file(&mut self) {
        let Some(job_file) = &self.job_file else { return };
        let Named { plugin, plugin_digest, not_taken } = match job_file.read() {
            Ok(named) => named,
            Err(why) => {
                tracing::warn!("The job's file is passed over: {why}");
                return;
            }
        };
        if !not_taken.is_empty() {
            let names = not_taken.join(", ");
            tracing::warn!(
                "The job's file has changed in more than its plugin; not taken until the next attempt: {names}"
            );
        }
        let (before, now) = (self.source.name(), plugin.name());
        if self.unnamed && before != now {
            tracing::warn!(
                "The job is named after its plugin: where no engine names it, the next attempt looks for a job `{now}`, unless the job's file says name = \"{before}\""
            );
        }
        if (&plugin, &plugin_digest) != (&self.source, &self.pinned) {
            (self.source, self.pinned) = (plugin, plugin_digest);
            // What was refused so far may be what is asked for now.
            self.known.clone_from(&self.offered);
            self.judged = None;
            self.named_anew = true;
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

    /// Looks the reference up and offers what it comes to, if that is another plugin; answers whether anybody still listens.
    fn look_up(&mut self, reference: &Reference) -> bool {
        if reference.digest().is_some() && !std::mem::take(&mut self.named_anew) {
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
        // One that cannot be opened now is told of if it cannot be opened then either.
        let open_device = self.open_device.as_ref().filter(|_| plugin.uses_device());
        let device = open_device.and_then(|open| open().ok());
        let heard = self.outbox.send(Offer { plugin, device }).is_ok();
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
        self.known.clone_from(&found);
        if let Some(wanted) = self.pinned.clone().filter(|wanted| *wanted != found) {
            return Err(PluginError::Pinned { path: component.label, wanted, found }.into());
        }
        let plugin = component.compile(&self.runtime, &|_| {})?;
        self.offered = found;
        Ok(Some(plugin))
    }
}
