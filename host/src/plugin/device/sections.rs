//! What device state is called in a snapshot.
//!
//! A buffer's section is called `float32:weights`: what it holds, then its name. A variable's is called after the first 16 bytes of its
//! module's BLAKE3, in hexadecimal, then its own name: `0123456789abcdef0123456789abcdef:counter`.

use crate::device::Content;
use crate::plugin::bindings::steadfast::job::device::Element;

/// Device state in a snapshot, beside the guest's own sections.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceSection {
    /// What it is.
    pub kind: DeviceKind,
    /// What it holds or belongs to, a colon, and its name; once in a kind.
    pub name: String,
    /// The content.
    pub content: Content,
}

/// Kinds of device state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A persistent buffer.
    #[default]
    Buffer,
    /// A variable of a module, which its kernels can change.
    Variable,
}

const ELEMENTS: [(Element, &str); 8] = [
    (Element::Byte, "byte"),
    (Element::Int16, "int16"),
    (Element::Int32, "int32"),
    (Element::Int64, "int64"),
    (Element::Float16, "float16"),
    (Element::Bfloat16, "bfloat16"),
    (Element::Float32, "float32"),
    (Element::Float64, "float64"),
];

/// The element's name in the contract.
pub(super) fn element_name(element: Element) -> &'static str {
    ELEMENTS.iter().find(|(known, _)| *known == element).map_or("byte", |(_, name)| name)
}

/// The section of a buffer.
pub(super) fn of_buffer(element: Element, name: &str) -> String {
    format!("{}:{name}", element_name(element))
}

/// What a buffer's section says; none if it is no such name.
pub(super) fn buffer_of(section: &str) -> Option<(Element, &str)> {
    let (element, name) = section.split_once(':')?;
    let (element, _) = ELEMENTS.iter().find(|(_, known)| *known == element)?;
    Some((*element, name))
}

/// The section of a module's variable.
pub(super) fn of_variable(digest: &str, name: &str) -> String {
    format!("{digest}:{name}")
}

/// What a module is known by across attempts.
pub(super) fn digest_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back_as_what_they_were() {
        for (element, shown) in ELEMENTS {
            for name in ["weights", "a:b", ":", " "] {
                let section = of_buffer(element, name);
                assert_eq!(section, format!("{shown}:{name}"));
                assert_eq!(buffer_of(&section), Some((element, name)));
            }
        }
        for strange in ["", "weights", "int8:weights", "float32"] {
            assert_eq!(buffer_of(strange), None, "{strange}");
        }
        assert_eq!(of_variable(&digest_of(""), "n"), "af1349b9f5f9a1a6a0404dea36dcc949:n");
    }
}
