//! The guest's two folders, for transfers between a file and a buffer that do not pass through the guest.
//!
//! The rules are those of the guest's own view of its folders: a path may go through links, as long as they stay below the folder, and
//! `/input` is read-only. Only ordinary files are opened: a pipe would have the host wait for whoever writes to it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, retry_on_intr};

use super::failure::{Failure, Result};
use crate::plugin::{GuestSettings, PluginError};

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NEW_FILE: u32 = 0o666;

/// The folders that a guest sees, opened once, so that what they are called later does not matter.
pub(in crate::plugin) struct Folders {
    input: Option<OwnedFd>,
    output: OwnedFd,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Its bytes go to a buffer.
    Load,
    /// A buffer's bytes go to it; it is made if it is not there.
    Store,
}

impl Folders {
    pub(in crate::plugin) fn open(settings: &GuestSettings) -> std::result::Result<Self, PluginError> {
        let open = |path: &Path, guest| {
            retry_on_intr(|| openat(CWD, path, FOLDER, Mode::empty())).map_err(|error| PluginError::Folder {
                path: path.to_owned(),
                guest,
                cause: error.to_string(),
            })
        };
        let input = settings.input.as_deref().map(|path| open(path, "/input")).transpose()?;
        Ok(Self { input, output: open(&settings.output, "/output")? })
    }

    /// Opens the file that the guest knows by this path.
    pub(super) fn file(&self, path: &str, access: Access) -> Result<File> {
        let (folder, below) = self.place(path, access)?;
        let opened = match access {
            Access::Load => open_below(folder, below, OFlags::RDONLY),
            Access::Store => open_below(folder, below, OFlags::WRONLY | OFlags::CREATE),
        };
        let file = opened.map_err(|error| Failure::File(explain(path, error)))?;
        match file.metadata() {
            Ok(about) if about.is_file() => Ok(file),
            Ok(_) => Err(Failure::File(format!("`{path}` is no ordinary file"))),
            Err(error) => Err(Failure::File(explain(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))),
        }
    }

    /// Which of the folders, and the path below it.
    fn place<'p>(&self, path: &'p str, access: Access) -> Result<(&OwnedFd, &'p str)> {
        let below = |folder: &str| {
            let rest = path.strip_prefix(folder)?.strip_prefix('/')?.trim_start_matches('/');
            (!rest.is_empty()).then_some(rest)
        };
        match (below("/input"), below("/output"), access) {
            (Some(rest), _, Access::Load) => match &self.input {
                Some(input) => Ok((input, rest)),
                None => {
                    Err(Failure::argument(format!("`{path}`: the job has no /input: give its folder with --input")))
                }
            },
            (Some(_), _, Access::Store) => Err(Failure::argument(format!("`{path}`: /input is read-only"))),
            (None, Some(rest), _) => Ok((&self.output, rest)),
            (None, None, Access::Load) => {
                Err(Failure::argument(format!("`{path}` names no file below /input or /output")))
            }
            (None, None, Access::Store) => Err(Failure::argument(format!("`{path}` names no file below /output"))),
        }
    }
}

fn open_below(folder: &OwnedFd, path: &str, flags: OFlags) -> rustix::io::Result<File> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(NEW_FILE) } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match retry_on_intr(|| openat2(folder, path, flags | FILE, mode, resolve)) {
        // An old kernel, or a container's filter that is older than the call.
        Err(Errno::NOSYS | Errno::PERM) => walk_below(folder, path, flags | FILE, mode),
        // Somebody moved folders meanwhile.
        Err(Errno::AGAIN) => walk_below(folder, path, flags | FILE, mode),
        opened => opened.map(File::from),
    }
}

/// The same folder by folder, through no link at all.
fn walk_below(root: &OwnedFd, path: &str, flags: OFlags, mode: Mode) -> rustix::io::Result<File> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let Some((name, folders)) = parts.split_last() else { return Err(Errno::ISDIR) };
    let mut folder = root.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
    for part in folders {
        folder = retry_on_intr(|| openat(&folder, *part, FOLDER | OFlags::NOFOLLOW, Mode::empty()))?;
    }
    retry_on_intr(|| openat(&folder, *name, flags | OFlags::NOFOLLOW, mode)).map(File::from)
}

fn explain(path: &str, error: Errno) -> String {
    match error {
        Errno::XDEV => format!("`{path}` leads out of the folder"),
        // A pipe without a reader, or a device without a driver.
        Errno::NXIO => format!("`{path}` is no ordinary file"),
        error => format!("cannot open `{path}`: {}", io::Error::from(error)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    fn said(outcome: Result<File>) -> String {
        match outcome {
            Ok(file) => format!("opened {file:?}"),
            Err(Failure::Device(error)) => error.to_string(),
            Err(Failure::File(text)) => text,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_below_the_folders_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        fs::create_dir_all(at("in/deep")).unwrap();
        fs::create_dir_all(at("out/deep")).unwrap();
        fs::write(at("in/deep/data"), "inside").unwrap();
        fs::write(at("secret"), "secret").unwrap();
        symlink("deep/data", at("in/inner")).unwrap();
        symlink("../secret", at("in/outer")).unwrap();
        symlink(at("secret"), at("out/absolute")).unwrap();
        symlink("..", at("out/up")).unwrap();
        mknodat(CWD, at("out/pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let open = |path: &Path| openat(CWD, path, FOLDER, Mode::empty()).unwrap();
        let folders = Folders { input: Some(open(&at("in"))), output: open(&at("out")) };

        for path in ["/input/deep/data", "/input/inner", "/input//deep/./data", "/input/deep/../inner"] {
            let mut text = String::new();
            folders.file(path, Access::Load).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{path}");
        }
        folders.file("/output/deep/new", Access::Store).unwrap().write_all(b"written").unwrap();
        assert_eq!(fs::read(at("out/deep/new")).unwrap(), b"written");

        let load = |path: &str| said(folders.file(path, Access::Load));
        let store = |path: &str| said(folders.file(path, Access::Store));
        for path in
            ["/input/outer", "/input/../secret", "/output/absolute", "/output/up/secret", "/input/deep/../../secret"]
        {
            assert_eq!(load(path), format!("`{path}` leads out of the folder"));
        }
        assert_eq!(store("/output/up/new"), "`/output/up/new` leads out of the folder");
        assert!(!at("new").exists());
        for path in ["", "/", "/input", "/input/", "input/deep/data", "/etc/passwd", "/inputs/x"] {
            assert_eq!(load(path), format!("`{path}` names no file below /input or /output"));
            assert!(store(path).starts_with(&format!("`{path}`")), "{path}");
        }
        assert_eq!(store("/input/new"), "`/input/new`: /input is read-only");
        assert_eq!(load("/output/pipe"), "`/output/pipe` is no ordinary file");
        assert_eq!(store("/output/pipe"), "`/output/pipe` is no ordinary file");
        assert_eq!(load("/output/deep"), "`/output/deep` is no ordinary file");
        assert_eq!(store("/output/none/new"), "cannot open `/output/none/new`: No such file or directory (os error 2)");
        let none = Folders { input: None, ..folders };
        assert_eq!(
            said(none.file("/input/x", Access::Load)),
            "`/input/x`: the job has no /input: give its folder with --input"
        );
    }

    #[test]
    fn where_the_system_cannot_confine_a_path_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("deep")).unwrap();
        fs::write(place.path().join("deep/data"), "inside").unwrap();
        symlink("deep", place.path().join("link")).unwrap();
        symlink("deep/data", place.path().join("inner")).unwrap();
        let root = openat(CWD, place.path(), FOLDER, Mode::empty()).unwrap();
        let walk = |path: &str| walk_below(&root, path, OFlags::RDONLY | FILE, Mode::empty());
        assert!(walk("deep/data").is_ok() && walk("./deep/./data").is_ok());
        for wrong in ["link/data", "inner", "deep/../deep/data", "/etc/passwd", "."] {
            assert!(walk(wrong).is_err(), "{wrong}");
        }
    }
}
