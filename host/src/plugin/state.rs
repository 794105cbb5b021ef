//! `steadfast:job/state`: where `snapshot` writes and `restore` reads.
//!
//! The functions are defined by hand and not by `bindgen!`, so that `write` reads the guest's bytes in place and copies them
//! once, into a buffer that an earlier snapshot left behind: fresh pages of a large buffer cost more than the copy.

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime::component::{Linker, Resource, ResourceType, WasmList, WasmStr};
use wasmtime::{Error, Result, StoreContextMut};

use super::DeviceSection;
use super::engine::GuestState;

/// What one `snapshot` wrote: named sections of bytes, in the order in which they were begun.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the state's layout, as the guest answered it.
    pub version: u32,
    /// The guest's sections; no two have the same name.
    pub sections: Vec<StateSection>,
    /// What the device holds for the guest, which the guest neither writes nor reads itself.
    pub device: Vec<DeviceSection>,
}

impl Snapshot {
    /// Bytes of all content.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let own = self.sections.iter().map(|section| section.bytes.len() as u64);
        own.chain(self.device.iter().map(|section| section.content.len())).sum()
    }
}

/// A named run of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateSection {
    /// 1 to 255 bytes.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
}

const INTERFACE: &str = "steadfast:job/state@0.1.0";
const LONGEST_NAME: usize = 255;
/// What a section costs beside its bytes, so that a guest that begins sections without end meets the limit too.
const SECTION_OVERHEAD: u64 = 512;

/// The `writer` resource.
#[derive(Default)]
pub struct Writer {
    sections: Vec<StateSection>,
    by_name: HashMap<String, usize>,
    spare: HashMap<String, Vec<u8>>,
    /// The section written last: plugins write one after the other.
    current: usize,
    used: u64,
    limit: u64,
}

impl Writer {
    /// For a snapshot of at most `limit` bytes, `used` of which are taken. The buffers of `reuse` are used again for sections of the same names.
    pub(super) fn new(reuse: Vec<StateSection>, limit: u64, used: u64) -> Self {
        let spare = reuse.into_iter().map(|mut section| {
            section.bytes.clear();
            (section.name, section.bytes)
        });
        Self { spare: spare.collect(), used, limit, ..Self::default() }
    }

    pub(super) fn finish(self) -> Vec<StateSection> {
        self.sections
    }

    /// Whether there is room for what is taken already.
    pub(super) fn has_room(&mut self) -> Result<()> {
        self.charge(0)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let index = self.section(name)?;
        self.charge(bytes.len() as u64)?;
        let buffer = &mut self.sections[index].bytes;
        if buffer.try_reserve(bytes.len()).is_err() {
            return Err(Error::msg(format!("the host has no memory for {} more bytes of the snapshot", bytes.len())));
        }
        buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn section(&mut self, name: &str) -> Result<usize> {
        if self.sections.get(self.current).is_some_and(|section| section.name == name) {
            return Ok(self.current);
        }
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None => self.begin(name)?,
        };
        self.current = index;
        Ok(index)
    }

    fn begin(&mut self, name: &str) -> Result<usize> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Error::msg(format!(
                "the name of a state section is {} bytes long; it must be 1 to {LONGEST_NAME}",
                name.len()
            )));
        }
        self.charge(SECTION_OVERHEAD)?;
        let index = self.sections.len();
        let (name, bytes) = self.spare.remove_entry(name).unwrap_or_else(|| (name.to_owned(), Vec::new()));
        self.by_name.insert(name.clone(), index);
        self.sections.push(StateSection { name, bytes });
        Ok(index)
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.limit {
            let limit = bytesize::ByteSize::b(self.limit).display().iec();
            return Err(Error::msg(format!(
                "the snapshot is larger than {limit}, the most that is taken ({SECTION_OVERHEAD} bytes are added for each section)\n\
                 hint: keep less in the state, or raise --state-limit"
            )));
        }
        Ok(())
    }
}

/// The `reader` resource. It lends the snapshot's own buffers.
pub struct Reader {
    snapshot: Arc<Snapshot>,
    by_name: HashMap<String, usize>,
}

impl Reader {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        let names = snapshot.sections.iter().enumerate();
        let by_name = names.map(|(index, section)| (section.name.clone(), index)).collect();
        Self { snapshot, by_name }
    }

    fn bytes(&self, section: &str) -> Option<&[u8]> {
        self.by_name.get(section).map(|index| self.snapshot.sections[*index].bytes.as_slice())
    }

    /// The part of a section that a read asks for; empty past its end and where there is no such section.
    fn part(&self, section: &str, offset: u64, len: u64) -> &[u8] {
        let bytes = self.bytes(section).unwrap_or_default();
        let clamp = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
        &bytes[clamp(offset)..clamp(offset.saturating_add(len))]
    }
}

pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> Result<()> {
    let mut state = linker.instance(INTERFACE)?;
    // Guests only ever borrow these, so there is nothing to do when one drops its handle.
    state.resource("writer", ResourceType::host::<Writer>(), |_, _| Ok(()))?;
    state.resource("reader", ResourceType::host::<Reader>(), |_, _| Ok(()))?;
    state.func_wrap("[method]writer.write", write)?;
    state.func_wrap("[method]reader.version", |store, (reader,): (Resource<Reader>,)| {
        Ok((store.data().table.get(&reader)?.snapshot.version,))
    })?;
    state.func_wrap("[method]reader.sections", |store, (reader,): (Resource<Reader>,)| {
        let sections = &store.data().table.get(&reader)?.snapshot.sections;
        Ok((sections.iter().map(|section| section.name.clone()).collect::<Vec<_>>(),))
    })?;
    state.func_wrap("[method]reader.size", |store, (reader, section): (Resource<Reader>, WasmStr)| {
        let reader = store.data().table.get(&reader)?;
        Ok((reader.bytes(&section.to_str(&store)?).map(|bytes| bytes.len() as u64),))
    })?;
    state.func_wrap("[method]reader.read", read)
}

fn write(mut store: StoreContextMut<'_, GuestState>, params: (Resource<Writer>, WasmStr, WasmList<u8>)) -> Result<()> {
    let (resource, section, bytes) = params;
    // The writer is taken out for the moment, because the guest's bytes borrow the store.
    let mut writer = std::mem::take(store.data_mut().table.get_mut(&resource)?);
    let outcome = section.to_str(&store).and_then(|name| writer.append(&name, bytes.as_le_slice(&store)));
    *store.data_mut().table.get_mut(&resource)? = writer;
    outcome
}

fn read(store: StoreContextMut<'_, GuestState>, params: (Resource<Reader>, WasmStr, u64, u64)) -> Result<(Vec<u8>,)> {
    let (resource, section, offset, len) = params;
    let reader = store.data().table.get(&resource)?;
    let part = reader.part(&section.to_str(&store)?, offset, len);
    let mut copy = Vec::new();
    copy.try_reserve_exact(part.len()).map_err(|_| Error::msg("the host has no memory for a read of that length"))?;
    copy.extend_from_slice(part);
    Ok((copy,))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn sections_keep_the_order_in_which_they_were_begun() {
        let mut writer = Writer::new(Vec::new(), 1 << 20, 0);
        for (name, bytes) in [("b", "1"), ("a", "2"), ("b", "3"), ("empty", ""), ("a", "4")] {
            writer.append(name, bytes.as_bytes()).unwrap();
        }
        let sections = writer.finish();
        let sections = sections.iter().map(|s| (s.name.as_str(), s.bytes.as_slice()));
        assert_eq!(sections.collect::<Vec<_>>(), [("b", &b"13"[..]), ("a", b"24"), ("empty", b"")]);
    }

    #[test]
    fn buffers_of_an_earlier_snapshot_are_used_again() {
        let mut writer = Writer::new(Vec::new(), 1 << 20, 0);
        writer.append("weights", &[1; 4096]).unwrap();
        let first = writer.finish();
        let address = first[0].bytes.as_ptr();
        let mut writer = Writer::new(first, 1 << 20, 0);
        writer.append("other", b"x").unwrap();
        writer.append("weights", &[2; 4096]).unwrap();
        let second = writer.finish();
        assert_eq!(second[1].bytes.as_ptr(), address);
        assert_eq!(second[1].bytes, [2; 4096]);
        assert_eq!(second.len(), 2);
    }

    #[test]
    fn bad_names_and_snapshots_without_end_are_refused() {
        let mut writer = Writer::new(Vec::new(), 1 << 20, 0);
        assert!(writer.append("", b"").unwrap_err().to_string().contains("0 bytes long"));
        assert!(writer.append(&"n".repeat(256), b"").unwrap_err().to_string().contains("256 bytes long"));
        writer.append(&"n".repeat(255), b"").unwrap();
        assert!(writer.append("big", &vec![0; 1 << 20]).unwrap_err().to_string().contains("larger than 1.0 MiB"));
        let mut writer = Writer::new(Vec::new(), 1 << 20, 0);
        assert!((0..10_000).any(|i| writer.append(&i.to_string(), b"").is_err()));
    }

    #[test]
    fn reads_end_where_the_section_ends() {
        let section = StateSection { name: "s".to_owned(), bytes: b"0123456789".to_vec() };
        let reader = Reader::new(Arc::new(Snapshot { version: 1, sections: vec![section], ..Snapshot::default() }));
        assert_eq!(reader.part("s", 0, 4), b"0123");
        assert_eq!(reader.part("s", 8, 4), b"89");
        assert_eq!(reader.part("s", 10, 4), b"");
        assert_eq!(reader.part("s", u64::MAX, u64::MAX), b"");
        assert_eq!(reader.part("s", 0, u64::MAX), b"0123456789");
        assert_eq!(reader.part("none", 0, 4), b"");
        assert_eq!((reader.bytes("none"), reader.bytes("s").map(<[u8]>::len)), (None, Some(10)));
    }
}
