//! A volume in memory that can only be read: a fuzz target looks at thousands of folders a second.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use steadfast::checkpoint::format::ReadAt;
use steadfast::checkpoint::volume::{Entry, EntryKind, Volume, VolumeFile};

/// Files by their path; a folder is there if a file is in it.
#[derive(Clone, Default)]
pub(super) struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Memory {
    pub(super) fn put(&mut self, path: PathBuf, bytes: Vec<u8>) {
        self.files.insert(path, bytes);
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Volume for Memory {
    fn root(&self) -> &Path {
        Path::new("/volume")
    }

    fn make_dirs(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn create_new(&self, _: &Path) -> io::Result<Box<dyn VolumeFile>> {
        read_only()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn rename_over(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn list(&self, dir: &Path) -> io::Result<Option<Vec<Entry>>> {
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for (path, bytes) in &self.files {
            let Ok(below) = path.strip_prefix(dir) else { continue };
            let mut parts = below.components();
            let Some(name) = parts.next().and_then(|part| part.as_os_str().to_str()) else { continue };
            let (kind, len) = match parts.next() {
                None => (EntryKind::File, bytes.len() as u64),
                Some(_) => (EntryKind::Dir, 0),
            };
            entries.insert(name.to_owned(), Entry { name: name.to_owned(), kind, len });
        }
        Ok((!entries.is_empty()).then(|| entries.into_values().collect()))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        match self.files.get(path) {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn look(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        Ok(self.files.contains_key(path).then_some(EntryKind::File))
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }
}
