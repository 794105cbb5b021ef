//! Files that were cut, changed, or cannot be read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;

use super::super::layout::{FOOTER_BYTES, HEADER_BYTES};
use super::*;

#[test]
fn every_truncation_is_detected() {
    let file = small_file();
    for length in 0..file.len() {
        let result = decoded(&file[..length]);
        assert!(matches!(result, Err(FormatError::Damaged { .. })), "cut to {length} of {}: {result:?}", file.len());
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let file = small_file();
    for place in 0..file.len() * 8 {
        let mut broken = file.clone();
        broken[place / 8] ^= 1 << (place % 8);
        let result = decoded(&broken);
        assert!(matches!(result, Err(FormatError::Damaged { .. })), "bit {place}: {result:?}");
    }
}

#[test]
fn the_chunks_are_all_that_open_does_not_check() {
    let file = small_file();
    let chunk_table = u64::from_le_bytes(file[file.len() - FOOTER_BYTES..][..8].try_into().unwrap());
    let chunks = HEADER_BYTES..usize::try_from(chunk_table).unwrap();
    for place in 0..file.len() {
        let mut broken = file.clone();
        broken[place] ^= 0xff;
        assert_eq!(Reader::open(&broken).is_ok(), chunks.contains(&place), "byte {place}");
    }
}

#[test]
fn appended_and_repeated_bytes_are_detected() {
    let file = small_file();
    for tail in [&b"\0"[..], &[0; 4096], &file] {
        assert!(matches!(decoded(&[&file, tail].concat()), Err(FormatError::Damaged { .. })));
    }
    assert!(matches!(decoded(&[&b"\0"[..], &file].concat()), Err(FormatError::Damaged { .. })));
}

#[test]
fn zeroed_and_exchanged_ranges_are_detected() {
    let file = small_file();
    // A disk that lost a sector, or put one in the place of another.
    for start in (0..file.len() - 32).step_by(16) {
        let mut zeroed = file.clone();
        zeroed[start..start + 32].fill(0);
        assert!(decoded(&zeroed).is_err(), "zeroed at {start}");
        let mut exchanged = file.clone();
        exchanged.copy_within(0..32, start);
        assert!(start == 0 || decoded(&exchanged).is_err(), "exchanged at {start}");
    }
}

#[test]
fn parts_of_two_files_do_not_make_one() {
    // Same layout, other content: only the hashes can tell.
    let (one, other) = (noise(64, 1), noise(64, 2));
    let one = encoded(&[state("s", &one)], b"{\"step\":1}");
    let other = encoded(&[state("s", &other)], b"{\"step\":2}");
    assert_eq!(one.len(), other.len());
    for cut in HEADER_BYTES + 1..one.len() {
        let mixed = [&one[..cut], &other[cut..]].concat();
        if mixed != one && mixed != other {
            assert!(decoded(&mixed).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn an_intact_file_of_a_newer_version_is_told_by_name() {
    let mut file = small_file();
    for version in [FORMAT_VERSION + 1, 99, u32::MAX] {
        file[..HEADER_BYTES].copy_from_slice(&header(version));
        assert!(matches!(decoded(&file), Err(FormatError::Newer { version: found }) if found == version));
        // Cut, it is not intact, and its own version would call it damaged too.
        for length in [0, 31, 33, file.len() - FOOTER_BYTES, file.len() - 1] {
            assert!(matches!(decoded(&file[..length]), Err(FormatError::Damaged { .. })), "cut to {length}");
        }
    }
    file[..HEADER_BYTES].copy_from_slice(&header(0));
    assert!(matches!(decoded(&file), Err(FormatError::Damaged { .. })));
    // A version without its checksum is damage, not news.
    let mut flipped = small_file();
    flipped[8] = 2;
    assert!(matches!(decoded(&flipped), Err(FormatError::Damaged { .. })));
}

#[test]
fn other_files_are_no_checkpoints() {
    for bytes in [&b""[..], b"{}", b"PK\x03\x04", &[0; 4096], &[0xff; 4096], include_bytes!("damage.rs")] {
        assert!(matches!(decoded(bytes), Err(FormatError::Damaged { .. })));
    }
}

/// A file on a volume that fails: every read from the `fail_from`th on is an error.
struct Failing {
    bytes: Vec<u8>,
    reads: AtomicU64,
    fail_from: u64,
    error: io::ErrorKind,
    largest: AtomicUsize,
}

impl Failing {
    fn new(bytes: Vec<u8>, fail_from: u64, error: io::ErrorKind) -> Self {
        Self { bytes, reads: AtomicU64::new(0), fail_from, error, largest: AtomicUsize::new(0) }
    }
}

impl ReadAt for Failing {
    fn len(&self) -> io::Result<u64> {
        ReadAt::len(&self.bytes)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.largest.fetch_max(buf.len(), Ordering::Relaxed);
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.fail_from {
            return Err(self.error.into());
        }
        self.bytes.read_exact_at(buf, offset)
    }
}

#[test]
fn failing_to_read_is_not_damage_and_ending_early_is() {
    let read = |source: &Failing| -> Result<(), FormatError> {
        let reader = Reader::open(source)?;
        reader.read_section(0)?;
        reader.verify()
    };
    let source = Failing::new(small_file(), u64::MAX, io::ErrorKind::Other);
    read(&source).unwrap();
    let reads = source.reads.into_inner();
    for fail_from in 0..reads {
        let stale = read(&Failing::new(small_file(), fail_from, io::ErrorKind::StaleNetworkFileHandle));
        assert!(matches!(stale, Err(FormatError::Io(_))), "read {fail_from}: {stale:?}");
        let cut = read(&Failing::new(small_file(), fail_from, io::ErrorKind::UnexpectedEof));
        assert!(matches!(cut, Err(FormatError::Damaged { .. })), "read {fail_from}: {cut:?}");
    }
}

#[test]
fn verifying_reads_a_chunk_at_a_time() {
    let content = [noise(5 * CHUNK_BYTES, 8), vec![3; 5 * CHUNK_BYTES]].concat();
    let source = Failing::new(encoded(&[state("content", &content)], b"{}"), u64::MAX, io::ErrorKind::Other);
    Reader::open(&source).unwrap().verify().unwrap();
    assert_eq!(source.largest.into_inner(), CHUNK_BYTES);
}

#[test]
fn the_same_damage_gives_the_same_error() {
    let content = noise(20 * CHUNK_BYTES, 9);
    let mut file = encoded(&[state("content", &content)], b"{}");
    for chunk in [17, 5, 11] {
        file[HEADER_BYTES + chunk * CHUNK_BYTES] ^= 1;
    }
    let offset = (HEADER_BYTES + 5 * CHUNK_BYTES) as u64;
    for _ in 0..10 {
        let error = Reader::open(&file).unwrap().verify().unwrap_err();
        assert!(matches!(error, FormatError::Damaged { offset: found, .. } if found == offset), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        prop_assert!(decoded(&bytes).is_err());
    }

    #[test]
    fn no_changes_go_unseen(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = small_file();
        let mut broken = file.clone();
        for (place, byte) in changes {
            let place = place.index(file.len());
            broken[place] = byte;
        }
        broken.truncate(file.len() - cut.index(4));
        prop_assert_eq!(decoded(&broken).is_ok(), broken == file);
    }
}
