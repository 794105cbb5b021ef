//! What is accepted as a plugin: a manifest with one layer, and that layer is the component.
//!
//! | layout | recognised by |
//! |---|---|
//! | the Wasm artifact | layer `application/wasm`, config `application/vnd.wasm.config.v0+json` |
//! | the same by oras, or in an image | layer `application/wasm`, any config |
//! | the older artifact | layer `application/vnd.wasm.content.layer.v1+wasm` |
//! | an index of several platforms | its manifest for `wasm`, of which there is one, or one for `wasip2` |
//!
//! Layers that are archives are not looked into.

use serde::Deserialize;

use super::reference::is_digest;

/// The type of a layer that is a component.
pub(super) const WASM: &str = "application/wasm";
const OLDER_WASM: &str = "application/vnd.wasm.content.layer.v1+wasm";
/// The type of the config beside it.
pub(super) const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The type of the manifest that names both.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// All manifests that are read.
pub(super) const ACCEPTED: [&str; 4] = [
    MANIFEST,
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// What a manifest leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The component.
    Component(Layer),
    /// The manifest of this digest, to be read in its place.
    Manifest(String),
}

/// The layer that is the component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) digest: String,
    pub(super) size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// Reads a manifest; what else it is, is said.
pub(super) fn read(manifest: &[u8]) -> Result<Content, String> {
    let document: Document =
        serde_json::from_slice(manifest).map_err(|error| format!("a manifest that cannot be understood: {error}"))?;
    match (&document.manifests, &document.layers) {
        (Some(manifests), _) => choose(manifests).map(Content::Manifest),
        (None, Some(layers)) => component(&document, layers).map(Content::Component),
        (None, None) => Err("a manifest without layers".to_owned()),
    }
}

fn component(document: &Document, layers: &[Descriptor]) -> Result<Layer, String> {
    let [layer] = layers else {
        let types: Vec<_> = layers.iter().map(|layer| layer.media_type.as_str()).collect();
        return Err(match types.len() {
            0 => format!("{} without a layer", kind(document)),
            count => format!("{} with {count} layers: {}", kind(document), types.join(", ")),
        });
    };
    if ![WASM, OLDER_WASM].contains(&layer.media_type.as_str()) {
        return Err(format!("{} whose layer is of type `{}`", kind(document), layer.media_type));
    }
    checked(layer)?;
    Ok(Layer { digest: layer.digest.clone(), size: layer.size })
}

/// What it calls itself.
fn kind(document: &Document) -> String {
    let config = document.config.as_ref().map(|config| config.media_type.as_str()).filter(|kind| !kind.is_empty());
    match (&document.artifact_type, config) {
        (Some(kind), _) => format!("an artifact of type `{kind}`"),
        (None, Some(config)) => format!("an artifact with a config of type `{config}`"),
        (None, None) => "an artifact".to_owned(),
    }
}

/// The manifest for WebAssembly.
fn choose(manifests: &[Descriptor]) -> Result<String, String> {
    let for_wasm: Vec<_> = manifests.iter().filter(|manifest| architecture(manifest) == Some("wasm")).collect();
    let for_wasip2: Vec<_> = for_wasm.iter().copied().filter(|manifest| os(manifest) == Some("wasip2")).collect();
    let chosen = match (&for_wasm[..], &for_wasip2[..]) {
        ([only], _) | (_, [only]) => *only,
        _ => return Err(format!("an index with {}", list(manifests, for_wasm.len()))),
    };
    checked(chosen)?;
    Ok(chosen.digest.clone())
}

fn list(manifests: &[Descriptor], for_wasm: usize) -> String {
    let platforms: Vec<_> = manifests
        .iter()
        .map(|manifest| match &manifest.platform {
            Some(Platform { architecture, os }) => format!("{os}/{architecture}"),
            None => "no platform".to_owned(),
        })
        .collect();
    let how_many = if for_wasm == 0 { "no manifest" } else { "more than one manifest" };
    format!("{how_many} for WebAssembly among: {}", platforms.join(", "))
}

fn architecture(manifest: &Descriptor) -> Option<&str> {
    manifest.platform.as_ref().map(|platform| platform.architecture.as_str())
}

fn os(manifest: &Descriptor) -> Option<&str> {
    manifest.platform.as_ref().map(|platform| platform.os.as_str())
}

fn checked(descriptor: &Descriptor) -> Result<(), String> {
    if is_digest(&descriptor.digest) {
        return Ok(());
    }
    let digest: String = descriptor.digest.chars().take(80).collect();
    Err(format!("a manifest whose content has the digest `{}`, and only sha256 is understood", digest.escape_debug()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use serde_json::{Value, json};

    use super::*;

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    fn layer(kind: &str) -> Value {
        json!({"mediaType": kind, "digest": digest('1'), "size": 7})
    }

    fn manifest(config: &str, layers: &[Value]) -> Value {
        json!({"schemaVersion": 2, "config": {"mediaType": config, "digest": digest('0'), "size": 2}, "layers": layers})
    }

    fn index(platforms: &[(&str, &str, char)]) -> Value {
        let of = |(os, architecture, digit): &(&str, &str, char)| json!({"digest": digest(*digit), "size": 9, "platform": {"os": os, "architecture": architecture}});
        json!({"schemaVersion": 2, "manifests": platforms.iter().map(of).collect::<Vec<_>>()})
    }

    fn of(value: &Value) -> Result<Content, String> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn a_single_layer_that_is_a_component_is_a_plugin_in_every_layout() {
        let image = "application/vnd.oci.image.config.v1+json";
        let found = Content::Component(Layer { digest: digest('1'), size: 7 });
        for (config, kind) in [
            (CONFIG, WASM),
            ("application/vnd.oci.empty.v1+json", WASM),
            (image, WASM),
            ("application/vnd.wasm.config.v1+json", OLDER_WASM),
        ] {
            assert_eq!(of(&manifest(config, &[layer(kind)])).unwrap(), found, "{config} {kind}");
        }
    }

    #[test]
    fn of_an_index_the_manifest_for_wasm_counts() {
        let chosen = |platforms: &[_]| of(&index(platforms)).unwrap();
        assert_eq!(chosen(&[("linux", "amd64", '1'), ("wasi", "wasm", '2')]), Content::Manifest(digest('2')));
        let both = [("wasip1", "wasm", '1'), ("wasip2", "wasm", '2'), ("linux", "arm64", '3')];
        assert_eq!(chosen(&both), Content::Manifest(digest('2')));
    }

    #[test]
    fn whatever_else_it_is_is_said() {
        let image = "application/vnd.oci.image.config.v1+json";
        let archive = layer("application/vnd.oci.image.layer.v1.tar+gzip");
        let odd = json!({"mediaType": WASM, "digest": "sha512:00", "size": 7});
        let mut typed = manifest("application/vnd.oci.empty.v1+json", &[layer("text/plain")]);
        typed["artifactType"] = "application/vnd.acme.notes".into();
        let all = [
            json!([]),
            json!({"schemaVersion": 2}),
            manifest(CONFIG, &[]),
            manifest(image, std::slice::from_ref(&archive)),
            manifest(image, &[archive.clone(), archive]),
            manifest(CONFIG, &[odd]),
            typed,
            index(&[("linux", "amd64", '1'), ("linux", "arm64", '2')]),
            index(&[("wasi", "wasm", '1'), ("wasip1", "wasm", '2')]),
        ];
        insta::assert_snapshot!(all.map(|value| of(&value).unwrap_err()).join("\n"), @r"
        a manifest that cannot be understood: invalid length 0, expected struct Document with 4 elements at line 1 column 2
        a manifest without layers
        an artifact with a config of type `application/vnd.wasm.config.v0+json` without a layer
        an artifact with a config of type `application/vnd.oci.image.config.v1+json` whose layer is of type `application/vnd.oci.image.layer.v1.tar+gzip`
        an artifact with a config of type `application/vnd.oci.image.config.v1+json` with 2 layers: application/vnd.oci.image.layer.v1.tar+gzip, application/vnd.oci.image.layer.v1.tar+gzip
        a manifest whose content has the digest `sha512:00`, and only sha256 is understood
        an artifact of type `application/vnd.acme.notes` whose layer is of type `text/plain`
        an index with no manifest for WebAssembly among: linux/amd64, linux/arm64
        an index with more than one manifest for WebAssembly among: wasi/wasm, wasip1/wasm
        ");
    }
}
