//! From a component to a registry, as a Wasm artifact: the layout that other tools for WebAssembly read.

use oci_client::RegistryOperation;
use serde_json::json;

use super::artifact::{CONFIG, MANIFEST, WASM};
use super::connection::{Connection, Fault};
use super::digest_of;
use super::error::RegistryError;
use super::reference::Reference;

/// Puts a component where the reference says, whose name other tools save it under. Answers its reference by digest. The same component
/// under the same name comes to the same digest, whoever pushes it and when.
pub fn push(reference: &Reference, name: &str, component: Vec<u8>) -> Result<Reference, RegistryError> {
    let connection = Connection::open(RegistryOperation::Push, reference)?;
    let layer = digest_of(&component);
    let config = config(&layer).to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": digest_of(&config), "size": config.len()},
        "layers": [{
            "mediaType": WASM, "digest": layer, "size": component.len(),
            "annotations": {"org.opencontainers.image.title": name},
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let pushed = reference.with_digest(&digest_of(&manifest));
    let component = bytes::Bytes::from(component);
    connection.ask(&reference.for_client(), async |client, named| {
        client.push_blob(named, component.clone(), &layer).await?;
        client.push_blob(named, config.clone(), &digest_of(&config)).await?;
        let kind = MANIFEST.parse().map_err(|_| Fault::Protocol("a manifest's type is no header".to_owned()))?;
        client.push_manifest_raw(named, manifest.clone(), kind).await?;
        Ok(())
    })?;
    Ok(pushed)
}

/// What the artifact says of its component. Readers want a time; one that is always the same keeps the digest the same.
fn config(layer: &str) -> serde_json::Value {
    json!({
        "created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2", "layerDigests": [layer],
    })
}
