//! Round trips, damage of every kind, versions to come, and the files of versions gone by.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod crafted;
mod damage;
mod golden;
mod round_trip;

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
