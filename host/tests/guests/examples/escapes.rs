//! Tries all doors, in one step. Done says `held` if none was open; else it is invalid, and lists those that were.

use std::fs::{self, File, OpenOptions};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::{env, process};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Job, NoConfig, Outcome, Plugin, Result, plugin};

#[derive(Serialize, Deserialize)]
struct Escapes;

impl Plugin for Escapes {
    type Config = NoConfig;

    fn start(_job: &Job, _config: NoConfig) -> Result<Self> {
        Ok(Self)
    }

    fn step(&mut self) -> Result<Outcome> {
        let open: Vec<&str> = doors().into_iter().filter_map(|(door, opened)| opened.then_some(door)).collect();
        if open.is_empty() {
            Ok(Outcome::done("held"))
        } else {
            Err(Error::invalid(format!("open: {}", open.join(", "))))
        }
    }
}

fn doors() -> Vec<(&'static str, bool)> {
    vec![
        ("an absolute path", fs::read("/etc/passwd").is_ok()),
        ("the root", fs::read_dir("/").is_ok()),
        ("the way up from /output", fs::read("/output/../../../../../../etc/passwd").is_ok()),
        ("the way up from /input", fs::read_dir("/input/..").is_ok()),
        ("a link out of /output", through_link("/etc", "passwd")),
        ("a relative link out of /output", through_link("../../../../../../../../etc", "passwd")),
        (
            "a link in /input to elsewhere",
            fs::read("/input/link-out").is_ok() || fs::read_dir("/input/folder-out").is_ok(),
        ),
        ("a hard link to what is outside", linked("/output/../../../etc/passwd") || linked("/etc/passwd")),
        ("a hard link through a link", linked("/output/link-4/passwd")),
        ("a hard link to a link", linked("/output/link-4") && fs::read_dir("/output/hard").is_ok()),
        ("a hard link into /input", linked("/input/file")),
        ("appending to /input", OpenOptions::new().append(true).open("/input/file").is_ok()),
        ("cutting /input", OpenOptions::new().write(true).truncate(true).open("/input/file").is_ok()),
        ("removing from /input", fs::remove_file("/input/file").is_ok()),
        ("moving /input/file to /output", fs::rename("/input/file", "/output/moved").is_ok()),
        ("a link made in /input", made_link("/etc", "/input/made-link")),
        ("creating through a link", File::create("/output/link-4/steadfast-was-here").is_ok()),
        ("removing through a link", fs::remove_file("/input/folder-out/secret").is_ok()),
        ("writing to /input", File::create("/input/written").is_ok()),
        ("a folder in /input", fs::create_dir("/input/made").is_ok()),
        ("moving /output/file to /input", moves_out()),
        ("the environment", env::vars_os().next().is_some()),
        ("arguments", env::args_os().nth(1).is_some()),
        ("listening", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("connecting", TcpStream::connect("127.0.0.1:22").is_ok() || TcpStream::connect("1.1.1.1:53").is_ok()),
        ("datagrams", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("names", std::net::ToSocketAddrs::to_socket_addrs("localhost:80").is_ok()),
        ("other programs", process::Command::new("/bin/true").status().is_ok()),
    ]
}

/// A link that leads out may be made, but must not lead anywhere. It stays, for the host to come across.
#[expect(deprecated, reason = "the only stable way to make a symbolic link on WASI")]
fn through_link(target: &str, file: &str) -> bool {
    let link = Path::new("/output").join(format!("link-{}", target.len()));
    fs::soft_link(target, &link).is_ok() && fs::read(link.join(file)).is_ok()
}

/// Whether the file can be had under another name, in a folder that may be written to.
fn linked(path: &str) -> bool {
    let _ = fs::remove_file("/output/hard");
    fs::hard_link(path, "/output/hard").is_ok()
}

#[expect(deprecated, reason = "the only stable way to make a symbolic link on WASI")]
fn made_link(target: &str, link: &str) -> bool {
    fs::soft_link(target, link).is_ok()
}

fn moves_out() -> bool {
    fs::write("/output/file", "stays").is_err() || fs::rename("/output/file", "/input/file").is_ok()
}

plugin!(Escapes);
