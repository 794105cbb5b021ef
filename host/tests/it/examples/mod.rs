//! The example plugins on the device: that their maths is right, and that they go on from what older programs of theirs saved.

mod digits;
mod gpt;
mod heat;

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Finished, Place};

/// Little-endian bytes as numbers.
fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// A folder of an example plugin's sources.
fn source(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins")).join(path)
}

/// What an example plugin comes to with its own data.
fn trained(plugin: &str, config: &str) -> Finished {
    let place = Place::new();
    place.run(plugin).config(config).arg("--input").arg(source(plugin).join("data")).done();
    place.finished(plugin)
}

/// A tensor in a safetensors file: its shape and its values.
fn tensor(file: &[u8], name: &str) -> (Vec<u64>, Vec<f32>) {
    let (length, rest) = file.split_first_chunk().unwrap();
    let (header, data) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
    let header: Value = serde_json::from_slice(header).unwrap();
    let numbers = |field: &str| -> Vec<u64> { serde_json::from_value(header[name][field].clone()).unwrap() };
    let bounds: Vec<usize> = numbers("data_offsets").iter().map(|offset| usize::try_from(*offset).unwrap()).collect();
    (numbers("shape"), floats(&data[bounds[0]..bounds[1]]))
}
