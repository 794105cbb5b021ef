//! What each thread keeps between chunks: compression contexts and buffers, whose fresh pages would cost more than the work.
//!
//! Everything is taken out of its place while it is used and put back afterwards, so nothing here can be borrowed twice.

use std::cell::Cell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

thread_local! {
    static COMPRESSOR: Cell<Option<(i32, Compressor<'static>)>> = const { Cell::new(None) };
    static DECOMPRESSOR: Cell<Option<Decompressor<'static>>> = const { Cell::new(None) };
    static STORED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static CONTENT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Compresses into `out` and says how many bytes that took; nothing if it did not fit.
pub(super) fn compress(level: i32, content: &[u8], out: &mut [u8]) -> io::Result<Option<usize>> {
    let mut compressor = match COMPRESSOR.take() {
        Some((of_level, compressor)) if of_level == level => compressor,
        _ => Compressor::new(level)?,
    };
    // The only error that input of any kind can cause is that the frame does not fit, and storing the content as it is
    // would be right after any other too.
    let written = compressor.compress_to_buffer(content, out).ok();
    COMPRESSOR.set(Some((level, compressor)));
    Ok(written)
}

/// Decompresses into `out`, never beyond its end, and says how many bytes that gave.
pub(super) fn decompress(stored: &[u8], out: &mut [u8]) -> io::Result<usize> {
    let mut decompressor = match DECOMPRESSOR.take() {
        Some(decompressor) => decompressor,
        None => Decompressor::new()?,
    };
    let written = decompressor.decompress_to_buffer(stored, out);
    DECOMPRESSOR.set(Some(decompressor));
    written
}

/// Lends the thread's buffer for stored bytes, with what was left in it.
pub(super) fn with_stored<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = STORED.take();
    let result = work(of_length(&mut buffer, length));
    STORED.set(buffer);
    result
}

/// Lends the thread's buffer for content, with what was left in it.
pub(super) fn with_content<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = CONTENT.take();
    let result = work(of_length(&mut buffer, length));
    CONTENT.set(buffer);
    result
}

/// The first `length` bytes of a buffer that only ever grows, so that its pages are cleared once.
pub(super) fn of_length(buffer: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}
