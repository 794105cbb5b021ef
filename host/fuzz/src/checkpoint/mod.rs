//! Target `checkpoint`: files that claim to be checkpoints.
//!
//! Every input is read twice: as it is, and with its hashes made right ([`repair`]). What must hold for any bytes: no panic;
//! an error that says what is wrong, at a place in the file; no memory out of proportion to the file before its chunks are
//! read; and a verdict that does not depend on how the file is read. What reads as valid holds the same after it was written
//! again, and is damaged by any flipped bit.

mod repair;

use steadfast::checkpoint::format::{Compression, FormatError, MAX_CHUNK_BYTES, Reader, SectionRef, encode};
use steadfast::checkpoint::metadata::Metadata;

pub use repair::repair;

use crate::meter_unsafe::peak_of;
use crate::store;

/// Memory that opening a file may take for each of its bytes: the tail, the tables made of it, and the metadata once more.
/// The smallest entry of a section is 12 bytes, of which a name, a line of two lists and one of a set are made.
const MEMORY_PER_BYTE: usize = 24;

/// The most content that an input is read for; a file of a few bytes can rightly hold gigabytes of zeros.
const MOST_CONTENT: u64 = 32 << 20;

/// One input.
pub fn run(bytes: &[u8]) {
    check(bytes);
    if let Some(repaired) = repair(bytes) {
        check(&repaired);
    }
}

fn check(file: &[u8]) {
    let (opened, peak) = peak_of(|| Reader::open(&file).err());
    let allowed = MEMORY_PER_BYTE * file.len() + (64 << 10);
    assert!(peak <= allowed, "opening {} bytes took {peak}", file.len());
    if let Some(error) = opened {
        return check_error(&error, file);
    }
    let reader = Reader::open(&file).expect("it opened a moment ago");
    let content: u64 = reader.sections().iter().map(|section| section.bytes).sum();
    if content > MOST_CONTENT {
        return;
    }
    let (verified, peak) = peak_of(|| reader.verify());
    let allowed = file.len() + 4 * MAX_CHUNK_BYTES + (64 << 10);
    assert!(peak <= allowed, "verifying {} bytes took {peak}", file.len());
    let mut sections = Vec::new();
    for index in 0..reader.sections().len() {
        match reader.read_section(index) {
            Ok(content) => sections.push(content),
            Err(error) => {
                check_error(&error, file);
                assert!(verified.is_err(), "it verifies, but section {index} is {error}");
                return;
            }
        }
    }
    assert!(verified.is_ok(), "every section is right, but it does not verify: {verified:?}");
    check_valid(file, &reader, &sections);
}

fn check_error(error: &FormatError, file: &[u8]) {
    assert!(!error.to_string().is_empty());
    match error {
        FormatError::Damaged { offset, what } => {
            assert!(!what.is_empty());
            assert!(*offset <= file.len() as u64, "{error}, in a file of {} bytes", file.len());
        }
        FormatError::Newer { version } => assert!(*version > 1, "{error}"),
        FormatError::Io(error) => panic!("bytes in memory can always be read: {error}"),
    }
}

/// What must hold for a file that is in order.
fn check_valid(file: &[u8], reader: &Reader<'_>, contents: &[Vec<u8>]) {
    let sections: Vec<SectionRef<'_>> = reader
        .sections()
        .iter()
        .zip(contents)
        .map(|(section, bytes)| {
            assert_eq!(section.bytes, bytes.len() as u64);
            SectionRef { kind: section.kind, name: &section.name, bytes }
        })
        .collect();
    let mut again = Vec::new();
    encode(&mut again, &sections, reader.metadata(), Compression::default())
        .expect("names that were read are in order");
    let copy = Reader::open(&again).expect("what was written reads");
    assert_eq!(copy.metadata(), reader.metadata());
    assert_eq!(copy.sections().len(), sections.len());
    for (index, (section, original)) in copy.sections().iter().zip(&sections).enumerate() {
        assert_eq!((section.kind, section.name.as_str()), (original.kind, original.name));
        assert!(copy.read_section(index).expect("it was just written") == original.bytes);
    }
    check_flipped(file);
    if let Ok(metadata) = serde_json::from_slice::<Metadata>(reader.metadata()) {
        check_metadata(&metadata);
        store::load_alone(file, &metadata);
    }
}

/// One bit, at a place that depends on the file.
fn check_flipped(file: &[u8]) {
    let hash = blake3::hash(file);
    let number = u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"));
    let place = usize::try_from(number % (file.len() as u64 * 8)).expect("a bit of the file");
    let mut flipped = file.to_vec();
    flipped[place / 8] ^= 1 << (place % 8);
    let flipped = flipped.as_slice();
    let result = Reader::open(&flipped).and_then(|reader| reader.verify());
    assert!(result.is_err(), "bit {place} was flipped unseen");
}

/// Metadata is written as it was read, and its manifest is judged without a panic.
fn check_metadata(metadata: &Metadata) {
    let text = serde_json::to_vec(metadata).expect("metadata has a text");
    let again: Metadata = serde_json::from_slice(&text).expect("metadata reads its own text");
    assert_eq!(&again, metadata);
    if let Err(why) = metadata.outputs.check() {
        assert!(!why.is_empty());
    }
}

#[cfg(test)]
mod tests;
