//! Files whose hashes are right and whose tables are not: what a faulty or hostile writer could make.

use proptest::prelude::*;

use super::super::layout::{
    CHUNK_ENTRY_BYTES, ChunkEntry, Codec, Extent, FOOTER_BYTES, Footer, HEADER_BYTES, SectionEntry,
};
use super::*;

/// The parts of a file, to be put together with right hashes.
#[derive(Clone)]
struct Parts {
    body: Vec<u8>,
    chunks: Vec<u8>,
    sections: Vec<u8>,
    metadata: Vec<u8>,
}

impl Parts {
    fn of(chunks: &[ChunkEntry], body: &[u8], sections: &[(&str, u64)]) -> Self {
        let (mut chunk_table, mut section_table) = (Vec::new(), Vec::new());
        for chunk in chunks {
            chunk.append_to(&mut chunk_table);
        }
        for (name, bytes) in sections {
            SectionEntry { kind: SectionKind::State, name, bytes: *bytes }.append_to(&mut section_table);
        }
        Self { body: body.to_vec(), chunks: chunk_table, sections: section_table, metadata: b"{}".to_vec() }
    }

    fn file(&self) -> Vec<u8> {
        let head = header(FORMAT_VERSION);
        let mut file = [&head[..], &self.body].concat();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head);
        let mut extents = Vec::new();
        for part in [&self.chunks, &self.sections, &self.metadata] {
            extents.push(Extent { offset: file.len() as u64, bytes: part.len() as u64 });
            hasher.update(part);
            file.extend_from_slice(part);
        }
        let footer = Footer {
            chunks: extents[0],
            sections: extents[1],
            metadata: extents[2],
            file_bytes: (file.len() + FOOTER_BYTES) as u64,
            version: FORMAT_VERSION,
            hash: *hasher.finalize().as_bytes(),
        };
        file.extend_from_slice(&footer.to_bytes());
        file
    }

    fn assert_damaged(&self, what: &str) {
        let result = decoded(&self.file());
        assert!(matches!(result, Err(FormatError::Damaged { .. })), "{what}: {result:?}");
    }
}

fn raw_chunk(section: u32, offset: usize, content: &[u8]) -> ChunkEntry {
    let hash = *blake3::hash(content).as_bytes();
    let length = u32::try_from(content.len()).unwrap();
    ChunkEntry {
        section,
        codec: Codec::Raw,
        content_bytes: length,
        offset: (HEADER_BYTES + offset) as u64,
        stored_bytes: length,
        content_hash: hash,
        stored_hash: hash,
    }
}

fn zstd_chunk(content: &[u8], frame: &[u8], content_bytes: u32) -> ChunkEntry {
    ChunkEntry {
        codec: Codec::Zstd,
        content_bytes,
        stored_bytes: u32::try_from(frame.len()).unwrap(),
        content_hash: *blake3::hash(content).as_bytes(),
        stored_hash: *blake3::hash(frame).as_bytes(),
        ..raw_chunk(0, 0, b"")
    }
}

#[test]
fn tables_must_fit_together() {
    let (one, two) = (raw_chunk(0, 0, b"abcd"), raw_chunk(1, 4, b"efg"));
    let sections = [("one", 4), ("two", 3)];
    let good = Parts::of(&[one.clone(), two.clone()], b"abcdefg", &sections);
    decoded(&good.file()).unwrap();

    let with = |first: ChunkEntry, second: ChunkEntry| Parts::of(&[first, second], b"abcdefg", &sections);
    let moved = |by: u64| ChunkEntry { offset: two.offset.wrapping_add(by), ..two.clone() };
    with(one.clone(), moved(1)).assert_damaged("a gap");
    with(one.clone(), moved(u64::MAX)).assert_damaged("an overlap");
    with(one.clone(), ChunkEntry { offset: u64::MAX, ..two.clone() }).assert_damaged("an offset beyond everything");
    with(two.clone(), one.clone()).assert_damaged("chunks out of order");
    with(one.clone(), ChunkEntry { section: 0, ..two.clone() }).assert_damaged("a chunk of the wrong section");
    with(one.clone(), ChunkEntry { section: 2, ..two.clone() }).assert_damaged("a chunk of no section");
    with(one.clone(), ChunkEntry { content_bytes: 2, ..two.clone() })
        .assert_damaged("a content shorter than its bytes");
    with(one.clone(), ChunkEntry { stored_bytes: 0, content_bytes: 0, ..two.clone() }).assert_damaged("an empty chunk");
    with(one.clone(), ChunkEntry { content_hash: [0; 32], ..two.clone() }).assert_damaged("two hashes of one content");
    Parts::of(std::slice::from_ref(&one), b"abcdefg", &[("one", 4)]).assert_damaged("bytes that belong to no chunk");
    Parts::of(&[one.clone(), two.clone()], b"abcdefg", &[("one", 4), ("two", 2)]).assert_damaged("a length too small");
    Parts::of(&[one.clone(), two.clone()], b"abcdefg", &[("one", 4), ("two", u64::MAX)])
        .assert_damaged("a length too large");
    Parts::of(&[one.clone(), two.clone()], b"abcdefg", &[("one", 4)]).assert_damaged("a section missing");
    Parts::of(&[one, two], b"abcdefg", &[("one", 4), ("one", 3)]).assert_damaged("one name twice");
}

#[test]
fn what_later_versions_may_use_is_no_part_of_this_one() {
    let good = Parts::of(&[raw_chunk(0, 0, b"abcd")], b"abcd", &[("one", 4)]);
    for (place, what) in [(4, "filter"), (5, "codec"), (6, "zero"), (8, "file"), (28, "zero")] {
        let mut parts = good.clone();
        parts.chunks[place] = 9;
        parts.assert_damaged(what);
    }
    for (place, what) in [(0, "kind"), (1, "zero"), (2, "name length"), (12, "name")] {
        let mut parts = good.clone();
        parts.sections[place] = 0xff;
        parts.assert_damaged(what);
    }
    let mut parts = good.clone();
    parts.chunks.truncate(CHUNK_ENTRY_BYTES - 1);
    parts.assert_damaged("half an entry");
    let mut parts = good;
    parts.sections.pop();
    parts.assert_damaged("half a name");
}

#[test]
fn a_frame_gives_exactly_the_content_that_was_named() {
    let content = vec![5; 4000];
    let frame = zstd::bulk::compress(&content, 1).unwrap();
    let file = |entry: ChunkEntry, frame: &[u8]| {
        let bytes = u64::from(entry.content_bytes);
        Parts::of(&[entry], frame, &[("one", bytes)])
    };
    decoded(&file(zstd_chunk(&content, &frame, 4000), &frame).file()).unwrap();
    file(zstd_chunk(&content, &frame, 3999), &frame).assert_damaged("more than named");
    file(zstd_chunk(&content, &frame, 4001), &frame).assert_damaged("less than named");
    file(zstd_chunk(&vec![6; 4000], &frame, 4000), &frame).assert_damaged("other content");
    let twice = frame.repeat(2);
    file(zstd_chunk(&content, &twice, 4000), &twice).assert_damaged("two frames");
    file(zstd_chunk(&content, b"nonsense", 4000), b"nonsense").assert_damaged("no frame");
}

#[test]
fn a_bomb_does_not_go_off() {
    let content = vec![0; 100 << 20];
    let frame = zstd::bulk::compress(&content, 1).unwrap();
    let declared = u32::try_from(content.len()).unwrap();
    let too_large = Parts::of(&[zstd_chunk(&content, &frame, declared)], &frame, &[("one", u64::from(declared))]);
    assert!(matches!(Reader::open(&too_large.file()), Err(FormatError::Damaged { .. })));
    // Named as small as a chunk may be, the frame is cut off where the chunk ends.
    let named_small = Parts::of(&[zstd_chunk(&content, &frame, 1 << 20)], &frame, &[("one", 1 << 20)]);
    named_small.assert_damaged("a frame larger than its chunk");
}

#[test]
fn a_footer_names_parts_that_lie_within_the_file() {
    let file = Parts::of(&[raw_chunk(0, 0, b"abcd")], b"abcd", &[("one", 4)]).file();
    let at = file.len() - FOOTER_BYTES;
    let footer = Footer::from_bytes(file[at..].try_into().unwrap(), at as u64).unwrap();
    for value in [0, 1, 31, 32, 1 << 40, u64::MAX - 1, u64::MAX] {
        for field in 0..6 {
            let mut changed = footer.clone();
            let extent =
                [&mut changed.chunks, &mut changed.sections, &mut changed.metadata].into_iter().nth(field / 2).unwrap();
            *if field % 2 == 0 { &mut extent.offset } else { &mut extent.bytes } = value;
            if changed == footer {
                continue;
            }
            let broken = [&file[..at], &changed.to_bytes()].concat();
            assert!(matches!(decoded(&broken), Err(FormatError::Damaged { .. })), "field {field} is {value}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_tables_make_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut parts =
            Parts::of(&[raw_chunk(0, 0, b"abcd"), raw_chunk(1, 4, b"efg")], b"abcdefg", &[("one", 4), ("two", 3)]);
        for (place, byte) in changes {
            let length = parts.chunks.len() + parts.sections.len();
            let place = place.index(length);
            match place.checked_sub(parts.chunks.len()) {
                None => parts.chunks[place] = byte,
                Some(place) => parts.sections[place] = byte,
            }
        }
        // Some changes make another file that is in order, of other names for instance; all others are damage.
        let result = decoded(&parts.file());
        prop_assert!(matches!(result, Ok(_) | Err(FormatError::Damaged { .. })), "{:?}", result);
    }
}
