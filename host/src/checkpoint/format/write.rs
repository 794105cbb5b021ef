//! Writing a checkpoint file: compressing on all cores, writing in order, in bounded memory.
//!
//! The calling thread cuts sections into batches and hands each to rayon; it takes the finished ones back in order and writes
//! them. At most a few batches a core are under way, so memory does not grow with the state.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};
use std::iter::Peekable;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use super::layout::{ChunkEntry, Codec, Extent, FOOTER_BYTES, Footer, SectionEntry, header};
use super::{CHUNK_BYTES, FORMAT_VERSION, SectionKind, sample, scratch};

/// How hard to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The zstd level.
    pub level: i32,
}

impl Default for Compression {
    /// Level 1: state that compresses at all does so here, and a save has ten seconds.
    fn default() -> Self {
        Self { level: 1 }
    }
}

/// A section to be written.
#[derive(Clone, Copy, Debug)]
pub struct SectionRef<'a> {
    /// Where the bytes come from.
    pub kind: SectionKind,
    /// At most 65535 bytes, and once in a kind.
    pub name: &'a str,
    /// The content.
    pub bytes: &'a [u8],
}

/// A section to be written, whose content may still be on its way here.
pub trait SectionSource {
    /// Where the bytes come from.
    fn kind(&self) -> SectionKind;

    /// At most 65535 bytes, and once in a kind.
    fn name(&self) -> &str;

    /// How many bytes the parts have together.
    fn bytes(&self) -> u64;

    /// The content, in order; chunks are cut within a part. Each is asked for when those before are being compressed and written.
    fn parts(&self) -> impl Iterator<Item = io::Result<&[u8]>>;
}

impl SectionSource for SectionRef<'_> {
    fn kind(&self) -> SectionKind {
        self.kind
    }

    fn name(&self) -> &str {
        self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn parts(&self) -> impl Iterator<Item = io::Result<&[u8]>> {
        std::iter::once(Ok(self.bytes))
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Length of the whole file.
    pub file_bytes: u64,
    /// Content of all sections together.
    pub raw_bytes: u64,
}

/// Writes a checkpoint file with these sections and this metadata.
///
/// Names are checked before the first byte is written: a name that is too long, or twice there in one kind, is
/// `InvalidInput`. Every other error comes from `out`, or from a section whose content does not come.
pub fn encode<S: SectionSource>(
    out: &mut dyn Write,
    sections: &[S],
    metadata: &[u8],
    settings: Compression,
) -> io::Result<Written> {
    let section_table = section_table(sections)?;
    let head = header(FORMAT_VERSION);
    let mut sink = Sink::new(out);
    sink.put(&head)?;

    let mut chunk_table = Vec::new();
    pack_in_order(sections, settings.level, &mut |batch| {
        for (piece, packed) in batch.pieces.iter().zip(&batch.packed) {
            let stored = batch.stored(piece, packed);
            let entry = ChunkEntry {
                section: piece.section,
                codec: packed.codec,
                content_bytes: u32_of(piece.bytes.len())?,
                offset: sink.offset,
                stored_bytes: u32_of(stored.len())?,
                content_hash: packed.content_hash,
                stored_hash: packed.stored_hash,
            };
            entry.append_to(&mut chunk_table);
            sink.put(stored)?;
        }
        Ok(())
    })?;

    let mut hasher = blake3::Hasher::new();
    hasher.update(&head);
    let mut tail_part = |bytes: &[u8]| -> io::Result<Extent> {
        let extent = Extent { offset: sink.offset, bytes: bytes.len() as u64 };
        hasher.update(bytes);
        sink.put(bytes)?;
        Ok(extent)
    };
    let (chunks, sections_at) = (tail_part(&chunk_table)?, tail_part(&section_table)?);
    let metadata_at = tail_part(metadata)?;
    let footer = Footer {
        chunks,
        sections: sections_at,
        metadata: metadata_at,
        file_bytes: sink.offset + FOOTER_BYTES as u64,
        version: FORMAT_VERSION,
        hash: *hasher.finalize().as_bytes(),
    };
    sink.put(&footer.to_bytes())?;
    sink.finish()?;
    Ok(Written { file_bytes: footer.file_bytes, raw_bytes: sections.iter().map(S::bytes).sum() })
}

fn section_table<S: SectionSource>(sections: &[S]) -> io::Result<Vec<u8>> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    if u32::try_from(sections.len()).is_err() {
        return Err(invalid(format!("{} sections are more than a checkpoint can name", sections.len())));
    }
    let mut seen = HashSet::with_capacity(sections.len());
    let mut table = Vec::new();
    for section in sections {
        let (kind, name, bytes) = (section.kind(), section.name(), section.bytes());
        if !seen.insert((kind, name)) {
            return Err(invalid(format!("two sections of kind {kind} are called `{name}`")));
        }
        if !(SectionEntry { kind, name, bytes }).append_to(&mut table) {
            let start: String = name.chars().take(40).collect();
            return Err(invalid(format!("the name of section `{start}…` has {} bytes, 65535 at most", name.len())));
        }
    }
    Ok(table)
}

fn u32_of(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::Error::other("a chunk of more than 4 GiB"))
}

/// Content that becomes one chunk.
struct Piece<'a> {
    section: u32,
    bytes: &'a [u8],
}

/// What became of a piece.
struct Packed {
    codec: Codec,
    content_hash: [u8; 32],
    stored_hash: [u8; 32],
    /// Where the frame lies in the batch's buffer; empty for a piece that is stored as it is.
    frame: std::ops::Range<usize>,
}

/// Pieces that one task packs: a single chunk, or many small ones, whose tasks would cost more than the work.
struct Batch<'a> {
    pieces: Vec<Piece<'a>>,
    packed: Vec<Packed>,
    buffer: Vec<u8>,
}

impl<'a> Batch<'a> {
    /// At most a chunk's worth of content and some hundred pieces; nothing once there are no more pieces.
    fn take(
        pieces: &mut Peekable<impl Iterator<Item = io::Result<Piece<'a>>>>,
        buffer: Vec<u8>,
    ) -> io::Result<Option<Self>> {
        let Some(first) = pieces.next().transpose()? else { return Ok(None) };
        let mut content = first.bytes.len();
        let mut batch = vec![first];
        let fits = |piece: &io::Result<Piece<'_>>, content| {
            piece.as_ref().is_ok_and(|piece| content + piece.bytes.len() <= CHUNK_BYTES)
        };
        // A full one does not wait to see what comes next.
        while content < CHUNK_BYTES
            && batch.len() < 512
            && let Some(piece) = pieces.next_if(|piece| fits(piece, content)).transpose()?
        {
            content += piece.bytes.len();
            batch.push(piece);
        }
        Ok(Some(Self { packed: Vec::with_capacity(batch.len()), pieces: batch, buffer }))
    }

    fn pack(&mut self, level: i32) -> io::Result<()> {
        // A frame is kept only if it is smaller than its content, so all of them fit in the content's length.
        let content: usize = self.pieces.iter().map(|piece| piece.bytes.len()).sum();
        let buffer = scratch::of_length(&mut self.buffer, content);
        let mut used = 0;
        for piece in &self.pieces {
            let content_hash = *blake3::hash(piece.bytes).as_bytes();
            let room = &mut buffer[used..used + piece.bytes.len() - 1];
            let frame =
                if sample::is_noise(level, piece.bytes)? { None } else { scratch::compress(level, piece.bytes, room)? };
            self.packed.push(match frame {
                Some(length) => {
                    let frame = used..used + length;
                    let stored_hash = *blake3::hash(&buffer[frame.clone()]).as_bytes();
                    used += length;
                    Packed { codec: Codec::Zstd, content_hash, stored_hash, frame }
                }
                None => Packed { codec: Codec::Raw, content_hash, stored_hash: content_hash, frame: 0..0 },
            });
        }
        Ok(())
    }

    fn stored<'b>(&'b self, piece: &'b Piece<'_>, packed: &Packed) -> &'b [u8] {
        match packed.codec {
            Codec::Raw => piece.bytes,
            Codec::Zstd => &self.buffer[packed.frame.clone()],
        }
    }
}

/// Content of a section, cut into what become chunks.
fn cut(section: u32, part: io::Result<&[u8]>) -> impl Iterator<Item = io::Result<Piece<'_>>> {
    let (bytes, failed) = match part {
        Ok(bytes) => (bytes, None),
        Err(error) => (&[][..], Some(Err(error))),
    };
    bytes.chunks(CHUNK_BYTES).map(move |bytes| Ok(Piece { section, bytes })).chain(failed)
}

/// Packs all content on rayon's threads and hands the batches to `write` in order.
fn pack_in_order<S: SectionSource>(
    sections: &[S],
    level: i32,
    write: &mut dyn FnMut(&Batch<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut pieces = (0_u32..)
        .zip(sections)
        .flat_map(|(section, content)| content.parts().flat_map(move |part| cut(section, part)))
        .peekable();
    let most_under_way = 2 * rayon::current_num_threads() + 2;
    rayon::in_place_scope(|scope| {
        let mut under_way: VecDeque<Receiver<io::Result<Batch<'_>>>> = VecDeque::new();
        let mut spare = Vec::new();
        loop {
            while under_way.len() < most_under_way
                && let Some(mut batch) = Batch::take(&mut pieces, spare.pop().unwrap_or_default())?
            {
                let (done, result): (SyncSender<_>, _) = sync_channel(1);
                scope.spawn(move |_| {
                    let packed = batch.pack(level);
                    // The receiver is gone if writing failed meanwhile; then nobody needs the batch.
                    let _ = done.send(packed.map(|()| batch));
                });
                under_way.push_back(result);
            }
            let Some(next) = under_way.pop_front() else { return Ok(()) };
            let batch = wait_for(&next)??;
            write(&batch)?;
            spare.push(batch.buffer);
        }
    })
}

/// Waits for a task's result, working on other tasks meanwhile where this thread is one of rayon's: if it slept, a pool of
/// one thread would never get to the task.
fn wait_for<T>(result: &Receiver<T>) -> io::Result<T> {
    let gone = || io::Error::other("a compression task ended without a result");
    loop {
        match result.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Disconnected) => return Err(gone()),
            Err(TryRecvError::Empty) => match rayon::yield_now() {
                Some(rayon::Yield::Executed) => {}
                Some(rayon::Yield::Idle) => std::thread::yield_now(),
                None => return result.recv().map_err(|_| gone()),
            },
        }
    }
}

/// Gathers small writes and knows the offset. Unlike a `BufWriter` it writes nothing more once a write has failed.
struct Sink<'a> {
    out: &'a mut dyn Write,
    gathered: Vec<u8>,
    offset: u64,
}

impl<'a> Sink<'a> {
    /// Larger writes go straight through; below this a copy costs less than a call to the system.
    const GATHERED: usize = 128 << 10;

    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, gathered: Vec::new(), offset: 0 }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        if self.gathered.len() + bytes.len() > Self::GATHERED {
            self.out.write_all(&self.gathered)?;
            self.gathered.clear();
        }
        if bytes.len() > Self::GATHERED {
            return self.out.write_all(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.gathered)?;
        self.out.flush()
    }
}
