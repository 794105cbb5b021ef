//! Plugins in a registry: from a reference to a component's bytes, and from a file to a reference.
//!
//! ```text
//!  Reference ──► pull ──► manifest (by tag once, else by digest) ──► artifact: which layer? ──► component, as its digest says
//!                 │            └────────── downloads: both, kept by digest ◄────────────────────────┘
//!                 └──► connection: credentials · TLS · tries again what may pass ──► the registry
//!  file ─────────► push
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `reference` | `oci://host/repository:tag` and `@sha256:…`: what is written, taken apart |
//! | `artifact` | which layer of which manifest is the component; everything else is refused by name |
//! | `pull`, `push` | the two ways |
//! | `connection` | one registry, asked again while its failure may pass |
//! | `credentials` | who asks: the files that docker, podman and oras keep |
//! | `downloads` | what was fetched, by digest, in the cache folder |
//! | `error` | why not, and what can be done |
//!
//! Nothing is believed that its digest does not prove, be it from the registry or from the cache. A registry on this machine (localhost,
//! 127.0.0.0/8, `[::1]`) is spoken to over plain HTTP, as docker does; every other over HTTPS, trusting the system's roots.
//!
//! Deliberately absent: when a tag is looked up (the job decides, once), what a component is (the plugin module says), signatures, and
//! a stop of its own: whoever calls waits on another thread, and a process that ends takes the download with it. The client library
//! holds a manifest whole in memory, so a registry is trusted not to send one without end; a component is bounded.

mod artifact;
mod connection;
mod credentials;
mod downloads;
mod error;
mod pull;
mod push;
mod reference;

use sha2::{Digest as _, Sha256};

pub use error::{RegistryError, Why};
pub use pull::{Pull, Pulled, pull};
pub use push::push;
pub use reference::{BadReference, Reference};

/// The digest of bytes, as registries write it.
fn digest_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
