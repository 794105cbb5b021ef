//! What was written is what is read.

use proptest::prelude::*;

use super::*;

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
    // What does not compress costs its tables and no more.
    let file = encoded(&[state("random", &random)], b"");
    assert!(file.len() < random.len() + 1024, "{}", file.len());
}

#[test]
fn a_million_sections() {
    let contents: Vec<Vec<u8>> = (0..1000_u32).map(|index| index.to_le_bytes().repeat(4)).collect();
    let names: Vec<String> = (0..1_000_000).map(|index| format!("s{index}")).collect();
    let sections: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| state(name, if index % 10 == 0 { &contents[index % 1000] } else { b"" }))
        .collect();
    let file = encoded(&sections, b"{}");
    let reader = Reader::open(&file).unwrap();
    reader.verify().unwrap();
    assert_eq!(reader.sections().len(), sections.len());
    for index in [0, 1, 10, 999_990, 999_999] {
        assert_eq!(reader.sections()[index].name, names[index]);
        assert_eq!(reader.read_section(index).unwrap(), sections[index].bytes);
    }
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
fn names_have_a_limit() {
    let (longest, too_long) = ("n".repeat(65_535), "ä".repeat(32_768));
    assert_round_trip(&[state(&longest, b"x")], b"");
    let error = encode(&mut Vec::new(), &[state(&too_long, b"x")], b"", Compression::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn works_inside_a_pool_of_one_thread() {
    let content = [noise(3 * CHUNK_BYTES, 4), vec![1; 40 * CHUNK_BYTES]].concat();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let file = pool.install(|| assert_round_trip(&[state("content", &content)], b"{}"));
    assert!(file == encoded(&[state("content", &content)], b"{}"), "the threads do not change the file");
}

#[test]
fn a_buffer_is_reused_whatever_it_held() {
    let (large, small) = (noise(CHUNK_BYTES + 5, 5), b"small".to_vec());
    let file = encoded(&[state("large", &large), state("small", &small), state("none", b"")], b"");
    let reader = Reader::open(&file).unwrap();
    let mut content = vec![9; 17];
    for (index, expected) in [(0, &large), (1, &small), (2, &Vec::new()), (0, &large)] {
        reader.read_section_into(index, &mut content).unwrap();
        assert!(content == *expected, "section {index}");
    }
    assert!(matches!(reader.read_section(3), Err(FormatError::Io(_))));
}

#[test]
fn a_failing_write_ends_the_encoding_wherever_it_is() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let content = noise(5 * CHUNK_BYTES, 6);
    let sections = [state("content", &content)];
    let encode_after = |writes| encode(&mut Full(writes), &sections, b"{}", Compression::default());
    let needed = (0..100).find(|writes| encode_after(*writes).is_ok()).unwrap();
    assert!(needed > 5);
    for writes in 0..needed {
        assert_eq!(encode_after(writes).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

fn any_kind() -> impl Strategy<Value = SectionKind> {
    prop_oneof![
        Just(SectionKind::State),
        Just(SectionKind::Memory),
        Just(SectionKind::Buffer),
        Just(SectionKind::Variable)
    ]
}

/// Content that is compressible, or not, or both, and of lengths around those of chunks.
fn any_content() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop_oneof![0..200_usize, CHUNK_BYTES - 2..CHUNK_BYTES + 3, 0..3 * CHUNK_BYTES];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        (any::<u8>(), lengths.clone()).prop_map(|(byte, length)| vec![byte; length]),
        (any::<u8>(), lengths).prop_map(|(seed, length)| noise(length, seed)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sections_come_back(
        contents in prop::collection::btree_map((any_kind(), ".{0,12}"), any_content(), 0..6),
        metadata in prop::collection::vec(any::<u8>(), 0..300),
        level in 1..4,
    ) {
        let sections: Vec<_> = contents
            .iter()
            .map(|((kind, name), bytes)| SectionRef { kind: *kind, name, bytes })
            .collect();
        assert_round_trip(&sections, &metadata);
        let mut file = Vec::new();
        encode(&mut file, &sections, &metadata, Compression { level }).unwrap();
        prop_assert_eq!(decoded(&file).unwrap(), decoded(&encoded(&sections, &metadata)).unwrap());
    }
}
