//! Where a snapshot goes and a restore comes from: named sections of bytes.
//!
//! A plugin whose struct is its state never meets this module. It is for those that hold much and want sections of their own:
//! bytes given to [`Writer::write`] are taken over by the host straight from the guest's memory, without a second copy.

use std::io::{self, BufWriter, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result, device};

/// The section that `snapshot` and `restore` use when a plugin doesn't write its own.
pub const STATE_SECTION: &str = "state";

/// How much encoded state is gathered before it is handed to the host: enough to make the call's cost vanish, little beside
/// any state worth gathering for.
const WRITE_PIECE: usize = 256 << 10;

/// How much is asked of the host at once. The host holds a piece while the guest copies it.
const READ_PIECE: u64 = 4 << 20;

/// The largest list that is handed over in one call.
const LARGEST_CALL: usize = 64 << 20;

/// Who takes a snapshot's bytes: the host, or a test.
pub(crate) trait Sink {
    fn write(&mut self, section: &str, bytes: &[u8]);
}

/// Who has a snapshot's bytes: the host, or a test.
pub(crate) trait Source {
    fn version(&self) -> u32;
    fn sections(&self) -> Vec<String>;
    fn size(&self, section: &str) -> Option<u64>;
    fn read(&self, section: &str, offset: u64, len: u64) -> Vec<u8>;
}

/// Collects the sections of one snapshot.
pub struct Writer<'a>(&'a mut dyn Sink);

impl<'a> Writer<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Self(sink)
    }

    /// Appends to a section; a new name begins one. Names are 1 to 255 bytes.
    pub fn write(&mut self, section: &str, bytes: &[u8]) {
        if bytes.is_empty() {
            // An empty section exists too.
            self.0.write(section, bytes);
        }
        for piece in bytes.chunks(LARGEST_CALL) {
            self.0.write(section, piece);
        }
    }

    /// Appends a value to a section, as [`Reader::decode`] reads it (postcard). It is never held in memory as a whole.
    pub fn encode<T: Serialize>(&mut self, section: &str, value: &T) -> Result<()> {
        // A value may be encoded in no bytes at all, a unit struct for one; its section exists all the same.
        self.write(section, &[]);
        let mut pieces = BufWriter::with_capacity(WRITE_PIECE, self.section(section));
        postcard::to_io(value, &mut pieces).map_err(|error| {
            let why = device::take_from_state().map_or_else(|| error.to_string(), |error| error.to_string());
            Error::invalid(format!("the state cannot be encoded in section `{section}`: {why}"))
        })?;
        Ok(pieces.flush()?)
    }

    /// A section to write to as to a file. Unbuffered: every write is a call to the host.
    pub fn section<'w>(&'w mut self, name: &'w str) -> impl Write + use<'w, 'a> {
        SectionWriter { writer: self, name }
    }
}

struct SectionWriter<'w, 'a> {
    writer: &'w mut Writer<'a>,
    name: &'w str,
}

impl Write for SectionWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(self.name, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the sections of one snapshot.
pub struct Reader<'a>(&'a dyn Source);

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Self {
        Self(source)
    }

    /// The `STATE_VERSION` of the plugin that wrote the state.
    pub fn version(&self) -> u32 {
        self.0.version()
    }

    /// The names of all sections, in the order in which they were begun.
    pub fn sections(&self) -> Vec<String> {
        self.0.sections()
    }

    /// Bytes in a section; none if there is no such section.
    pub fn size(&self, section: &str) -> Option<u64> {
        self.0.size(section)
    }

    /// All bytes of a section. A section that is missing is incompatible state.
    pub fn bytes(&self, section: &str) -> Result<Vec<u8>> {
        let size = self.0.size(section).ok_or_else(|| {
            let have = self.sections().join("`, `");
            Error::incompatible_state(format!("the state has no section `{section}` (it has `{have}`)"))
        })?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(usize::MAX).min(isize::MAX as usize));
        self.section(section).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The value that [`Writer::encode`] wrote. Bytes that don't fit the type are incompatible state.
    pub fn decode<T: DeserializeOwned>(&self, section: &str) -> Result<T> {
        decode(&self.bytes(section)?)
    }

    /// A section to read from as from a file, empty if it does not exist. Unbuffered: every read is a call to the host.
    pub fn section<'r>(&'r self, name: &'r str) -> impl Read + use<'r, 'a> {
        SectionReader { reader: self, name, offset: 0 }
    }
}

struct SectionReader<'r, 'a> {
    reader: &'r Reader<'a>,
    name: &'r str,
    offset: u64,
}

impl Read for SectionReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.0.read(self.name, self.offset, READ_PIECE.min(buffer.len() as u64));
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Decodes state as a plugin's default `snapshot` encoded it; for [`Plugin::migrate`](crate::Plugin::migrate), with the type
/// that the state had then. The encoding says nothing about itself, so the type must have the same fields in the same order.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let name = std::any::type_name::<T>();
    let mismatch = |why: String| {
        Error::incompatible_state(format!(
            "the saved state is not one of `{name}`: {why} (a change of the struct needs a new STATE_VERSION)"
        ))
    };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(mismatch(format!("{} of {} bytes are left over", rest.len(), bytes.len()))),
        Err(error) => {
            Err(device::take_from_state().map_or_else(|| mismatch(error.to_string()), device::while_decoding))
        }
    }
}
