//! The plugin, read from its file or fetched, and compiled, while requests to stop are heard.

use std::sync::mpsc::channel;
use std::thread;

use super::RunError;
use super::spec::JobSpec;
use super::wanted::Wanted;
use crate::compiled::default_cache_folder;
use crate::platform::{StopReason, StopRequests, process_environment};
use crate::plugin::{Nans, Plugin, Runtime};

/// What came first.
pub enum Loading {
    /// The plugin, and what compiles others.
    Loaded(Plugin, Runtime),
    /// A request to stop.
    Stopped(StopReason),
}

enum Event {
    Compiling(String),
    Loaded(Result<(Plugin, Runtime), RunError>),
    Stop(StopReason),
}

/// Loads the plugin on another thread, so that a request to stop is not kept waiting by a registry or the compiler. Calls
/// `claim` once it is sure that this is a plugin, with its digest.
pub fn load(
    spec: &JobSpec,
    wanted: Wanted,
    stops: &StopRequests,
    claim: impl FnOnce(&str) -> Result<(), RunError>,
) -> Result<Loading, RunError> {
    let (sender, events) = channel();
    let on_stop = sender.clone();
    let nans = if spec.canonical_nans { Nans::Canonical } else { Nans::AsComputed };
    let load = move || {
        let compiling = |digest: &str| drop(sender.send(Event::Compiling(digest.to_owned())));
        let loaded = wanted.get().and_then(|component| {
            let runtime = Runtime::with(nans, default_cache_folder(&process_environment))?;
            Ok((component.compile(&runtime, &compiling)?, runtime))
        });
        let _ = sender.send(Event::Loaded(loaded));
    };
    thread::Builder::new().name("compile".into()).spawn(load).map_err(RunError::Thread)?;
    stops.subscribe(move |stop| {
        let _ = on_stop.send(Event::Stop(stop.clone()));
    });
    let mut claim = Some(claim);
    loop {
        let event =
            events.recv().map_err(|_| RunError::Thread(std::io::Error::other("the compiling thread is gone")))?;
        let (digest, loaded) = match event {
            Event::Stop(stop) => return Ok(Loading::Stopped(stop)),
            Event::Compiling(digest) => (digest, None),
            Event::Loaded(loaded) => loaded.map(|loaded| (loaded.0.digest().to_owned(), Some(loaded)))?,
        };
        claim.take().map_or(Ok(()), |claim| claim(&digest))?;
        if let Some((plugin, runtime)) = loaded {
            return Ok(Loading::Loaded(plugin, runtime));
        }
    }
}
