//! What a region notes for the scheduler while it runs lanes of a warp: who ended, who waits and for what.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use wasm_encoder::{BlockType, InstructionSink, ValType};

use super::module::Parts;
use super::region::at;
use super::schedule;
use super::unit::{Code, Unit};
use crate::translate::frame;
use crate::translate::ir::{Inst, Value};

/// Masks of lanes, in locals of the region's function, and what is known of those who wait.
pub struct Outcome {
    /// The lanes that run at present.
    pub running: u32,
    /// Those that ran …
    pub executed: u32,
    /// … and ended, …
    pub exited: u32,
    /// … or wait for others of the warp …
    pub meeting: u32,
    /// … or at a barrier.
    pub waiting: u32,
    /// By barrier and what is said of those who come, the local with their lanes.
    arrivals: RefCell<BTreeMap<(u32, u32), u32>>,
    /// For what lanes meet others; none where it is known only when they do.
    purposes: RefCell<HashSet<Option<(u32, u64)>>>,
}

impl Outcome {
    /// With locals of its own.
    pub fn new(code: &mut Code) -> Self {
        let mut local = || code.fresh(ValType::I32);
        Self {
            running: local(),
            executed: local(),
            exited: local(),
            meeting: local(),
            waiting: local(),
            arrivals: RefCell::default(),
            purposes: RefCell::default(),
        }
    }

    /// Adds the lanes that run to a mask.
    pub fn note(&self, code: &mut Code, mask: u32) {
        code.sink().local_get(mask).local_get(self.running).i32_or().local_set(mask);
    }

    /// Counts the lanes at a barrier that is known beforehand, when the region ends; whether it is.
    pub fn arrives(&self, unit: &mut Unit<'_>, barrier: Value, threads: Value, said: u32) -> bool {
        let known = |value: Value| match unit.function.inst(value) {
            Inst::Const(bits) => Some(*bits as u32),
            _ => None,
        };
        let (Some(barrier), Some(threads)) = (known(barrier), known(threads)) else { return false };
        let key = (barrier, threads & 0xffff | said << 16);
        let local = *self.arrivals.borrow_mut().entry(key).or_insert_with(|| unit.code.fresh(ValType::I32));
        self.note(&mut unit.code, local);
        true
    }

    /// Notes for what lanes meet others: if all come alike, nobody need compare them. Without a mask, `number` says where they go on.
    pub fn purpose(&self, unit: &Unit<'_>, purpose: u32, mask: Option<Value>, number: u32) {
        let mask = match mask {
            None => Some(u64::from(number)),
            Some(mask) => match unit.function.inst(mask) {
                Inst::Const(bits) => Some(*bits),
                _ => None,
            },
        };
        self.purposes.borrow_mut().insert(mask.map(|mask| (purpose, mask)));
    }

    /// If all lanes of a warp can only have come to one barrier, and wait there for all threads of the block: the local with those that have, and the arguments of [`schedule::ARRIVE`].
    pub fn only_barrier(&self) -> Option<(u32, [u32; 2])> {
        let arrivals = self.arrivals.borrow();
        let all = |threads: u32| threads == schedule::WAITS << 16;
        match arrivals.iter().collect::<Vec<_>>()[..] {
            [(&(barrier, threads), &lanes)] if all(threads) && barrier < frame::BARRIERS => {
                Some((lanes, [barrier, threads]))
            }
            _ => None,
        }
    }

    /// Before it is the next warp's turn.
    pub fn forget(&self, code: &mut Code) {
        let arrivals = self.arrivals.borrow();
        let masks = [self.executed, self.exited, self.meeting, self.waiting];
        for mask in masks.iter().chain(arrivals.values()) {
            code.sink().i32_const(0).local_set(*mask);
        }
    }

    /// Tells the scheduler; `base` is a local with the index of the warp's first thread.
    pub fn tell(&self, code: &mut Code, parts: &Parts<'_>, base: u32) {
        let mut sink = code.sink();
        for ((barrier, threads), lanes) in &*self.arrivals.borrow() {
            sink.local_get(*lanes).if_(BlockType::Empty);
            sink.local_get(base).i32_const(5).i32_shr_u().local_get(*lanes);
            sink.i32_const(*barrier as i32).i32_const(*threads as i32).call(schedule::ARRIVE).end();
        }
        let record = |sink: &mut InstructionSink<'_>| {
            sink.local_get(base).i32_const(5).i32_shr_u().i32_const(4).i32_shl();
        };
        let of_warp = |offset: u32| at(parts.layout.warps + offset);
        for (offset, local) in [(frame::EXITED, self.exited), (frame::MEETING, self.meeting)] {
            record(&mut sink);
            record(&mut sink);
            sink.i32_load(of_warp(offset)).local_get(local).i32_or().i32_store(of_warp(offset));
        }
        let purposes = self.purposes.borrow();
        if !purposes.is_empty() {
            record(&mut sink);
            if purposes.len() == 1 && !purposes.contains(&None) {
                // Those who were there before may have come for something else.
                sink.local_get(self.meeting).i32_const(0).local_get(self.meeting);
                record(&mut sink);
                sink.i32_load(of_warp(frame::MEETING)).i32_eq().select();
            } else {
                sink.i32_const(0);
            }
            sink.i32_store(of_warp(frame::ALIKE));
        }
        record(&mut sink);
        record(&mut sink);
        sink.i32_load(of_warp(frame::READY));
        sink.local_get(self.exited).local_get(self.meeting).i32_or().local_get(self.waiting).i32_or();
        sink.i32_const(-1).i32_xor().i32_and().i32_store(of_warp(frame::READY));
    }
}
