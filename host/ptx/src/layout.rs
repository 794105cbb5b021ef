//! Where a module's variables lie: each at a fixed offset from a base that the host chooses.

use crate::module::{Module, Space};

/// The place of a module's `.global` and `.const` variables. Offsets are in the order of [`Module::variables`]; shared variables and external
/// ones have none, and those that nothing names: NVRTC leaves dozens of its headers' behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// For each variable of the module, its offset from the base of its space.
    pub offsets: Vec<Option<u64>>,
    /// Bytes of all `.global` variables.
    pub global_bytes: u64,
    /// Bytes of all `.const` variables.
    pub const_bytes: u64,
}

impl Layout {
    /// Each at the next multiple of its alignment, in the order of the text. The bases must be aligned to 256 bytes.
    pub fn of(module: &Module) -> Self {
        let mut layout = Self { offsets: Vec::new(), global_bytes: 0, const_bytes: 0 };
        for variable in &module.variables {
            let end = match variable.space {
                Space::Global => Some(&mut layout.global_bytes),
                Space::Const => Some(&mut layout.const_bytes),
                _ => None,
            };
            let offset = end.filter(|_| variable.named && !variable.external).map(|end| {
                let offset = end.next_multiple_of(u64::from(variable.align));
                *end = offset + variable.bytes;
                offset
            });
            layout.offsets.push(offset);
        }
        layout
    }

    /// The bytes that the variables of `space` (`Global` or `Const`) begin with, addresses included, when the bases are these.
    pub fn image(&self, module: &Module, space: Space, globals: u64, constants: u64) -> Vec<u8> {
        let bytes = if space == Space::Const { self.const_bytes } else { self.global_bytes };
        let mut image = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        for (variable, offset) in module.variables.iter().zip(&self.offsets) {
            let Some(offset) = offset.filter(|_| variable.space == space) else { continue };
            let start = offset as usize;
            image[start..start + variable.initial.len()].copy_from_slice(&variable.initial);
            for relocation in &variable.relocations {
                let target = relocation.variable as usize;
                let base = if module.variables[target].space == Space::Const { constants } else { globals };
                let address = base + self.offsets[target].unwrap_or_default();
                let value = address.wrapping_add_signed(relocation.offset).to_le_bytes();
                let at = start + relocation.at as usize;
                image[at..at + relocation.bytes as usize].copy_from_slice(&value[..relocation.bytes as usize]);
            }
        }
        image
    }
}
