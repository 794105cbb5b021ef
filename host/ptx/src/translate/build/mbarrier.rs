//! `mbarrier`: barriers that are objects in shared memory.
//!
//! ```text
//!  bits 0 … 19   arrivals that the phase still waits for
//!  bits 20 … 39  arrivals that the next phase will wait for
//!  bit 63        the parity of the phase
//! ```
//!
//! What an arrival gives back is the object as it was before. Threads of one block never run at the same moment, so nothing here needs atomic instructions; a loop
//! that tests lets the others run.

use super::body::Body;
use crate::module::{Op, Type};
use crate::translate::error::Result;
use crate::translate::ir::{Unary, Value};

/// Bits of a number of arrivals.
const COUNT: u64 = 20;
/// The bit that holds the parity.
const PARITY: u64 = 63;

impl Body<'_, '_> {
    pub(super) fn mbarrier(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::MbarrierInit { space, address, count } => {
                let target = self.target_of(*space, address)?;
                let count = self.operand(count, Type::U32)?;
                let (count, place) = (self.widen(count, false), self.b.i64(COUNT));
                let expected = self.b.shl(count, place);
                let object = self.b.or(expected, count);
                self.store(target, 0, Type::B64, object, false);
            }
            Op::MbarrierArrive { space, address, state, count, drops } => {
                let target = self.target_of(*space, address)?.exclusive();
                let count = self.operand(count, Type::U32)?;
                let count = self.widen(count, false);
                let before = self.load(target, 0, Type::B64, false)?;
                let after = self.arrived(before, count, *drops);
                self.store(target, 0, Type::B64, after, false);
                if let Some(state) = state {
                    self.write(*state, Type::B64, before);
                }
            }
            Op::MbarrierTest { space, address, dst, parity, phase } => {
                let target = self.target_of(*space, address)?;
                let phase = self.operand(phase, if *parity { Type::U32 } else { Type::B64 })?;
                let object = self.load(target, 0, Type::B64, false)?;
                self.asks();
                let (place, one) = (self.b.i64(PARITY), self.b.i64(1));
                let now = self.b.shr_u(object, place);
                let asked = if *parity {
                    let phase = self.widen(phase, false);
                    self.b.and(phase, one)
                } else {
                    self.b.shr_u(phase, place)
                };
                let over = self.b.ne(now, asked);
                self.write(*dst, Type::Pred, over);
            }
            Op::MbarrierPending { dst, state } => {
                let state = self.operand(state, Type::B64)?;
                let pending = self.pending(state);
                let pending = self.b.unary(Unary::Wrap, pending);
                self.write(*dst, Type::U32, pending);
            }
            _ => return Err(self.error("this instruction has no translation")),
        }
        Ok(())
    }

    /// The lowest number of arrivals in an object.
    fn pending(&mut self, object: Value) -> Value {
        let mask = self.b.i64((1 << COUNT) - 1);
        self.b.and(object, mask)
    }

    /// An object after so many arrivals: the last one begins the next phase.
    fn arrived(&mut self, before: Value, count: Value, drops: bool) -> Value {
        let (place, parity) = (self.b.i64(COUNT), self.b.i64(1 << PARITY));
        let mut after = self.b.sub(before, count);
        if drops {
            let dropped = self.b.shl(count, place);
            after = self.b.sub(after, dropped);
        }
        let pending = self.pending(after);
        let complete = self.b.unary(Unary::IsZero, pending);
        let expected = self.b.shr_u(after, place);
        let expected = self.pending(expected);
        let next = self.b.xor(after, parity);
        let next = self.b.or(next, expected);
        self.b.select(complete, next, after)
    }
}
