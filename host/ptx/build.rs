//! Gives the translation a name that changes whenever its source does, so that nobody runs code that another translation made.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut hasher = DefaultHasher::new();
    hash(Path::new("src"), &mut hasher)?;
    println!("cargo::rustc-env=STEADFAST_PTX_TRANSLATION={:016x}", hasher.finish());
    Ok(())
}

/// Feeds names and contents of all files in a folder, in an order that is the same everywhere.
fn hash(folder: &Path, hasher: &mut impl Hasher) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        entry.file_name().hash(hasher);
        if entry.file_type()?.is_dir() {
            hash(&entry.path(), hasher)?;
        } else {
            fs::read(entry.path())?.hash(hasher);
        }
    }
    Ok(())
}
