//! The volume must be the volume: a folder that outlives the attempt.
//!
//! The worst failure of checkpointing is a forgotten mount, since every retry then begins at step 0 on the container's own
//! disk and nobody notices until the budget is spent. So where an engine is detected the volume is judged by what is mounted
//! there, before anything is written to it. Nothing is created here.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::volume::may_pass;
use crate::job::spec::JobSpec;

use super::mounts::{Mount, Mounts};
use super::{Engine, Placement, PlatformError};

/// Where containers are asked to mount the volume if they don't say where.
const MOUNTED_BY_CONVENTION: &str = "/checkpoints";
/// On a plain machine.
const BESIDE_US: &str = "./checkpoints";

/// The volume, judged to outlive the attempt (or meant not to).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePlace {
    /// The folder, as it was given. It may not exist yet.
    pub path: PathBuf,
    /// Type of its file system, as the kernel calls it.
    pub filesystem: String,
    /// Bytes that can still be written. Buckets say any large number.
    pub free_bytes: u64,
    /// For people: `./checkpoints (ext4, 41 GiB free)`.
    pub description: String,
}

/// Finds the volume and judges it.
pub fn check_volume(placement: &Placement, spec: &JobSpec, mounts: &Mounts) -> Result<VolumePlace, PlatformError> {
    let path = choose(placement, spec, mounts)?;
    let bad = |reason: String| PlatformError::BadVolume { path: path.clone(), reason };
    let failed = |cause: io::Error| match may_pass(&cause) {
        true => PlatformError::VolumeUnreachable { path: path.clone(), cause },
        false if cause.kind() == io::ErrorKind::NotFound => {
            bad("it is a link, or lies behind one, that leads nowhere".into())
        }
        false => bad(cause.to_string()),
    };
    let resolved = resolve(&path).map_err(failed)?;
    match std::fs::metadata(&resolved) {
        Ok(found) if !found.is_dir() => return Err(bad("it is no folder".to_owned())),
        Ok(_) => {}
        // It may have to be made. Any other error says that something is there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    // In a container a wrong path is no mount, and on a plain machine it is made. Here it would be tried again without end, since
    // Slurm counts no attempts. A file system that answers with an error may be back by then, and is not refused.
    if placement.engine == Engine::Slurm && !placement.rehearsal && matches!(resolved.try_exists(), Ok(false)) {
        return Err(bad("it is not there".to_owned()));
    }
    let mount = mounts.holding(&resolved);
    if !spec.volume_is_ephemeral && !placement.rehearsal {
        let temporary = placement.temporary_folder.as_deref().and_then(|folder| resolve(folder).ok());
        if let Some(reason) = fault(placement.engine, &resolved, mount, temporary.as_deref()) {
            return Err(PlatformError::VolumeDoesNotLast { path, reason });
        }
    }
    let filesystem = mount.map_or_else(|| "unknown file system".to_owned(), |mount| mount.filesystem.clone());
    let free_bytes = free_bytes(&resolved).map_err(failed)?;
    let free = bytesize::ByteSize::b(free_bytes).display().iec();
    let description = format!("{} ({filesystem}, {free} free)", path.display());
    Ok(VolumePlace { path, filesystem, free_bytes, description })
}

impl Mounts {
    /// The mounts of this process.
    pub fn of_process() -> Result<Self, PlatformError> {
        // Paths may hold any byte; one that isn't UTF-8 must not hide the others.
        match std::fs::read("/proc/self/mountinfo") {
            Ok(table) => Ok(Self::parse(&String::from_utf8_lossy(&table))),
            Err(error) => Err(PlatformError::NoMounts(error.to_string())),
        }
    }
}

fn choose(placement: &Placement, spec: &JobSpec, mounts: &Mounts) -> Result<PathBuf, PlatformError> {
    let engine = placement.engine;
    if let Some(given) = &spec.volume {
        Ok(given.clone())
    } else if engine == Engine::None || placement.rehearsal {
        Ok(BESIDE_US.into())
    } else if engine.runs_containers() && mounts.is_point(Path::new(MOUNTED_BY_CONVENTION)) {
        Ok(MOUNTED_BY_CONVENTION.into())
    } else {
        Err(PlatformError::NoVolume { engine })
    }
}

/// Why a volume at this place would not outlive the attempt.
fn fault(engine: Engine, path: &Path, mount: Option<&Mount>, temporary: Option<&Path>) -> Option<String> {
    let in_memory = |mount: &Mount| ["tmpfs", "ramfs", "devtmpfs"].contains(&mount.filesystem.as_str());
    let on_memory = || "it lies in memory (tmpfs)".to_owned();
    if engine == Engine::Slurm {
        return match (mount, temporary) {
            (Some(mount), _) if in_memory(mount) => Some(on_memory()),
            (_, Some(temporary)) if path.starts_with(temporary) => {
                Some(format!("it lies below the node's $TMPDIR, {}", temporary.display()))
            }
            _ => None,
        };
    }
    if !engine.runs_containers() {
        return None;
    }
    let own_disk = || "nothing is mounted there, so it lies on the container's own disk".to_owned();
    let Some(mount) = mount else { return Some(own_disk()) };
    let empty_dir = |text: &str| text.contains("kubernetes.io~empty-dir");
    if empty_dir(&mount.root.to_string_lossy()) || empty_dir(&mount.source) {
        Some("it is an emptyDir, which vanishes with its pod".to_owned())
    } else if in_memory(mount) {
        Some(on_memory())
    } else if mount.point == Path::new("/") {
        Some(own_disk())
    } else if ["overlay", "overlayfs", "aufs"].contains(&mount.filesystem.as_str()) {
        Some(format!("it lies on a layer of the container ({})", mount.filesystem))
    } else {
        None
    }
}

/// The absolute path without links. What doesn't exist yet is appended as it is: it can't be a link.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        match existing.canonicalize() {
            Ok(resolved) => return Ok(missing.iter().rev().fold(resolved, |path, name| path.join(name))),
            // A link to nowhere exists, but can't be followed: nothing could be created behind it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && existing.symlink_metadata().is_err() => {
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return Err(error) };
                missing.push(name);
                existing = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Free space where the path is, or will be.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let statistics = rustix::fs::statvfs(existing)?;
    Ok(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}

#[cfg(test)]
mod tests;
