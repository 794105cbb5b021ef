//! What the crate's README says of instructions is what the parser knows.

use std::collections::BTreeSet;

use super::form::read;
use crate::parse::instruction::opcodes;

const README: &str = include_str!("../../../README.md");

/// What stands in backticks in a column of the tables of a section.
fn named(section: &str, column: usize) -> Vec<&'static str> {
    let start = README.find(section).unwrap_or_else(|| panic!("no section {section}"));
    let section = README[start..].split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|') && line.contains('`'));
    rows.flat_map(|row| row.split('|').nth(column).unwrap_or_default().split('`').skip(1).step_by(2)).collect()
}

#[test]
fn what_is_in_is_all_that_the_parser_knows() {
    let written = named("## What is in", 2);
    let known: BTreeSet<&str> = opcodes().collect();
    assert_eq!(written.iter().copied().collect::<BTreeSet<&str>>(), known);
    assert_eq!(written.len(), opcodes().count(), "an instruction stands twice");
}

/// The whole instruction is refused, or the modifier that makes it one of these.
#[test]
fn what_is_not_in_is_refused() {
    let written = named("## What is not", 1);
    assert!(written.len() > 20, "{written:?}");
    for name in written {
        let (opcode, modifiers) = name.split_once('.').unwrap_or((name, ""));
        if modifiers.is_empty() {
            assert!(opcodes().all(|known| known != opcode), "{name} is known");
        }
        for operands in ["", " [%d1], 8", " %r1", " [%d1], [%d2], 16, [%d3]"] {
            let message = read(&format!("{name}{operands}")).err().map(|error| error.to_string());
            assert!(message.is_some_and(|message| message.starts_with("line 26")), "{name}{operands} is taken");
        }
    }
}
