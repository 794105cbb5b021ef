//! Between a guest's snapshot and the sections of a checkpoint.

use crate::checkpoint::format::{SectionKind, SectionRef};
use crate::checkpoint::store::Section;
use crate::device::DeviceError;
use crate::plugin::{DeviceKind, DeviceSection, Snapshot, StateSection};

/// A snapshot as a checkpoint's sections: the guest's own first, then what the device holds for it, once that is here.
pub fn to_sections(snapshot: &Snapshot) -> Result<Vec<SectionRef<'_>>, DeviceError> {
    let own = snapshot
        .sections
        .iter()
        .map(|section| Ok(SectionRef { kind: SectionKind::State, name: &section.name, bytes: &section.bytes }));
    let device = snapshot.device.iter().map(|section| {
        let kind = match section.kind {
            DeviceKind::Buffer => SectionKind::Buffer,
            DeviceKind::Variable => SectionKind::Variable,
        };
        Ok(SectionRef { kind, name: &section.name, bytes: section.content.bytes()? })
    });
    own.chain(device).collect()
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

    use super::*;

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
        let sections = to_sections(&snapshot).unwrap();
        let owned = sections.iter().map(|section| Section {
            kind: section.kind,
            name: section.name.to_owned(),
            bytes: section.bytes.to_owned(),
        });
        assert_eq!(from_sections(3, owned.collect()), snapshot);
        assert_eq!(snapshot.bytes(), 3 + 9 + 9);
    }
}
