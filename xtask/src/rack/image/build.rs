//! The build itself, and how large it all is.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::bases::Bases;
use super::room::{Room, ask};
use crate::step;

const NAME: &str = "localhost/steadfast:rack";
/// Where a build finds its crates.
const VENDORED: &str =
    "[source.crates-io]\nreplace-with = \"vendored\"\n\n[source.vendored]\ndirectory = \"/vendor\"\n";

/// Builds the image and answers its name.
pub(super) fn image(room: &Room, bases: &Bases) -> Result<String> {
    vendor(room)?;
    step::run("image", bud(room, bases, "steadfast", NAME).arg("."))?;
    Ok(NAME.to_owned())
}

/// The build of a stage of the Dockerfile, to be told in which folder. This builder makes all stages before it, too.
pub(super) fn bud(room: &Room, bases: &Bases, stage: &str, name: &str) -> Command {
    let mut build = room.buildah(["bud", "--layers", "--force-rm", "--pull-never", "--network", "host"]);
    build.args(["--isolation", "chroot", "--target", stage, "--tag", name]);
    build.arg("--build-arg").arg(format!("RUST_IMAGE={}", bases.rust));
    build.arg("--build-arg").arg(format!("BASE_IMAGE={}", bases.debian));
    build.arg("--build-arg").arg(format!("PYTHON_IMAGE={}", bases.python));
    build.arg("--volume").arg(format!("{}:/vendor:ro", room.at("vendor").display()));
    build.arg("--volume").arg(format!("{}:/usr/local/cargo/config.toml:ro", room.at("cargo.toml").display()));
    build
}

/// Puts the crates where the build can read them: with what this machine has, and from where it gets them.
fn vendor(room: &Room) -> Result<()> {
    let lock = fs::read(step::root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let stamp = room.at("vendor.lock");
    if fs::read(&stamp).is_ok_and(|vendored| vendored == lock) {
        return Ok(());
    }
    fs::write(room.at("cargo.toml"), VENDORED)?;
    let mut vendor = step::cargo(["vendor", "--locked", "--quiet"]);
    step::run("crates", vendor.arg(room.at("vendor")).stdout(std::process::Stdio::null()))?;
    Ok(fs::write(&stamp, lock)?)
}

/// How large the image is, and what is in it.
pub(super) fn sizes(room: &Room, image: &str) -> Result<String> {
    let whole: u64 = ask(&mut room.podman(["image", "inspect", "--format", "{{.Size}}", image]))?.parse()?;
    let mounted = ask(&mut room.podman(["image", "mount", image]))?;
    let of = |path: &str| size(&Path::new(&mounted).join(path));
    let parts = (of("usr/local/bin/steadfast"), of("plugins"), of("var/cache/steadfast"));
    ask(&mut room.podman(["image", "unmount", image]))?;
    let (host, plugins, compiled) = (parts.0?, parts.1?, parts.2?);
    let base = whole.saturating_sub(host + plugins + compiled);
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    Ok(format!(
        "image {} = base {} + host, stripped, {} + plugins {} + plugins compiled {}",
        mb(whole),
        mb(base),
        mb(host),
        mb(plugins),
        mb(compiled)
    ))
}

/// Bytes of a file, or of all files in a folder.
pub(super) fn size(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot look at `{}`", path.display()))?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}
