//! Whether it is worth while to compress a chunk: a look at a few parts of it instead of all.
//!
//! Mantissas of trained weights, and what is compressed already, are noise to zstd, which needs as long to find that out as
//! hashing takes. Being wrong costs bytes, or time, and never more: a chunk says of itself how it is stored.

use std::io;

use super::scratch;

/// Parts that are looked at, evenly spread, and the length of each. Together a sixty-fourth of a full chunk.
const PARTS: usize = 8;
const PART_BYTES: usize = 2 << 10;
/// For smaller chunks the look costs as much as it can save.
const SMALLEST: usize = 256 << 10;

/// Whether the samples of a chunk do not shrink by even a fiftieth.
pub(super) fn is_noise(level: i32, content: &[u8]) -> io::Result<bool> {
    if content.len() < SMALLEST {
        return Ok(false);
    }
    let mut samples = [0; PARTS * PART_BYTES];
    let stride = content.len() / PARTS;
    for (sample, part) in samples.chunks_exact_mut(PART_BYTES).zip(content.chunks_exact(stride)) {
        sample.copy_from_slice(&part[..PART_BYTES]);
    }
    // One frame of all of them, so that what is there again and again in the chunk is seen here too.
    let mut shrunk = [0; PARTS * PART_BYTES * 49 / 50];
    Ok(scratch::compress(level, &samples, &mut shrunk)?.is_none())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::super::CHUNK_BYTES;
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut all = vec![0; bytes];
        blake3::Hasher::new().finalize_xof().fill(&mut all);
        all
    }

    #[test]
    fn noise_is_told_from_what_shrinks() {
        let noise = noise(CHUNK_BYTES);
        assert!(is_noise(1, &noise).unwrap());
        assert!(!is_noise(1, &vec![7; CHUNK_BYTES]).unwrap());
        // As weights are: every fourth byte has few values.
        let mut weights = noise.clone();
        weights.iter_mut().step_by(4).for_each(|byte| *byte = 60 + *byte % 4);
        assert!(!is_noise(1, &weights).unwrap());
        // A block of noise that comes back.
        let again = noise[..CHUNK_BYTES / 8].repeat(8);
        assert!(!is_noise(1, &again).unwrap());
    }

    #[test]
    fn small_chunks_are_always_tried() {
        assert!(!is_noise(1, &noise(SMALLEST - 1)).unwrap());
        assert!(is_noise(1, &noise(SMALLEST)).unwrap());
        assert!(!is_noise(1, &[]).unwrap());
    }
}
