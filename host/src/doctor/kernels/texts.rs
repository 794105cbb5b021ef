//! The texts of PTX in a component's data.
//!
//! A compiler puts a literal into a data segment of a core module, and its neighbours right beside it: nothing says where a text begins and ends but the text. So it
//! is found by its first words, `.version` and `.target`, with the comments in front of them; it ends where its grammar does, or in front of what is no text at all.

use std::collections::HashSet;

use steadfast_ptx::module::{Module, Position};
use steadfast_ptx::parse::{MOST_BYTES, ParseError, parse};
use wasmparser::{Parser, Payload};

const FIRST_WORD: &str = ".version";
/// No more than this stands between the first two words, comments included.
const LONGEST_BEGINNING: usize = 4096;

/// A text and what it says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The text; one that cannot be read ends with the line that is wrong.
    pub(super) ptx: String,
    /// What it says, or why it cannot be read.
    pub(super) read: Result<Module, ParseError>,
}

/// All texts of PTX in the data of a component's core modules, in order, each once.
pub(super) fn in_component(bytes: &[u8]) -> wasmparser::Result<Vec<Found>> {
    let mut all: Vec<Found> = Vec::new();
    let mut seen = HashSet::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let Payload::DataSection(section) = payload? else { continue };
        for segment in section {
            // Interpreters keep a literal, and the source that it stands in.
            all.extend(in_data(segment?.data).into_iter().filter(|found| seen.insert(found.ptx.trim().to_owned())));
        }
    }
    Ok(all)
}

fn in_data(data: &[u8]) -> Vec<Found> {
    let starts: Vec<usize> = first_words(data).collect();
    let ends = starts.iter().skip(1).copied().chain([data.len()]);
    let (mut word_before, mut text_before) = (0, 0);
    let mut found = Vec::new();
    for (at, end) in starts.iter().copied().zip(ends) {
        let start = beginning(data, word_before, at);
        // Blank lines that end a text do not begin the next.
        let start = if data[start..at].trim_ascii().is_empty() { start.max(text_before) } else { start };
        let text = text_of(&data[start..end]);
        let (read, bytes) = read(text);
        (word_before, text_before) = (at + FIRST_WORD.len(), start + bytes);
        found.push(Found { ptx: text[..bytes].to_owned(), read });
    }
    found
}

/// Where modules begin: at `.version 8.2` with, behind comments perhaps, `.target`. Else the word only happens to stand there.
fn first_words(data: &[u8]) -> impl Iterator<Item = usize> {
    let word = FIRST_WORD.as_bytes();
    let all = data.windows(word.len()).enumerate().filter(move |(_, window)| *window == word).map(|(at, _)| at);
    all.filter(move |at| {
        let behind = &data[at + word.len()..];
        let behind = behind[..behind.len().min(LONGEST_BEGINNING)].trim_ascii_start();
        let number = behind.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(behind.len());
        number > 0 && uncommented(&behind[number..]).starts_with(b".target")
    })
}

fn position(data: &[u8], wanted: &[u8]) -> Option<usize> {
    data.windows(wanted.len()).position(|window| window == wanted)
}

/// Without the blanks and comments in front.
fn uncommented(mut data: &[u8]) -> &[u8] {
    loop {
        data = data.trim_ascii_start();
        let end = match data {
            [b'/', b'/', ..] => position(data, b"\n"),
            [b'/', b'*', ..] => position(data, b"*/").map(|end| end + 2),
            _ => return data,
        };
        data = end.map_or(&[], |end| &data[end..]);
    }
}

/// Where a text begins: with the comments in front of its first word, or with blank lines if there are no comments. For a neighbour's last line may end with a line
/// feed too; then the numbers of lines are one too high, and what stands in them is right.
fn beginning(data: &[u8], least: usize, at: usize) -> usize {
    let line_before =
        |end: usize| data[least..end].iter().rposition(|byte| *byte == b'\n').map(|newline| least + newline);
    let (mut start, mut end) = (at, at);
    loop {
        let newline = line_before(end);
        let line = newline.map_or(least, |newline| newline + 1);
        let text = data[line..end].trim_ascii();
        if text.starts_with(b"//") {
            start = line;
        } else if !text.is_empty() {
            // The first comment may be glued to the neighbour in front.
            let glued = position(&data[line..end], b"//").map(|comment| line + comment);
            return glued.unwrap_or(if start == at { end } else { start });
        }
        match newline {
            Some(newline) => end = newline,
            None => return if start == at { line } else { start },
        }
    }
}

/// What is text of that, as far as PTX may go.
fn text_of(data: &[u8]) -> &str {
    let data = &data[..data.len().min(MOST_BYTES)];
    let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace() || *byte == 0x0b;
    let end = data.iter().position(|byte| !is_text(byte)).unwrap_or(data.len());
    data[..end].utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// What a text says, and how long it is: what follows its last directive belongs to a neighbour, unless it goes on like PTX.
fn read(text: &str) -> (Result<Module, ParseError>, usize) {
    let error = match parse(text) {
        Ok(module) => return (Ok(module), text.len()),
        Err(error) => error,
    };
    let at = offset(text, error.position);
    let rest = &text[at..];
    let goes_on = rest.starts_with('.') || [".entry", ".func"].iter().any(|word| rest.contains(word));
    match parse(&text[..at]) {
        Ok(module) if !goes_on => (Ok(module), at),
        _ => (Err(error), rest.find('\n').map_or(text.len(), |newline| at + newline)),
    }
}

/// Where a place is in its text.
fn offset(text: &str, place: Position) -> usize {
    let before = text.split_inclusive('\n').take((place.line as usize).saturating_sub(1));
    let line = before.map(str::len).sum::<usize>();
    let column = text[line..].char_indices().nth((place.column as usize).saturating_sub(1));
    column.map_or(text.len(), |(at, _)| line + at)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = ".version 8.2\n.target sm_75\n.address_size 64\n";

    fn kernel(name: &str) -> String {
        format!("{HEAD}.visible .entry {name}()\n{{\n\tret; // }}\n}}\n")
    }

    /// The texts in a segment, and the names of the kernels in each or what is wrong with it.
    fn found(data: impl AsRef<[u8]>) -> Vec<(String, String)> {
        let said = |read: Result<Module, ParseError>| match read {
            Ok(module) => module.functions.iter().map(|function| function.name.clone()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        };
        in_data(data.as_ref()).into_iter().map(|found| (found.ptx, said(found.read))).collect()
    }

    #[test]
    fn a_text_is_cut_out_of_its_neighbours() {
        let text = kernel("k");
        for (before, behind) in [
            ("", ""),
            ("", "\0"),
            ("a\0", "src/lib.rs\0"),
            ("no panic: .version", "called `Option::unwrap()` on a `None` value"),
            ("/rustc/library\n", "\"\"\"\nclass Job: pass"),
            ("", "\u{1}more"),
            ("ä", "ä{}"),
            ("", "// a comment, and \n"),
        ] {
            let data = format!("{before}{text}{behind}");
            let found = found(&data);
            assert_eq!(found.len(), 1, "{data}");
            assert_eq!(found[0].1, "k", "{data}");
            assert!(found[0].0.trim_start().starts_with(&text), "{data}");
        }
        // No text ends in the middle of a character.
        assert_eq!(found([text.as_bytes(), &[0xff, b'a']].concat())[0].0, text);
    }

    #[test]
    fn lines_count_from_the_comments_in_front() {
        let text = kernel("k");
        for (before, header) in [
            ("", "//\n// Generated by a compiler\n//\n\n"),
            ("neighbour", "//\n// Generated by https://example.com\n\n"),
            ("neighbour\n", "// one\n"),
            ("}\n", "//\n\n//\n"),
        ] {
            let data = format!("{before}{header}{text}");
            assert_eq!(found(&data)[0].0, format!("{header}{text}"), "{data}");
        }
        // Without comments, from the blank lines: texts in quotation marks often begin with one.
        assert_eq!(found(format!("neighbour\n\n{text}"))[0].0, format!("\n\n{text}"));
        assert_eq!(found(format!("\n{text}"))[0].0, format!("\n{text}"));
    }

    #[test]
    fn texts_side_by_side_are_apart() {
        let header = "//\n// Generated\n//\n\n";
        let data = format!("{}{header}{}{}", kernel("a"), kernel("b"), kernel("c"));
        let found = found(data);
        assert_eq!(found.iter().map(|(_, kernels)| kernels.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(found[1].0.lines().nth(4), Some(".version 8.2"), "the header counts");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let wrong = |text: String| found(text).remove(0).1;
        assert!(wrong(kernel("k").replace("ret;", "rat;")).starts_with("line 6, column 2: "));
        assert!(wrong(kernel("k").replace(".visible", "visible")).starts_with("line 4, column 1: "));
        assert!(wrong(kernel("k") + ".wisible .entry j() { ret; }").starts_with("line 8, column 1: "));
        assert!(wrong(kernel("k").replace(" }\n}", "")).starts_with("line 7, column 1: "));
        // What follows is read all the same.
        let found = found(kernel("a").replace("ret;", "rat;") + &kernel("b"));
        assert_eq!(found[1].1, "b");
    }

    #[test]
    fn a_word_is_no_text() {
        for data in [
            ".version",
            ".version 8.2",
            ".version of this program 8.2\n.target sm_75",
            "\0.version\0 8.2 .target sm_75",
        ] {
            assert!(found(data).is_empty(), "{data}");
        }
        assert_eq!(found(HEAD)[0].1, "", "a text that a plugin goes on with has no kernels");
        assert_eq!(found(".version 8.2 // of PTX\n/* for */ .target sm_75\n").len(), 1);
    }

    proptest! {
        #[test]
        fn whatever_stands_there_is_cut_out_of_it(pieces in prop::collection::vec(0..PIECES.len(), 0..24)) {
            let data: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece].iter().copied()).collect();
            for found in in_data(&data) {
                prop_assert!(position(&data, found.ptx.as_bytes()).is_some());
                if found.read.is_ok() {
                    prop_assert_eq!(parse(&found.ptx), found.read);
                }
            }
        }
    }

    const PIECES: [&[u8]; 16] = [
        b".version",
        b".version 8.2\n.target sm_75\n.address_size 64\n",
        b" 8.2",
        b".target sm_75\n",
        b".visible .entry k()",
        b"{ ret; }",
        b"}",
        b".global .u32 x = 5;",
        b".alias a, b;",
        b"\n",
        b"// a comment\n",
        b"/*",
        b"*/",
        b"\"",
        "\u{e4}".as_bytes(),
        b"\xff\0",
    ];

    #[test]
    fn a_literal_and_the_source_it_stands_in_are_one() {
        let text = kernel("k");
        let module = |data: &str| {
            let data = data.replace('\n', "\\n").replace('"', "\\\"").replace('\t', "\\t");
            format!("(core module (memory 1) (data (i32.const 0) \"{data}\"))")
        };
        let component = format!(
            "(component {} {} (core module (memory 1) (data \"{}\")))",
            module(&text),
            module(&format!("PTX = \"\"\"{text}\"\"\"")),
            "passive"
        );
        let found = in_component(&wat::parse_str(component).unwrap()).unwrap();
        assert_eq!(found.len(), 1);
        assert!(in_component(b"\0asm").is_err());
    }
}
