//! What the input is, in a digest, so that a change between attempts is noticed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::metadata::InputFacts;

/// What the digest covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// Paths and lengths.
    Names,
    /// Every byte too.
    Contents,
}

impl Covers {
    fn word(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Contents => "contents",
        }
    }
}

/// The input folder could not be looked through.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the input `{}`: {cause}", path.display())]
pub struct InputError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

impl InputError {
    /// Whether there is no such folder, as opposed to one that cannot be read.
    #[must_use]
    pub fn is_not_there(&self) -> bool {
        matches!(self.cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}

/// Digests everything below `folder`, in the order of the paths. Links are digested as links.
pub fn digest(folder: &Path, covers: Covers) -> Result<InputFacts, InputError> {
    let mut hasher = blake3::Hasher::new();
    let mut facts = InputFacts { covers: covers.word().into(), digest: String::new(), files: 0, bytes: 0 };
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let failed = |cause| InputError { path: path.clone(), cause };
        // The folder itself may be given as a link.
        let about = if path == folder { fs::metadata(&path) } else { fs::symlink_metadata(&path) }.map_err(failed)?;
        let name = path.strip_prefix(folder).unwrap_or(&path).as_os_str().as_encoded_bytes();
        let kind = if about.is_dir() {
            b'd'
        } else if about.is_file() {
            b'f'
        } else {
            b'l'
        };
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name).update(&[kind]);
        match kind {
            b'd' => {
                let entries = fs::read_dir(&path).map_err(failed)?;
                let mut below = entries
                    .map(|entry| entry.map(|entry| entry.path()))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(failed)?;
                below.sort_unstable_by(|a, b| b.cmp(a));
                pending.extend(below);
            }
            b'f' => {
                facts.files += 1;
                facts.bytes = facts.bytes.saturating_add(about.len());
                hasher.update(&about.len().to_le_bytes());
                if covers == Covers::Contents {
                    read_into(&mut hasher, &path).map_err(failed)?;
                }
            }
            _ => {
                let target = fs::read_link(&path).unwrap_or_default();
                hasher.update(target.as_os_str().as_encoded_bytes());
            }
        }
    }
    facts.digest = hasher.finalize().to_hex().to_string();
    Ok(facts)
}

fn read_into(hasher: &mut blake3::Hasher, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            got => hasher.update(&buffer[..got]),
        };
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use super::*;

    #[test]
    fn names_notice_sizes_and_contents_notice_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let both = || [Covers::Names, Covers::Contents].map(|covers| digest(folder.path(), covers).unwrap().digest);
        fs::write(&file, "one").unwrap();
        let before = both();
        assert_eq!(before, both(), "the same twice");
        fs::write(&file, "two").unwrap();
        let after = both();
        assert_eq!(before[0], after[0]);
        assert_ne!(before[1], after[1]);
        fs::write(&file, "three").unwrap();
        assert_ne!(before[0], both()[0]);
        fs::rename(&file, folder.path().join("b")).unwrap();
        assert_ne!(digest(folder.path(), Covers::Names).unwrap().digest, before[0]);
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_it() {
        let error = digest(Path::new("/nowhere/at/all"), Covers::Names).unwrap_err();
        assert!(error.to_string().starts_with("cannot read the input `/nowhere/at/all`: "), "{error}");
    }
}
