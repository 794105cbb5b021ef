//! Wherever a plugin file is taken, a reference is.

use std::fs;

use serde_json::{Value, json};

use super::server::Registry;
use super::{STEPS, command, http, push, run};
use crate::support::{Phase, Place, component, metadata_of, undisturbed};

#[test]
fn a_plugin_runs_by_tag_and_by_digest() {
    let Some(registry) = Registry::start("a_plugin_runs_by_tag_and_by_digest") else { return };
    let whole = undisturbed("stochastic", STEPS);
    let place = Place::new();
    let tag = registry.reference("team/stochastic:1");
    let exact = push(&place, &component("stochastic"), &tag);
    let (repository, manifest) = exact.split_once('@').unwrap();
    assert_eq!(repository, registry.reference("team/stochastic"));

    let ended = run(&place, &tag).term_at(Phase::Step, 4).expect_code(143);
    let of = metadata_of(&place.newest("stochastic")).plugin;
    let artifact = of.artifact.unwrap();
    assert_eq!((artifact.reference, artifact.manifest), (tag.clone(), manifest.to_owned()));
    assert_eq!(of.digest, steadfast::plugin::digest(&fs::read(component("stochastic")).unwrap()));
    let shown = command(&place, &["checkpoint", "show"]).arg(place.volume()).exits(0).stdout;
    assert!(shown.contains(&format!("registry  {tag} · manifest {manifest}")), "{shown}");
    assert!(ended.stderr.contains(&format!("plugin    {tag} · manifest sha256:")), "{}", ended.stderr);
    run(&place, &tag).done();
    assert!(place.finished("stochastic") == whole);

    let other = Place::new();
    run(&other, &exact).done().says(&format!("plugin    {exact} · ")).says("Downloading the plugin");
    assert!(other.finished("stochastic") == whole);
}

#[test]
fn what_was_fetched_once_is_not_fetched_again_and_not_believed() {
    let test = "what_was_fetched_once_is_not_fetched_again_and_not_believed";
    let Some(mut registry) = Registry::start(test) else { return };
    let place = Place::new();
    let exact = push(&place, &component("stochastic"), &registry.reference("stochastic:1"));
    let inspect = command(&place, &["plugin", "inspect", &exact]);
    inspect.exits(0).says("Downloading the plugin");
    inspect.exits(0).never_says("Downloading the plugin");
    let downloads = place.path().join("cache/downloads");
    for entry in fs::read_dir(&downloads).unwrap() {
        fs::write(entry.unwrap().path(), "not what it was").unwrap();
    }
    inspect.exits(0).says("Downloading the plugin");
    registry.stop();
    inspect.exits(0).never_says("Downloading the plugin");
}

#[test]
fn all_commands_take_references() {
    let Some(registry) = Registry::start("all_commands_take_references") else { return };
    let place = Place::new();
    let tag = registry.reference("stochastic:1");
    let exact = push(&place, &component("stochastic"), &tag);
    let digest = steadfast::plugin::digest(&fs::read(component("stochastic")).unwrap());

    let inspected = command(&place, &["plugin", "inspect", &tag, "--json"]).exits(0).stdout;
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["digest"], json!(digest));
    assert_eq!(inspected["manifest"].as_str(), exact.split_once('@').map(|(_, manifest)| manifest));
    let compiled = command(&place, &["plugin", "compile", &tag]).exits(0).stdout;
    assert!(compiled.starts_with("compiled") && compiled.contains(&digest) && compiled.contains(&tag), "{compiled}");
    assert!(command(&place, &["plugin", "compile", &exact]).exits(0).stdout.starts_with("found"));

    let file = place.path().join("job.toml");
    fs::write(&file, format!("plugin = \"{tag}\"\nconfig = {{steps = 12}}\nvolume = \"volume\"\nevery = \"3steps\"\n"))
        .unwrap();
    command(&place, &["run"]).arg(&file).term_at(Phase::Step, 7).expect_code(143);
    let tried = command(&place, &["plugin", "try", &tag, "--against"]).arg(place.volume()).exits(0).stdout;
    assert!(tried.starts_with("fits "), "{tried}");
    command(&place, &["rehearse", &exact]).config(STEPS).args("--preempt at:3").exits(0);
}

#[test]
fn the_components_digest_can_be_asked_for() {
    let Some(registry) = Registry::start("the_components_digest_can_be_asked_for") else { return };
    let place = Place::new();
    let tag = registry.reference("stochastic:1");
    let exact = push(&place, &component("stochastic"), &tag);
    let manifest = exact.split_once('@').unwrap().1;
    let digest = steadfast::plugin::digest(&fs::read(component("stochastic")).unwrap());
    run(&place, &tag).arg("--plugin-digest").arg(manifest).exits(2).says("--plugin-digest asks for");
    assert_eq!(place.names("stochastic"), [] as [&str; 0], "nothing is claimed");
    run(&place, &tag).arg("--plugin-digest").arg(digest).done();
}

#[test]
fn artifacts_of_other_tools_are_understood() {
    let Some(registry) = Registry::start("artifacts_of_other_tools_are_understood") else { return };
    let at = registry.address();
    let bytes = fs::read(component("stochastic")).unwrap();
    let inspect = |tag: &str| {
        let place = Place::new();
        let shown = command(&place, &["plugin", "inspect", &registry.reference(&format!("stochastic:{tag}"))]).exits(0);
        assert!(shown.stdout.contains(&steadfast::plugin::digest(&bytes)), "{}", shown.stdout);
    };
    let config = |kind: &str| http::blob(at, "stochastic", kind, b"{}");
    for (tag, kind_of_config, kind) in [
        ("oras", "application/vnd.oci.empty.v1+json", "application/wasm"),
        ("image", "application/vnd.oci.image.config.v1+json", "application/wasm"),
        ("older", "application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm"),
    ] {
        let layer = http::blob(at, "stochastic", kind, &bytes);
        http::manifest(at, "stochastic", tag, &http::image(config(kind_of_config), &[layer]));
        inspect(tag);
    }
    let layer = http::blob(at, "stochastic", "application/wasm", &bytes);
    let image = http::image(config("application/vnd.wasm.config.v0+json"), &[layer]);
    let mut wasm = http::manifest(at, "stochastic", "", &image);
    wasm["platform"] = json!({"architecture": "wasm", "os": "wasip2"});
    let native = http::blob(at, "stochastic", "application/vnd.oci.image.layer.v1.tar+gzip", b"an archive");
    let mut linux = http::manifest(
        at,
        "stochastic",
        "",
        &http::image(config("application/vnd.oci.image.config.v1+json"), &[native]),
    );
    linux["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [linux, wasm],
    });
    http::manifest(at, "stochastic", "index", &index);
    inspect("index");
}

#[test]
fn credentials_are_those_of_docker() {
    let Some(registry) = Registry::with_users("credentials_are_those_of_docker") else { return };
    let place = Place::new();
    let tag = registry.reference("stochastic:1");
    let anonymous = command(&place, &["plugin", "push"]).arg(component("stochastic")).arg(&tag).exits(2);
    let said = anonymous.refusal(&place).replace(registry.address(), "[registry]");
    insta::assert_snapshot!(said, @r"
    steadfast: cannot push the plugin `oci://[registry]/stochastic:1`: [registry] refuses: status 401, authentication required; it was asked anonymously: there are no credentials for it in `[place]/docker/config.json`, `[place]/config/containers/auth.json`
    hint: log in with `docker login [registry]` or `podman login [registry]`, or name the file that holds the credentials: $REGISTRY_AUTH_FILE, or its folder as $DOCKER_CONFIG
    ");

    let config = place.path().join("docker/config.json");
    fs::create_dir(config.parent().unwrap()).unwrap();
    let log_in = |auth: &str| {
        fs::write(&config, json!({"auths": {registry.address(): {"auth": auth}}}).to_string()).unwrap();
    };
    // `user:wrong` and `user:secret`
    log_in("dXNlcjp3cm9uZw==");
    let wrong = command(&place, &["plugin", "push"]).arg(component("stochastic")).arg(&tag).exits(2);
    insta::assert_snapshot!(wrong.refusal(&place).replace(registry.address(), "[registry]"), @r"
    steadfast: cannot push the plugin `oci://[registry]/stochastic:1`: [registry] refuses: status 401, authentication required; it was asked as `user`, from `[place]/docker/config.json`
    hint: log in with `docker login [registry]` or `podman login [registry]`, or name the file that holds the credentials: $REGISTRY_AUTH_FILE, or its folder as $DOCKER_CONFIG
    ");
    log_in("dXNlcjpzZWNyZXQ=");
    push(&place, &component("stochastic"), &tag);
    run(&place, &tag).done().never_says("secret");
}
