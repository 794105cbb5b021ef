//! What the lanes of a warp give one another when they meet: shuffles, votes, matches, reductions.

use steadfast_ptx::module::{AtomicOp, Op, Shuffle, Type, Vote};

use super::integer::{atomic, mask};
use super::thread::{Offer, State, Thread};
use super::{Oracle, Trap, matrix};

impl<'a> Oracle<'a> {
    /// Lets every group of lanes go on that is complete: all that its mask names and that still run wait with the same mask.
    pub(super) fn meet(&mut self, warp: &mut [Thread<'a>]) -> Result<(), Trap> {
        let mut masks: Vec<u32> = warp.iter().filter_map(|thread| offer(thread).map(|offer| offer.members)).collect();
        masks.sort_unstable();
        masks.dedup();
        for members in masks {
            let is_member = |thread: &Thread| members >> thread.lane() & 1 == 1 && !thread.is_finished();
            let complete = warp
                .iter()
                .filter(|thread| is_member(thread))
                .all(|thread| offer(thread).is_some_and(|offer| offer.members == members));
            if !complete {
                continue;
            }
            let mut offers = [const { None }; 32];
            for thread in warp.iter().filter(|thread| is_member(thread)) {
                offers[thread.lane() as usize] = offer(thread).cloned();
            }
            if offers.iter().flatten().any(|offer| concerns_matrices(&offer.instruction.op)) {
                self.exchange_matrices(warp, &offers)?;
                continue;
            }
            for thread in warp.iter_mut().filter(|thread| is_member(thread)) {
                self.take(thread, &offers);
                thread.state = State::Runnable;
            }
        }
        Ok(())
    }

    /// What needs a whole warp, and waits for ever in another.
    fn exchange_matrices(&mut self, warp: &mut [Thread<'a>], offers: &[Option<Offer<'a>>; 32]) -> Result<(), Trap> {
        if offers.iter().any(Option::is_none) {
            return Ok(());
        }
        let results = matrix::results(self, offers)?;
        for (thread, results) in warp.iter_mut().zip(results) {
            let (Some(offer), Some(frame)) = (&offers[thread.index as usize % 32], thread.frames.last_mut()) else {
                continue;
            };
            let code = &self.codes[frame.function.0 as usize];
            let (dst, ty) = match &offer.instruction.op {
                Op::Product { dst, sum: Type::F64, .. } => (dst.as_slice(), Type::B64),
                Op::Product { dst, .. } | Op::LoadMatrices { dst, .. } => (dst.as_slice(), Type::B32),
                Op::TransposeMatrix { dst, .. } => (std::slice::from_ref(dst), Type::B32),
                _ => (&[][..], Type::B32),
            };
            for (register, value) in dst.iter().zip(results) {
                frame.set(code, *register, ty, value.into());
            }
            thread.state = State::Runnable;
        }
        Ok(())
    }

    /// Gives a lane what it asked for.
    fn take(&self, thread: &mut Thread, offers: &[Option<Offer<'_>>; 32]) {
        let lane = thread.lane();
        let (Some(own), Some(frame)) = (offers[lane as usize].as_ref(), thread.frames.last_mut()) else { return };
        let code = &self.codes[frame.function.0 as usize];
        let present = offers.iter().flatten();
        let lanes = |matches: &dyn Fn(&Offer) -> bool| {
            (0..32).filter(|lane| offers[*lane].as_ref().is_some_and(matches)).map(|lane| 1u64 << lane).sum::<u64>()
        };
        match &own.instruction.op {
            Op::Shuffle { mode, dst, valid, .. } => {
                let (source, in_range) = source_lane(*mode, lane, own.b, own.c);
                // From a lane that is not there: undefined; its own value will do.
                let value = offers[source as usize].as_ref().unwrap_or(own).a;
                if let Some(dst) = dst {
                    frame.set(code, *dst, Type::B32, value.into());
                }
                if let Some(valid) = valid {
                    frame.set(code, *valid, Type::Pred, in_range.into());
                }
            }
            Op::Vote { vote, dst, .. } => {
                let yes = lanes(&|offer| offer.a == 1);
                let no = lanes(&|offer| offer.a == 0);
                let (ty, value) = match vote {
                    Vote::All => (Type::Pred, u64::from(no == 0)),
                    Vote::Any => (Type::Pred, u64::from(yes != 0)),
                    Vote::Uni => (Type::Pred, u64::from(no == 0 || yes == 0)),
                    Vote::Ballot => (Type::B32, yes),
                };
                frame.set(code, *dst, ty, value.into());
            }
            Op::Match { all, dst, valid, .. } => {
                let same = lanes(&|offer| offer.a == own.a);
                let agreed = same == lanes(&|_| true);
                frame.set(code, *dst, Type::B32, if *all && !agreed { 0 } else { same.into() });
                if let Some(valid) = valid {
                    frame.set(code, *valid, Type::Pred, agreed.into());
                }
            }
            Op::Redux { op, ty, dst, .. } => {
                let reduced = present.map(|offer| offer.a).reduce(|x, y| reduce(*op, *ty, x, y)).unwrap_or_default();
                frame.set(code, *dst, *ty, reduced.into());
            }
            Op::Elect { dst, leads, .. } => {
                let leader = (0..32).find(|lane| offers[*lane].is_some()).unwrap_or_default() as u32;
                if let Some(dst) = dst {
                    frame.set(code, *dst, Type::B32, leader.into());
                }
                frame.set(code, *leads, Type::Pred, (leader == lane).into());
            }
            _ => {}
        }
    }
}

/// Whether it is an instruction of whole warps.
fn concerns_matrices(op: &Op) -> bool {
    matches!(op, Op::Product { .. } | Op::LoadMatrices { .. } | Op::StoreMatrices { .. } | Op::TransposeMatrix { .. })
}

fn offer<'t, 'a>(thread: &'t Thread<'a>) -> Option<&'t Offer<'a>> {
    match &thread.state {
        State::Warp(offer) => Some(offer),
        _ => None,
    }
}

fn reduce(op: AtomicOp, ty: Type, x: u64, y: u64) -> u64 {
    atomic(op, ty, x, y, 0) & mask(ty) as u64
}

/// The lane that a shuffle reads, and whether that was in range.
fn source_lane(mode: Shuffle, lane: u32, b: u64, c: u64) -> (u32, bool) {
    let (lane, b, clamp, segment) = (lane as i64, (b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
    let most = lane & segment | clamp & !segment;
    let least = lane & segment;
    let (source, in_range) = match mode {
        Shuffle::Up => (lane - b, lane - b >= most),
        Shuffle::Down => (lane + b, lane + b <= most),
        Shuffle::Bfly => (lane ^ b, lane ^ b <= most),
        Shuffle::Idx => {
            let source = least | b & !segment;
            (source, source <= most)
        }
    };
    if in_range { (source as u32, true) } else { (lane as u32, false) }
}
