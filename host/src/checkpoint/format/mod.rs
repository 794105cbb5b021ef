//! The checkpoint file: bytes only, without a filesystem and without knowing what the metadata means.
//!
//! ```text
//! offset 0
//! ┌──────────────┐
//! │ header   32  │ magic 8 · format version 4 · zero 4 · first 16 bytes of BLAKE3(the 16 bytes before)
//! ├──────────────┤
//! │ chunk 0      │ a zstd frame, or the content as it is where zstd does not shrink it
//! │ chunk 1      │ chunks follow one another without a gap; each holds at most 1 MiB of one section's content
//! │ …            │
//! ├──────────────┤
//! │ chunk table  │ 96 bytes a chunk, in the order of the sections and of the content in them:
//! │              │ section 4 · filter 1 · codec 1 · zero 2 · file 4 · content length 4 · offset 8 · stored length 4 ·
//! │              │ zero 4 · BLAKE3(content) 32 · BLAKE3(stored bytes) 32
//! ├──────────────┤
//! │ section table│ an entry a section: kind 1 · zero 1 · name length 2 · content length 8 · name in UTF-8
//! ├──────────────┤
//! │ metadata     │ JSON
//! ├──────────────┤
//! │ footer  128  │ offset 8 and length 8 of chunk table, of section table, of metadata · file length 8 · format version 4 ·
//! │              │ zero 4 · BLAKE3(header · chunk table · section table · metadata) 32 ·
//! │              │ first 24 bytes of BLAKE3(the 96 bytes before) · magic 8
//! └──────────────┘
//! ```
//!
//! All numbers are little-endian. The four parts between header and footer lie next to each other and fill the file, so every
//! byte stands under a hash: chunks under that of their stored bytes, the tables, the metadata and the header under the
//! footer's, the footer under its own. A file is trusted only as far as those were compared: [`Reader::open`] checks all but
//! the chunks, [`Reader::read_section`] the chunks it reads, [`Reader::verify`] every one.
//!
//! **Room that later versions have.** `filter` names what was done to the content before compression (0 nothing; 1 and above
//! are free for planes of floats). `file` names the file that holds the chunk: 0 is this one, and above 0 is free for earlier
//! files of the same epoch and nonce, which the metadata would then list. Whoever first writes either raises
//! [`FORMAT_VERSION`]: version 1 knows neither, and would have to call such a file damaged.
//!
//! **What stays for ever.** Header and footer keep their layout in every version, so that a program that is too old can
//! tell an intact file of a newer version ([`FormatError::Newer`]) from a damaged one.
//!
//! **What this deliberately does not do.** It keeps no secrets and no signatures: hashes detect accidents, not forgers. It
//! does not repair. It does not judge sizes either: a file of a few bytes can rightly hold gigabytes of zeros, so a caller
//! with a memory limit looks at [`Reader::sections`] first.

mod bytes;
mod layout;
mod read;
mod sample;
mod scratch;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::io;

pub use layout::header;
pub use read::{ReadAt, Reader, SectionInfo};
pub use write::{Compression, SectionRef, SectionSource, Written, encode};

/// The version of the format that [`encode`] writes, and the newest that [`Reader`] reads.
pub const FORMAT_VERSION: u32 = 1;

/// Content bytes in one chunk, but for the last of a section.
pub const CHUNK_BYTES: usize = 1 << 20;

/// The most content that a reader accepts in one chunk: the bound of what one decompression may write. It is above
/// [`CHUNK_BYTES`], so that a later writer may choose larger chunks without a new version.
pub const MAX_CHUNK_BYTES: usize = 16 << 20;

/// Where a section's bytes come from, and so where they go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// A named section that the guest wrote in `snapshot`.
    State,
    /// The guest's linear memory.
    Memory,
    /// A persistent buffer of the device, called after what it holds and its name: `float32:weights`.
    Buffer,
    /// A mutable variable of a device module, called after the digest of the module's text and its name.
    Variable,
}

impl SectionKind {
    fn to_byte(self) -> u8 {
        match self {
            Self::State => 1,
            Self::Memory => 2,
            Self::Buffer => 3,
            Self::Variable => 4,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::State),
            2 => Some(Self::Memory),
            3 => Some(Self::Buffer),
            4 => Some(Self::Variable),
            _ => None,
        }
    }
}

impl fmt::Display for SectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State => "state",
            Self::Memory => "memory",
            Self::Buffer => "buffer",
            Self::Variable => "variable",
        })
    }
}

/// Why a file could not be used. The three kinds lead to three different decisions.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Reading failed; the file itself may be in order.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are there, and they are not those of a checkpoint.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
        /// Where in the file the part begins that does not match.
        offset: u64,
    },
    /// An intact file of a later version.
    #[error("written in format {version}, newer than format {FORMAT_VERSION} that this version of Steadfast reads")]
    Newer {
        /// The version it was written in.
        version: u32,
    },
}

impl FormatError {
    fn damaged(offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), offset }
    }
}
