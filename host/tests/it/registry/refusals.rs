//! What a user reads when a plugin does not come from its registry, and the exit code, by which platforms try again.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::evil::{Evil, Reply};
use super::server::Registry;
use super::{command, http, run};
use crate::support::{Ended, Phase, Place, component};

/// The refusal without the registry's port.
fn said(place: &Place, ended: &Ended, reference: &str) -> String {
    let address = reference.strip_prefix("oci://").and_then(|rest| rest.split('/').next()).unwrap();
    ended.refusal(place).replace(address, "[registry]")
}

fn stochastic() -> Vec<u8> {
    fs::read(component("stochastic")).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn nobody_there() {
    let place = Place::new();
    let reference = "oci://127.0.0.1:1/team/walk:1";
    let ended = run(&place, reference).exits(75);
    assert_eq!(ended.stderr.matches("trying again in").count(), 4, "{}", ended.stderr);
    insta::assert_snapshot!(said(&place, &ended, reference), @r"
    steadfast: cannot get the plugin `oci://[registry]/team/walk:1`: tcp connect error: Connection refused (os error 111) (tried 5 times)
    hint: another attempt may reach it; is `[registry]` spelled right, up, and reachable from here?
    ");
}

#[test]
fn nothing_there() {
    let Some(registry) = Registry::start("nothing_there") else { return };
    let place = Place::new();
    let reference = registry.reference("team/walk:1");
    let ended = run(&place, &reference).exits(2).never_says("trying again");
    insta::assert_snapshot!(said(&place, &ended, &reference), @r"
    steadfast: cannot get the plugin `oci://[registry]/team/walk:1`: [registry] does not have it: manifest unknown
    hint: is it spelled right, and was it pushed? `steadfast plugin push FILE oci://HOST/REPOSITORY:TAG` does that
    ");
    assert!(is_empty(&place.volume()), "nothing is written for what is not there");
    command(&place, &["plugin", "inspect", &reference]).exits(2);
}

#[test]
fn what_is_no_reference() {
    let place = Place::new();
    for (given, reason) in [
        ("oci://registry.example/walk", "it names neither a tag nor a digest"),
        ("oci://registry.example", "it names no repository"),
        ("oci://registry.example/Walk:1", "its repository is not small letters and digits"),
        ("oci://user:secret@registry.example/walk:1", "its host is no name or address"),
        ("oci://registry.example/walk@sha256:12", "its digest is not `sha256:`"),
    ] {
        command(&place, &["run", given]).exits(2).says(reason).says("say oci://HOST/REPOSITORY:TAG");
    }
    let file = place.path().join("job.toml");
    fs::write(&file, "plugin = \"oci://registry.example/walk\"\n").unwrap();
    command(&place, &["run"]).arg(&file).exits(2).says("line 1: it names neither a tag nor a digest");
}

#[test]
fn what_is_no_plugin() {
    let Some(registry) = Registry::start("what_is_no_plugin") else { return };
    let place = Place::new();
    let at = registry.address();
    let config = http::blob(at, "team/walk", "application/vnd.oci.image.config.v1+json", b"{}");
    let layer = http::blob(at, "team/walk", "application/vnd.oci.image.layer.v1.tar+gzip", b"an archive");
    let notes = http::blob(at, "team/walk", "application/wasm", b"notes");
    http::manifest(at, "team/walk", "image", &http::image(config.clone(), std::slice::from_ref(&layer)));
    http::manifest(at, "team/walk", "two", &http::image(config.clone(), &[layer, notes.clone()]));
    let mut linux = http::manifest(at, "team/walk", "notes", &http::image(config, &[notes]));
    linux["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [linux],
    });
    http::manifest(at, "team/walk", "index", &index);
    let refusals: Vec<_> = ["image", "two", "index", "notes"]
        .iter()
        .map(|tag| {
            let reference = registry.reference(&format!("team/walk:{tag}"));
            let ended = run(&place, &reference).exits(65);
            command(&place, &["plugin", "inspect", &reference]).exits(1);
            said(&place, &ended, &reference)
        })
        .collect();
    insta::assert_snapshot!(refusals.join(""), @r"
    steadfast: `oci://[registry]/team/walk:image` is not a plugin: an artifact with a config of type `application/vnd.oci.image.config.v1+json` whose layer is of type `application/vnd.oci.image.layer.v1.tar+gzip`
    hint: a plugin's artifact has one layer of type `application/wasm`, which is the component: `steadfast plugin push` makes one, and `oras push REFERENCE FILE.wasm:application/wasm`
    steadfast: `oci://[registry]/team/walk:two` is not a plugin: an artifact with a config of type `application/vnd.oci.image.config.v1+json` with 2 layers: application/vnd.oci.image.layer.v1.tar+gzip, application/wasm
    hint: a plugin's artifact has one layer of type `application/wasm`, which is the component: `steadfast plugin push` makes one, and `oras push REFERENCE FILE.wasm:application/wasm`
    steadfast: `oci://[registry]/team/walk:index` is not a plugin: an index with no manifest for WebAssembly among: linux/amd64
    hint: a plugin's artifact has one layer of type `application/wasm`, which is the component: `steadfast plugin push` makes one, and `oras push REFERENCE FILE.wasm:application/wasm`
    steadfast: `oci://[registry]/team/walk:notes` is not a plugin: not WebAssembly
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    ");
}

#[test]
fn refused_by_status() {
    let evil = Evil::start(|path, _| match path {
        "/v2/" => Reply::Whole(200, b"{}".to_vec()),
        _ => Reply::Whole(403, b"<html>\n<b>Forbidden</b>".to_vec()),
    });
    let place = Place::new();
    let reference = evil.reference("walk:1");
    let ended = run(&place, &reference).exits(2).never_says("trying again");
    insta::assert_snapshot!(said(&place, &ended, &reference), @r"
    steadfast: cannot get the plugin `oci://[registry]/walk:1`: [registry] refuses: status 403; it was asked anonymously: there are no credentials for it in `[place]/docker/config.json`, `[place]/config/containers/auth.json`
    hint: log in with `docker login [registry]` or `podman login [registry]`, or name the file that holds the credentials: $REGISTRY_AUTH_FILE, or its folder as $DOCKER_CONFIG
    ");
}

#[test]
fn a_registry_that_recovers_is_waited_for() {
    let bytes = stochastic();
    let component = bytes.clone();
    let evil = Evil::with(&bytes, bytes.len(), move |before| match before {
        0 => Reply::Whole(503, b"later".to_vec()),
        1 => Reply::Cut(component.len(), component[..component.len() / 2].to_vec()),
        _ => Reply::Whole(200, component.clone()),
    });
    let place = Place::new();
    let ended = run(&place, &evil.reference("stochastic:1")).done();
    assert_eq!(ended.stderr.matches("trying again in").count(), 2, "{}", ended.stderr);
}

#[test]
fn bytes_that_are_not_what_was_announced() {
    let bytes = stochastic();
    let mut changed = bytes.clone();
    changed[100] ^= 1;
    let (whole, half) = (bytes.clone(), bytes[..bytes.len() / 2].to_vec());
    let places = [
        Evil::with(&bytes, bytes.len(), move |_| Reply::Whole(200, changed.clone())),
        Evil::with(&bytes, 1000, move |_| Reply::Whole(200, whole.clone())),
        Evil::with(&bytes, bytes.len(), move |_| Reply::Cut(half.len() * 2, half.clone())),
    ];
    let refusals = std::thread::scope(|scope| {
        let run = |evil: &Evil| {
            let place = Place::new();
            let reference = evil.reference("stochastic:1");
            let ended = run(&place, &reference).exits(75);
            assert!(!ended.came_to(Phase::Start));
            said(&place, &ended, &reference)
        };
        let running: Vec<_> = places.iter().map(|evil| scope.spawn(move || run(evil))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect::<String>()
    });
    insta::assert_snapshot!(refusals, @r"
    steadfast: cannot get the plugin `oci://[registry]/stochastic:1`: what arrived has the digest sha256:[hash], and not sha256:[hash] (tried 5 times)
    hint: something on the way, or the registry itself, changes or cuts off what it sends; push the plugin again if it stays
    steadfast: cannot get the plugin `oci://[registry]/stochastic:1`: more arrives than the 1000 bytes that its manifest announces (tried 5 times)
    hint: something on the way, or the registry itself, changes or cuts off what it sends; push the plugin again if it stays
    steadfast: cannot get the plugin `oci://[registry]/stochastic:1`: error reading a body from connection: end of file before message length reached (tried 5 times)
    hint: another attempt may reach it; is `[registry]` spelled right, up, and reachable from here?
    ");
}

#[test]
fn too_large_for_a_plugin() {
    let evil = Evil::with(b"whatever", 2 << 30, |_| Reply::Whole(500, Vec::new()));
    let place = Place::new();
    let reference = evil.reference("walk:1");
    let ended = run(&place, &reference).exits(65).never_says("Downloading");
    insta::assert_snapshot!(said(&place, &ended, &reference), @"steadfast: `oci://[registry]/walk:1` is not a plugin: a component of 2.0 GiB, and no plugin is larger than 1.0 GiB");
}

#[test]
fn an_endless_download_is_no_match_for_a_signal() {
    let evil = Evil::with(b"whatever", 1 << 29, |_| Reply::Endless(1 << 29));
    let place = Place::new();
    let attempt = |number| run(&place, &evil.reference("walk:1")).args("--log human").on_cloud_run("walk", "x", number);
    let mut first = attempt(0).start();
    first.go_on_until_said("Downloading the plugin");
    first.term();
    first.end().expect_code(143).says("Stopped before the first step; nothing was lost");
    // Killed in the midst of it, it is no loss either: the next attempt does not take the volume for a wrong one.
    let other = Place::new();
    let on_other =
        |number| run(&other, &evil.reference("walk:1")).args("--log human").on_cloud_run("walk", "x", number);
    let mut killed = on_other(0).start();
    killed.go_on_until_said("Downloading the plugin");
    killed.until_there(&other.task("walk"));
    killed.kill();
    let mut next = on_other(1).start();
    next.go_on_until_said("Downloading the plugin");
    next.term();
    next.end().expect_code(143);
}
