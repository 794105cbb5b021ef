//! Compiled code, kept between attempts so that a plugin with a Python interpreter in it starts in milliseconds, and a kernel in less.
//!
//! The cache is never needed: whatever is wrong with it, from a full disk to a damaged entry, the code is compiled again and
//! nobody hears of it. An entry's name is a hash of the digest of what was compiled and of everything in the engine that its code depends
//! on, processor features among it, so entries never go stale. Entries are machine code that the host will run, so a folder that
//! others may write to is not used; one of root's is, which is how an image brings its cache along for any user.
//!
//! ```text
//!  entry:  magic "steadcw3" · BLAKE3 of what follows, keyed with that of the name (32 bytes) · length of the facts (8 bytes) · facts · code
//! ```
//!
//! The facts are the caller's: what it wants to know of the code without compiling again.

mod precompiled_unsafe;

use std::fs::{self, DirBuilder, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use wasmtime::Engine;

pub(crate) use precompiled_unsafe::OwnCode;

const MAGIC: &[u8; 8] = b"steadcw3";
/// Compiled code is some times larger than its component, which has at most 1 GiB.
const LARGEST_ENTRY: u64 = 8 << 30;
/// A stage file of this age belongs to nobody who is still writing.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where compiled code is kept: `$STEADFAST_CACHE`, else `$XDG_CACHE_HOME/steadfast`, else `~/.cache/steadfast`. None of
/// them set, or the first set but empty: no cache.
pub fn default_cache_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let full = |name: &str| env(name).filter(|value| !value.is_empty());
    match env("STEADFAST_CACHE") {
        Some(folder) => Some(folder).filter(|folder| !folder.is_empty()).map(PathBuf::from),
        None => full("XDG_CACHE_HOME")
            .map(|base| Path::new(&base).join("steadfast"))
            .or_else(|| full("HOME").map(|home| Path::new(&home).join(".cache/steadfast"))),
    }
}

/// All in an engine that its code depends on. Gathering it takes longer than to find a kernel.
#[derive(Clone, Copy)]
pub(crate) struct EngineKey(blake3::Hash);

impl EngineKey {
    pub(crate) fn of(engine: &Engine) -> Self {
        let mut hasher = Blake3Hasher(blake3::Hasher::new_derive_key("steadfast 0.1 engine of compiled code"));
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self(hasher.0.finalize())
    }
}

/// A folder of compiled code of one engine.
#[derive(Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
    /// The folder, since something was looked for in it: to find a path takes longer than to read a small entry.
    opened: Arc<Mutex<Option<Arc<File>>>>,
    most_entries: usize,
    engine: EngineKey,
}

impl Cache {
    /// Of the entries in the folder, more than anybody switches between, the oldest go.
    pub(crate) fn new(folder: PathBuf, most_entries: usize, engine: EngineKey) -> Self {
        Self { folder, opened: Arc::default(), most_entries, engine }
    }

    /// What `open` makes of facts and code, if they are there and whole.
    pub(crate) fn get<T>(&self, digest: &str, open: impl FnOnce(&[u8], OwnCode<'_>) -> Option<T>) -> Option<T> {
        let name = self.entry_name(digest);
        let entry = self.read(&name).ok()?;
        let (facts, code) = content(&name, &entry)?;
        open(facts, OwnCode::proven(code))
    }

    /// Keeps compiled code that `serialize` made, if that can be done.
    pub(crate) fn put(&self, digest: &str, facts: &[u8], code: wasmtime::Result<Vec<u8>>) {
        // Failing here costs the next attempt a compilation, and nothing else.
        let _ = code.map_err(io::Error::other).and_then(|code| self.try_put(digest, facts, &code));
    }

    fn try_put(&self, digest: &str, facts: &[u8], code: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if !may_be_trusted(&self.folder) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write to the cache"));
        }
        let length = (facts.len() as u64).to_le_bytes();
        let name = self.entry_name(digest);
        // Who may look into the folder may read what is in it, so that an image's cache made by root is of use to others.
        let readable = fs::Permissions::from_mode(0o644);
        let mut stage = tempfile::Builder::new().permissions(readable).tempfile_in(&self.folder)?;
        stage.write_all(MAGIC)?;
        stage.write_all(seal(&name, &[&length, facts, code]).as_bytes())?;
        for part in [&length, facts, code] {
            stage.write_all(part)?;
        }
        // Not synced: the seal of an entry that a crash has torn does not hold, and then it is compiled again.
        stage.persist(self.folder.join(&name)).map_err(|error| error.error)?;
        self.tidy()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let folder = self.opened()?;
        read_entry(&folder, name)
    }

    /// The folder, if nobody else may write to it.
    fn opened(&self) -> io::Result<Arc<File>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let about = |folder: Arc<File>| folder.metadata().map(|about| (folder, about));
        // One that was removed is in no other folder any more, and there may be a new one at its path.
        let there = opened.take().and_then(|folder| about(folder).ok()).filter(|(_, about)| about.nlink() > 0);
        let (folder, about) = there.map_or_else(|| about(Arc::new(File::open(&self.folder)?)), Ok)?;
        if is_ours(&about) { Ok(opened.insert(folder).clone()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    fn entry_name(&self, digest: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("steadfast 0.1 compiled code");
        hasher.update(self.engine.0.as_bytes()).update(digest.as_bytes());
        format!("{}{SUFFIX}", hasher.finalize().to_hex())
    }

    fn tidy(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let Ok(modified) = file.metadata().and_then(|metadata| metadata.modified()) else { continue };
            let name = file.file_name();
            if name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
                entries.push((modified, file.path()));
            } else if name.as_encoded_bytes().starts_with(b".tmp") && is_stale(modified) {
                fs::remove_file(file.path())?;
            }
        }
        entries.sort();
        entries.iter().rev().skip(self.most_entries).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

const SUFFIX: &str = ".compiled";

fn is_stale(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age > STALE)
}

/// Whether nobody but us (and root, who may do anything) can write to the folder: what others may write to is not used.
pub(crate) fn may_be_trusted(folder: &Path) -> bool {
    File::open(folder).and_then(|folder| folder.metadata()).is_ok_and(|about| is_ours(&about))
}

fn is_ours(folder: &fs::Metadata) -> bool {
    let us = rustix::process::geteuid().as_raw();
    folder.is_dir() && is_trusted(folder.uid(), us, folder.mode())
}

fn is_trusted(owner: u32, us: u32, mode: u32) -> bool {
    const ROOT: u32 = 0;
    (owner == us || owner == ROOT) && mode & 0o022 == 0
}

/// Reads an entry. What is no file (a pipe would wait for a writer, and some devices have no end) is none.
fn read_entry(folder: &File, name: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LARGEST_ENTRY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let bytes = usize::try_from(about.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut entry = Vec::with_capacity(bytes);
    // One that ends earlier is found out by its seal.
    while entry.len() < bytes && retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut entry)))? > 0 {}
    Ok(entry)
}

/// The name is the key, and not hashed in front: what lies at odd places is hashed more slowly.
fn seal(name: &str, parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(blake3::hash(name.as_bytes()).as_bytes());
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Facts and code of an entry whose seal holds.
fn content<'a>(name: &str, entry: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (stored, sealed) = entry.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
    if seal(name, &[sealed]) != *stored {
        return None;
    }
    let (length, rest) = sealed.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Lets the engine's `Hash` feed a hash that is the same in every process.
struct Blake3Hasher(blake3::Hasher);

impl Hasher for Blake3Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(std::array::from_fn(|at| hash.as_bytes()[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_cache_is() {
        let folder = |set: &[(&str, &str)]| {
            default_cache_folder(&|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        let all = [("STEADFAST_CACHE", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(folder(&all), Some("/c".into()));
        assert_eq!(folder(&all[1..]), Some("/x/steadfast".into()));
        assert_eq!(folder(&all[2..]), Some("/h/.cache/steadfast".into()));
        assert_eq!(folder(&[("XDG_CACHE_HOME", ""), ("HOME", "/h")]), Some("/h/.cache/steadfast".into()));
        assert_eq!(folder(&[("STEADFAST_CACHE", ""), ("HOME", "/h")]), None);
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn only_our_own_folder_and_one_of_root_are_trusted() {
        for (owner, mode, trusted) in [
            (1000, 0o40700, true),
            (0, 0o40755, true),
            (0, 0o40555, true),
            (1001, 0o40700, false),
            (0, 0o40775, false),
            (1000, 0o40702, false),
        ] {
            assert_eq!(is_trusted(owner, 1000, mode), trusted, "{owner} {mode:o}");
        }
    }

    #[test]
    fn a_folder_in_the_place_of_one_that_was_removed_is_found() -> io::Result<()> {
        let parent = tempfile::tempdir()?;
        let folder = parent.path().join("cache");
        let cache = Cache::new(folder.clone(), 1, EngineKey(blake3::hash(b"an engine")));
        for content in ["first", "second"] {
            assert!(cache.read("file").is_err(), "before {content}");
            DirBuilder::new().mode(0o700).create(&folder)?;
            fs::write(folder.join("file"), content)?;
            assert_eq!(cache.read("file")?, content.as_bytes());
            fs::remove_dir_all(&folder)?;
        }
        DirBuilder::new().create(&folder)?;
        fs::write(folder.join("file"), "third")?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o722))?;
        assert!(cache.read("file").is_err(), "others may write there");
        Ok(())
    }

    #[test]
    fn what_is_no_file_is_no_entry() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let opened = File::open(folder.path())?;
        fs::write(at("file"), "code")?;
        assert_eq!(read_entry(&opened, "file")?, b"code");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)?;
        std::os::unix::fs::symlink("/dev/zero", at("endless"))?;
        for name in ["pipe", "endless", "none", "."] {
            assert!(read_entry(&opened, name).is_err(), "{name}");
        }
        Ok(())
    }
}
