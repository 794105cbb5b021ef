//! One instruction of one thread.

use steadfast_ptx::kernel::{Launch, PARAMETERS};
use steadfast_ptx::module::{
    Address, Axis, Callee, Comparison, Function, FunctionId, Instruction, IntegerOp, IntegerUnary, Logic, Op, Operand,
    Predicate, Space, Special, Symbol, Type,
};

use super::block::Block;
use super::thread::{Frame, Offer, State, Thread};
use super::{LOCAL_BYTES, MOST_FRAMES, MOST_INSTRUCTIONS, Oracle, Trap, convert, float, integer, number};

/// A thread while it executes: what its operands depend on.
pub(super) struct View<'a> {
    position: [u32; 3],
    index: u32,
    function: &'a Function,
}

impl<'a> Oracle<'a> {
    /// Executes the next instruction of the thread, which is runnable.
    pub(super) fn step(&mut self, block: &mut Block<'a>, index: usize) -> Result<(), Trap> {
        self.instructions += 1;
        if self.instructions > MOST_INSTRUCTIONS {
            return Err(Trap::Endless);
        }
        let thread = &mut block.threads[index];
        let Some(frame) = thread.frames.last_mut() else { return Err(Trap::Undefined("a thread without a frame")) };
        let instruction = self.codes[frame.function.0 as usize].instructions.get(frame.next).copied();
        frame.next += 1;
        let Some(instruction) = instruction else {
            // The end of a body is a `ret`.
            return self.leave(thread);
        };
        if instruction.guard.is_some_and(|guard| !frame.predicate(guard)) {
            return Ok(());
        }
        let view = View { position: block.position, index: thread.index, function: self.function(frame.function) };
        if let Op::BarrierArrive { barrier, .. } = &instruction.op {
            let barrier = self.get(&view, frame, barrier, Type::U32)?;
            let passed = block.passed.get_mut(barrier as usize).ok_or(Trap::Undefined("a barrier above 15"))?;
            passed.push(thread.index);
            return Ok(());
        }
        if self.transfers_control(&view, thread, instruction)? || self.waits(&view, thread, instruction)? {
            return Ok(());
        }
        let Some(frame) = thread.frames.last_mut() else { return Ok(()) };
        if self.touches_memory(&view, frame, &instruction.op)?
            || self.uses_mbarrier(&view, frame, &instruction.op)?
            || self.moves(&view, frame, &instruction.op)?
        {
            return Ok(());
        }
        self.computes(&view, frame, &instruction.op)
    }

    fn function(&self, id: FunctionId) -> &'a Function {
        self.codes[id.0 as usize].function
    }

    /// Branches, calls, returns. Whether it was one.
    fn transfers_control(
        &mut self,
        view: &View<'a>,
        thread: &mut Thread<'a>,
        instruction: &'a Instruction,
    ) -> Result<bool, Trap> {
        let Some(frame) = thread.frames.last_mut() else { return Ok(false) };
        let labels = &self.codes[frame.function.0 as usize].labels;
        match &instruction.op {
            Op::Branch { target, .. } => frame.next = labels[target.0 as usize],
            Op::BranchTable { index, targets } => {
                let index = self.get(view, frame, index, Type::U32)?;
                let target = targets.get(index as usize).ok_or(Trap::NoSuchTarget(index))?;
                frame.next = labels[target.0 as usize];
            }
            Op::Call { callee, returns, arguments } => self.call(view, thread, callee, returns, arguments)?,
            Op::Return => self.leave(thread)?,
            Op::Exit => thread.state = State::Finished,
            Op::Trap => return Err(Trap::Asked),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn call(
        &mut self,
        view: &View<'a>,
        thread: &mut Thread<'a>,
        callee: &Callee,
        returns: &[Operand],
        arguments: &[Operand],
    ) -> Result<(), Trap> {
        let Some(caller) = thread.frames.last() else { return Ok(()) };
        let callee = match callee {
            Callee::Direct(function) => *function,
            Callee::Indirect { target, candidates } => {
                let index = self.get(view, caller, target, Type::U64)?;
                *candidates.iter().find(|id| u64::from(id.0) == index).ok_or(Trap::NoSuchTarget(index))?
            }
        };
        let code = &self.codes[callee.0 as usize];
        let mut frame = Frame::new(callee, code, caller.stack, returns.to_vec());
        if frame.stack > Thread::local(self.launch.local, thread.index) + LOCAL_BYTES
            || thread.frames.len() == MOST_FRAMES
        {
            return Err(Trap::TooDeep);
        }
        for (index, (parameter, argument)) in code.function.parameters.iter().zip(arguments).enumerate() {
            let bytes = match argument {
                Operand::Address(Symbol::Function(variable), 0) => caller.call_memory[*variable as usize].clone(),
                operand => self.get(view, caller, operand, parameter.element)?.to_le_bytes()
                    [..parameter.bytes as usize]
                    .to_vec(),
            };
            if let Some(register) = parameter.register {
                frame.set(code, register, parameter.element, number(&bytes));
            }
            frame.arguments[index] = bytes;
        }
        thread.frames.push(frame);
        Ok(())
    }

    /// Gives the caller what the function returns; a thread that leaves its entry has finished.
    fn leave(&self, thread: &mut Thread<'a>) -> Result<(), Trap> {
        let Some(left) = thread.frames.pop() else { return Ok(()) };
        let Some(caller) = thread.frames.last_mut() else {
            thread.frames.push(left);
            thread.state = State::Finished;
            return Ok(());
        };
        let (from, to) = (&self.codes[left.function.0 as usize], &self.codes[caller.function.0 as usize]);
        for ((value, bytes), result) in from.function.returns.iter().zip(&left.returns).zip(&left.results) {
            let bytes = match value.register {
                Some(register) => left.register(register).to_le_bytes()[..value.bytes as usize].to_vec(),
                None => bytes.clone(),
            };
            match result {
                Operand::Address(Symbol::Function(variable), 0) => caller.call_memory[*variable as usize] = bytes,
                Operand::Register(register) => caller.set(to, *register, value.element, number(&bytes)),
                _ => return Err(Trap::Undefined("a result that goes nowhere")),
            }
        }
        Ok(())
    }

    /// Barriers, and meetings of a warp. Whether it was one.
    fn waits(&self, view: &View, thread: &mut Thread<'a>, instruction: &'a Instruction) -> Result<bool, Trap> {
        let lane = thread.lane();
        let Some(frame) = thread.frames.last() else { return Ok(false) };
        let get = |operand: &Operand, ty| self.get(view, frame, operand, ty);
        let predicate = |predicate: &Predicate| u64::from(frame.predicate(*predicate));
        let zero = Operand::Immediate(0);
        let whole = Operand::Immediate(u32::MAX.into());
        let mut brought = Vec::new();
        let (members, a, b, c) = match &instruction.op {
            Op::Barrier { barrier, threads, reduction } => {
                let threads = threads.as_ref().map(|threads| get(threads, Type::U32)).transpose()?;
                let holds = reduction.as_ref().is_some_and(|(_, _, predicate)| frame.predicate(*predicate));
                thread.state = State::Barrier { barrier: get(barrier, Type::U32)?, threads, holds };
                return Ok(true);
            }
            Op::WarpBarrier { mask } => (mask, 0, &zero, &zero),
            Op::Shuffle { a, b, c, mask, .. } => (mask, get(a, Type::B32)?, b, c),
            Op::Vote { predicate: holds, mask, .. } => (mask, predicate(holds), &zero, &zero),
            Op::Match { ty, a, mask, .. } | Op::Redux { ty, a, mask, .. } => (mask, get(a, *ty)?, &zero, &zero),
            Op::Elect { mask, .. } => (mask, 0, &zero, &zero),
            Op::Product { sum, a, b, c, .. } => {
                let ty = if *sum == Type::F64 { Type::B64 } else { Type::B32 };
                for operand in a.iter().chain(b).chain(c) {
                    brought.push(get(operand, ty)?);
                }
                (&whole, 0, &zero, &zero)
            }
            Op::LoadMatrices { address, .. } => (&whole, self.address(view, frame, address)?, &zero, &zero),
            Op::StoreMatrices { address, src, .. } => {
                for operand in src {
                    brought.push(get(operand, Type::B32)?);
                }
                (&whole, self.address(view, frame, address)?, &zero, &zero)
            }
            Op::TransposeMatrix { a, .. } => {
                brought.push(get(a, Type::B32)?);
                (&whole, 0, &zero, &zero)
            }
            _ => return Ok(false),
        };
        let members = get(members, Type::B32)? as u32;
        if members >> lane & 1 == 0 {
            return Err(Trap::Undefined("a lane outside its own member mask"));
        }
        let (b, c) = (get(b, Type::B32)?, get(c, Type::B32)?);
        thread.state = State::Warp(Offer { instruction, members, a, b, c, brought });
        Ok(true)
    }

    /// Loads, stores, atomics. Whether it was one.
    fn touches_memory(&mut self, view: &View, frame: &mut Frame, op: &Op) -> Result<bool, Trap> {
        match op {
            Op::Load { space, ty, dst, address, .. } => {
                let bytes = u64::from(ty.bytes());
                for (index, dst) in (0..).zip(dst) {
                    let value = match parameter_bytes(view.function, *space, frame, address) {
                        Some((memory, offset)) => number(part(memory, offset + index * bytes, bytes)?),
                        None if *space == Space::Param => {
                            let at = self.address(view, frame, address)? - u64::from(PARAMETERS);
                            number(part(&self.parameters, at + index * bytes, bytes)?)
                        }
                        None => self.load(self.address(view, frame, address)?.wrapping_add(index * bytes), bytes)?,
                    };
                    if let Some(dst) = dst {
                        frame.set(&self.codes[frame.function.0 as usize], *dst, *ty, value);
                    }
                }
            }
            Op::Store { space, ty, address, src, .. } => {
                let bytes = u64::from(ty.bytes());
                for (index, src) in (0..).zip(src) {
                    let value = self.bits(view, frame, src, *ty)?;
                    match call_bytes(*space, frame, address) {
                        Some((memory, offset)) => {
                            let at = (offset + index * bytes) as usize;
                            let target = memory.get_mut(at..at + bytes as usize);
                            let target = target.ok_or(Trap::Undefined("a store beyond a parameter"))?;
                            target.copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
                        }
                        None => {
                            self.store(self.address(view, frame, address)?.wrapping_add(index * bytes), bytes, value)?;
                        }
                    }
                }
            }
            Op::Atomic { op, ty, dst, address, b, c, .. } => {
                let (at, bytes) = (self.address(view, frame, address)?, u64::from(ty.bytes()));
                let old = self.load(at, bytes)?;
                let b = self.get(view, frame, b, *ty)?;
                let c = c.as_ref().map_or(Ok(0), |c| self.get(view, frame, c, *ty))?;
                self.store(at, bytes, integer::atomic(*op, *ty, old as u64, b, c).into())?;
                if let Some(dst) = dst {
                    frame.set(&self.codes[frame.function.0 as usize], *dst, *ty, old);
                }
            }
            Op::AsyncCopy { bytes, to, from, given, ignored } => {
                let (to, from) = (self.address(view, frame, to)?, self.address(view, frame, from)?);
                let given = match (given, ignored) {
                    (Some(given), _) => self.get(view, frame, given, Type::U32)?,
                    (None, Some(ignored)) if frame.predicate(*ignored) => 0,
                    _ => u64::from(*bytes),
                };
                let given = given.min(u64::from(*bytes));
                let value = if given == 0 { 0 } else { self.load(from, given)? };
                self.store(to, u64::from(*bytes), value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What only moves bits about, or does nothing. Whether it was such.
    fn moves(&self, view: &View, frame: &mut Frame, op: &Op) -> Result<bool, Trap> {
        let code = &self.codes[frame.function.0 as usize];
        match op {
            Op::Mov { ty, dst, src } | Op::ToGeneric { ty, dst, src, .. } | Op::FromGeneric { ty, dst, src, .. } => {
                let value = self.bits(view, frame, src, *ty)?;
                frame.set(code, *dst, *ty, value);
            }
            Op::Pack { ty, dst, parts } => {
                let width = ty.bits() / parts.len() as u32;
                let part = |operand| Ok(self.bits(view, frame, operand, *ty)? & ((1 << width) - 1));
                let parts = parts.iter().map(part).collect::<Result<Vec<u128>, Trap>>()?;
                let value = parts.iter().rev().fold(0, |value, part| value << width | part);
                frame.set(code, *dst, *ty, value);
            }
            Op::Unpack { ty, dst, src } => {
                let width = ty.bits() / dst.len() as u32;
                let value = self.bits(view, frame, src, *ty)?;
                for (index, dst) in (0..).zip(dst) {
                    if let Some(dst) = dst {
                        frame.set(code, *dst, Type::B128, value >> (index * width) & ((1 << width) - 1));
                    }
                }
            }
            Op::IsSpace { space, dst, src } => {
                let address = self.get(view, frame, src, Type::U64)?;
                frame.set(code, *dst, Type::Pred, (self.space_of(address) == *space).into());
            }
            Op::Select { ty, dst, a, b, predicate } => {
                let chosen = if self.get(view, frame, predicate, Type::Pred)? == 1 { a } else { b };
                let value = self.bits(view, frame, chosen, *ty)?;
                frame.set(code, *dst, *ty, value);
            }
            Op::ActiveMask { .. } => return Err(Trap::Undefined("activemask depends on who goes first")),
            Op::Hint | Op::Fence | Op::Yield => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Arithmetic.
    fn computes(&self, view: &View, frame: &mut Frame, op: &Op) -> Result<(), Trap> {
        let code = &self.codes[frame.function.0 as usize];
        let carry = frame.carry;
        let get = |operand: &Operand, ty: Type| self.get(view, frame, operand, ty);
        let u32 = |operand: &Operand| get(operand, Type::U32);
        let combined = |combine: &Option<(Logic, Predicate)>, value: bool| match combine {
            Some((logic, with)) => logic_of(*logic, value.into(), frame.predicate(*with).into()) == 1,
            None => value,
        };
        let (dst, ty, value) = match op {
            Op::Convert { to, from, mode, dst, src, second, .. } => {
                let value = convert::convert(float::half(*to).unwrap_or(*to), *from, *mode, get(src, *from)?);
                match second {
                    Some(lower) => {
                        let half = float::half(*to).unwrap_or(*to);
                        (*dst, *to, value << 16 | convert::convert(half, *from, *mode, get(lower, *from)?))
                    }
                    // It stands in the upper bits of a register.
                    None if *to == Type::Tf32 => (*dst, Type::B32, value << 13),
                    None => (*dst, *to, value),
                }
            }
            Op::ConvertPack { to, from, dst, a, b, c } => {
                let c = c.as_ref().map_or(Ok(0), u32)?;
                (*dst, Type::B32, convert::pack(*to, *from, get(a, *from)?, get(b, *from)?, c))
            }
            Op::Integer { op, ty, saturate, carry: flags, dst, a, b } => {
                let is_shift = matches!(op, IntegerOp::Shl | IntegerOp::Shr);
                let b = if is_shift { u32(b)? } else { get(b, *ty)? };
                let (value, out) = match float::half(*ty) {
                    Some(_) => {
                        let value = float::by_halves(*ty, [get(a, *ty)?, b], |half, [a, b]| {
                            integer::binary(*op, half, *saturate, false, a, b).0
                        });
                        (value, carry)
                    }
                    None => integer::binary(*op, *ty, *saturate, flags.reads && carry, get(a, *ty)?, b),
                };
                frame.carry = if flags.writes { out } else { carry };
                (*dst, integer::result_type(*op, *ty), value)
            }
            Op::MultiplyAdd { op, ty, saturate, carry: flags, dst, a, b, c } => {
                let result = integer::result_type(*op, *ty);
                let operands = [get(a, *ty)?, get(b, *ty)?, get(c, result)?];
                let (value, out) = integer::multiply_add(*op, *ty, *saturate, flags.reads && carry, operands);
                frame.carry = if flags.writes { out } else { carry };
                (*dst, result, value)
            }
            Op::SumAbsoluteDifference { ty, dst, a, b, c } => {
                (*dst, *ty, integer::sum_of_absolute_difference(*ty, get(a, *ty)?, get(b, *ty)?, get(c, *ty)?))
            }
            Op::IntegerUnary { op, ty: Type::Pred, dst, a } => {
                debug_assert_eq!(*op, IntegerUnary::Not);
                (*dst, Type::Pred, get(a, Type::Pred)? ^ 1)
            }
            Op::IntegerUnary { op, ty, dst, a } => {
                let counts = matches!(op, IntegerUnary::Popc | IntegerUnary::Clz | IntegerUnary::Bfind { .. });
                (*dst, if counts { Type::U32 } else { *ty }, integer::unary(*op, *ty, get(a, *ty)?))
            }
            Op::Logic { op, ty, dst, a, b } => (*dst, *ty, logic_of(*op, get(a, *ty)?, get(b, *ty)?)),
            Op::Logic3 { dst, a, b, c, table, truth } => {
                let value = integer::logic3(*table, u32(a)?, u32(b)?, u32(c)?);
                if let Some((logic, register, with)) = truth {
                    let holds = logic_of(*logic, (value != 0).into(), frame.predicate(*with).into());
                    frame.set(code, *register, Type::Pred, holds.into());
                }
                match dst {
                    Some(dst) => (*dst, Type::B32, value),
                    None => return Ok(()),
                }
            }
            Op::FunnelShift { left, wrap, dst, a, b, c } => {
                (*dst, Type::B32, integer::funnel_shift(*left, *wrap, u32(a)?, u32(b)?, u32(c)?))
            }
            Op::BitExtract { ty, dst, a, pos, len } => {
                (*dst, *ty, integer::bit_extract(*ty, get(a, *ty)?, u32(pos)?, u32(len)?))
            }
            Op::BitInsert { ty, dst, a, b, pos, len } => {
                (*dst, *ty, integer::bit_insert(*ty, get(a, *ty)?, get(b, *ty)?, u32(pos)?, u32(len)?))
            }
            Op::BitMask { wrap, dst, pos, len } => (*dst, Type::B32, integer::bit_mask(*wrap, u32(pos)?, u32(len)?)),
            Op::ExtendFrom { wrap, ty, dst, a, n } => {
                (*dst, *ty, integer::extend_from(*wrap, *ty, get(a, *ty)?, u32(n)?))
            }
            Op::FindNthSet { dst, mask, base, offset } => {
                (*dst, Type::B32, integer::find_nth_set(u32(mask)?, u32(base)?, u32(offset)?))
            }
            Op::Permute { mode, dst, a, b, selector } => {
                (*dst, Type::B32, integer::permute(*mode, u32(a)?, u32(b)?, u32(selector)?))
            }
            Op::Dot4 { a_ty, b_ty, dst, a, b, c } => {
                (*dst, Type::B32, integer::dot(8, (*a_ty, u32(a)?), (*b_ty, u32(b)?), 4, u32(c)?))
            }
            Op::Dot2 { upper, a_ty, b_ty, dst, a, b, c } => {
                let bytes = u32(b)? >> if *upper { 16 } else { 0 };
                (*dst, Type::B32, integer::dot(16, (*a_ty, u32(a)?), (*b_ty, bytes), 2, u32(c)?))
            }
            Op::Float { op, ty, mode, dst, a, b } => {
                (*dst, *ty, float::binary(*op, *ty, *mode, get(a, *ty)?, get(b, *ty)?))
            }
            Op::Fma { ty, mode, dst, a, b, c } => {
                (*dst, *ty, float::fused(*ty, *mode, get(a, *ty)?, get(b, *ty)?, get(c, *ty)?))
            }
            Op::FloatUnary { op, ty, mode, dst, a } => (*dst, *ty, float::unary(*op, *ty, *mode, get(a, *ty)?)),
            Op::Test { test, ty, dst, a } => (*dst, Type::Pred, float::test(*test, *ty, get(a, *ty)?).into()),
            Op::SetPredicate { comparison, ty, flush, dst, inverse, a, b, combine } => {
                let (a, b) = (get(a, *ty)?, get(b, *ty)?);
                let (first, second) = match float::half(*ty) {
                    Some(half) => {
                        let [lower, upper] = [0, 16]
                            .map(|shift| compare(*comparison, half, *flush, a >> shift & 0xffff, b >> shift & 0xffff));
                        (lower, upper)
                    }
                    None => {
                        let holds = compare(*comparison, *ty, *flush, a, b);
                        (holds, !holds)
                    }
                };
                let (first, second) = (combined(combine, first), combined(combine, second));
                if let Some(inverse) = inverse {
                    frame.set(code, *inverse, Type::Pred, second.into());
                }
                if let Some(dst) = dst {
                    frame.set(code, *dst, Type::Pred, first.into());
                }
                return Ok(());
            }
            Op::Set { comparison, to, ty, flush, dst, a, b, combine } => {
                let value = float::by_halves(*ty, [get(a, *ty)?, get(b, *ty)?], |ty, [a, b]| {
                    let holds = combined(combine, compare(*comparison, ty, *flush, a, b));
                    let yes =
                        if to.is_float() { super::exact::Format::of(*to).one() } else { integer::mask(*to) as u64 };
                    if holds { yes } else { 0 }
                });
                (*dst, *to, value)
            }
            Op::SelectBySign { ty, c_ty, flush, dst, a, b, c } => {
                let c = get(c, *c_ty)?;
                let chosen = if compare(Comparison::Ge, *c_ty, *flush, c, 0) { a } else { b };
                (*dst, *ty, get(chosen, *ty)?)
            }
            _ => return Err(Trap::Undefined("an instruction that is handled elsewhere")),
        };
        frame.set(code, dst, ty, value.into());
        Ok(())
    }

    pub(super) fn get(&self, view: &View, frame: &Frame, operand: &Operand, ty: Type) -> Result<u64, Trap> {
        Ok(self.bits(view, frame, operand, ty)? as u64)
    }

    /// An operand in the width of its type.
    fn bits(&self, view: &View, frame: &Frame, operand: &Operand, ty: Type) -> Result<u128, Trap> {
        let bits = match operand {
            Operand::Register(register) => frame.register(*register),
            Operand::Immediate(bits) => u128::from(*bits),
            Operand::Special(special) => self.special(view, *special).into(),
            Operand::Address(symbol, offset) => self.address_of(frame, *symbol)?.wrapping_add_signed(*offset).into(),
        };
        Ok(bits & integer::mask(ty))
    }

    pub(super) fn address(&self, view: &View, frame: &Frame, address: &Address) -> Result<u64, Trap> {
        Ok(self.get(view, frame, &address.base, Type::U64)?.wrapping_add_signed(address.offset))
    }

    fn address_of(&self, frame: &Frame, symbol: Symbol) -> Result<u64, Trap> {
        let undefined = Trap::Undefined("the address of something that is in no memory");
        match symbol {
            Symbol::Module(index) => match self.module.variables[index as usize].space {
                Space::Shared => Ok(self.shared[&(None, index)]),
                space => {
                    let base = if space == Space::Const { self.launch.constants } else { self.launch.globals };
                    self.layout.offsets[index as usize].map(|offset| base + offset).ok_or(undefined)
                }
            },
            Symbol::Function(index) => match self.function(frame.function).variables[index as usize].space {
                Space::Shared => Ok(self.shared[&(Some(frame.function), index)]),
                Space::Local => Ok(frame.locals[index as usize]),
                _ => Err(undefined),
            },
            Symbol::Parameter(index) if self.function(frame.function).entry => {
                Ok(u64::from(PARAMETERS + self.function(frame.function).parameters[index as usize].offset))
            }
            Symbol::Code(function) => Ok(function.0.into()),
            Symbol::Parameter(_) | Symbol::Return(_) => Err(undefined),
        }
    }

    fn space_of(&self, address: u64) -> Space {
        let Launch { shared, local, constants, block, .. } = self.launch;
        let threads = u64::from(block.iter().product::<u32>());
        let within = |start: u64, end: u64| start <= address && address < end;
        if within(shared, self.shared_end) {
            Space::Shared
        } else if within(local, local + threads * LOCAL_BYTES) {
            Space::Local
        } else if within(constants, constants + self.layout.const_bytes) {
            Space::Const
        } else {
            Space::Global
        }
    }

    fn special(&self, view: &View, special: Special) -> u64 {
        let [x, y, _] = self.launch.block;
        let threads: u32 = self.launch.block.iter().product();
        let (lane, warp) = (view.index % 32, view.index / 32);
        let value = match special {
            Special::Thread(axis) => [view.index % x, view.index / x % y, view.index / x / y][along(axis)],
            Special::BlockSize(axis) => self.launch.block[along(axis)],
            Special::Block(axis) => view.position[along(axis)],
            Special::GridSize(axis) => self.launch.grid[along(axis)],
            Special::Lane => lane,
            Special::Warp => warp,
            Special::WarpCount => threads.div_ceil(32),
            Special::ProcessorCount => 1,
            Special::Processor | Special::Grid | Special::Clock => 0,
            Special::LaneMask(comparison) => (0..32)
                .filter(|other: &u32| float::holds(comparison, Some(other.cmp(&lane))))
                .map(|other| 1 << other)
                .sum(),
            Special::DynamicSharedBytes => self.launch.dynamic_shared,
            Special::TotalSharedBytes => (self.shared_end - self.launch.shared) as u32,
        };
        value.into()
    }
}

fn along(axis: Axis) -> usize {
    match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

fn logic_of(logic: Logic, a: u64, b: u64) -> u64 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

fn compare(comparison: Comparison, ty: Type, flush: bool, a: u64, b: u64) -> bool {
    if ty.is_float() { float::compare(comparison, ty, flush, a, b) } else { integer::compare(comparison, ty, a, b) }
}

/// The parameter of a device function, or the variable of a call, that a load from the space `param` names; and where in it.
fn parameter_bytes<'f>(
    function: &Function,
    space: Space,
    frame: &'f Frame,
    address: &Address,
) -> Option<(&'f [u8], u64)> {
    if space != Space::Param {
        return None;
    }
    let Operand::Address(symbol, offset) = address.base else { return None };
    let memory = match symbol {
        Symbol::Parameter(index) if !function.entry => &frame.arguments[index as usize],
        Symbol::Return(index) => &frame.returns[index as usize],
        Symbol::Function(index) => &frame.call_memory[index as usize],
        _ => return None,
    };
    Some((memory, (offset + address.offset) as u64))
}

/// The same for a store.
fn call_bytes<'f>(space: Space, frame: &'f mut Frame, address: &Address) -> Option<(&'f mut [u8], u64)> {
    if space != Space::Param {
        return None;
    }
    let Operand::Address(symbol, offset) = address.base else { return None };
    let memory = match symbol {
        Symbol::Return(index) => &mut frame.returns[index as usize],
        Symbol::Function(index) => &mut frame.call_memory[index as usize],
        Symbol::Parameter(index) => &mut frame.arguments[index as usize],
        _ => return None,
    };
    Some((memory, (offset + address.offset) as u64))
}

fn part(memory: &[u8], offset: u64, bytes: u64) -> Result<&[u8], Trap> {
    memory.get(offset as usize..(offset + bytes) as usize).ok_or(Trap::Undefined("a load beyond a parameter"))
}
