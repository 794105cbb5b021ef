//! Which plugin goes on, where the one in the file is not the one that the job went on under last.
//!
//! An attempt on an old image finds an old file, and a job whose plugin was changed while it ran must not fall back with it. So
//! every component that a job runs is kept on the volume, and the job's own goes on, unless the file holds one that is new to
//! it and says that it reads the state: that is a change of plugin like any other, on probation. A file of another name is no
//! other version of the plugin, and most likely a mistake: it is refused, unless an option says what is meant.
//!
//! What a reference came to in a registry is chosen as if it were in a file; whether the registry is asked at all is decided before
//! (`wanted`).

use std::time::Instant;

use super::RunError;
use super::changes;
use super::run::Context;
use super::source::{self, Component};
use super::spec::{Changeable, PluginFrom, PluginSource};
use super::steps::Probation;
use crate::checkpoint::metadata::{Metadata, PluginFacts};
use crate::checkpoint::store::{History, Session};
use crate::plugin::{self, Plugin, short};

/// A plugin, and which one to go back to should it not fit.
pub(super) struct Chosen {
    pub plugin: Plugin,
    pub probation: Option<Probation>,
    /// Whether it is another than the newest checkpoint's.
    pub changed: bool,
}

/// Chooses between the plugin in the file and that of a checkpoint. Writes nothing.
pub(super) fn choose(
    context: &Context<'_>,
    session: &Session,
    history: &History,
    (checkpoint, metadata): (&str, &Metadata),
    file: Plugin,
) -> Result<Chosen, RunError> {
    let jobs = &metadata.plugin;
    let changed = jobs.digest != file.digest();
    if !changed || context.spec.accept_changed.contains(&Changeable::Plugin) {
        return Ok(Chosen { plugin: file, probation: None, changed });
    }
    let version = jobs.state_version;
    let reads = file.reads(version);
    let known = history.has_met(file.digest());
    let (found, own) = (file.short().to_owned(), short(&jobs.digest));
    let place = match context.spec.plugin {
        PluginSource::File(_) => "file",
        PluginSource::Registry(_) => "registry",
    };
    let refused = || {
        let changes = vec![changes::of_plugin(&jobs.digest, file.digest())];
        Err(RunError::Changed { checkpoint: checkpoint.to_owned(), changes })
    };
    if context.spec.plugin_from.is_none() && context.spec.plugin_name() != jobs.name {
        return refused();
    }
    match context.spec.plugin_from {
        Some(PluginFrom::File) if reads => {
            tracing::info!(
                "The plugin in the {place}, {found}, reads state of version {version} and takes over from {own}"
            );
            Ok(Chosen { plugin: file, probation: None, changed })
        }
        None if reads && !known => {
            tracing::info!(
                "The plugin in the {place}, {found}, is new to this job and reads state of version {version}: it takes over from {own}, on probation"
            );
            let old = kept(context, session, jobs)?;
            let probation = old.map(|old| Probation { old, step: metadata.next_step, since: Instant::now() });
            Ok(Chosen { plugin: file, probation, changed })
        }
        from @ (None | Some(PluginFrom::Volume)) => {
            let why = match from {
                Some(_) => "as --plugin-from volume asks",
                None if known => "since the job has left or tried the other before",
                None => "since the other does not say that it reads the state",
            };
            let Some(plugin) = kept(context, session, jobs)? else {
                return refused();
            };
            tracing::info!("Going on under {own}, from the volume, and not under {found}, from the {place}, {why}");
            Ok(Chosen { plugin, probation: None, changed: false })
        }
        Some(PluginFrom::File) => refused(),
    }
}

/// The plugin of a checkpoint, which the job has kept.
fn kept(context: &Context<'_>, session: &Session, facts: &PluginFacts) -> Result<Option<Plugin>, RunError> {
    let Some(mut component) = kept_component(session, &facts.digest)? else { return Ok(None) };
    component.artifact = facts.artifact.as_ref().map(source::artifact);
    Ok(Some(component.compile(context.runtime, &|_| {})?))
}

/// The component that the job has kept under this digest.
pub(super) fn kept_component(session: &Session, digest: &str) -> Result<Option<Component>, RunError> {
    match session.kept_plugin(digest)? {
        Some(bytes) if plugin::digest(&bytes) == digest => {
            Ok(Some(Component { label: digest.into(), bytes, artifact: None }))
        }
        Some(_) => {
            tracing::warn!("The component {} on the volume is damaged", short(digest));
            Ok(None)
        }
        None => Ok(None),
    }
}
