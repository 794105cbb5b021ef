//! Real mounts, for tests of what only a mount does.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that is mounted until this is dropped, also by a test that fails.
pub(crate) struct Mount {
    on: PathBuf,
}

impl Mount {
    /// A file system in memory of this size, in the words of `mount`.
    pub(crate) fn memory(test: &str, on: &Path, size: &str) -> Option<Self> {
        Self::with(test, &["-t", "tmpfs", "-o", &format!("size={size},mode=755"), "tmpfs"], on)
    }

    /// Another folder.
    pub(crate) fn folder(test: &str, folder: &Path, on: &Path) -> Option<Self> {
        Self::with(test, &["--bind", folder.to_str().unwrap()], on)
    }

    /// The same, to be read only.
    pub(crate) fn read_only(test: &str, folder: &Path, on: &Path) -> Option<Self> {
        let mount = Self::folder(test, folder, on)?;
        let again = Self::with(test, &["-o", "remount,bind,ro"], on);
        // One mount is undone once.
        again.map(std::mem::forget)?;
        Some(mount)
    }

    /// A file system in user space whose server is dead: whatever is asked of it, its transport endpoint is not connected.
    pub(crate) fn dead_server(test: &str, on: &Path) -> Option<Self> {
        // What a server would listen to is closed as soon as `mount` ends.
        let script =
            r#"exec 3<>/dev/fuse; exec mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$1""#;
        Self::run(test, Command::new("sh").args(["-c", script, "sh"]).arg(on), on)
    }

    fn with(test: &str, arguments: &[&str], on: &Path) -> Option<Self> {
        Self::run(test, Command::new("mount").args(arguments).arg(on), on)
    }

    /// Where mounting is not allowed, as for users other than root, the test says so and is passed over.
    fn run(test: &str, command: &mut Command, on: &Path) -> Option<Self> {
        let reason = match command.output() {
            Ok(output) if output.status.success() => return Some(Self { on: on.to_owned() }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("`mount` cannot be started: {error}"),
        };
        eprintln!("SKIPPED {test}: {reason}");
        None
    }

    /// What a machine does with a mount that goes away while it is in use.
    pub(crate) fn unmount(self) {
        drop(self);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What does not succeed here is left for whoever removes the folder to stumble over.
        let _ = Command::new("umount").arg("-l").arg(&self.on).status();
    }
}
