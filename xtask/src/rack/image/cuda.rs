//! The stage with cuBLAS: built from NVIDIA's own package, and the program finds it in there.
//!
//! What the program says of the library is what its loader says, so the package has to be the real one, of half a gigabyte. It is fetched by this machine's
//! pip, from wherever that has its packages, and by the hashes that the Dockerfile has.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::bases::{Bases, named};
use super::build::{bud, size};
use super::container::{Ended, Launch};
use super::room::{Room, ask};
use crate::rack::ledger::Ledger;
use crate::{packages, step};

const NAME: &str = "localhost/steadfast:rack-cuda";
/// Where pip of the build finds the package.
const FETCHED: &str = "[global]\nno-index = true\nfind-links = /wheels\n";

pub(super) fn check(room: &Room, bases: &Bases, image: &str, ledger: &mut Ledger) {
    if let Err(error) = fetch(room) {
        ledger.skip("the stage with cuBLAS", &format!("NVIDIA's package of it cannot be had: {error:#}"));
        return;
    }
    if !ledger.check("the stage with cuBLAS", || build(room, bases)) {
        return;
    }
    ledger.check("cuBLAS is found in it, and the driver is what lacks", || {
        let ended = doctor(room, NAME)?;
        ended.said("libcuda.so.1")?;
        Ok(line(&ended, "cuBLAS", "ok")?.to_owned())
    });
    ledger.check("and in the image without the stage it is not", || {
        let ended = doctor(room, image)?;
        ended.said("take the image's stage `cuda`")?;
        Ok(line(&ended, "cuBLAS", "note")?.to_owned())
    });
}

/// Puts the package into the room, unless it is there.
fn fetch(room: &Room) -> Result<()> {
    let [version, x86_64, aarch64] = ["CUBLAS", "CUBLAS_X86_64", "CUBLAS_AARCH64"].map(named);
    let requirement = format!("nvidia-cublas-cu12=={} --hash={} --hash={}\n", version?, x86_64?, aarch64?);
    let (stamp, requirements) = (room.at("wheels.txt"), room.at("requirements.txt"));
    if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == requirement) {
        return Ok(());
    }
    packages::ensure(&["pip3"], &["python3-pip"])?;
    fs::write(room.at("pip.conf"), FETCHED)?;
    fs::write(&requirements, &requirement)?;
    let mut download = Command::new("pip3");
    download.args(["--quiet", "--disable-pip-version-check", "download", "--no-deps", "--only-binary", ":all:"]);
    download.args(["--require-hashes", "--requirement"]).arg(&requirements);
    step::run("cuBLAS", download.arg("--dest").arg(room.empty("wheels")?))?;
    Ok(fs::write(&stamp, requirement)?)
}

/// Layers up to it are there by then.
fn build(room: &Room, bases: &Bases) -> Result<String> {
    let mut build = bud(room, bases, "cuda", NAME);
    let volumes = [("wheels", "/wheels"), ("pip.conf", "/etc/pip.conf")];
    for (name, place) in volumes {
        build.arg("--volume").arg(format!("{}:{place}:ro", room.at(name).display()));
    }
    step::run("image with cuBLAS", build.arg("."))?;
    let mounted = ask(&mut room.podman(["image", "mount", NAME]))?;
    let library = size(&Path::new(&mounted).join("usr/local/cuda/lib64"));
    ask(&mut room.podman(["image", "unmount", NAME]))?;
    Ok(format!("cuBLAS has {:.0} MB", library? as f64 / 1e6))
}

/// What the program says of a GPU, in a container that has none.
fn doctor(room: &Room, image: &str) -> Result<Ended> {
    Launch::new(room, image).arguments(["doctor", "--device", "cuda", "--volume", "/tmp"]).end()?.code(1)
}

/// The line about a thing that is so.
fn line<'a>(ended: &'a Ended, what: &str, state: &str) -> Result<&'a str> {
    let is_it = |line: &&String| line.contains(what) && line.split_whitespace().any(|word| word == state);
    let line = ended.log.iter().find(is_it).map(|line| line.trim());
    line.with_context(|| format!("it does not say `{state}` of {what}, but: {}", ended.log.join(" | ")))
}
