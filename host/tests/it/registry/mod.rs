//! Plugins by reference, against a real registry on this machine, and against a server that misbehaves.
//!
//! | module | what it is about |
//! |---|---|
//! | `pulling` | wherever a file is taken a reference is; layouts, credentials, the cache |
//! | `pinning` | a tag is looked up once in the life of a job |
//! | `pushing` | what `plugin push` makes, and what it refuses |
//! | `refusals` | what a user reads when it does not work, and the exit code |
//! | `server`, `evil`, `http` | the registry as a process; one of the test's own; requests that no client makes |
//!
//! The registry is `docker-registry` of Debian, which `cargo xtask test` installs where it can. Tests that need it say `SKIPPED`
//! where it is not.

mod evil;
mod http;
mod pinning;
mod pulling;
mod pushing;
mod refusals;
mod server;

use std::path::Path;

use crate::support::{Place, Run};

const STEPS: &str = r#"{"steps": 12}"#;

/// A command of the program with a cache and credentials of its own, unmoved by those of whoever runs the tests. There is a proxy
/// that leads nowhere: a registry on this machine is reached without.
fn command(place: &Place, arguments: &[&str]) -> Run {
    let at = |name: &str| place.path().join(name);
    let unset = ["REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "NO_PROXY", "no_proxy"];
    let run = unset.iter().fold(place.command(arguments), |run, name| run.env(name, ""));
    let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    proxies
        .iter()
        .fold(run, |run, name| run.env(name, "http://127.0.0.1:1"))
        .env("XDG_CONFIG_HOME", at("config"))
        .env("DOCKER_CONFIG", at("docker"))
        .env("STEADFAST_CACHE", at("cache"))
}

/// An attempt at a job with this plugin.
fn run(place: &Place, plugin: &str) -> Run {
    let run = command(place, &["run", plugin, "--volume"]).arg(place.volume());
    run.arg("--scratch").arg(place.path().join("scratch")).config(STEPS).args("--every 1000steps")
}

/// Puts a component into a registry; answers its reference by digest.
#[track_caller]
fn push(place: &Place, component: &Path, to: &str) -> String {
    command(place, &["plugin", "push"]).arg(component).arg(to).exits(0).stdout.trim().to_owned()
}
