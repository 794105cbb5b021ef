//! What is put in the place of the plugin: good releases of `digits`, bad ones, and what is none.

use std::fs;

use anyhow::{Context, Result};

use super::Chance;
use crate::plugins;

const GOOD: [&str; 3] = ["training_good_a", "training_good_b", "training_good_c"];
const BAD: [&str; 4] = ["training_traps_in_restore", "training_traps_in_step", "training_endless", "training_refuses"];
/// A component of another world.
const OTHER_WORLD: &str = "command";

/// The bytes of all of them.
pub(super) struct Releases {
    good: Vec<Vec<u8>>,
    /// Plugins, but of no use.
    bad: Vec<Vec<u8>>,
    other_world: Vec<u8>,
}

impl Releases {
    pub(super) fn read() -> Result<Self> {
        let read = |name: &str| fs::read(plugins::guest(name)).with_context(|| format!("`{name}` is not built"));
        let good = GOOD.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut bad = BAD.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        bad.push(traps_before_all(&good[0])?);
        Ok(Self { good, bad, other_world: read(OTHER_WORLD)? })
    }

    /// The one that the job begins with.
    pub(super) fn first(&self) -> &[u8] {
        &self.good[0]
    }

    /// Any of them, good as often as not, and now and then half of one.
    pub(super) fn any(&self, chance: &mut Chance) -> Vec<u8> {
        let of = |kind: &[Vec<u8>], chance: &mut Chance| kind[chance.below(kind.len() as u64) as usize].clone();
        let mut bytes = match chance.below(12) {
            0..6 => of(&self.good, chance),
            6..11 => of(&self.bad, chance),
            _ => self.other_world.clone(),
        };
        if chance.below(10) == 0 {
            bytes.truncate(bytes.len() / 2);
        }
        bytes
    }

    /// Whether an attempt can begin with this.
    pub(super) fn is_plugin(&self, bytes: &[u8]) -> bool {
        self.good.iter().chain(&self.bad).any(|one| one == bytes)
    }
}

/// A core module whose start function traps.
const TRAP: [u8; 28] = [
    0, b'a', b's', b'm', 1, 0, 0, 0, // a core module
    1, 4, 1, 0x60, 0, 0, // a type: no parameters, no results
    3, 2, 1, 0, // a function of that type
    8, 1, 0, // it is the start function
    10, 5, 1, 3, 0, 0x00, 0x0b, // its code: unreachable
];

/// The component with that module as one of its instances.
fn traps_before_all(component: &[u8]) -> Result<Vec<u8>> {
    const CORE_MODULE: u8 = 1;
    const CORE_INSTANCE: u8 = 2;
    let index = core_modules(component).context("a component ends too early")?;
    let mut bytes = component.to_vec();
    bytes.extend([CORE_MODULE, TRAP.len() as u8]);
    bytes.extend(TRAP);
    bytes.extend([CORE_INSTANCE, 4, 1, 0, index, 0]);
    Ok(bytes)
}

/// How many core modules stand at the top of a component: a number of one byte.
fn core_modules(component: &[u8]) -> Option<u8> {
    let (mut rest, mut found) = (component.get(8..)?, 0);
    while let [section, after @ ..] = rest {
        let (length, after) = number(after)?;
        found += u8::from(*section == 1);
        rest = after.get(length..)?;
    }
    Some(found)
}

/// A number of seven bits a byte, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    let digits = bytes.get(..=end)?.iter().rev();
    Some((digits.fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f)), bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_modules_are_counted_at_the_top_only() {
        let mut component = vec![0, b'a', b's', b'm', 13, 0, 1, 0];
        component.extend([1, 2, 7, 7, 4, 3, 1, 1, 0, 1, 0x80, 1]);
        component.extend([9; 128]);
        assert_eq!(core_modules(&component), Some(2));
        component.pop();
        assert_eq!(core_modules(&component), None, "half a section");
    }
}
