//! From an input's text to the folder that it stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::value::RawValue;
use steadfast::checkpoint::format::{Compression, SectionKind, SectionRef, encode};
use steadfast::checkpoint::metadata::Metadata;

use super::volume::Memory;
use super::{JOB, TASK};

/// Begins the line of a file's name.
const MARK: &[u8] = b"== ";

/// The folder, and all records in it as they lie there.
pub(super) fn read(bytes: &[u8]) -> (Memory, Vec<Vec<u8>>) {
    let files = split(bytes);
    let mut volume = Memory::default();
    let mut records = Vec::new();
    for (name, content) in &files {
        let stored = if name.ends_with(".ckpt") {
            checkpoint(content, &files)
        } else if let Some(record) = sealed(content) {
            records.push(record.clone());
            Some(record)
        } else {
            None
        };
        volume.put(path(name), stored.unwrap_or_else(|| content.to_vec()));
    }
    (volume, records)
}

/// Names and contents.
fn split(bytes: &[u8]) -> BTreeMap<String, &[u8]> {
    let mut files = BTreeMap::new();
    let starts: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(MARK) && (*at == 0 || bytes[*at - 1] == b'\n')).collect();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(bytes.len(), |next| next - 1);
        let file = &bytes[start + MARK.len()..end.max(start + MARK.len())];
        let name_end = file.iter().position(|byte| *byte == b'\n').unwrap_or(file.len());
        let name = String::from_utf8_lossy(&file[..name_end]).into_owned();
        files.insert(name, file.get(name_end + 1..).unwrap_or_default());
    }
    files
}

fn path(name: &str) -> PathBuf {
    let job = PathBuf::from(JOB);
    if name.starts_with("task-") { job.join(name) } else { job.join(TASK.to_string()).join(name) }
}

/// A record under its hash, if the content is JSON.
fn sealed(content: &[u8]) -> Option<Vec<u8>> {
    let record: &RawValue = serde_json::from_slice(content).ok()?;
    let hash = blake3::hash(record.get().as_bytes()).to_hex();
    Some(format!("{{\"blake3\":\"{hash}\",\"record\":{}}}\n", record.get()).into_bytes())
}

/// A checkpoint file with this metadata and a small state. The ranges of outputs get the hashes of what they name.
fn checkpoint(content: &[u8], files: &BTreeMap<String, &[u8]>) -> Option<Vec<u8>> {
    let metadata = match serde_json::from_slice::<Metadata>(content) {
        Ok(mut metadata) => {
            let outputs = &mut metadata.outputs;
            for file in outputs.files.values_mut().chain(&mut outputs.metrics) {
                for range in &mut file.ranges {
                    if let Some(bytes) = named_bytes(range.offset, range.bytes, files.get(&range.segment).copied()) {
                        range.hash = blake3::hash(bytes).to_hex().to_string();
                    }
                }
            }
            serde_json::to_vec(&metadata).ok()?
        }
        Err(_) => serde_json::from_slice::<&RawValue>(content).ok()?.get().as_bytes().to_vec(),
    };
    let state = SectionRef { kind: SectionKind::State, name: "state", bytes: b"some state" };
    let mut file = Vec::new();
    encode(&mut file, &[state], &metadata, Compression::default()).ok()?;
    Some(file)
}

fn named_bytes(offset: u64, length: u64, segment: Option<&[u8]>) -> Option<&[u8]> {
    let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
    segment?.get(offset..)?.get(..length)
}
