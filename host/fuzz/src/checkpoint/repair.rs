//! Makes a mutated checkpoint file's hashes right again, so that a fuzzer comes past them.
//!
//! Without this nearly every input ends at the first hash. A file is taken apart as far as its footer and its tables tell
//! how, and each part is brought in line with what it stands for: offsets and lengths with the parts, hashes with the bytes.
//! What is not needed for that (kinds, names, metadata, versions, the order of chunks) stays as the fuzzer made it.
//!
//! The last byte of a file belongs to a magic number that is written anew anyway, so it chooses what is left undone: see
//! [`Undone`]. In an untouched file it is a line end, and everything is repaired.

use steadfast::checkpoint::format::{MAX_CHUNK_BYTES, header};

const HEADER: usize = 32;
const FOOTER: usize = 128;
const CHUNK_ENTRY: usize = 96;
const SECTION_ENTRY: usize = 12;
const FOOTER_MAGIC: [u8; 8] = *b"SFCKEND\n";

/// What a file's last byte says is to be left as the fuzzer made it.
#[derive(Clone, Copy)]
struct Undone(u8);

impl Undone {
    fn of(last: u8) -> Self {
        Self(last ^ FOOTER_MAGIC[7])
    }

    fn extents(self) -> bool {
        self.0 & 0x80 != 0
    }

    fn chunks(self) -> bool {
        self.0 & 0x40 != 0
    }

    fn contents(self) -> bool {
        self.0 & 0x20 != 0
    }

    fn sections(self) -> bool {
        self.0 & 0x10 != 0
    }

    fn versions(self) -> bool {
        self.0 & 0x08 != 0
    }
}

/// The file with right hashes; none if it is too short to have any.
pub fn repair(bytes: &[u8]) -> Option<Vec<u8>> {
    let footer_at = bytes.len().checked_sub(FOOTER).filter(|at| *at >= HEADER)?;
    let undone = Undone::of(*bytes.last()?);
    let mut file = bytes.to_vec();
    if undone.versions() {
        let version = u32_at(&file, 8);
        file[..HEADER].copy_from_slice(&header(version));
    } else {
        file[..HEADER].copy_from_slice(&header(1));
        put_u32(&mut file, footer_at + 56, 1);
    }
    let extents = Extents::of(&file, footer_at);
    if !undone.chunks() {
        chunks(&mut file, extents, undone);
    }
    if !undone.sections() {
        sections(&mut file, extents);
    }
    if !undone.extents() {
        extents.write(&mut file, footer_at);
    }
    seal(&mut file, footer_at);
    Some(file)
}

/// Where the tables and the metadata lie; they end at the footer.
#[derive(Clone, Copy)]
struct Extents {
    chunks: usize,
    sections: usize,
    metadata: usize,
    end: usize,
}

impl Extents {
    /// As the footer's lengths say, cut to what is there.
    fn of(file: &[u8], footer_at: usize) -> Self {
        let length = |field: usize| usize::try_from(u64_at(file, footer_at + field)).unwrap_or(usize::MAX);
        let before = |end: usize, bytes: usize| end - bytes.min(end - HEADER);
        let metadata = before(footer_at, length(40));
        let sections = before(metadata, length(24));
        let chunks = before(sections, length(8));
        // Half an entry becomes a part of the chunks.
        let chunks = sections - (sections - chunks) / CHUNK_ENTRY * CHUNK_ENTRY;
        Self { chunks, sections, metadata, end: footer_at }
    }

    fn write(self, file: &mut [u8], footer_at: usize) {
        let length = file.len();
        let parts = [(self.chunks, self.sections), (self.sections, self.metadata), (self.metadata, self.end)];
        for (index, (start, end)) in parts.into_iter().enumerate() {
            put_u64(file, footer_at + 16 * index, start);
            put_u64(file, footer_at + 16 * index + 8, end - start);
        }
        put_u64(file, footer_at + 48, length);
    }
}

/// Lets the chunks follow one another up to the table, each with the hash of what is there.
fn chunks(file: &mut [u8], extents: Extents, undone: Undone) {
    let count = (extents.sections - extents.chunks) / CHUNK_ENTRY;
    let (mut next, mut section) = (HEADER, 0);
    for index in 0..count {
        let at = extents.chunks + index * CHUNK_ENTRY;
        let room = extents.chunks - next;
        let named = u32_at(file, at + 24) as usize;
        let stored = if index + 1 == count { room } else { named.min(room) };
        // A table counts sections upwards, and passes over those without content.
        section = u32_at(file, at).clamp(section, section + 3);
        put_u32(file, at, section);
        file[at + 4] = 0;
        file[at + 5] &= 1;
        file[at + 6..at + 12].fill(0);
        file[at + 28..at + 32].fill(0);
        put_u64(file, at + 16, next);
        put_u32(file, at + 24, u32::try_from(stored).unwrap_or(u32::MAX));
        let bytes = file[next..next + stored].to_vec();
        let stored_hash = blake3::hash(&bytes);
        file[at + 64..at + 96].copy_from_slice(stored_hash.as_bytes());
        if !undone.contents() {
            contents(&mut file[at..at + CHUNK_ENTRY], &bytes);
        }
        next += stored;
    }
}

/// Lets an entry say what its stored bytes hold.
fn contents(entry: &mut [u8], stored: &[u8]) {
    let unpacked = if entry[5] == 1 { zstd::bulk::decompress(stored, MAX_CHUNK_BYTES).ok() } else { None };
    let content = unpacked.as_deref().unwrap_or_else(|| {
        // What is no frame can still be content.
        entry[5] = 0;
        stored
    });
    let hash = blake3::hash(content);
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    entry[12..16].copy_from_slice(&length.to_le_bytes());
    entry[32..64].copy_from_slice(hash.as_bytes());
}

/// Lets each section be as long as its chunks together.
fn sections(file: &mut [u8], extents: Extents) {
    let entries = (extents.sections - extents.chunks) / CHUNK_ENTRY;
    let (mut at, mut index) = (extents.sections, 0_u32);
    while at + SECTION_ENTRY <= extents.metadata {
        let of_section = (0..entries).map(|entry| extents.chunks + entry * CHUNK_ENTRY);
        let length: u64 =
            of_section.filter(|at| u32_at(file, *at) == index).map(|at| u64::from(u32_at(file, at + 12))).sum();
        file[at + 1] = 0;
        put_u64(file, at + 4, usize::try_from(length).unwrap_or(usize::MAX));
        at += SECTION_ENTRY + usize::from(u16::from_le_bytes([file[at + 2], file[at + 3]]));
        index += 1;
    }
}

/// The footer's hashes and its magic number.
fn seal(file: &mut [u8], footer_at: usize) {
    // What the footer itself says, and not where the parts lie: a reader goes by it too.
    let tail_at = usize::try_from(u64_at(file, footer_at)).unwrap_or(usize::MAX).clamp(HEADER, footer_at);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&file[..HEADER]).update(&file[tail_at..footer_at]);
    let hash = hasher.finalize();
    let footer = &mut file[footer_at..];
    footer[64..96].copy_from_slice(hash.as_bytes());
    let own = blake3::hash(&footer[..96]);
    footer[96..120].copy_from_slice(&own.as_bytes()[..24]);
    footer[120..].copy_from_slice(&FOOTER_MAGIC);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |field| u32::from_le_bytes(*field))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |field| u64::from_le_bytes(*field))
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
}
