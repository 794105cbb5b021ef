//! Barriers that are objects in memory. How one looks is nobody's business: other than in the translation, so that no test can depend on it.
//!
//! ```text
//!  bits 0 … 19   arrivals that a phase takes      bits 20 … 39  those that have come      bits 40 … 63  phases that are over
//! ```

use steadfast_ptx::module::{Op, Type};

use super::step::View;
use super::thread::Frame;
use super::{Oracle, Trap};

/// An object taken apart.
struct Barrier {
    expected: u64,
    arrived: u64,
    phases: u64,
}

impl Barrier {
    fn from(bits: u64) -> Self {
        Self { expected: bits & 0xf_ffff, arrived: bits >> 20 & 0xf_ffff, phases: bits >> 40 }
    }

    fn bits(&self) -> u64 {
        self.expected | self.arrived << 20 | (self.phases & 0xff_ffff) << 40
    }

    fn arrive(&mut self, count: u64, drops: bool) -> Result<(), Trap> {
        if self.expected - self.arrived < count {
            return Err(Trap::Undefined("more arrivals than a barrier takes"));
        }
        if drops {
            self.expected -= count;
        } else {
            self.arrived += count;
        }
        if self.arrived == self.expected {
            self.arrived = 0;
            self.phases += 1;
        }
        Ok(())
    }
}

impl<'a> Oracle<'a> {
    /// Whether it was an instruction on a barrier.
    pub(super) fn uses_mbarrier(&mut self, view: &View<'a>, frame: &mut Frame, op: &Op) -> Result<bool, Trap> {
        let code = frame.function.0 as usize;
        match op {
            Op::MbarrierInit { address, count, .. } => {
                let (at, count) = (self.address(view, frame, address)?, self.get(view, frame, count, Type::U32)?);
                let barrier = Barrier { expected: count, arrived: 0, phases: 0 };
                self.store(at, 8, barrier.bits().into())?;
            }
            Op::MbarrierArrive { address, state, count, drops, .. } => {
                let (at, count) = (self.address(view, frame, address)?, self.get(view, frame, count, Type::U32)?);
                let before = self.load(at, 8)?;
                let mut barrier = Barrier::from(before as u64);
                barrier.arrive(count, *drops)?;
                self.store(at, 8, barrier.bits().into())?;
                if let Some(state) = state {
                    frame.set(&self.codes[code], *state, Type::B64, before);
                }
            }
            Op::MbarrierTest { address, dst, parity, phase, .. } => {
                let at = self.address(view, frame, address)?;
                let asked = self.get(view, frame, phase, if *parity { Type::U32 } else { Type::B64 })?;
                let asked = if *parity { asked } else { Barrier::from(asked).phases };
                let over = (Barrier::from(self.load(at, 8)? as u64).phases ^ asked) & 1;
                frame.set(&self.codes[code], *dst, Type::Pred, over.into());
            }
            Op::MbarrierPending { dst, state } => {
                let barrier = Barrier::from(self.get(view, frame, state, Type::B64)?);
                let pending = barrier.expected - barrier.arrived;
                frame.set(&self.codes[code], *dst, Type::U32, pending.into());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
