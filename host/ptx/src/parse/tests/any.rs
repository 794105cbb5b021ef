//! Whatever the text: a module or an error that points into it, and never a panic.

use proptest::prelude::*;

use super::modules::KERNELS;
use crate::parse::parse;

/// Reads a text, and looks at the error if there is one.
fn survives(text: &str) {
    if let Err(error) = parse(text) {
        assert!(!error.message.is_empty());
        assert!(error.position.line as usize <= text.split('\n').count(), "{error}");
    }
}

/// Pieces of PTX that mean something to some part of the reader.
const PIECES: [&str; 40] = [
    ";",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "|",
    "!",
    "@",
    "+",
    "-",
    "=",
    ":",
    "_",
    "%r1",
    "%p1",
    "0",
    "-1",
    "0f",
    "0x",
    "1e",
    "1.",
    "4294967296",
    "18446744073709551615",
    ".reg",
    ".b32",
    ".v4",
    ".align",
    ".global",
    "generic(",
    "/*",
    "//",
    "\"",
    "\0",
    "é",
    ".loc",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_text(text in ".{0,400}") {
        survives(&text);
    }

    #[test]
    fn any_text_in_a_body(text in "[ -~\n]{0,200}") {
        survives(&super::form::kernel(&text));
    }

    #[test]
    fn mutated_kernels(kernel in 0..KERNELS.len(), edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, 0..PIECES.len()), 1..6)) {
        let mut text = KERNELS[kernel].1.to_owned();
        for (at, removed, piece) in edits {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.floor_char_boundary((start + removed).min(text.len())).max(start);
            text.replace_range(start..end, PIECES[piece]);
        }
        survives(&text);
    }

    #[test]
    fn cut_kernels(kernel in 0..KERNELS.len(), at in any::<prop::sample::Index>()) {
        let text = KERNELS[kernel].1;
        survives(&text[..at.index(text.len())]);
    }
}
