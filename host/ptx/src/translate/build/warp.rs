//! Barriers and what the lanes of a warp do together: the places where a thread waits.
//!
//! The thread says what it brings, ends its run with a suspension, and reads what it gets from its frame when it goes on. How lanes' values are combined
//! stands in `lower::meet`.

use super::body::Body;
use crate::module::{AtomicOp, BarrierReduction, Op, Operand, RegisterId, Shuffle, Type, Vote};
use crate::translate::error::Result;
use crate::translate::frame;
use crate::translate::ir::{Input, Kind, Suspension, Terminator, Unary, Value};
use crate::translate::meeting;

impl Body<'_, '_> {
    pub(super) fn warp(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Barrier { barrier, threads, reduction } => self.barrier(barrier, threads.as_ref(), reduction.as_ref()),
            Op::BarrierArrive { barrier, threads } => {
                let (barrier, threads) = (self.operand(barrier, Type::U32)?, self.operand(threads, Type::U32)?);
                self.suspend(Suspension::Arrival { barrier, threads });
                Ok(())
            }
            Op::WarpBarrier { mask } => {
                let mask = self.operand(mask, Type::B32)?;
                self.meet(meeting::SYNC, Some(mask), None, None);
                Ok(())
            }
            Op::Shuffle { .. } => self.shuffle(op),
            Op::Vote { vote, dst, predicate, mask } => {
                let (value, mask) = (self.predicate(predicate), self.operand(mask, Type::B32)?);
                let value = self.widen(value, false);
                self.meet(meeting::VOTE, Some(mask), Some(value), None);
                let (ballot, group) = (self.received(0), self.received(4));
                let zero = self.b.i32(0);
                let (all, none) = (self.b.eq(ballot, group), self.b.eq(ballot, zero));
                match vote {
                    Vote::All => self.write(*dst, Type::Pred, all),
                    Vote::Any => {
                        let any = self.not(none);
                        self.write(*dst, Type::Pred, any);
                    }
                    Vote::Uni => {
                        let uniform = self.b.or(all, none);
                        self.write(*dst, Type::Pred, uniform);
                    }
                    Vote::Ballot => self.write(*dst, Type::B32, ballot),
                }
                Ok(())
            }
            Op::Match { all, ty, dst, valid, a, mask } => {
                let (value, mask) = (self.operand(a, *ty)?, self.operand(mask, Type::B32)?);
                let value = self.bits_of(value);
                let value = if self.b.kind(value) == Kind::I32 { self.widen(value, false) } else { value };
                self.meet(meeting::MATCH, Some(mask), Some(value), None);
                let (same, group) = (self.received(0), self.received(4));
                let (every, zero) = (self.b.eq(same, group), self.b.i32(0));
                let result = if *all { self.b.select(every, same, zero) } else { same };
                self.write(*dst, Type::B32, result);
                if let Some(valid) = valid {
                    self.write(*valid, Type::Pred, every);
                }
                Ok(())
            }
            Op::Redux { op, ty, dst, a, mask } => {
                let (value, mask) = (self.operand(a, *ty)?, self.operand(mask, Type::B32)?);
                let purpose = self.reduction(*op, ty.is_signed())?;
                let value = self.widen(value, false);
                self.meet(purpose, Some(mask), Some(value), None);
                let result = self.received(0);
                self.write(*dst, *ty, result);
                Ok(())
            }
            Op::ActiveMask { dst } => {
                self.meet(meeting::ACTIVE, None, None, None);
                let mask = self.received(0);
                self.write(*dst, Type::B32, mask);
                Ok(())
            }
            Op::Elect { dst, leads, mask } => {
                let mask = self.operand(mask, Type::B32)?;
                self.meet(meeting::VOTE, Some(mask), None, None);
                let group = self.received(4);
                self.elect(*dst, *leads, group);
                Ok(())
            }
            other => self.matrix(other),
        }
    }

    fn suspend(&mut self, suspension: Suspension) {
        let next = self.b.block();
        self.b.end(Terminator::Suspend(suspension, super::ssa::edge(next)));
        self.b.close(next);
        self.b.start(next);
    }

    pub(super) fn meet(&mut self, purpose: u32, mask: Option<Value>, value: Option<Value>, source: Option<Value>) {
        self.suspend(Suspension::Meeting { purpose, mask, value, source });
    }

    /// What the meeting or the barrier left in the thread's frame.
    fn received(&mut self, offset: u32) -> Value {
        let frame = self.input(Input::Frame);
        self.b.load_private(frame, u64::from(frame::RESULT + offset), Kind::I32, 4)
    }

    fn barrier(
        &mut self,
        barrier: &Operand,
        threads: Option<&Operand>,
        reduction: Option<&(BarrierReduction, crate::module::RegisterId, crate::module::Predicate)>,
    ) -> Result<()> {
        let barrier = self.operand(barrier, Type::U32)?;
        let threads = match threads {
            Some(threads) => self.operand(threads, Type::U32)?,
            None => self.b.i32(0),
        };
        let predicate = reduction.map(|(_, _, predicate)| self.predicate(predicate));
        self.suspend(Suspension::Barrier { barrier, threads, predicate });
        let Some((reduction, dst, _)) = reduction else { return Ok(()) };
        let (count, of) = (self.received(0), self.received(4));
        let zero = self.b.i32(0);
        match reduction {
            BarrierReduction::Count => self.write(*dst, Type::U32, count),
            BarrierReduction::All => {
                let all = self.b.eq(count, of);
                self.write(*dst, Type::Pred, all);
            }
            BarrierReduction::Any => {
                let any = self.b.ne(count, zero);
                self.write(*dst, Type::Pred, any);
            }
        }
        Ok(())
    }

    /// `c` holds the clamp in bits 0 to 4 and the segment mask in bits 8 to 12.
    fn shuffle(&mut self, op: &Op) -> Result<()> {
        let Op::Shuffle { mode, dst, valid, a, b, c, mask } = op else { return Ok(()) };
        let value = self.operand(a, Type::B32)?;
        let (b, c) = (self.operand(b, Type::U32)?, self.operand(c, Type::U32)?);
        let mask = self.operand(mask, Type::B32)?;
        let (last, eight) = (self.b.i32(31), self.b.i32(8));
        let lane = self.lane();
        let (distance, clamp) = (self.b.and(b, last), self.b.and(c, last));
        let segment = self.b.shr_u(c, eight);
        let segment = self.b.and(segment, last);
        let inverse = self.b.xor(segment, last);
        let (own, bound) = (self.b.and(lane, segment), self.b.and(clamp, inverse));
        let most = self.b.or(own, bound);
        let (source, within) = match mode {
            Shuffle::Up => {
                let source = self.b.sub(lane, distance);
                (source, self.b.le_s(most, source))
            }
            Shuffle::Down => {
                let source = self.b.add(lane, distance);
                (source, self.b.le_s(source, most))
            }
            Shuffle::Bfly => {
                let source = self.b.xor(lane, distance);
                (source, self.b.le_s(source, most))
            }
            Shuffle::Idx => {
                let index = self.b.and(distance, inverse);
                let source = self.b.or(own, index);
                (source, self.b.le_s(source, most))
            }
        };
        let source = self.b.select(within, source, lane);
        let value = self.widen(value, false);
        self.meet(meeting::SHUFFLE, Some(mask), Some(value), Some(source));
        if let Some(dst) = dst {
            let result = self.received(0);
            self.write(*dst, Type::B32, result);
        }
        if let Some(valid) = valid {
            self.write(*valid, Type::Pred, within);
        }
        Ok(())
    }

    /// The lowest lane of those that came.
    fn elect(&mut self, dst: Option<RegisterId>, leads: RegisterId, group: Value) {
        let (one, zero) = (self.b.i32(1), self.b.i32(0));
        let negated = self.b.sub(zero, group);
        let lowest = self.b.and(group, negated);
        let below = self.b.sub(lowest, one);
        let leader = self.b.unary(Unary::Popcnt, below);
        let lane = self.lane();
        let first = self.b.eq(leader, lane);
        if let Some(dst) = dst {
            self.write(dst, Type::B32, leader);
        }
        self.write(leads, Type::Pred, first);
    }

    fn reduction(&mut self, op: AtomicOp, signed: bool) -> Result<u32> {
        Ok(match (op, signed) {
            (AtomicOp::Add, _) => meeting::ADD,
            (AtomicOp::Min, true) => meeting::MIN_SIGNED,
            (AtomicOp::Max, true) => meeting::MAX_SIGNED,
            (AtomicOp::Min, false) => meeting::MIN,
            (AtomicOp::Max, false) => meeting::MAX,
            (AtomicOp::And, _) => meeting::AND,
            (AtomicOp::Or, _) => meeting::OR,
            (AtomicOp::Xor, _) => meeting::XOR,
            _ => return Err(self.error("this reduction is not defined")),
        })
    }
}
