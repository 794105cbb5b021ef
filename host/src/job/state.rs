//! Between a guest's snapshot and the sections of a checkpoint.

use std::io;
use std::thread;

use crate::checkpoint::format::{SectionKind, SectionSource};
use crate::checkpoint::store::Section;
use crate::device::DeviceError;
use crate::plugin::{DeviceKind, DeviceSection, Snapshot, StateSection};

/// A part of a snapshot, as a section to be written.
pub enum SnapshotSection<'a> {
    /// The guest's own.
    Own(&'a StateSection),
    /// What the device holds for it.
    Device(&'a DeviceSection),
}

impl SectionSource for SnapshotSection<'_> {
    fn kind(&self) -> SectionKind {
        match self {
            Self::Own(_) => SectionKind::State,
            Self::Device(section) => match section.kind {
                DeviceKind::Buffer => SectionKind::Buffer,
                DeviceKind::Variable => SectionKind::Variable,
            },
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Own(section) => &section.name,
            Self::Device(section) => &section.name,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Own(section) => section.bytes.len() as u64,
            Self::Device(section) => section.content.len(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = io::Result<&[u8]>> {
        let (own, device) = match self {
            Self::Own(section) => (Some(&section.bytes[..]), None),
            Self::Device(section) => (None, Some(section.content.parts())),
        };
        let device = device.into_iter().flatten().map(|part| part.map_err(io::Error::other));
        own.into_iter().map(Ok).chain(device)
    }
}

/// A snapshot as a checkpoint's sections: the guest's own first, then what the device holds for it.
#[must_use]
pub fn to_sections(snapshot: &Snapshot) -> Vec<SnapshotSection<'_>> {
    let device = snapshot.device.iter().map(SnapshotSection::Device);
    snapshot.sections.iter().map(SnapshotSection::Own).chain(device).collect()
}

/// Has a snapshot written while what the device still owes of it arrives, on a thread beside, in the order in which it is written.
///
/// Whoever is ahead waits for the other: the thread has the first transfer begin at once, and the writer takes each part as it comes. Should there be no
/// thread to be had, the writer has the parts come itself.
pub fn while_it_arrives<'a, T>(snapshot: &'a Snapshot, write: impl FnOnce(Vec<SnapshotSection<'a>>) -> T) -> T {
    thread::scope(|scope| {
        let arrive = || {
            let mut parts = snapshot.device.iter().flat_map(|section| section.content.parts());
            // After a failure the writer fails too.
            while let Some(Ok(_)) = parts.next() {}
        };
        if let Err(error) = thread::Builder::new().name("arrivals".into()).spawn_scoped(scope, arrive) {
            tracing::debug!("No thread for what is on its way: {error}");
        }
        write(to_sections(snapshot))
    })
}

/// Why some of a snapshot will never be here, as far as that is known.
#[must_use]
pub fn failure(snapshot: &Snapshot) -> Option<&DeviceError> {
    snapshot.device.iter().find_map(|section| section.content.failure())
}

/// The snapshot of which a checkpoint's sections were made.
#[must_use]
pub fn from_sections(version: u32, sections: Vec<Section>) -> Snapshot {
    let mut snapshot = Snapshot { version, ..Snapshot::default() };
    for Section { kind, name, bytes } in sections {
        match kind {
            SectionKind::State | SectionKind::Memory => snapshot.sections.push(StateSection { name, bytes }),
            SectionKind::Buffer => {
                snapshot.device.push(DeviceSection { kind: DeviceKind::Buffer, name, content: bytes.into() });
            }
            SectionKind::Variable => {
                snapshot.device.push(DeviceSection { kind: DeviceKind::Variable, name, content: bytes.into() });
            }
        }
    }
    snapshot
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::checkpoint::format::{Compression, encode};
    use crate::device::content::{Content, Download};

    #[test]
    fn a_snapshot_comes_back_from_the_sections_that_it_makes() {
        let device =
            |kind, name: &str| DeviceSection { kind, name: name.into(), content: name.as_bytes().to_vec().into() };
        let snapshot = Snapshot {
            version: 3,
            // A name that a buffer's section has too, and a guest may have chosen.
            sections: vec![StateSection { name: "float32:w".into(), bytes: b"own".into() }],
            device: vec![device(DeviceKind::Buffer, "float32:w"), device(DeviceKind::Variable, "float32:w")],
        };
        let sections = to_sections(&snapshot);
        let owned = sections.iter().map(|section| Section {
            kind: section.kind(),
            name: section.name().to_owned(),
            bytes: section.parts().map(Result::unwrap).collect::<Vec<_>>().concat(),
        });
        assert_eq!(from_sections(3, owned.collect()), snapshot);
        assert_eq!(snapshot.bytes(), 3 + 9 + 9);
        assert_eq!(sections.iter().map(SectionSource::bytes).sum::<u64>(), snapshot.bytes());
    }

    /// Far beyond what anything here takes: one that waits in vain fails, and does not hang.
    const LIMIT: Duration = Duration::from_secs(120);

    /// A transfer that tells when it begins, and ends when it is told to.
    struct Slow {
        begun: Sender<()>,
        end: Receiver<()>,
        outcome: Result<Vec<u8>, DeviceError>,
    }

    impl Download for Slow {
        fn finish(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
            self.begun.send(()).unwrap();
            self.end.recv_timeout(LIMIT).map_err(|_| DeviceError::Lost("nothing is written meanwhile".into()))?;
            self.outcome
        }
    }

    /// A file whose first large piece is only taken once the next transfer has begun, which then may end.
    struct Watched {
        file: Vec<u8>,
        begun: Receiver<()>,
        end: Option<Sender<()>>,
    }

    impl io::Write for Watched {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > 100_000
                && let Some(end) = self.end.take()
            {
                self.begun.recv_timeout(LIMIT).map_err(|_| io::Error::other("no transfer begins meanwhile"))?;
                end.send(()).unwrap();
            }
            self.file.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// More than may be under way before the first is written, and nothing that could be compressed.
    fn noise() -> Vec<u8> {
        let mut bytes = vec![0; (2 * rayon::current_num_threads() + 4) << 20];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    /// A buffer of which the first part is here and the second, of these bytes, is on its way; and what its transfer and the file wait for.
    fn on_its_way(first: &[u8], second: Result<Vec<u8>, DeviceError>) -> (Snapshot, Watched) {
        struct Here(Vec<u8>);
        impl Download for Here {
            fn finish(self: Box<Self>) -> Result<Vec<u8>, DeviceError> {
                Ok(self.0)
            }
        }
        let ((begun, hears_begun), (end, hears_end)) = (channel(), channel());
        let parts: Vec<Box<dyn Download>> =
            vec![Box::new(Here(first.to_vec())), Box::new(Slow { begun, end: hears_end, outcome: second })];
        let content = Content::coming(first.len() as u64 + 3, parts);
        let device = vec![DeviceSection { kind: DeviceKind::Buffer, name: "byte:b".into(), content }];
        let watched = Watched { file: Vec::new(), begun: hears_begun, end: Some(end) };
        (Snapshot { device, ..Snapshot::default() }, watched)
    }

    /// Neither waits for the end of the other: the first part is written while the second is on its way, and the other way round.
    #[test]
    fn parts_arrive_while_others_are_written_and_the_file_is_the_same() {
        let noise = noise();
        let (snapshot, mut file) = on_its_way(&noise, Ok(b"end".to_vec()));
        let write = |sections: Vec<_>| encode(&mut file, &sections, b"{}", Compression::default());
        while_it_arrives(&snapshot, write).unwrap();
        assert_eq!(failure(&snapshot), None);

        let content = [&noise[..], b"end"].concat().into();
        let whole = DeviceSection { kind: DeviceKind::Buffer, name: "byte:b".into(), content };
        let mut at_once = Vec::new();
        encode(&mut at_once, &[SnapshotSection::Device(&whole)], b"{}", Compression::default()).unwrap();
        assert!(file.file == at_once);
    }

    #[test]
    fn a_part_that_does_not_come_fails_the_writing_and_says_why() {
        let gone = DeviceError::Lost("the GPU failed".into());
        let (snapshot, mut file) = on_its_way(&noise(), Err(gone.clone()));
        let write = |sections: Vec<_>| encode(&mut file, &sections, b"{}", Compression::default());
        let error = while_it_arrives(&snapshot, write).unwrap_err();
        assert_eq!((error.to_string(), failure(&snapshot)), (gone.to_string(), Some(&gone)));
    }
}
