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
    rest: Option<BufReader<std::process::ChildStderr>>,
}

impl Registry {
    /// Starts one that anybody may push to; none, said loudly, where the program is not installed.
    pub(super) fn start(test: &str) -> Option<Self> {
        Self::with(test, "")
    }

    /// One that asks for a user and a password.
    pub(super) fn with_users(test: &str) -> Option<Self> {
        let place = Place::new();
        fs::write(place.path().join("users"), USERS).unwrap();
        let auth = format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", place.path().join("users").display());
        Self::start_in(test, place, &auth, "127.0.0.1:0")
    }

    fn with(test: &str, auth: &str) -> Option<Self> {
        Self::start_in(test, Place::new(), auth, "127.0.0.1:0")
    }

    fn start_in(test: &str, place: Place, auth: &str, address: &str) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("SKIPPED registry::{test}: docker-registry is not installed");
            return None;
        };
        let config = place.path().join("config.yml");
        let files = place.path().join("files");
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{address}\"}}\n{auth}",
            files.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(&config).env("OTEL_TRACES_EXPORTER", "none");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            assert!(log.read_line(&mut said).unwrap() > 0, "the registry did not come up:\n{said}");
            if let Some((_, address)) = said[before..].split_once("listening on ") {
                break address.trim_end_matches(|c: char| !c.is_ascii_digit()).split('"').next().unwrap().to_owned();
            }
        };
        let mut this = Self { child, address, place, rest: Some(log) };
        this.drain();
        Some(this)
    }

    /// Its log is read, so that it never waits for a reader.
    fn drain(&mut self) {
        let mut rest = self.rest.take().unwrap();
        std::thread::spawn(move || rest.read_to_end(&mut Vec::new()));
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
