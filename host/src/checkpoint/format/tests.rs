//! Round trips, damage of every kind, versions to come, and the files of versions gone by.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use super::*;

fn state<'a>(name: &'a str, bytes: &'a [u8]) -> SectionRef<'a> {
    SectionRef { kind: SectionKind::State, name, bytes }
}

fn encoded(sections: &[SectionRef<'_>], metadata: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let written = encode(&mut file, sections, metadata, Compression::default()).unwrap();
    assert_eq!(written.file_bytes, file.len() as u64);
    assert_eq!(written.raw_bytes, sections.iter().map(|section| section.bytes.len() as u64).sum::<u64>());
    file
}

/// Everything that can be read from a file.
#[derive(Debug, PartialEq)]
struct Decoded {
    sections: Vec<(SectionKind, String, Vec<u8>)>,
    metadata: Vec<u8>,
}

fn decoded(file: &[u8]) -> Result<Decoded, FormatError> {
    let reader = Reader::open(&file)?;
    reader.verify()?;
    let mut sections = Vec::new();
    for (index, section) in reader.sections().iter().enumerate() {
        let bytes = reader.read_section(index)?;
        assert_eq!(bytes.len() as u64, section.bytes);
        sections.push((section.kind, section.name.clone(), bytes));
    }
    Ok(Decoded { sections, metadata: reader.metadata().to_vec() })
}

fn assert_round_trip(sections: &[SectionRef<'_>], metadata: &[u8]) -> Vec<u8> {
    let file = encoded(sections, metadata);
    let read = decoded(&file).unwrap();
    assert_eq!(read.metadata, metadata);
    assert_eq!(read.sections.len(), sections.len());
    for (read, section) in read.sections.iter().zip(sections) {
        assert_eq!((read.0, read.1.as_str()), (section.kind, section.name));
        assert!(read.2 == section.bytes, "content of `{}` differs", section.name);
    }
    file
}

/// Bytes that don't compress, the same each time.
fn noise(length: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new_keyed(&[seed; 32]).finalize_xof().fill(&mut bytes);
    bytes
}

/// A file that is small enough to break at every place, with both ways of storing in it and more than one chunk in a section.
fn small_file() -> Vec<u8> {
    let text = b"the quick brown fox ".repeat(8);
    let raw = noise(40, 1);
    assert_round_trip(&[state("text", &text), state("noise", &raw), state("empty", b"")], br#"{"step":7}"#)
}

#[test]
fn no_sections_and_empty_sections() {
    assert_round_trip(&[], b"");
    assert_round_trip(&[], b"{}");
    assert_round_trip(&[state("", b""), state("empty", b"")], b"{}");
}

#[test]
fn content_of_many_chunks_of_every_kind() {
    let (zeros, random) = (vec![0; 3 * CHUNK_BYTES + 1], noise(2 * CHUNK_BYTES, 2));
    let mixed = [noise(CHUNK_BYTES / 2, 3), vec![7; 2 * CHUNK_BYTES]].concat();
    let kinds = [SectionKind::Memory, SectionKind::Buffer, SectionKind::Variable];
    let sections = [("zeros", &zeros), ("random", &random), ("mixed", &mixed)];
    let sections: Vec<_> =
        kinds.into_iter().zip(sections).map(|(kind, (name, bytes))| SectionRef { kind, name, bytes }).collect();
    let file = assert_round_trip(&sections, b"{}");
    assert!(file.len() < random.len() + 2 * CHUNK_BYTES, "zeros are compressed: {}", file.len());
}

#[test]
fn one_name_in_two_kinds_is_two_sections_and_twice_in_one_is_an_error() {
    let buffer = SectionRef { kind: SectionKind::Buffer, name: "weights", bytes: b"b" };
    assert_round_trip(&[state("weights", b"a"), buffer], b"{}");
    let mut out = Vec::new();
    let twice = encode(&mut out, &[buffer, buffer], b"", Compression::default()).unwrap_err();
    assert_eq!(twice.kind(), io::ErrorKind::InvalidInput);
    assert!(out.is_empty(), "nothing is written before the names are checked");
}

#[test]
fn every_truncation_is_detected() {
    let file = small_file();
    for length in 0..file.len() {
        assert!(decoded(&file[..length]).is_err(), "cut to {length} of {}", file.len());
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let file = small_file();
    for place in 0..file.len() * 8 {
        let mut broken = file.clone();
        broken[place / 8] ^= 1 << (place % 8);
        assert!(matches!(decoded(&broken), Err(FormatError::Damaged { .. })), "bit {place}");
    }
}
