//! The finished outputs: from scratch space to the volume, and from there to where the user wants a copy.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::Manifest;
use super::below::open_below;
use crate::checkpoint::format::ReadAt;
use crate::checkpoint::volume::{Operation, Volume, VolumeError, publish};

/// What was assembled; the done record holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembled {
    /// Folders below the output folder, parents first.
    pub folders: Vec<String>,
    /// The files.
    pub files: Vec<AssembledFile>,
}

/// One finished file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssembledFile {
    /// Path below the output folder, with `/`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its BLAKE3 hash in hexadecimal.
    pub hash: String,
}

const PIECE: usize = 1 << 20;

/// What a file that is being copied to the user is called until it is complete.
const COPY_PREFIX: &str = ".steadfast-copy-";

/// Copies the files of `output` (as `manifest` lists them) into `target` on the volume, each by way of the file `stage`, and
/// reads each back.
pub fn assemble(
    volume: &dyn Volume,
    output: &Path,
    manifest: &Manifest,
    target: &Path,
    stage: &Path,
) -> Result<Assembled, VolumeError> {
    volume.make_dirs(target).map_err(|cause| VolumeError::new(volume, Operation::MakeDirs, target, cause))?;
    let mut done = Assembled { folders: manifest.folders.clone(), files: Vec::new() };
    for folder in &manifest.folders {
        let folder = target.join(folder);
        volume.make_dirs(&folder).map_err(|cause| VolumeError::new(volume, Operation::MakeDirs, &folder, cause))?;
    }
    for path in manifest.files.keys() {
        let (bytes, hash) = copy_to_volume(volume, (output, Path::new(path)), &target.join(path), stage)?;
        done.files.push(AssembledFile { path: path.clone(), bytes, hash });
    }
    Ok(done)
}

/// Copies one file, below a folder, to a final name on the volume, and reads it back. Answers its length and hash.
pub(crate) fn copy_to_volume(
    volume: &dyn Volume,
    (root, from): (&Path, &Path),
    to: &Path,
    stage: &Path,
) -> Result<(u64, String), VolumeError> {
    let (bytes, hash) = publish(volume, stage, to, |out| {
        let mut source = open_below(root, from)?;
        copy_hashed(&mut source, out)
    })?;
    let read_back = || -> io::Result<blake3::Hash> {
        let file = volume.open(to)?;
        copy_hashed(&mut InOrder::new(&*file), &mut io::sink()).map(|(_, hash)| hash)
    };
    match read_back().map_err(|cause| VolumeError::new(volume, Operation::Read, to, cause))? {
        same if same == hash => Ok((bytes, hash.to_hex().to_string())),
        _ => Err(VolumeError::new(
            volume,
            Operation::Read,
            to,
            io::Error::other("its bytes are not those that were written"),
        )),
    }
}

/// Makes `target`, a folder outside the volume, hold the finished outputs in `folder`: what is there with the same bytes stays,
/// other files of the same names are replaced, further files are left alone. Each file appears under its name when complete.
pub fn export(volume: &dyn Volume, folder: &Path, assembled: &Assembled, target: &Path) -> Result<(), ExportError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |cause| ExportError { path, cause }
    };
    fs::create_dir_all(target).map_err(at(target))?;
    sweep(target);
    for path in &assembled.folders {
        let path = target.join(path);
        fs::create_dir_all(&path).map_err(at(&path))?;
        sweep(&path);
    }
    for file in &assembled.files {
        let path = target.join(&file.path);
        if !holds(&path, file).map_err(at(&path))? {
            copy_out(volume, &folder.join(&file.path), &path, file).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// A copy of the outputs that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot copy the finished outputs to `{}`: {cause}", path.display())]
pub struct ExportError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

fn holds(path: &Path, file: &AssembledFile) -> io::Result<bool> {
    match fs::metadata(path) {
        // Opening a pipe would wait for a writer.
        Ok(about) if !about.is_file() || about.len() != file.bytes => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let (_, hash) = copy_hashed(&mut File::open(path)?, &mut io::sink())?;
    Ok(hash.to_hex().as_str() == file.hash)
}

fn copy_out(volume: &dyn Volume, from: &Path, to: &Path, file: &AssembledFile) -> io::Result<()> {
    let folder = to.parent().ok_or_else(|| io::Error::other("no folder"))?;
    let mut stage = tempfile::Builder::new().prefix(COPY_PREFIX).tempfile_in(folder)?;
    // Where the file system knows no locks, nobody can take one to sweep either.
    let _ = flock(stage.as_file(), FlockOperation::NonBlockingLockExclusive);
    copy_assembled(volume, from, file, stage.as_file_mut())?;
    stage.as_file().sync_all()?;
    // Temporary files are private; the copy is for whoever may see the folder.
    fs::set_permissions(stage.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    stage.persist(to)?;
    File::open(folder)?.sync_all()
}

/// Copies a finished file's bytes; that they are the ones that were assembled is known at the end.
pub(crate) fn copy_assembled(
    volume: &dyn Volume,
    from: &Path,
    file: &AssembledFile,
    out: &mut dyn Write,
) -> io::Result<()> {
    let source = volume.open(from)?;
    let (_, hash) = copy_hashed(&mut InOrder::new(&*source), out)?;
    if hash.to_hex().as_str() != file.hash {
        return Err(io::Error::other("the finished output on the volume does not match its hash"));
    }
    Ok(())
}

/// Removes what killed attempts left half copied. Living ones hold a lock on what they write.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(COPY_PREFIX.as_bytes()))
    {
        let Some(file) = super::scratch::open_to_lock(&entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Reads a file of the volume from its beginning to its end.
struct InOrder<'a> {
    file: &'a dyn ReadAt,
    at: u64,
}

impl<'a> InOrder<'a> {
    fn new(file: &'a dyn ReadAt) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for InOrder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len()?.saturating_sub(self.at);
        let bytes = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.file.read_exact_at(&mut buffer[..bytes], self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

fn copy_hashed(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<(u64, blake3::Hash)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => return Ok((bytes, hasher.finalize())),
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..got]);
        to.write_all(&buffer[..got])?;
        bytes += got as u64;
    }
}
