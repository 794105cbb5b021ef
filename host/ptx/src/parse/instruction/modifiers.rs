//! The modifiers of an instruction, `.rn.ftz.f32`: handed out by meaning, and complained about if nobody asked for them.

use crate::module::{Rounding, Type};

/// A modifier and what it says.
pub(super) type Table<T> = [(&'static str, T)];

/// Names of types.
pub(super) const TYPES: &Table<Type> = &[
    ("pred", Type::Pred),
    ("b8", Type::B8),
    ("b16", Type::B16),
    ("b32", Type::B32),
    ("b64", Type::B64),
    ("b128", Type::B128),
    ("u8", Type::U8),
    ("u16", Type::U16),
    ("u32", Type::U32),
    ("u64", Type::U64),
    ("s8", Type::S8),
    ("s16", Type::S16),
    ("s32", Type::S32),
    ("s64", Type::S64),
    ("f16", Type::F16),
    ("f16x2", Type::F16x2),
    ("bf16", Type::Bf16),
    ("bf16x2", Type::Bf16x2),
    ("f32", Type::F32),
    ("f64", Type::F64),
    ("u16x2", Type::U16x2),
    ("s16x2", Type::S16x2),
    ("tf32", Type::Tf32),
];

/// Roundings of arithmetic.
pub(super) const ROUNDINGS: &Table<Rounding> =
    &[("rn", Rounding::NearestEven), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

/// The type that a directive names. What only instructions know has no registers or variables of its own.
pub(in crate::parse) fn type_named(name: &str) -> Option<Type> {
    let declared = |ty: Type| !matches!(ty, Type::U16x2 | Type::S16x2 | Type::Tf32);
    TYPES.iter().find(|(known, ty)| *known == name && declared(*ty)).map(|(_, ty)| *ty)
}

/// The modifiers of one instruction that nobody has asked for yet.
#[derive(Debug)]
pub(super) struct Modifiers<'a> {
    left: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    /// In the order of the text.
    pub(super) fn new(words: Vec<&'a str>) -> Self {
        Self { left: words }
    }

    /// Takes the first of those left that the table has.
    pub(super) fn take<T: Copy>(&mut self, table: &Table<T>) -> Option<T> {
        let (index, value) = self.find(table)?;
        self.left.remove(index);
        Some(value)
    }

    /// What [`take`](Self::take) would take.
    pub(super) fn peek<T: Copy>(&self, table: &Table<T>) -> Option<T> {
        self.find(table).map(|(_, value)| value)
    }

    fn find<T: Copy>(&self, table: &Table<T>) -> Option<(usize, T)> {
        let known = |word: &str| table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        self.left.iter().enumerate().find_map(|(index, word)| Some((index, known(word)?)))
    }

    /// Whether this one is there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let index = self.left.iter().position(|word| *word == name);
        index.map(|index| self.left.remove(index)).is_some()
    }

    /// Takes all that `is` knows, and does nothing about them.
    pub(super) fn ignore(&mut self, is: impl Fn(&str) -> bool) {
        self.left.retain(|word| !is(word));
    }

    /// The first that is left.
    pub(super) fn first(&self) -> Option<&'a str> {
        self.left.first().copied()
    }

    /// The last that is left.
    pub(super) fn last(&self) -> Option<&'a str> {
        self.left.last().copied()
    }
}
