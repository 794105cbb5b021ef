//! The names of a function: registers, variables and lists, each visible from its declaration to the end of its block, an inner one
//! in place of an outer one.
//!
//! `.reg .b32 %r<4000000000>` declares four billion names. Only the range is kept here; a register comes to be where it is used.

use std::collections::HashMap;

use crate::module::{RegisterId, Symbol, Type};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A register.
    Register(RegisterId),
    /// A variable or a parameter.
    Symbol(Symbol),
    /// A `.branchtargets` list of the function.
    Targets(u32),
    /// A `.calltargets` list of the function.
    Callees(u32),
    /// A `.callprototype` of the function.
    Prototype(u32),
    /// The register with this number of a range.
    Ranged { range: u32, index: u32, ty: Type },
}

/// Why a name cannot be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// Nothing of this name is declared here.
    Unknown,
    /// Two declarations in the same block give it.
    Ambiguous,
}

/// `%name<count>`.
#[derive(Debug, Clone, Copy)]
struct Range {
    id: u32,
    count: u32,
    ty: Type,
}

/// Declarations of one spelling, the innermost last, each with the depth of its block.
type Declarations<T> = Vec<(u32, T)>;

/// All names of a function. Looking one up takes the same time however deep blocks are nested.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    single: HashMap<&'a str, Declarations<Named>>,
    ranges: HashMap<&'a str, Declarations<Range>>,
    /// How many ranges there have been.
    range_count: u32,
    /// What the open blocks have declared, to be taken back at their end.
    undo: Vec<Declared<'a>>,
    /// For each open block but the outermost, how long `undo` was at its beginning.
    blocks: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Declared<'a> {
    Single(&'a str),
    Range(&'a str),
}

impl<'a> Names<'a> {
    /// How many blocks are open inside the body.
    pub(super) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// `{`.
    pub(super) fn enter(&mut self) {
        self.blocks.push(self.undo.len());
    }

    /// `}`; false where no block is open.
    pub(super) fn leave(&mut self) -> bool {
        let Some(length) = self.blocks.pop() else { return false };
        for declared in self.undo.drain(length..) {
            match declared {
                Declared::Single(name) => {
                    self.single.get_mut(name).and_then(Vec::pop);
                }
                Declared::Range(prefix) => {
                    self.ranges.get_mut(prefix).and_then(Vec::pop);
                }
            }
        }
        true
    }

    /// Declares a name in the innermost block; false where that has it already.
    pub(super) fn declare(&mut self, name: &'a str, named: Named) -> bool {
        let depth = self.blocks.len() as u32;
        let taken_by_range = self.in_ranges(name).any(|(at, _)| at == depth);
        let declarations = self.single.entry(name).or_default();
        if taken_by_range || declarations.last().is_some_and(|(at, _)| *at == depth) {
            return false;
        }
        declarations.push((depth, named));
        self.undo.push(Declared::Single(name));
        true
    }

    /// Declares `prefix0` to `prefix(count - 1)`; false where the innermost block has a range of that prefix already.
    pub(super) fn declare_range(&mut self, prefix: &'a str, count: u32, ty: Type) -> bool {
        let depth = self.blocks.len() as u32;
        let declarations = self.ranges.entry(prefix).or_default();
        if declarations.last().is_some_and(|(at, _)| *at == depth) {
            return false;
        }
        declarations.push((depth, Range { id: self.range_count, count, ty }));
        self.range_count += 1;
        self.undo.push(Declared::Range(prefix));
        true
    }

    /// What a name stands for in the innermost block.
    pub(super) fn resolve(&self, name: &str) -> Result<Named, Unresolved> {
        let single = self.single.get(name).and_then(|declarations| declarations.last().copied());
        let (mut found, mut ambiguous) = (single, false);
        for (depth, named) in self.in_ranges(name) {
            match found {
                Some((at, _)) if at > depth => {}
                Some((at, _)) if at == depth => ambiguous = true,
                _ => (found, ambiguous) = (Some((depth, named)), false),
            }
        }
        match found {
            _ if ambiguous => Err(Unresolved::Ambiguous),
            Some((_, named)) => Ok(named),
            None => Err(Unresolved::Unknown),
        }
    }

    /// The innermost ranges that `name` lies in: `%r12` may be number 12 of `%r`, or 2 of `%r1`.
    fn in_ranges(&self, name: &str) -> impl Iterator<Item = (u32, Named)> {
        const MOST_DIGITS: usize = 10;
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).take(MOST_DIGITS).count();
        (1..=digits).filter_map(move |length| {
            let (prefix, number) = name.split_at(name.len() - length);
            if length > 1 && number.starts_with('0') {
                return None;
            }
            let index: u32 = number.parse().ok()?;
            let declarations = self.ranges.get(prefix)?;
            let (depth, range) = declarations.iter().rev().find(|(_, range)| index < range.count)?;
            Some((*depth, Named::Ranged { range: range.id, index, ty: range.ty }))
        })
    }
}
