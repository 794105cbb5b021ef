//! From a file to a [`Plugin`]: read, recognise, check against the world, compile or find compiled.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use wasmtime::component::Component;

use super::bindings::PluginPre;
use super::engine::{GuestState, Runtime};
use super::inspect::{self, FileKind, Inspection};
use super::versions::StateVersions;
use super::{Guest, GuestSettings, Interrupter, PluginError, world};

/// Larger than any plugin that compiles in reasonable time; keeps a wrong path from filling the memory.
pub const LARGEST_FILE: u64 = 1 << 30;

/// A component that fits the world, compiled. Clones are cheap and the same plugin.
#[derive(Clone)]
pub struct Plugin(Arc<Inner>, Option<Arc<Artifact>>);

/// Where a registry has a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// As it was asked for.
    pub reference: String,
    /// The digest of the manifest that this came to.
    pub manifest: String,
}

struct Inner {
    path: PathBuf,
    bytes: Vec<u8>,
    digest: String,
    facts: OnceLock<Inspection>,
    from_cache: bool,
    uses_device: bool,
    pre: PluginPre<GuestState>,
    interrupter: Interrupter,
}

impl Plugin {
    /// The SHA-256 of the file, as `sha256:` and 64 hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// The digest's beginning, for people.
    pub fn short(&self) -> &str {
        inspect::short(&self.0.digest)
    }

    /// Whether it says that it reads state of this version.
    pub fn reads(&self, version: u32) -> bool {
        self.state_versions().is_some_and(|versions| versions.can_read(version))
    }

    /// Reads a file that may hold a plugin.
    pub fn read(file: &Path) -> Result<Vec<u8>, PluginError> {
        read(file)
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The same plugin, said to come from a registry.
    #[must_use]
    pub fn from_artifact(self, artifact: Option<Artifact>) -> Self {
        Self(self.0, artifact.map(Arc::new))
    }

    /// Where a registry has it, if it is known to come from one.
    #[must_use]
    pub fn artifact(&self) -> Option<&Artifact> {
        self.1.as_deref()
    }

    /// What it exports and imports. Computed when first asked for.
    pub fn facts(&self) -> &Inspection {
        self.0.facts.get_or_init(|| inspect::inspect(&self.0.bytes))
    }

    /// Which state it writes and reads, if it says so. Computed, with all facts, when first asked for.
    #[must_use]
    pub fn state_versions(&self) -> Option<&StateVersions> {
        self.facts().state_versions.as_ref()
    }

    /// Whether it imports the device.
    pub fn uses_device(&self) -> bool {
        self.0.uses_device
    }

    /// Whether the compiled code was found in the cache.
    pub fn from_cache(&self) -> bool {
        self.0.from_cache
    }

    /// Starts a guest. None of its exports has been called yet.
    pub fn instantiate(&self, settings: GuestSettings) -> Result<Guest, PluginError> {
        Guest::new(self, settings)
    }

    /// What ends calls of this plugin's guests.
    pub fn interrupter(&self) -> Interrupter {
        self.0.interrupter.clone()
    }

    pub(super) fn pre(&self) -> &PluginPre<GuestState> {
        &self.0.pre
    }
}

/// Reads a plugin file; a folder, a device or a file that cannot be one is refused without reading it.
pub fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let failed = |source: io::Error| PluginError::Read { path: path.to_owned(), source };
    let not = |kind| PluginError::NotAComponent { path: path.to_owned(), kind };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(not(FileKind::Folder));
    }
    if !metadata.is_file() {
        return Err(not(FileKind::Unknown("neither a file nor a folder".to_owned())));
    }
    if metadata.len() > LARGEST_FILE {
        let size = |bytes| bytesize::ByteSize::b(bytes).display().iec();
        let what = format!("a file of {}, and no plugin is larger than {}", size(metadata.len()), size(LARGEST_FILE));
        return Err(not(FileKind::Unknown(what)));
    }
    std::fs::read(path).map_err(failed)
}

pub(super) fn plugin(
    runtime: &Runtime,
    path: &Path,
    bytes: &[u8],
    compiling: &dyn Fn(&str),
) -> Result<Plugin, PluginError> {
    let digest = inspect::digest(bytes);
    let cached = runtime.cache.as_ref().and_then(|cache| cache.get(&digest, |_, code| code.component(&runtime.engine)));
    let from_cache = cached.is_some();
    let facts = OnceLock::new();
    let component = match cached {
        Some(component) => component,
        None => {
            let inspection = inspect::inspect(bytes);
            check(path, &inspection)?;
            let _ = facts.set(inspection);
            compiling(&digest);
            compile(runtime, path, bytes, &digest)?
        }
    };
    let uses_device = world::uses_device(component.component_type().imports(&runtime.engine).map(|(name, _)| name));
    let instance = runtime.linker.instantiate_pre(&component);
    let pre = instance
        .and_then(PluginPre::new)
        .map_err(|error| PluginError::World { path: path.to_owned(), problems: vec![world::type_mismatch(&error)] })?;
    // Else the first guest would make the images of its memories, and a job that changes its plugin would wait for that.
    component.initialize_copy_on_write_image().map_err(|error| PluginError::Engine { cause: format!("{error:#}") })?;
    let interrupter = Interrupter::new(&runtime.engine);
    let (path, bytes) = (path.to_owned(), bytes.to_owned());
    Ok(Plugin(Arc::new(Inner { path, bytes, digest, facts, from_cache, uses_device, pre, interrupter }), None))
}

fn check(path: &Path, inspection: &Inspection) -> Result<(), PluginError> {
    if inspection.kind != FileKind::Component {
        return Err(PluginError::NotAComponent { path: path.to_owned(), kind: inspection.kind.clone() });
    }
    if !inspection.problems.is_empty() {
        return Err(PluginError::World { path: path.to_owned(), problems: inspection.problems.clone() });
    }
    Ok(())
}

fn compile(runtime: &Runtime, path: &Path, bytes: &[u8], digest: &str) -> Result<Component, PluginError> {
    let component = Component::from_binary(&runtime.engine, bytes)
        .map_err(|error| PluginError::Compile { path: path.to_owned(), cause: format!("{error:#}") })?;
    if let Some(cache) = &runtime.cache {
        cache.put(digest, &[], component.serialize());
    }
    Ok(component)
}
