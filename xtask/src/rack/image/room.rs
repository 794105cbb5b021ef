//! Where all of it is kept, and the commands that build and run containers there.
//!
//! Images, containers and settings lie below `target/image`, so that nothing of the machine's own is touched, and a second run
//! finds them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{packages, step};

const PROGRAMS: [&str; 5] = ["buildah", "podman", "runc", "conmon", "mmdebstrap"];
const PACKAGES: [&str; 7] = ["buildah", "podman", "runc", "conmon", "uidmap", "mmdebstrap", "netavark"];

/// Control groups by their files and no journal: what works on a machine that systemd does not run.
const SETTINGS: &str = r#"[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"

[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
"#;

/// The folder of this proof.
pub(super) struct Room {
    folder: PathBuf,
}

impl Room {
    /// Makes the folder where it is missing, and sees to the programs.
    pub(super) fn open() -> Result<Self> {
        packages::ensure(&PROGRAMS, &PACKAGES)?;
        let room = Self { folder: step::target().join("image") };
        fs::create_dir_all(room.at("tmp"))?;
        fs::write(room.at("containers.conf"), SETTINGS)?;
        Ok(room)
    }

    /// A path in it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An empty folder in it.
    pub(super) fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.at(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot clear `{}`", folder.display()));
            }
            _ => {}
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// `buildah`, to be given a command.
    pub(super) fn buildah<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command("buildah");
        command.args(arguments);
        command
    }

    /// `podman`, to be given a command.
    pub(super) fn podman<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.command("podman");
        command.arg("--tmpdir").arg(self.at("run/podman")).args(arguments);
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("--root").arg(self.at("storage")).arg("--runroot").arg(self.at("run"));
        command.env("CONTAINERS_CONF", self.at("containers.conf")).env("TMPDIR", self.at("tmp"));
        command.current_dir(step::root()).stdin(Stdio::null());
        command
    }

    /// Whether there is an image of this name.
    pub(super) fn has(&self, image: &str) -> bool {
        let mut exists = self.podman(["image", "exists", image]);
        exists.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// The storage's own mount is taken away, so that the folder can be deleted like any other. One that is in use stays.
    pub(super) fn close(&self) {
        let mut unmount = Command::new("umount");
        unmount.arg(self.at("storage/overlay")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = unmount.status();
    }
}

/// What a command says, if it exits 0.
pub(super) fn ask(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| step::text(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", step::text(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
