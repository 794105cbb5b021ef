//! What the functions around the bodies do, made of the input's first bytes.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::world::{Export, IMPORTS};

/// What the functions around the bodies do.
pub(super) struct Plan {
    pub(super) functions: [Around; 5],
}

/// One of them.
pub(super) struct Around {
    pub(super) before: Vec<Call>,
    pub(super) body: bool,
    pub(super) gives_back: bool,
    pub(super) answer: Answer,
}

/// A call of an import.
pub(super) struct Call {
    pub(super) import: usize,
    /// Whether the first argument is what the function was lent.
    pub(super) with_lent: bool,
    pub(super) arguments: [Number; 6],
}

/// Where a call's answer is.
pub(super) enum Answer {
    /// Where the body says.
    Body,
    /// Memory that grows by as much as is asked for.
    Grown,
    /// At this address, where these words are written first.
    Written { at: u32, words: Vec<(u32, u32)> },
}

/// A number that is small more often than not, so that it is an address, a length or a handle.
#[derive(Clone, Copy, Default)]
pub(super) struct Number(pub(super) u64);

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match input.int_in_range(0..=7)? {
            0..=2 => input.int_in_range(0..=15)?,
            3..=5 => input.int_in_range(0..=0x400)?,
            6 => input.int_in_range(0..=0x2_0000)?,
            _ => input.arbitrary()?,
        }))
    }
}

impl Plan {
    pub(super) fn of(input: &mut Unstructured<'_>, daring: bool) -> Result<Self> {
        let [start, step, snapshot, restore, realloc] = Export::ALL;
        let mut around = |export| Around::of(export, daring, input);
        Ok(Self { functions: [around(start)?, around(step)?, around(snapshot)?, around(restore)?, around(realloc)?] })
    }
}

impl Around {
    fn of(export: Export, daring: bool, input: &mut Unstructured<'_>) -> Result<Self> {
        // Nothing is reached behind a `start` that fails, and nothing starts without memory for its arguments.
        if matches!(export, Export::Start | Export::Realloc) && !daring {
            let answer = match export {
                Export::Realloc => Answer::Grown,
                _ => Answer::Written { at: ANSWER, words: vec![(0, 0)] },
            };
            return Ok(Self { before: Vec::new(), body: false, gives_back: false, answer });
        }
        let mut before = Vec::new();
        for _ in 0..input.int_in_range(0..=4)? {
            before.push(Call::of(export, input)?);
        }
        let body = input.ratio(3, 4)?;
        let gives_back = !rarely(input)?;
        let answer = if export == Export::Realloc || rarely(input)? { Answer::Body } else { answer(export, input)? };
        Ok(Self { before, body, gives_back, answer })
    }
}

impl Call {
    fn of(export: Export, input: &mut Unstructured<'_>) -> Result<Self> {
        // What a function is lent a resource for, it mostly does.
        let own: &[usize] = match export {
            Export::Snapshot => &[0],
            Export::Restore => &[1, 2, 3, 4],
            _ => &[7, 8, 10, 11, 13, 14],
        };
        let import = match input.ratio(3, 4)? {
            true => *input.choose(own)?,
            false => input.choose_index(IMPORTS.len())?,
        };
        let mut arguments = [Number::default(); 6];
        for argument in &mut arguments {
            *argument = input.arbitrary()?;
        }
        Ok(Self { import, with_lent: !rarely(input)?, arguments })
    }
}

/// Where answers are written, out of the way of nothing in particular.
const ANSWER: u32 = 1024;

/// A record as the canonical ABI lays it out: a result, in it an outcome, a version or nothing, or an error with a text.
fn answer(export: Export, input: &mut Unstructured<'_>) -> Result<Answer> {
    let at = if rarely(input)? { input.arbitrary::<Number>()?.0 as u32 } else { ANSWER };
    let mut number = || -> Result<u32> { Ok(input.arbitrary::<Number>()?.0 as u32) };
    let payload = if export == Export::Step { 8 } else { 4 };
    let kind = number()? % 8;
    let words = match (kind, export) {
        (7, _) => vec![(0, number()?), (4, number()?), (8, number()?), (16, number()?), (20, number()?)],
        (6, _) => vec![(0, 1), (payload, number()? % 3), (payload + 4, number()?), (payload + 8, number()?)],
        (4 | 5, Export::Step) => vec![(0, 0), (8, 1), (16, number()?), (20, number()?)],
        (_, Export::Step) => vec![(0, 0), (8, 0), (16, number()?), (20, 0), (24, number()? % 2), (32, number()?)],
        (_, Export::Snapshot) => vec![(0, 0), (4, number()?)],
        _ => vec![(0, 0)],
    };
    Ok(Answer::Written { at, words })
}

/// True for few inputs, and for none that ran out of bytes.
pub(super) fn rarely(input: &mut Unstructured<'_>) -> Result<bool> {
    Ok(input.int_in_range(0..=15)? == 15)
}
