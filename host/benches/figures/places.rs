//! Where things are: components, programs, and folders for what is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// The host itself, as users have it.
pub const HOST: &str = env!("CARGO_BIN_EXE_steadfast");

pub fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Where cargo puts what it builds.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A guest or example plugin by its name.
pub fn component(name: &str) -> Result<PathBuf> {
    let built = target().join("wasm32-wasip2/release");
    let places = [built.join("examples").join(name).with_extension("wasm"), built.join(name).with_extension("wasm")];
    match places.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("component `{name}` is not there: run `cargo xtask bench`, which builds it"),
    }
}

/// `digits`, built natively.
pub fn native_digits() -> Result<PathBuf> {
    let program = target().join("release/examples/natively");
    if program.is_file() { Ok(program) } else { bail!("`natively` is not there: run `cargo xtask bench`") }
}

/// A folder on the disk that cargo builds on: what is synced there takes as long as it does.
pub fn on_disk() -> Result<TempDir> {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("cannot make a folder")
}

/// A folder in memory, where there is such a thing.
pub fn in_memory() -> Option<TempDir> {
    tempfile::tempdir_in("/dev/shm").ok()
}

/// The type of the filesystem that [`on_disk`] is on.
pub fn filesystem() -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let nearest = mounts.filter(|(at, _)| folder.starts_with(at)).max_by_key(|(at, _)| at.len());
    nearest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

/// `steadfast run` in a folder of its own, which logs for people.
pub fn host_run(plugin: &Path, config: &str, folder: &Path, cache: &Path) -> Command {
    let mut command = host_command(plugin, config, folder, cache);
    command.args(["--log", "human"]);
    command
}

/// `steadfast run` in a folder of its own, with nothing in its environment that says otherwise.
pub fn host_command(plugin: &Path, config: &str, folder: &Path, cache: &Path) -> Command {
    let mut command = Command::new(HOST);
    command.env_clear().env("STEADFAST_CACHE", cache);
    command.arg("run").arg(plugin).args(["--config", config]);
    command.arg("--volume").arg(folder.join("volume")).arg("--scratch").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
