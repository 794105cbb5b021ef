//! What an attempt loads, decided before a registry is asked for anything.
//!
//! A tag is looked up once in the life of a job. What it came to stands in every checkpoint and in every attempt's record, and the
//! component itself is on the volume: an attempt under the same reference goes on with that, wherever the tag points by then, and
//! with the registry down. Another reference, or `--plugin-from file`, looks again; what comes of it is a changed plugin like one in a
//! changed file (`choice`).

use super::RunError;
use super::choice::kept_component;
use super::scene::Scene;
use super::source::{Component, PluginSource, artifact, fetch};
use super::spec::{JobSpec, PluginFrom};
use crate::checkpoint::metadata::ArtifactFacts;
use crate::checkpoint::store::Session;
use crate::plugin::short;
use crate::registry::Reference;

/// What an attempt loads.
pub enum Wanted {
    /// The file, or what the reference comes to now.
    Source(PluginSource),
    /// What the reference came to before: the manifest of this digest, which is no longer, or not yet, on the volume.
    Pinned(Reference, String),
    /// The component that the job has kept.
    Kept(Component),
}

/// A component that the job has run.
struct Pin<'a> {
    component: &'a str,
    artifact: Option<&'a ArtifactFacts>,
}

/// Decides. Reads the volume, and writes nothing.
pub fn wanted(spec: &JobSpec, scene: &Scene, session: &Session) -> Result<Wanted, RunError> {
    let now = || Ok(Wanted::Source(spec.plugin.clone()));
    let PluginSource::Registry(reference) = &spec.plugin else { return now() };
    if spec.plugin_from == Some(PluginFrom::File) {
        return now();
    }
    let newest = session.peek().map(|(_, metadata)| &metadata.plugin);
    let history = if newest.is_none() { Some(scene.store.history(session.survey(), session.lineage())) } else { None };
    // Killed before its first checkpoint, an attempt has left its record.
    let last = history.iter().flat_map(|history| history.records().iter().rev()).next();
    let of_checkpoint = newest.map(|facts| Pin { component: &facts.digest, artifact: facts.artifact.as_ref() });
    let pin =
        of_checkpoint.or(last.map(|record| Pin { component: &record.plugin, artifact: record.artifact.as_ref() }));
    let Some(pin) = pin else { return now() };

    let same = pin.artifact.filter(|artifact| artifact.reference == reference.as_str());
    if same.is_none() && spec.plugin_from != Some(PluginFrom::Volume) {
        return now();
    }
    if let Some(mut component) = kept_component(session, pin.component)? {
        component.label = reference.as_str().into();
        component.artifact = pin.artifact.map(artifact);
        let digest = short(pin.component);
        tracing::info!("The plugin is {digest}, from the volume, as before: {reference} is not looked up again");
        return Ok(Wanted::Kept(component));
    }
    match same {
        Some(artifact) => Ok(Wanted::Pinned(reference.clone(), artifact.manifest.clone())),
        None => now(),
    }
}

impl Wanted {
    /// Gets it.
    pub fn get(self) -> Result<Component, RunError> {
        match self {
            Self::Source(PluginSource::Registry(reference)) => fetch(&reference, &reference),
            Self::Source(file) => file.read(),
            Self::Pinned(reference, manifest) => fetch(&reference, &reference.with_digest(&manifest)),
            Self::Kept(component) => Ok(component),
        }
    }
}
