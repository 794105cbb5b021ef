//! A folder of a mounted filesystem: a local disk, NFS, or a bucket behind gcsfuse.
//!
//! Filesystems differ in what they can do beyond the ordinary. Where one says that it cannot (EINVAL, ENOTSUP, ENOSYS) the
//! nearest thing is done instead; every other error is passed on as it is.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{Entry, EntryKind, ReadAt, Volume, VolumeFile, close_unsafe};

/// The volume as the filesystem gives it.
#[derive(Clone, Debug)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// The volume that is mounted here. Nothing is touched yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Makes the volume's own folder where it is missing. Only for a plain machine: where a platform mounts the volume, one that
    /// is missing is a mistake.
    pub fn make(root: impl Into<PathBuf>) -> io::Result<Self> {
        let disk = Self::new(root);
        std::fs::create_dir_all(&disk.root)?;
        Ok(disk)
    }

    /// Whether the folder is there at all.
    pub fn is_there(&self) -> bool {
        self.root.is_dir()
    }

    /// The full path. One that could lead out of the volume is refused, wherever it came from.
    fn at(&self, path: &Path) -> io::Result<PathBuf> {
        if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Ok(self.root.join(path));
        }
        let what = format!("`{}` leads out of the volume", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    /// That a folder is not there means something only if the volume itself is.
    fn root_is_there(&self) -> io::Result<()> {
        std::fs::metadata(&self.root).map(|_| ()).map_err(|error| {
            io::Error::new(error.kind(), format!("the volume `{}` itself is not there: {error}", self.root.display()))
        })
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Whether the filesystem said that it has no such operation.
fn is_unsupported(error: Errno) -> bool {
    // ENOTSUP and EOPNOTSUPP are one number on Linux.
    [Errno::INVAL, Errno::NOTSUP, Errno::NOSYS].contains(&error)
}

fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        _ => EntryKind::Other,
    }
}

fn open_dir(path: &Path) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

fn sync_dir_at(path: &Path) -> io::Result<()> {
    let dir = open_dir(path)?;
    match retry_on_intr(|| rustix::fs::fsync(&dir)) {
        Err(error) if !is_unsupported(error) => Err(error.into()),
        _ => Ok(()),
    }
}

impl Volume for Disk {
    fn root(&self) -> &Path {
        &self.root
    }

    fn make_dirs(&self, dir: &Path) -> io::Result<()> {
        let mut path = self.at(Path::new(""))?;
        self.at(dir)?;
        for part in dir.components() {
            let above = path.clone();
            path.push(part);
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
                Ok(()) => sync_dir_at(&above)?,
                Err(error) => match rustix::fs::lstat(&path) {
                    // Some filesystems answer EROFS or EACCES for a folder that exists, so it is looked at whatever the error was.
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let path = self.at(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::open(&path, flags, Mode::from_raw_mode(0o644)))?;
        Ok(Box::new(DiskFile(File::from(file))))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.at(from)?, self.at(to)?);
        match retry_on_intr(|| rustix::fs::renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE)) {
            Err(error) if is_unsupported(error) => match rustix::fs::lstat(&to) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(Errno::NOENT) => std::fs::rename(&from, &to),
                Err(error) => Err(error.into()),
            },
            other => other.map_err(io::Error::from),
        }
    }

    fn rename_over(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.at(from)?, self.at(to)?)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        sync_dir_at(&self.at(dir)?)
    }

    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        let folder = match open_dir(&self.at(dir)?) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return self.root_is_there().map(|()| None),
            Err(error) => return Err(error.into()),
        };
        let mut entries = Vec::new();
        for found in Dir::read_from(&folder)? {
            let found = found?;
            let name = found.file_name();
            let Ok(text) = name.to_str() else { continue };
            if text == "." || text == ".." {
                continue;
            }
            // A stat costs a round trip on some mounts, so only what needs one gets one: files for their length, and entries
            // of filesystems that don't tell the kind in the listing.
            let (kind, len) = match found.file_type() {
                FileType::RegularFile | FileType::Unknown => {
                    match retry_on_intr(|| rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)) {
                        Ok(stat) => (FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0)),
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                other => (other, 0),
            };
            let kind = kind_of(kind);
            entries.push(Entry { name: text.to_owned(), kind, len: if kind == EntryKind::File { len } else { 0 } });
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(Some(entries))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        let path = self.at(path)?;
        // Without NONBLOCK, opening a pipe that somebody put there would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match retry_on_intr(|| rustix::fs::open(&path, flags, Mode::empty())) {
            Ok(file) => File::from(file),
            // What a link, and a socket, answer.
            Err(Errno::LOOP | Errno::NXIO) => return Err(not_a_file()),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(not_a_file());
        }
        Ok(Box::new(DiskSource(file)))
    }

    fn look(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        let path = self.at(path)?;
        match retry_on_intr(|| rustix::fs::lstat(&path)) {
            Ok(stat) => Ok(Some(kind_of(FileType::from_raw_mode(stat.st_mode)))),
            Err(Errno::NOENT) => self.root_is_there().map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(self.at(path)?)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir(self.at(dir)?)
    }

    fn free_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.root).ok()?;
        stat.f_bavail.checked_mul(stat.f_frsize)
    }
}

struct DiskFile(File);

impl Write for DiskFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl VolumeFile for DiskFile {
    fn sync(&mut self) -> io::Result<()> {
        // The standard library repeats it when a signal interrupts.
        self.0.sync_all()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        close_unsafe::close(self.0)
    }
}

struct DiskSource(File);

impl ReadAt for DiskSource {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(&self.0, buf, offset)
    }
}
