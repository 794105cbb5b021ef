//! The example plugins on the device: that their maths is right, and that they go on from what older programs of theirs saved.

mod digits;
mod heat;

use std::path::PathBuf;

/// Little-endian bytes as numbers.
fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// A folder of an example plugin's sources.
fn source(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins")).join(path)
}
