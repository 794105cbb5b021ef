//! Tries all doors, in one step. Done says `held` if none was open; else it is invalid, and lists those that were.

use std::fs::{self, File};
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

fn moves_out() -> bool {
    fs::write("/output/file", "stays").is_err() || fs::rename("/output/file", "/input/file").is_ok()
}

plugin!(Escapes);
