//! Where a plugin is, and how its bytes are had from there: a file, or a registry.

use std::fmt;
use std::path::{Path, PathBuf};

use super::RunError;
use crate::checkpoint::metadata::ArtifactFacts;
use crate::compiled::default_cache_folder;
use crate::platform::process_environment;
use crate::plugin::{self, Artifact, LARGEST_FILE, Plugin, PluginError, Runtime};
use crate::registry::{self, Pull, Reference};

/// Where the plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// In a file.
    File(PathBuf),
    /// In a registry.
    Registry(Reference),
}

/// The bytes of what may be a plugin.
#[derive(Debug)]
pub struct Component {
    /// What messages call it.
    pub label: PathBuf,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where a registry has it.
    pub artifact: Option<Artifact>,
}

impl PluginSource {
    /// The plugin's name: that of its file, without the ending, or the last word of its repository.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(file) => file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
            Self::Registry(reference) => reference.name().to_owned(),
        }
    }

    /// What messages call it.
    #[must_use]
    pub fn label(&self) -> &Path {
        match self {
            Self::File(file) => file,
            Self::Registry(reference) => Path::new(reference.as_str()),
        }
    }

    /// Reads the file, or gets the component from its registry; a tag is looked up now.
    pub fn read(&self) -> Result<Component, RunError> {
        match self {
            Self::File(file) => Ok(Component { label: file.clone(), bytes: plugin::read(file)?, artifact: None }),
            Self::Registry(reference) => fetch(reference, reference),
        }
    }

    /// The same, compiled.
    pub fn load(&self, runtime: &Runtime) -> Result<Plugin, RunError> {
        Ok(self.read()?.compile(runtime, &|_| {})?)
    }
}

/// Gets what `exact` names, which is what `reference` stands for.
pub(super) fn fetch(reference: &Reference, exact: &Reference) -> Result<Component, RunError> {
    let cache = default_cache_folder(&process_environment);
    let pulled = registry::pull(exact, &Pull { cache: cache.as_deref(), most: LARGEST_FILE })?;
    let artifact = Artifact { reference: reference.as_str().to_owned(), manifest: pulled.manifest };
    Ok(Component { label: reference.as_str().into(), bytes: pulled.bytes, artifact: Some(artifact) })
}

impl Component {
    /// The plugin that it is. `compiling` is called, with its digest, when it is found to be one that has to be compiled.
    pub fn compile(self, runtime: &Runtime, compiling: &dyn Fn(&str)) -> Result<Plugin, PluginError> {
        let plugin = runtime.compile(&self.label, &self.bytes, compiling)?;
        Ok(plugin.from_artifact(self.artifact))
    }
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.label().display().fmt(f)
    }
}

impl From<PathBuf> for PluginSource {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl From<&str> for PluginSource {
    fn from(file: &str) -> Self {
        Self::File(file.into())
    }
}

/// As checkpoints and records have it.
pub(super) fn facts(plugin: &Plugin) -> Option<ArtifactFacts> {
    let Artifact { reference, manifest } = plugin.artifact()?.clone();
    Some(ArtifactFacts { reference, manifest })
}

/// What a checkpoint or record says, as a plugin has it.
pub(super) fn artifact(facts: &ArtifactFacts) -> Artifact {
    let ArtifactFacts { reference, manifest } = facts.clone();
    Artifact { reference, manifest }
}
