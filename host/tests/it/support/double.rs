//! The double of NVIDIA's driver, under the driver's names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

/// Names that programs look for, and that cudarc tries first.
const DRIVER: [&str; 2] = ["libcuda.so", "libcuda.so.1"];
const BLAS: [&str; 2] = ["libcublas.so", "libcublas.so.12"];

/// A folder with libraries that the dynamic linker is told to look in.
pub(crate) struct Double {
    folder: PathBuf,
}

impl Double {
    /// Driver and cuBLAS.
    pub(crate) fn new() -> Self {
        static FOLDER: LazyLock<TempDir> = LazyLock::new(|| with_names(&[DRIVER, BLAS].concat()));
        Self { folder: FOLDER.path().to_owned() }
    }

    /// The driver alone, whatever else the machine has.
    pub(crate) fn without_blas() -> Self {
        static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
            let folder = with_names(&DRIVER);
            no_libraries(&folder, &BLAS);
            folder
        });
        Self { folder: FOLDER.path().to_owned() }
    }

    /// No driver at all, whatever the machine has: files of its names that are no libraries.
    pub(crate) fn none() -> Self {
        static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
            let folder = tempfile::tempdir().unwrap();
            no_libraries(&folder, &DRIVER);
            folder
        });
        Self { folder: FOLDER.path().to_owned() }
    }

    /// The folder, for `LD_LIBRARY_PATH`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Has a program find it.
    pub(crate) fn lend<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("LD_LIBRARY_PATH", &self.folder)
    }
}

fn no_libraries(folder: &TempDir, names: &[&str]) {
    for name in names {
        fs::write(folder.path().join(name), "no library").unwrap();
    }
}

fn with_names(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        symlink(built(), folder.path().join(name)).unwrap();
    }
    folder
}

/// Cargo puts it beside the tests, which it is a dependency of.
fn built() -> PathBuf {
    let file = std::env::current_exe().unwrap().with_file_name("libcuda_double.so");
    assert!(file.is_file(), "`{}` is not there", file.display());
    file
}
