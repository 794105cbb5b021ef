//! How a file gets its name. Whoever wants a file on the volume comes through here, so that nobody can forget a part.

use std::io::{self, Write};
use std::path::Path;

use super::{Operation, Volume, VolumeError, VolumeFile};
use crate::checkpoint::sabotage::{self, Rule};

/// Writes a file under a name that is final from then on: stage, write, sync, close and check, rename, sync the folder.
///
/// The folder must be there. If `target` has a file already the error is `AlreadyExists`, and that file stays as it is. After a
/// failure the stage file is removed if that is possible. When only the last part failed, syncing the folder, `target` is there
/// and complete, and whether it survives a power cut is not known.
pub fn publish<T>(
    volume: &dyn Volume,
    stage: &Path,
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, VolumeError> {
    publish_by(volume, stage, target, write, |from, to| volume.rename(from, to))
}

/// Like [`publish`], in place of what has the name. Only for the record that its owner may change, and for a component, whose
/// name is its digest.
pub fn replace<T>(
    volume: &dyn Volume,
    stage: &Path,
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, VolumeError> {
    publish_by(volume, stage, target, write, |from, to| volume.rename_over(from, to))
}

/// Writes a file directly under its name, which must be new: create, write, sync, close and check, sync the folder. For claims,
/// where creating is what counts. After a failure the file is removed if that is possible; others may have seen it.
pub fn publish_new<T>(
    volume: &dyn Volume,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, VolumeError> {
    let file = create(volume, path)?;
    let result = fill(volume, file, path, write).and_then(|(value, file)| {
        close(volume, file, path)?;
        sync_folder(volume, path)?;
        Ok(value)
    });
    result.inspect_err(|_| remove_quietly(volume, path))
}

fn publish_by<T>(
    volume: &dyn Volume,
    stage: &Path,
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    rename: impl Fn(&Path, &Path) -> io::Result<()>,
) -> Result<T, VolumeError> {
    let rename = || rename(stage, target).map_err(|cause| VolumeError::new(volume, Operation::Rename, target, cause));
    let file = create(volume, stage)?;
    let result = fill(volume, file, stage, write).and_then(|(value, file)| {
        if sabotage::is_off(Rule::CloseBeforeRename) {
            rename()?;
            close(volume, file, target)?;
        } else {
            close(volume, file, stage)?;
            rename()?;
        }
        Ok(value)
    });
    let value = result.inspect_err(|_| remove_quietly(volume, stage))?;
    sync_folder(volume, target)?;
    Ok(value)
}

fn create(volume: &dyn Volume, path: &Path) -> Result<Box<dyn VolumeFile>, VolumeError> {
    volume.create_new(path).map_err(|cause| VolumeError::new(volume, Operation::Create, path, cause))
}

/// Writes and syncs. The file is closed by whoever gets it; on an error it is dropped, and its fate no longer matters.
fn fill<T>(
    volume: &dyn Volume,
    mut file: Box<dyn VolumeFile>,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<(T, Box<dyn VolumeFile>), VolumeError> {
    let value = write(&mut file)
        .and_then(|value| file.flush().map(|()| value))
        .map_err(|cause| VolumeError::new(volume, Operation::Write, path, cause))?;
    match file.sync() {
        Err(cause) if !sabotage::is_off(Rule::CheckedClose) => {
            Err(VolumeError::new(volume, Operation::Sync, path, cause))
        }
        _ => Ok((value, file)),
    }
}

fn close(volume: &dyn Volume, file: Box<dyn VolumeFile>, path: &Path) -> Result<(), VolumeError> {
    match file.close() {
        Err(cause) if !sabotage::is_off(Rule::CheckedClose) => {
            Err(VolumeError::new(volume, Operation::Close, path, cause))
        }
        _ => Ok(()),
    }
}

fn sync_folder(volume: &dyn Volume, path: &Path) -> Result<(), VolumeError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    volume.sync_dir(folder).map_err(|cause| VolumeError::new(volume, Operation::SyncDir, folder, cause))
}

/// The failure that led here is what matters; that a stage file stays behind is what pruning is for.
fn remove_quietly(volume: &dyn Volume, path: &Path) {
    let _ = volume.remove_file(path);
}
