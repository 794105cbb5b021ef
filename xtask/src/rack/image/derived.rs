//! A plugin of one's own on top of the image, by the lines that the README shows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::container::Launch;
use super::room::{Room, ask};
use crate::step;

const NAME: &str = "localhost/steadfast:derived";
/// A custom section called `x`, with nothing in it: the same plugin, by another digest.
const ANOTHER: [u8; 4] = [0, 2, 1, b'x'];

/// Builds it, and sees whether the plugin was compiled with it.
pub(super) fn check(room: &Room, image: &str) -> Result<String> {
    let readme = fs::read_to_string(step::root().join("README.md")).context("cannot read the README")?;
    let lines = block(&readme).context("the README shows no Dockerfile")?;
    let folder = room.empty("derived")?;
    fs::write(folder.join("Dockerfile"), lines.replacen("FROM steadfast", &format!("FROM {image}"), 1))?;
    let mounted = ask(&mut room.podman(["image", "mount", image]))?;
    let plugin = fs::read(Path::new(&mounted).join("plugins/countdown.wasm"));
    ask(&mut room.podman(["image", "unmount", image]))?;
    let mut plugin = plugin?;
    plugin.extend(ANOTHER);
    fs::write(folder.join("my.wasm"), plugin)?;

    let mut build = room.buildah(["bud", "--layers", "--force-rm", "--pull-never", "--network", "host"]);
    step::run("image of one's own", build.args(["--isolation", "chroot", "--tag", NAME]).arg(&folder))?;
    let run = Launch::new(room, NAME).arguments(["run", "/plugins/my.wasm", "--config", r#"{"steps": 1}"#]);
    let ended = run.arguments(["--volume", "/tmp/none"]).end()?.code(0)?;
    Ok(ended.said("compiled before")?.trim().to_owned())
}

/// The lines between a line of "```dockerfile" and the end of that block.
fn block(readme: &str) -> Option<&str> {
    readme.split_once("```dockerfile\n")?.1.split_once("```").map(|(lines, _)| lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_shows_an_image_of_ones_own() {
        let readme = fs::read_to_string(step::root().join("README.md")).unwrap_or_default();
        assert!(block(&readme).is_some_and(|lines| lines.starts_with("FROM steadfast\nCOPY my.wasm ")));
        assert_eq!(block("nothing"), None);
    }
}
