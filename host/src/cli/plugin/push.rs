//! `steadfast plugin push`: a component into a registry, so that jobs can name it by reference.

use clap::Args;

use super::super::failure::Failure;
use super::super::print;
use super::super::values::{Place, Source};
use super::{NO_PLUGIN, failed, is_plugin};
use crate::job::RunError;
use crate::job::spec::{LogFormat, PluginSource};
use crate::plugin;
use crate::registry::{self, Reference};

/// Put a plugin into a registry, and print its reference by digest
#[derive(Args, Clone, Debug)]
#[command(after_help = ABOUT, after_long_help = ABOUT)]
pub(super) struct PushCommand {
    /// The component
    #[arg(value_name = "PLUGIN.wasm")]
    file: Place,

    /// Where to put it
    #[arg(value_name = "oci://HOST/REPOSITORY:TAG")]
    to: Source,
}

const ABOUT: &str = "\
The artifact is laid out as other tools for WebAssembly expect it: one layer of type application/wasm, which is the component. \
The same component under the same file name always comes to the same digest. A tag that is there is moved.

Credentials are those of docker, podman and oras: $REGISTRY_AUTH_FILE, $DOCKER_CONFIG/config.json, \
$XDG_RUNTIME_DIR/containers/auth.json, ~/.config/containers/auth.json, ~/.docker/config.json. \
A registry on this machine (localhost, 127.0.0.1, [::1]) is spoken to over plain HTTP, every other over HTTPS.

Examples:
  steadfast plugin push digits.wasm oci://registry.example/team/digits:2
      Prints oci://registry.example/team/digits@sha256:…, which `steadfast run` takes, and which never comes to anything else.

Exit codes: 0 it is there; 1 the file is no plugin; 2 the command line is wrong, there is no such file, or the registry refuses; \
75 the registry cannot be reached.";

pub(super) fn execute(command: &PushCommand) -> Result<u8, Failure> {
    crate::report::init(LogFormat::Human);
    let Place(file) = &command.file;
    let to = target(&command.to)?;
    let component = PluginSource::File(file.clone()).read().map_err(failed)?;
    if !is_plugin(&plugin::inspect(&component.bytes)) {
        return Err(Failure::new(NO_PLUGIN, format!("`{}` is not a plugin", file.display()))
            .hint("`steadfast plugin inspect` says what is missing"));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let pushed = registry::push(to, &name, component.bytes).map_err(RunError::from)?;
    print::text(&format!("{pushed}\n"))?;
    Ok(0)
}

fn target(to: &Source) -> Result<&Reference, Failure> {
    match &to.0 {
        PluginSource::Registry(reference) if reference.tag().is_some() => Ok(reference),
        PluginSource::Registry(reference) => Err(Failure::usage(format!("`{reference}` names a digest"))
            .hint("say under which tag to put it: oci://HOST/REPOSITORY:TAG; its digest is printed")),
        PluginSource::File(file) => Err(Failure::usage(format!("`{}` is no reference", file.display()))
            .hint("say where to put it: oci://HOST/REPOSITORY:TAG")),
    }
}
