//! Requests to a registry that no client of plugins makes: whatever a test wants to find there.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

/// What a server answered.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
}

impl Answer {
    fn header(&self, name: &str) -> String {
        let line = self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// Makes one request.
pub(super) fn request(address: &str, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let head = answer.split("\r\n\r\n").next().unwrap().to_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head }
}

/// Puts a blob into a repository and answers what a manifest says of it.
pub(super) fn blob(address: &str, repository: &str, kind: &str, bytes: &[u8]) -> Value {
    let digest = steadfast::plugin::digest(bytes);
    let begun = request(address, "POST", &format!("/v2/{repository}/blobs/uploads/"), "text/plain", b"");
    let location = begun.header("Location");
    let path = location.strip_prefix(&format!("http://{address}")).unwrap_or(&location);
    let put = request(address, "PUT", &format!("{path}&digest={digest}"), "application/octet-stream", bytes);
    assert_eq!(put.status, 201, "{}", put.head);
    json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
}

/// Puts a manifest under a tag or digest, and answers its digest and size as an index says it.
pub(super) fn manifest(address: &str, repository: &str, tag: &str, manifest: &Value) -> Value {
    let (kind, bytes) = (manifest["mediaType"].as_str().unwrap(), manifest.to_string().into_bytes());
    let digest = steadfast::plugin::digest(&bytes);
    let name = if tag.is_empty() { &digest } else { tag };
    let put = request(address, "PUT", &format!("/v2/{repository}/manifests/{name}"), kind, &bytes);
    assert_eq!(put.status, 201, "{}", put.head);
    json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
}

/// A manifest of an image with these layers.
pub(super) fn image(config: Value, layers: &[Value]) -> Value {
    json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
    })
}
