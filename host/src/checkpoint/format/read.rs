//! Reading a checkpoint file: nothing is believed before its hash was compared.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use rayon::prelude::*;

use super::bytes::Fields;
use super::layout::{
    CHUNK_ENTRY_BYTES, ChunkEntry, Codec, Extent, FOOTER_BYTES, Footer, HEADER_BYTES, SECTION_ENTRY_BYTES,
    SectionEntry, matches, read_header,
};
use super::{FORMAT_VERSION, FormatError, MAX_CHUNK_BYTES, SectionKind, scratch};

/// Bytes that can be read from several threads at once.
pub trait ReadAt: Send + Sync {
    /// How many there are.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are none.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` with those from `offset` on; `UnexpectedEof` if there are not enough.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for &[u8] {
    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|start| self.get(start..)?.get(..buf.len()));
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> io::Result<u64> {
        ReadAt::len(&self.as_slice())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        ReadAt::read_exact_at(&self.as_slice(), buf, offset)
    }
}

/// A section as the file lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// Where the bytes come from.
    pub kind: SectionKind,
    /// Its name, once in a kind.
    pub name: String,
    /// Length of its content.
    pub bytes: u64,
    /// Bytes it takes in the file.
    pub stored_bytes: u64,
}

/// An open checkpoint file whose header, tables, metadata and footer match their hashes.
pub struct Reader<'a> {
    source: &'a dyn ReadAt,
    sections: Vec<SectionInfo>,
    /// The chunks of each section.
    ranges: Vec<Range<usize>>,
    chunks: Vec<ChunkEntry>,
    metadata: Vec<u8>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("sections", &self.sections).finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// Reads and checks all but the chunks.
    pub fn open(source: &'a dyn ReadAt) -> Result<Self, FormatError> {
        let file_bytes = source.len()?;
        let Some(footer_at) = file_bytes.checked_sub(FOOTER_BYTES as u64).filter(|at| *at >= HEADER_BYTES as u64)
        else {
            return Err(FormatError::damaged(file_bytes, format!("{file_bytes} bytes are too few for a checkpoint")));
        };
        let mut header = [0; HEADER_BYTES];
        read(source, &mut header, 0)?;
        let version = read_header(&header)?;
        let mut footer = [0; FOOTER_BYTES];
        read(source, &mut footer, footer_at)?;
        let footer = Footer::from_bytes(&footer, footer_at)?;
        if version > FORMAT_VERSION {
            return Err(FormatError::Newer { version });
        }
        if footer.version != version || footer.file_bytes != file_bytes {
            return Err(FormatError::damaged(footer_at, "the footer belongs to another file"));
        }
        check_extents(&footer, footer_at)?;

        // The extents are next to each other and within the file, so this allocates less than the file's length.
        let tail_at = footer.chunks.offset;
        let mut tail = vec![0; length(footer_at - tail_at, tail_at)?];
        read(source, &mut tail, tail_at)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header).update(&tail);
        if !matches(&footer.hash, hasher.finalize().as_bytes()) {
            return Err(FormatError::damaged(tail_at, "the tables and the metadata do not match their hash"));
        }
        let (tables, metadata) = tail.split_at(length(footer.metadata.offset - tail_at, tail_at)?);
        let (chunk_table, section_table) = tables.split_at(length(footer.chunks.bytes, tail_at)?);
        let chunks = parse_chunks(chunk_table, footer.chunks)?;
        let (sections, ranges) = parse_sections(section_table, footer.sections, &chunks)?;
        Ok(Self { source, sections, ranges, chunks, metadata: metadata.to_vec() })
    }

    /// The metadata, as it was given to `encode`.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The sections, in the order in which they were given to `encode`.
    pub fn sections(&self) -> &[SectionInfo] {
        &self.sections
    }

    /// The content of a section, on all cores; checks the hashes of what it reads.
    pub fn read_section(&self, index: usize) -> Result<Vec<u8>, FormatError> {
        let mut content = Vec::new();
        self.read_section_into(index, &mut content)?;
        Ok(content)
    }

    /// The same into a buffer of an earlier section, whose pages need not be cleared again. Its content is replaced; after
    /// an error it is of no use.
    pub fn read_section_into(&self, index: usize, content: &mut Vec<u8>) -> Result<(), FormatError> {
        let (Some(section), Some(range)) = (self.sections.get(index), self.ranges.get(index)) else {
            let what = format!("there is no section {index}");
            return Err(FormatError::Io(io::Error::new(io::ErrorKind::InvalidInput, what)));
        };
        let chunks = &self.chunks[range.clone()];
        let start = chunks.first().map_or(0, |chunk| chunk.offset);
        resize(content, length(section.bytes, start)?)?;
        let mut rest = content.as_mut_slice();
        let mut jobs = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let (here, after) = rest.split_at_mut(chunk.content_bytes as usize);
            jobs.push((chunk, here));
            rest = after;
        }
        first_error(jobs.into_par_iter().map(|(chunk, here)| self.read_chunk(chunk, here)))
    }

    /// Compares every stored byte and all content with their hashes, a few chunks at a time.
    pub fn verify(&self) -> Result<(), FormatError> {
        first_error(self.chunks.par_iter().map(|chunk| {
            scratch::with_content(chunk.content_bytes as usize, |content| self.read_chunk(chunk, content))
        }))
    }

    /// Reads a chunk into a slice of its content's length.
    fn read_chunk(&self, chunk: &ChunkEntry, content: &mut [u8]) -> Result<(), FormatError> {
        match chunk.codec {
            Codec::Raw => {
                read(self.source, content, chunk.offset)?;
                check_stored(chunk, content)
            }
            Codec::Zstd => scratch::with_stored(chunk.stored_bytes as usize, |stored| {
                read(self.source, stored, chunk.offset)?;
                check_stored(chunk, stored)?;
                match scratch::decompress(stored, content) {
                    Ok(written) if written == content.len() => {}
                    _ => return Err(FormatError::damaged(chunk.offset, "a chunk does not decompress to its length")),
                }
                if !matches(&chunk.content_hash, blake3::hash(content).as_bytes()) {
                    return Err(FormatError::damaged(chunk.offset, "the content of a chunk does not match its hash"));
                }
                Ok(())
            }),
        }
    }
}

fn check_stored(chunk: &ChunkEntry, stored: &[u8]) -> Result<(), FormatError> {
    if matches(&chunk.stored_hash, blake3::hash(stored).as_bytes()) {
        return Ok(());
    }
    Err(FormatError::damaged(chunk.offset, "the stored bytes of a chunk do not match their hash"))
}

/// The error of the first of all chunks that has one, so that the same file always gives the same error.
fn first_error(results: impl IndexedParallelIterator<Item = Result<(), FormatError>>) -> Result<(), FormatError> {
    results.find_map_first(Result::err).map_or(Ok(()), Err)
}

/// Reads bytes that the file's length says are there: if they are not, it was cut after it was opened.
fn read(source: &dyn ReadAt, buf: &mut [u8], offset: u64) -> Result<(), FormatError> {
    source.read_exact_at(buf, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FormatError::damaged(offset, "the file ends too early"),
        _ => FormatError::Io(error),
    })
}

fn length(bytes: u64, offset: u64) -> Result<usize, FormatError> {
    usize::try_from(bytes).map_err(|_| FormatError::damaged(offset, "a part is larger than this machine can address"))
}

/// Gives a buffer a length without ending the process where memory is short, and without clearing pages twice.
fn resize(content: &mut Vec<u8>, length: usize) -> Result<(), FormatError> {
    if content.capacity() >= length {
        content.resize(length, 0);
        return Ok(());
    }
    // Asking first and allocating cleared memory after: the second call takes pages that the system clears as they are
    // touched, on all cores, and fails only where the first does.
    *content = Vec::new();
    content.try_reserve_exact(length).map_err(|_| FormatError::Io(io::ErrorKind::OutOfMemory.into()))?;
    *content = Vec::new();
    *content = vec![0; length];
    Ok(())
}

/// Chunk table, section table and metadata follow one another up to the footer.
fn check_extents(footer: &Footer, footer_at: u64) -> Result<(), FormatError> {
    let in_order = footer.chunks.offset >= HEADER_BYTES as u64
        && footer.chunks.bytes.is_multiple_of(CHUNK_ENTRY_BYTES as u64)
        && footer.chunks.end() == Some(footer.sections.offset)
        && footer.sections.end() == Some(footer.metadata.offset)
        && footer.metadata.end() == Some(footer_at);
    if in_order {
        Ok(())
    } else {
        Err(FormatError::damaged(footer_at, "the parts that the footer names do not fit together"))
    }
}

/// Reads the chunk table, and checks that the chunks fill the file from the header to the table.
fn parse_chunks(table: &[u8], extent: Extent) -> Result<Vec<ChunkEntry>, FormatError> {
    let mut chunks = Vec::with_capacity(table.len() / CHUNK_ENTRY_BYTES);
    let mut next = HEADER_BYTES as u64;
    for entry in table.chunks(CHUNK_ENTRY_BYTES) {
        let bad = |what: &str| FormatError::damaged(extent.offset, what);
        let chunk = ChunkEntry::from_fields(&mut Fields(entry)).map_err(bad)?;
        let (stored, content) = (chunk.stored_bytes as usize, chunk.content_bytes as usize);
        if content == 0 || content > MAX_CHUNK_BYTES || stored == 0 {
            return Err(bad("a chunk has a length that no chunk can have"));
        }
        let contradicts = match chunk.codec {
            Codec::Raw => stored != content || !matches(&chunk.stored_hash, &chunk.content_hash),
            Codec::Zstd => stored >= content,
        };
        if contradicts {
            return Err(bad("a chunk's lengths and hashes contradict the way it is stored"));
        }
        if chunk.offset != next {
            return Err(bad("the chunks do not follow one another"));
        }
        next = next.checked_add(u64::from(chunk.stored_bytes)).ok_or_else(|| bad("the chunks have no end"))?;
        chunks.push(chunk);
    }
    if next != extent.offset {
        return Err(FormatError::damaged(extent.offset, "the chunks do not fill the file"));
    }
    Ok(chunks)
}

/// Reads the section table, and checks that the chunks give each section exactly its length.
fn parse_sections(
    table: &[u8],
    extent: Extent,
    chunks: &[ChunkEntry],
) -> Result<(Vec<SectionInfo>, Vec<Range<usize>>), FormatError> {
    let bad = |what: &str| FormatError::damaged(extent.offset, what);
    let most = table.len() / SECTION_ENTRY_BYTES;
    let (mut sections, mut ranges) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let mut seen = HashSet::with_capacity(most);
    let mut fields = Fields(table);
    let mut next = 0;
    while !fields.0.is_empty() {
        let entry = SectionEntry::from_fields(&mut fields).map_err(bad)?;
        if !seen.insert((entry.kind, entry.name)) {
            return Err(bad("two sections have one name"));
        }
        let first = next;
        let (mut content, mut stored) = (0_u64, 0_u64);
        while let Some(chunk) = chunks.get(next)
            && chunk.section as usize == sections.len()
        {
            // Neither sum can overflow: the table fits in memory, and a line of it stands for at most 16 MiB.
            content += u64::from(chunk.content_bytes);
            stored += u64::from(chunk.stored_bytes);
            next += 1;
        }
        if content != entry.bytes {
            return Err(bad("a section's chunks do not give its length"));
        }
        sections.push(SectionInfo {
            kind: entry.kind,
            name: entry.name.to_owned(),
            bytes: content,
            stored_bytes: stored,
        });
        ranges.push(first..next);
    }
    if next != chunks.len() {
        return Err(bad("a chunk belongs to no section"));
    }
    Ok((sections, ranges))
}
