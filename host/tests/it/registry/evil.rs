//! A registry that misbehaves, as each test wants it to.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::json;

/// What is answered to a request.
pub(super) enum Reply {
    /// This status and body.
    Whole(u16, Vec<u8>),
    /// A body of this length is announced, and less is sent.
    Cut(usize, Vec<u8>),
    /// A body is begun, a byte now and then, and never ended.
    Endless(usize),
}

/// A server on this machine that answers as it is told: path, and how often that path was asked for before.
pub(super) struct Evil {
    address: String,
}

impl Evil {
    pub(super) fn start(answer: impl Fn(&str, u32) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = Arc::new(answer);
        let counts = Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::<String, AtomicU32>::new()));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, counts) = (Arc::clone(&answer), Arc::clone(&counts));
                thread::spawn(move || {
                    let path = path_of(&stream);
                    let before = counts.lock().unwrap().entry(path.clone()).or_default().fetch_add(1, Ordering::SeqCst);
                    // Whoever asked may be gone.
                    let _ = reply(stream, &answer(&path, before));
                });
            }
        });
        Self { address }
    }

    /// One that has a plugin with this component, and answers to requests for its bytes as told.
    pub(super) fn with(component: &[u8], announced: usize, blob: impl Fn(u32) -> Reply + Send + Sync + 'static) -> Self {
        let digest = steadfast::plugin::digest(component);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest, "size": 2},
            "layers": [{"mediaType": "application/wasm", "digest": digest, "size": announced}],
        });
        let manifest = manifest.to_string().into_bytes();
        Self::start(move |path, before| match path {
            "/v2/" => Reply::Whole(200, b"{}".to_vec()),
            _ if path.contains("/manifests/") => Reply::Whole(200, manifest.clone()),
            _ => blob(before),
        })
    }

    pub(super) fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }
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
        Reply::Endless(_) => loop {
            stream.write_all(&[0])?;
            thread::park_timeout(std::time::Duration::from_millis(10));
        },
    }
}
