//! Where buffers lie: at random pages of the reservation, apart from each other, within a budget of real memory.
//!
//! Random, so that whatever depends on an address (a kernel that stores one, to use it after a resume) fails in its first test and not on its first
//! preemption. Apart, so that running over a buffer's end is a fault and not another buffer's content.
//!
//! As long as they take no more than half of it, all lie in a *window* at the beginning: kernels then have addresses of 32 bits, and the end of such a memory needs no comparison
//! (see [`Reach`]).

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_core::{SeedableRng, TryRng};

use super::memory_unsafe::{Memory, page_bytes};
use crate::device::error::size;
use crate::device::{DeviceError, Result};

/// What is never accessible before and behind a buffer, and at the beginning.
const GAP: u64 = 64 << 10;
/// The system allows a process 65,530 mappings, and a buffer takes two.
const MOST: usize = 24_000;

/// Which addresses a kernel can reach, and so with how many bits it computes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of the window: 32.
    Window,
    /// All: 64.
    All,
}

/// The buffers of a device in its memory.
pub(super) struct Arena {
    pub(super) memory: Memory,
    bytes: u64,
    /// Bytes of the window.
    window: u64,
    page: u64,
    budget: u64,
    used: u64,
    /// What is taken, by its start.
    taken: BTreeMap<u64, Taken>,
    random: ChaCha8Rng,
}

struct Taken {
    end: u64,
    /// Bytes that are backed by memory: all, or none where no bytes were asked for.
    cost: u64,
}

impl Arena {
    /// `bytes` addresses, the first of them a window if there is one, of which at most `budget` may be backed by memory.
    pub(super) fn new(memory: Memory, bytes: u64, window: Option<u64>, budget: u64) -> io::Result<Self> {
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        let (page, random) = (page_bytes(), ChaCha8Rng::from_seed(seed));
        Ok(Self {
            memory,
            bytes,
            window: window.unwrap_or_default(),
            page,
            budget,
            used: 0,
            taken: BTreeMap::new(),
            random,
        })
    }

    /// Memory of so many bytes, all 0. No bytes have an address too, at which nothing is.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<u64> {
        let whole = self.whole(bytes);
        let cost = if bytes == 0 { 0 } else { whole };
        let free = self.free_bytes();
        if cost > free {
            let text = format!(
                "{} were asked for, and of the device's {} of memory {} are free",
                size(bytes),
                size(self.budget),
                size(free)
            );
            return Err(DeviceError::OutOfMemory(text));
        }
        if self.taken.len() >= MOST {
            let text = format!("there are {MOST} buffers already, which is the most: put small ones together");
            return Err(DeviceError::OutOfMemory(text));
        }
        let in_window = self.used.saturating_add(cost) <= self.window / 2;
        let start = in_window.then(|| self.place(whole, self.window)).flatten();
        let start = start.or_else(|| self.place(whole, self.bytes)).ok_or_else(|| {
            DeviceError::OutOfMemory(format!("no {} of addresses are free in one piece", size(whole)))
        })?;
        if cost > 0 {
            let refused = |error| DeviceError::OutOfMemory(format!("the system gives no {}: {error}", size(bytes)));
            self.memory.open(start..start + whole).map_err(refused)?;
        }
        self.taken.insert(start, Taken { end: start + whole, cost });
        self.used += cost;
        Ok(start)
    }

    /// What kernels have to reach.
    pub(super) fn reach(&self) -> Reach {
        let end = self.taken.last_key_value().map_or(0, |(_, taken)| taken.end);
        if self.window > 0 && end + GAP <= self.window { Reach::Window } else { Reach::All }
    }

    /// Bytes of the budget that are left.
    pub(super) fn free_bytes(&self) -> u64 {
        self.budget - self.used
    }

    /// Bytes of the pages that so many bytes take.
    pub(super) fn whole(&self, bytes: u64) -> u64 {
        bytes.max(1).checked_next_multiple_of(self.page).unwrap_or(u64::MAX)
    }

    /// Gives memory back.
    pub(super) fn free(&mut self, start: u64) {
        let Some(taken) = self.taken.remove(&start) else { return };
        // The system may refuse, for want of mappings. The pages then stay accessible and count as used: nothing else is ever placed there.
        if taken.cost == 0 || self.memory.close(start).is_ok() {
            self.used -= taken.cost;
        } else {
            self.taken.insert(start, taken);
        }
    }

    /// A random start for `bytes` that lie below `limit`, each that leaves the gaps as likely as any other.
    fn place(&mut self, bytes: u64, limit: u64) -> Option<u64> {
        let page = self.page;
        let room = |gap: &Range<u64>| (gap.end - gap.start).checked_sub(bytes).map_or(0, |rest| rest / page + 1);
        let total = self.gaps(limit).map(|gap| room(&gap)).sum();
        let mut choice = self.random_below(total)?;
        self.gaps(limit).find_map(|gap| match choice.checked_sub(room(&gap)) {
            None => Some(gap.start + choice * page),
            Some(rest) => {
                choice = rest;
                None
            }
        })
    }

    /// Where buffers may lie below an address.
    fn gaps(&self, limit: u64) -> impl Iterator<Item = Range<u64>> {
        let starts = std::iter::once(0).chain(self.taken.values().map(|taken| taken.end));
        let ends = self.taken.keys().copied().chain([self.bytes]);
        let apart = move |(start, end): (u64, u64)| start + GAP..end.min(limit).saturating_sub(GAP);
        starts.zip(ends).map(apart).filter(|gap| gap.start < gap.end)
    }

    /// Every number below `limit` about as likely: there are far fewer pages than 2⁶⁴.
    fn random_below(&mut self, limit: u64) -> Option<u64> {
        let Ok(number) = self.random.try_next_u64();
        number.checked_rem(limit)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const MIB: u64 = 1 << 20;

    fn arena(bytes: u64, budget: u64) -> Arena {
        Arena::new(Memory::reserve(bytes, GAP).unwrap(), bytes, None, budget).unwrap()
    }

    #[test]
    fn half_the_window_is_filled_before_buffers_lie_anywhere() {
        let (bytes, window) = (1 << 36, 64 * MIB);
        let mut arena = Arena::new(Memory::reserve(bytes, GAP).unwrap(), bytes, Some(window), 1 << 36).unwrap();
        assert_eq!(arena.reach(), Reach::Window);
        let small: Vec<_> = (0..31).map(|_| arena.allocate(MIB).unwrap()).collect();
        assert!(small.iter().all(|start| start + MIB + GAP <= window));
        assert_eq!(arena.reach(), Reach::Window);
        // Of addresses outside there are a thousand times as many.
        let outside: Vec<_> = (0..4).map(|_| arena.allocate(2 * MIB).unwrap()).collect();
        assert_eq!(arena.reach(), Reach::All);
        outside.iter().for_each(|start| arena.free(*start));
        assert_eq!(arena.reach(), Reach::Window);
        // What fits into no gap of the window lies outside.
        small.iter().step_by(2).for_each(|start| arena.free(*start));
        arena.allocate(15 * MIB).unwrap();
        arena.allocate(256).unwrap();
    }

    #[test]
    fn buffers_lie_apart_and_anywhere() {
        let mut arena = arena(1 << 32, 64 * MIB);
        let mut starts: Vec<_> = (0..50).map(|_| arena.allocate(MIB - 1).unwrap()).collect();
        starts.sort_unstable();
        assert!(starts[0] >= GAP && starts[49] + MIB + GAP <= 1 << 32);
        assert_eq!((arena.reach(), super::tests::arena(1 << 32, MIB).reach()), (Reach::All, Reach::All));
        assert!(starts.windows(2).all(|pair| pair[0] + MIB + GAP <= pair[1]));
        assert!(starts.iter().all(|start| start.is_multiple_of(page_bytes())));
        assert!(starts.windows(3).any(|three| three[1] - three[0] != three[2] - three[1]), "evenly spread");
    }

    #[test]
    fn the_budget_is_given_back() {
        let mut arena = arena(1 << 32, 4 * MIB);
        let first = arena.allocate(3 * MIB).unwrap();
        let DeviceError::OutOfMemory(text) = arena.allocate(2 * MIB).unwrap_err() else { panic!("another error") };
        assert_eq!(text, "2.0 MiB were asked for, and of the device's 4.0 MiB of memory 1.0 MiB are free");
        assert!(arena.allocate(u64::MAX).is_err());
        arena.free(first);
        arena.free(first);
        arena.allocate(4 * MIB).unwrap();
        // Nothing costs nothing.
        let none = [arena.allocate(0).unwrap(), arena.allocate(0).unwrap()];
        assert_ne!(none[0], none[1]);
        none.into_iter().for_each(|start| arena.free(start));
    }

    #[test]
    fn what_is_used_again_is_0() {
        let mut arena = arena(1 << 22, 4 * MIB);
        for _ in 0..20 {
            let start = arena.allocate(2 * MIB).unwrap();
            assert!(arena.memory.bytes(start..start + 2 * MIB).iter().all(|byte| *byte == 0));
            arena.memory.bytes_mut(start..start + 2 * MIB).fill(7);
            arena.free(start);
        }
    }

    #[test]
    fn addresses_that_are_not_there_are_said() {
        let mut arena = arena(1 << 22, 1 << 32);
        assert!(arena.allocate((1 << 22) - 2 * GAP).is_ok());
        let DeviceError::OutOfMemory(text) = arena.allocate(1).unwrap_err() else { panic!("another error") };
        assert!(text.contains("addresses"), "{text}");
    }
}
