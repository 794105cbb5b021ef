//! A registry that misbehaves, as each test wants it to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;

/// What is answered to a request.
pub(super) enum Reply {
    /// This status and body.
    Whole(u16, Vec<u8>),
    /// A body of this length is announced, and less is sent.
    Cut(usize, Vec<u8>),
    /// A body of this length is announced, and sent a byte now and then.
    Endless(usize),
}

/// How often each path was asked for.
type Counts = Arc<Mutex<BTreeMap<String, u32>>>;

/// A server on this machine.
pub(super) struct Evil {
    address: String,
    counts: Counts,
}

impl Evil {
    /// One that answers as told to a path that was asked for so often before.
    pub(super) fn start(answer: impl Fn(&str, u32) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let this = Self { address: listener.local_addr().unwrap().to_string(), counts: Counts::default() };
        let (answer, counts) = (Arc::new(answer), Arc::clone(&this.counts));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, counts) = (Arc::clone(&answer), Arc::clone(&counts));
                thread::spawn(move || {
                    let path = path_of(&stream);
                    let before = {
                        let mut counts = counts.lock().unwrap();
                        let count = counts.entry(path.clone()).or_default();
                        *count += 1;
                        *count - 1
                    };
                    // Whoever asked may be gone.
                    let _ = reply(stream, &answer(&path, before));
                });
            }
        });
        this
    }

    /// One that has a plugin with this component, says that it has so many bytes, and sends them as told.
    pub(super) fn with(
        component: &[u8],
        announced: usize,
        blob: impl Fn(u32) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let manifest = manifest(component, announced);
        Self::start(move |path, before| match path {
            "/v2/" => Reply::Whole(200, b"{}".to_vec()),
            _ if path.contains("/manifests/") => Reply::Whole(200, manifest.clone()),
            _ => blob(before),
        })
    }

    pub(super) fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }

    /// How often this path was asked for.
    pub(super) fn asked(&self, path: &str) -> u32 {
        self.counts.lock().unwrap().get(path).copied().unwrap_or_default()
    }
}

/// The manifest of a plugin.
pub(super) fn manifest(component: &[u8], announced: usize) -> Vec<u8> {
    let digest = steadfast::plugin::digest(component);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest, "size": 2},
        "layers": [{"mediaType": "application/wasm", "digest": digest, "size": announced}],
    });
    manifest.to_string().into_bytes()
}

fn path_of(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn reply(mut stream: TcpStream, reply: &Reply) -> std::io::Result<()> {
    let (status, length) = match reply {
        Reply::Whole(status, body) => (*status, body.len()),
        Reply::Cut(length, _) | Reply::Endless(length) => (200, *length),
    };
    write!(stream, "HTTP/1.1 {status} As told\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")?;
    match reply {
        Reply::Whole(_, body) | Reply::Cut(_, body) => stream.write_all(body),
        Reply::Endless(length) => (0..*length).try_for_each(|_| {
            thread::park_timeout(Duration::from_millis(10));
            stream.write_all(&[0])
        }),
    }
}
