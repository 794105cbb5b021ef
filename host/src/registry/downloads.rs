//! What was fetched from registries, kept by digest in the cache folder, manifests and components alike.
//!
//! Never needed, and never believed: whatever is read again has to have the digest that it is asked for by. So anybody may write to
//! the folder, unlike to that of compiled code; and what is wrong with it is fetched again without a word.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::digest_of;

/// More than anybody switches between; beyond it the oldest go.
const MOST_ENTRIES: usize = 64;

/// Its name in the cache folder.
const FOLDER: &str = "downloads";

/// A folder of downloads; none where there is no cache.
pub(super) struct Downloads {
    cache: Option<PathBuf>,
}

impl Downloads {
    /// Below the cache folder.
    pub(super) fn below(cache: Option<&Path>) -> Self {
        Self { cache: cache.map(Path::to_owned) }
    }

    /// The bytes of this digest, if they are there and whole.
    pub(super) fn get(&self, digest: &str, most: u64) -> Option<Vec<u8>> {
        let path = self.cache.as_ref()?.join(FOLDER).join(file_name(digest));
        let bytes = read(&path, most).ok()?;
        (digest_of(&bytes) == digest).then_some(bytes)
    }

    /// Keeps bytes of this digest, if that can be done.
    pub(super) fn put(&self, digest: &str, bytes: &[u8]) {
        // Failing here costs the next attempt a download, and nothing else.
        let _ = self.cache.as_ref().map(|cache| put(cache, digest, bytes));
    }
}

fn put(cache: &Path, digest: &str, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    let folder = &cache.join(FOLDER);
    DirBuilder::new().recursive(true).create(folder)?;
    // Who may look into the cache may read what is in it, so that an image's made by root is of use to others.
    let readable = fs::Permissions::from_mode(0o644);
    let mut stage = tempfile::Builder::new().prefix("stage-").permissions(readable).tempfile_in(folder)?;
    stage.write_all(bytes)?;
    stage.as_file().sync_data()?;
    stage.persist(folder.join(file_name(digest))).map_err(|error| error.error)?;
    tidy(folder)
}

/// Also of stage files that killed attempts left: as old as the rest, they go with it.
fn tidy(folder: &Path) -> io::Result<()> {
    let modified = |file: &fs::DirEntry| file.metadata().and_then(|metadata| metadata.modified()).ok();
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let mut entries: Vec<_> = entries.filter_map(|file| Some((modified(&file)?, file.path()))).collect();
    entries.sort();
    entries.iter().rev().skip(MOST_ENTRIES).try_for_each(|(_, path)| fs::remove_file(path))
}

fn file_name(digest: &str) -> String {
    digest.replace(':', "-")
}

/// What is no file is not read: a pipe would wait for a writer.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() || about.len() > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_its_digest_comes_back() -> io::Result<()> {
        let cache = tempfile::tempdir()?;
        let downloads = Downloads::below(Some(cache.path()));
        let digest = digest_of(b"component");
        assert_eq!(downloads.get(&digest, 100), None);
        downloads.put(&digest, b"component");
        assert_eq!(downloads.get(&digest, 100).as_deref(), Some(&b"component"[..]));
        assert_eq!(downloads.get(&digest, 3), None, "larger than is wanted");
        let path = cache.path().join(FOLDER).join(file_name(&digest));
        fs::write(&path, "compromise")?;
        assert_eq!(downloads.get(&digest, 100), None);
        downloads.put(&digest, b"component");
        assert!(downloads.get(&digest, 100).is_some(), "what is damaged is replaced");
        Downloads::below(None).put(&digest, b"component");
        Ok(())
    }

    #[test]
    fn the_oldest_go() -> io::Result<()> {
        let cache = tempfile::tempdir()?;
        let downloads = Downloads::below(Some(cache.path()));
        let put = |number: usize| {
            let bytes = number.to_string();
            let digest = digest_of(bytes.as_bytes());
            downloads.put(&digest, bytes.as_bytes());
            digest
        };
        let oldest = put(0);
        let path = cache.path().join(FOLDER).join(file_name(&oldest));
        File::options().append(true).open(path)?.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        let others: Vec<_> = (1..=MOST_ENTRIES).map(put).collect();
        assert_eq!(downloads.get(&oldest, 100), None);
        assert!(others.iter().all(|digest| downloads.get(digest, 100).is_some()));
        Ok(())
    }
}
