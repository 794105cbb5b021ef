//! Header, table entries and footer: each written and read by two functions that stand side by side.
//!
//! Reading here judges one record alone; that records fit together is judged in `read`.

use super::bytes::Fields;
use super::{FormatError, SectionKind};
use crate::checkpoint::sabotage::{self, Rule};

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const FOOTER_BYTES: usize = 128;
pub(super) const CHUNK_ENTRY_BYTES: usize = 96;
/// The fixed part of a section's entry; its name follows.
pub(super) const SECTION_ENTRY_BYTES: usize = 12;

/// Not text, so that a transfer in text mode breaks it at once.
const HEADER_MAGIC: [u8; 8] = *b"\x89SFCKPT\n";
const FOOTER_MAGIC: [u8; 8] = *b"SFCKEND\n";

const HEADER_HASHED: usize = 16;
const FOOTER_HASHED: usize = 96;

/// Compares hashes, which is where a build for tests can be told not to.
pub(super) fn matches(expected: &[u8], bytes_hash: &[u8]) -> bool {
    expected == bytes_hash || sabotage::is_off(Rule::LoadByHashes)
}

/// The first bytes of a file of a given format version. Public so that a test can make a file of a version to come.
pub fn header(version: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&HEADER_MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    let hash = blake3::hash(&bytes[..HEADER_HASHED]);
    bytes[HEADER_HASHED..].copy_from_slice(&hash.as_bytes()[..HEADER_BYTES - HEADER_HASHED]);
    bytes
}

/// The version that an intact header names.
pub(super) fn read_header(bytes: &[u8; HEADER_BYTES]) -> Result<u32, FormatError> {
    if bytes[..8] != HEADER_MAGIC {
        return Err(FormatError::damaged(0, "it does not begin as a checkpoint does"));
    }
    let hash = blake3::hash(&bytes[..HEADER_HASHED]);
    if !matches(&bytes[HEADER_HASHED..], &hash.as_bytes()[..HEADER_BYTES - HEADER_HASHED]) {
        return Err(FormatError::damaged(0, "the header does not match its checksum"));
    }
    let mut fields = Fields(&bytes[8..]);
    match fields.u32() {
        Some(version) if version > 0 => Ok(version),
        _ => Err(FormatError::damaged(8, "the header names no format version")),
    }
}

/// A part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Extent {
    /// Where it ends; nothing if that is no number.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

/// The last bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) chunks: Extent,
    pub(super) sections: Extent,
    pub(super) metadata: Extent,
    pub(super) file_bytes: u64,
    /// The same as in the header.
    pub(super) version: u32,
    /// Hash of header, chunk table, section table and metadata.
    pub(super) hash: [u8; 32],
}

impl Footer {
    pub(super) fn to_bytes(&self) -> [u8; FOOTER_BYTES] {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for extent in [self.chunks, self.sections, self.metadata] {
            out.extend_from_slice(&extent.offset.to_le_bytes());
            out.extend_from_slice(&extent.bytes.to_le_bytes());
        }
        out.extend_from_slice(&self.file_bytes.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..64].copy_from_slice(&out);
        bytes[64..FOOTER_HASHED].copy_from_slice(&self.hash);
        let own = blake3::hash(&bytes[..FOOTER_HASHED]);
        bytes[FOOTER_HASHED..120].copy_from_slice(&own.as_bytes()[..24]);
        bytes[120..].copy_from_slice(&FOOTER_MAGIC);
        bytes
    }

    /// Reads the footer that begins at `at`.
    pub(super) fn from_bytes(bytes: &[u8; FOOTER_BYTES], at: u64) -> Result<Self, FormatError> {
        if bytes[120..] != FOOTER_MAGIC {
            return Err(FormatError::damaged(at, "it does not end as a checkpoint does"));
        }
        let own = blake3::hash(&bytes[..FOOTER_HASHED]);
        if !matches(&bytes[FOOTER_HASHED..120], &own.as_bytes()[..24]) {
            return Err(FormatError::damaged(at, "the footer does not match its hash"));
        }
        Self::parse(&mut Fields(bytes)).ok_or_else(|| FormatError::damaged(at, "the footer is too short"))
    }

    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        let chunks = Extent { offset: fields.u64()?, bytes: fields.u64()? };
        let sections = Extent { offset: fields.u64()?, bytes: fields.u64()? };
        let metadata = Extent { offset: fields.u64()?, bytes: fields.u64()? };
        let file_bytes = fields.u64()?;
        let version = fields.u32()?;
        fields.u32()?;
        Some(Self { chunks, sections, metadata, file_bytes, version, hash: fields.array()? })
    }
}

/// How a chunk's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As they are.
    Raw,
    /// One zstd frame.
    Zstd,
}

/// One line of the chunk table. Filter and file are always 0 in this version, so they are checked and not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkEntry {
    pub(super) section: u32,
    pub(super) codec: Codec,
    pub(super) content_bytes: u32,
    pub(super) offset: u64,
    pub(super) stored_bytes: u32,
    pub(super) content_hash: [u8; 32],
    pub(super) stored_hash: [u8; 32],
}

impl ChunkEntry {
    pub(super) fn append_to(&self, table: &mut Vec<u8>) {
        table.extend_from_slice(&self.section.to_le_bytes());
        let codec = match self.codec {
            Codec::Raw => 0,
            Codec::Zstd => 1,
        };
        table.extend_from_slice(&[0, codec, 0, 0]);
        table.extend_from_slice(&0_u32.to_le_bytes());
        table.extend_from_slice(&self.content_bytes.to_le_bytes());
        table.extend_from_slice(&self.offset.to_le_bytes());
        table.extend_from_slice(&self.stored_bytes.to_le_bytes());
        table.extend_from_slice(&[0; 4]);
        table.extend_from_slice(&self.content_hash);
        table.extend_from_slice(&self.stored_hash);
    }

    /// Reads an entry; the error says what this version does not know.
    pub(super) fn from_fields(fields: &mut Fields<'_>) -> Result<Self, &'static str> {
        const SHORT: &str = "the chunk table ends within an entry";
        let section = fields.u32().ok_or(SHORT)?;
        let (filter, codec, zero) = (fields.u8().ok_or(SHORT)?, fields.u8().ok_or(SHORT)?, fields.u16().ok_or(SHORT)?);
        let file = fields.u32().ok_or(SHORT)?;
        let content_bytes = fields.u32().ok_or(SHORT)?;
        let offset = fields.u64().ok_or(SHORT)?;
        let (stored_bytes, more_zero) = (fields.u32().ok_or(SHORT)?, fields.u32().ok_or(SHORT)?);
        let content_hash = fields.array().ok_or(SHORT)?;
        let stored_hash = fields.array().ok_or(SHORT)?;
        if filter != 0 {
            return Err("a chunk was filtered in a way that this format version does not have");
        }
        if file != 0 {
            return Err("a chunk lies in another file, which this format version does not have");
        }
        if zero != 0 || more_zero != 0 {
            return Err("a chunk's entry is not zero where it must be");
        }
        let codec = match codec {
            0 => Codec::Raw,
            1 => Codec::Zstd,
            _ => return Err("a chunk was compressed in a way that this format version does not have"),
        };
        Ok(Self { section, codec, content_bytes, offset, stored_bytes, content_hash, stored_hash })
    }
}

/// One line of the section table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionEntry<'a> {
    pub(super) kind: SectionKind,
    pub(super) name: &'a str,
    pub(super) bytes: u64,
}

impl<'a> SectionEntry<'a> {
    /// Appends the entry; false, and nothing appended, if the name is too long.
    pub(super) fn append_to(&self, table: &mut Vec<u8>) -> bool {
        let Ok(name_bytes) = u16::try_from(self.name.len()) else { return false };
        table.extend_from_slice(&[self.kind.to_byte(), 0]);
        table.extend_from_slice(&name_bytes.to_le_bytes());
        table.extend_from_slice(&self.bytes.to_le_bytes());
        table.extend_from_slice(self.name.as_bytes());
        true
    }

    pub(super) fn from_fields(fields: &mut Fields<'a>) -> Result<Self, &'static str> {
        const SHORT: &str = "the section table ends within an entry";
        let kind = SectionKind::from_byte(fields.u8().ok_or(SHORT)?).ok_or("a section is of no known kind")?;
        if fields.u8().ok_or(SHORT)? != 0 {
            return Err("a section's entry is not zero where it must be");
        }
        let name_bytes = fields.u16().ok_or(SHORT)?;
        let bytes = fields.u64().ok_or(SHORT)?;
        let name = fields.bytes(usize::from(name_bytes)).ok_or(SHORT)?;
        let name = std::str::from_utf8(name).map_err(|_| "a section's name is not UTF-8")?;
        Ok(Self { kind, name, bytes })
    }
}
