//! Opening what is below the guest's folder, and nothing else.
//!
//! The guest rests while its files are read, but scratch space may be a folder that others write to as well. Whoever swaps a
//! folder for a link between two looks at it must not have the host read what the link leads to, nor wait at a pipe.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::{Errno, retry_on_intr};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder below another, which itself may be given as a link. No part of the path may be one.
fn folder_below(root: &Path, path: &Path) -> io::Result<OwnedFd> {
    let mut folder = retry_on_intr(|| open(root, FOLDER, Mode::empty()))?;
    for part in path.components() {
        let Component::Normal(part) = part else { return Err(not_below()) };
        folder = retry_on_intr(|| openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty()))?;
    }
    Ok(folder)
}

/// Opens a file below a folder, in the same way.
pub(super) fn open_below(root: &Path, path: &Path) -> io::Result<File> {
    let Some(Component::Normal(name)) = path.components().next_back() else { return Err(not_below()) };
    let folder = folder_below(root, path.parent().unwrap_or(Path::new("")))?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(retry_on_intr(|| openat(&folder, name, flags, Mode::empty()))?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_below()) }
}

/// What is in a folder below another, in the same way: names and kinds. What vanishes meanwhile is left out.
pub(super) fn list_below(root: &Path, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let folder = folder_below(root, path)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(about) => FileType::from_raw_mode(about.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        found.push((OsString::from_vec(name.to_bytes().to_vec()), kind));
    }
    Ok(found)
}

fn not_below() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not below the folder")
}

/// Whether an error says that something else is there than was listed a moment ago, or nothing.
pub(super) fn is_swapped(error: &io::Error) -> bool {
    let ours = error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none();
    ours || matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::NXIO))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn nothing_but_files_below_the_folder_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        fs::create_dir_all(at("root/a/b")).unwrap();
        fs::create_dir(at("outside")).unwrap();
        fs::write(at("root/a/b/file"), "inside").unwrap();
        fs::write(at("outside/file"), "secret").unwrap();
        symlink(at("outside"), at("root/a/out")).unwrap();
        symlink("../../outside/file", at("root/a/link")).unwrap();
        mknodat(CWD, at("root/pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let opened = |path: &str| open_below(&at("root"), Path::new(path));
        let mut text = String::new();
        opened("a/b/file").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
        for wrong in
            ["a/out/file", "a/link", "pipe", "a/b", "a/b/none", "a/b/file/x", "../outside/file", "/etc/passwd", ""]
        {
            assert!(is_swapped(&opened(wrong).unwrap_err()), "{wrong}");
        }
        let listed = |path: &str| list_below(&at("root"), Path::new(path));
        let mut names: Vec<_> = listed("a").unwrap().into_iter().collect();
        names.sort_by(|one, other| one.0.cmp(&other.0));
        let kinds = [("b", FileType::Directory), ("link", FileType::Symlink), ("out", FileType::Symlink)];
        assert_eq!(names, kinds.map(|(name, kind)| (name.into(), kind)));
        for wrong in ["a/out", "a/out/x", "a/b/file", "pipe", "none", ".."] {
            assert!(is_swapped(&listed(wrong).unwrap_err()), "{wrong}");
        }
    }
}
