//! Small records as JSON that proves itself: `{"blake3": "…", "record": {…}}`, the hash being that of the record's text.
//!
//! A record that does not match its hash counts as not there: it was being written when its attempt died, or it is damaged.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::checkpoint::volume::Volume;

/// More than any record of ours has; a larger file is none.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
    blake3: String,
    #[serde(borrow)]
    record: &'a RawValue,
}

/// The bytes to write for a record.
pub fn seal<T: Serialize>(record: &T) -> io::Result<Vec<u8>> {
    let record = serde_json::value::to_raw_value(record)?;
    let blake3 = blake3::hash(record.get().as_bytes()).to_hex().to_string();
    let mut bytes = serde_json::to_vec(&Sealed { blake3, record: &record })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The record in these bytes; none if they don't prove themselves.
pub fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let sealed: Sealed<'_> = serde_json::from_slice(bytes).ok()?;
    let same = blake3::hash(sealed.record.get().as_bytes()).to_hex().as_str() == sealed.blake3;
    same.then(|| serde_json::from_str(sealed.record.get()).ok()).flatten()
}

/// Reads a record; none if the file is not there or does not prove itself. Other failures to read are errors: "there but not
/// readable" must not look like "not there".
pub fn read<T: DeserializeOwned>(volume: &dyn Volume, path: &Path) -> io::Result<Option<T>> {
    let bytes = match read_whole(volume, path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(unseal(&bytes))
}

/// A file of at most this many bytes; of a larger one, nothing.
pub(super) fn read_whole(volume: &dyn Volume, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = volume.open(path)?;
    let bytes = file.len()?;
    if bytes > most {
        return Ok(Vec::new());
    }
    let mut buffer = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut buffer, 0)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

    use super::*;

    #[test]
    fn every_flipped_bit_and_every_truncation_is_noticed() {
        let bytes = seal(&("a record", 7)).unwrap();
        assert_eq!(unseal::<(String, u32)>(&bytes), Some(("a record".into(), 7)));
        let record = bytes.len() - 1;
        for length in 0..record {
            assert_eq!(unseal::<(String, u32)>(&bytes[..length]), None, "truncated to {length}");
        }
        for bit in 0..record * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal::<(String, u32)>(&bytes), None, "bit {bit}");
        }
    }
}
