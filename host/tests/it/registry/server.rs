//! A registry as a process: Debian's `docker-registry`, with its files in memory and on a port of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::Place;

/// The user `user`, whose password is `secret`, as `htpasswd -B` writes it.
const USERS: &str = r"user:$2y$05$mBDVUBykSiIszH2yk9iQ/OLrl0ZMhb3SZj2Ax6iNo/OXVDBm6QukK
";

/// A registry that is up.
pub(super) struct Registry {
    child: Child,
    address: String,
    place: Place,
}

impl Registry {
    /// Starts one that anybody may push to; none, said loudly, where the program is not installed.
    pub(super) fn start(test: &str) -> Option<Self> {
        Self::start_in(test, Place::new(), "", "127.0.0.1:0")
    }

    /// One that asks for a user and a password.
    pub(super) fn with_users(test: &str) -> Option<Self> {
        let place = Place::new();
        let users = place.path().join("users");
        fs::write(&users, USERS).unwrap();
        let auth = format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", users.display());
        Self::start_in(test, place, &auth, "127.0.0.1:0")
    }

    fn start_in(test: &str, place: Place, auth: &str, address: &str) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("SKIPPED registry::{test}: docker-registry is not installed");
            return None;
        };
        let (config, files) = (place.path().join("config.yml"), place.path().join("files"));
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{address}\"}}\n{auth}",
            files.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let address = listening(&mut log);
        // It never waits for somebody who reads its log.
        std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
        Some(Self { child, address, place })
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A reference to something in it.
    pub(super) fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }

    /// Ends it; its port answers nobody from then on.
    pub(super) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same registry again, on the same port.
    pub(super) fn again(self, test: &str) -> Option<Self> {
        let address = self.address.clone();
        let files = self.place.path().join("files");
        let place = Place::new();
        fs::rename(files, place.path().join("files")).unwrap();
        drop(self);
        Self::start_in(test, place, "", &address)
    }
}

/// The address that it says it has come up on.
fn listening(log: &mut impl BufRead) -> String {
    let mut said = String::new();
    loop {
        let before = said.len();
        assert!(log.read_line(&mut said).unwrap() > 0, "the registry did not come up:\n{said}");
        if let Some((_, address)) = said[before..].split_once("listening on ") {
            return address.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where Debian puts it, or where it is on the path.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join("docker-registry")).find(|program| program.is_file())
}
