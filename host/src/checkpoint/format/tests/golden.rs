//! A file of every released version stays readable. They are kept in `host/tests/data` and never written again.

use super::*;

const FORMAT_1: &[u8] = include_bytes!("../../../../tests/data/format-1.ckpt");

const METADATA: &[u8] = br#"{"golden":"format 1","next_step":1240}"#;

/// What the golden file holds: both ways of storing, every kind, an empty section, and one of two chunks.
fn content() -> Vec<(SectionKind, &'static str, Vec<u8>)> {
    let numbers = (0..CHUNK_BYTES / 4 + 100).flat_map(|index| (index as u32 / 4096).to_le_bytes()).collect();
    vec![
        (SectionKind::State, "trainer", numbers),
        (SectionKind::State, "empty", Vec::new()),
        (SectionKind::Memory, "memory", vec![0; 65_536]),
        (SectionKind::Buffer, "weights", noise(300, 42)),
        (SectionKind::Variable, "modül.counter", 1240_u64.to_le_bytes().to_vec()),
    ]
}

fn encoded_today() -> Vec<u8> {
    let content = content();
    let sections: Vec<_> = content.iter().map(|(kind, name, bytes)| SectionRef { kind: *kind, name, bytes }).collect();
    encoded(&sections, METADATA)
}

#[test]
fn format_1_is_read() {
    let golden = decoded(FORMAT_1).unwrap();
    let expected = content().into_iter().map(|(kind, name, bytes)| (kind, name.to_owned(), bytes)).collect();
    assert_eq!(golden, Decoded { sections: expected, metadata: METADATA.to_vec() });
}

#[test]
fn format_1_is_written_as_it_was() {
    let today = encoded_today();
    assert_eq!(decoded(&today).unwrap(), decoded(FORMAT_1).unwrap());
    // Frames may come out otherwise with another release of zstd, and with them offsets and hashes; the rest may not.
    let fixed = |file: &[u8]| {
        let footer = &file[file.len() - 128..];
        let at =
            |field: usize| usize::try_from(u64::from_le_bytes(footer[field..field + 8].try_into().unwrap())).unwrap();
        let (sections, end) = (at(16), file.len() - 128);
        (file[..32].to_vec(), file[sections..end].to_vec(), footer[56..64].to_vec(), footer[120..].to_vec())
    };
    assert_eq!(fixed(&today), fixed(FORMAT_1));
    // Without a frame in it a file is the same to the last byte.
    let raw = noise(2000, 43);
    let hash = blake3::hash(&encoded(&[state("raw", &raw)], METADATA));
    assert_eq!(hash.to_hex().as_str(), "cbd70745432f1e8447c35dd89bce4cdc06d33501184f2983d396db14433de738");
}

#[test]
#[ignore = "writes the golden file of a new format version, once"]
fn write_golden_file() {
    let path = format!("{}/tests/data/format-{FORMAT_VERSION}.ckpt", env!("CARGO_MANIFEST_DIR"));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, &encoded_today()))
        .unwrap();
}
