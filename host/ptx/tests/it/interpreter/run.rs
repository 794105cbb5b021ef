//! Executes a module's functions: control and memory.

use wasmparser::{MemArg, Operator};

use super::code::{Code, Step};
use super::{numeric, vector};

/// Instructions of one run; more are taken for endless.
const MOST_STEPS: u64 = 2_000_000_000;
/// Calls deeper than this are taken for endless.
const MOST_CALLS: usize = 1000;

type Result<T> = std::result::Result<T, String>;

/// A module while it runs. Values of all types are the lower bits of 128.
pub(super) struct State<'c, 'a> {
    code: &'c Code<'a>,
    /// The device's, then the private memory.
    memories: [Vec<u8>; 2],
    globals: Vec<u128>,
    stack: Vec<u128>,
    left: u64,
}

impl<'c, 'a> State<'c, 'a> {
    pub(super) fn new(code: &'c Code<'a>, device: Vec<u8>, private: Vec<u8>) -> Self {
        Self { code, memories: [device, private], globals: vec![0; code.globals], stack: Vec::new(), left: MOST_STEPS }
    }

    /// Runs these blocks.
    pub(super) fn run(&mut self, first: u64, last: u64) -> Result<()> {
        self.stack.extend([first, last].map(u128::from));
        self.call(self.code.entry, 0)
    }

    pub(super) fn into_device(self) -> Vec<u8> {
        let [device, _] = self.memories;
        device
    }

    fn pop(&mut self) -> u128 {
        self.stack.pop().unwrap()
    }

    fn call(&mut self, index: usize, depth: usize) -> Result<()> {
        let code = self.code;
        let function = &code.functions[index];
        let (parameters, results) = code.types[function.ty as usize];
        if depth > MOST_CALLS {
            return Err("calls are nested too deep".into());
        }
        let base = self.stack.len() - parameters;
        let height = base + parameters + function.locals;
        self.stack.resize(height, 0);
        let mut at = 0;
        loop {
            self.left = self.left.checked_sub(1).ok_or("it does not end")?;
            let step = &function.steps[at];
            at += 1;
            match step {
                Step::Jump(target) => at = *target,
                Step::JumpIf(target) => {
                    if self.pop() as u32 != 0 {
                        at = *target;
                    }
                }
                Step::JumpUnless(target) => {
                    if self.pop() as u32 == 0 {
                        at = *target;
                    }
                }
                Step::JumpTable(targets) => at = targets[(self.pop() as u32 as usize).min(targets.len() - 1)],
                Step::Return => {
                    assert_eq!(self.stack.len(), height + results, "something is left on the stack");
                    self.stack.drain(base..height);
                    return Ok(());
                }
                Step::Do(operator) => match operator {
                    Operator::LocalGet { local_index } => self.stack.push(self.stack[base + *local_index as usize]),
                    Operator::LocalSet { local_index } => self.stack[base + *local_index as usize] = self.pop(),
                    Operator::LocalTee { local_index } => {
                        self.stack[base + *local_index as usize] = self.stack[self.stack.len() - 1];
                    }
                    Operator::Call { function_index } => self.call(*function_index as usize, depth + 1)?,
                    Operator::CallIndirect { type_index, .. } => {
                        let index = self.pop() as u32;
                        let callee = code.table.get(index as usize).copied().flatten();
                        let callee = callee.filter(|callee| code.functions[*callee as usize].ty == *type_index);
                        self.call(callee.ok_or("no such function in the table")? as usize, depth + 1)?;
                    }
                    other => self.simple(other)?,
                },
            }
        }
    }

    fn simple(&mut self, operator: &Operator) -> Result<()> {
        match operator {
            Operator::Unreachable => return Err("unreachable".into()),
            Operator::Drop => {
                self.pop();
            }
            Operator::Select | Operator::TypedSelect { .. } => {
                let (condition, no, yes) = (self.pop() as u32, self.pop(), self.pop());
                self.stack.push(if condition != 0 { yes } else { no });
            }
            Operator::GlobalGet { global_index } => self.stack.push(self.globals[*global_index as usize]),
            Operator::GlobalSet { global_index } => self.globals[*global_index as usize] = self.pop(),
            Operator::I32Const { value } => self.stack.push((*value as u32).into()),
            Operator::I64Const { value } => self.stack.push((*value as u64).into()),
            Operator::F64Const { value } => self.stack.push(value.bits().into()),
            Operator::V128Const { value } => self.stack.push(value.i128() as u128),
            other => {
                if !self.accesses(other)? {
                    self.computes(other)?;
                }
            }
        }
        Ok(())
    }

    fn computes(&mut self, operator: &Operator) -> Result<()> {
        let top = self.pop();
        if let Some(result) = numeric::unary(operator, top).or_else(|| vector::unary(operator, top)) {
            self.stack.push(result);
            return Ok(());
        }
        let below = self.pop();
        if let Some(result) = numeric::binary(operator, below, top) {
            self.stack.push(result?);
            return Ok(());
        }
        if let Some(result) = vector::binary(operator, below, top) {
            self.stack.push(result);
            return Ok(());
        }
        let lowest = self.pop();
        self.stack.push(vector::ternary(operator, lowest, below, top).ok_or(format!("{operator:?} is not known"))?);
        Ok(())
    }

    /// Where an access goes.
    fn place(&self, memarg: &MemArg, address: u128, bytes: usize) -> Result<std::ops::Range<usize>> {
        let memory = &self.memories[memarg.memory as usize];
        let wide = memarg.memory == 0 && self.code.wide;
        let address = if wide { address as u64 } else { u64::from(address as u32) };
        let start = address.checked_add(memarg.offset).filter(|start| *start <= memory.len() as u64);
        let start = start.map(|start| start as usize).filter(|start| memory.len() - start >= bytes);
        start.map(|start| start..start + bytes).ok_or_else(|| format!("memory at {address:#x} is out of bounds"))
    }

    fn read(&mut self, memarg: &MemArg, bytes: usize) -> Result<u128> {
        let address = self.pop();
        let place = self.place(memarg, address, bytes)?;
        let mut value = [0; 16];
        value[..bytes].copy_from_slice(&self.memories[memarg.memory as usize][place]);
        Ok(u128::from_le_bytes(value))
    }

    fn write(&mut self, memarg: &MemArg, bytes: usize) -> Result<()> {
        let (value, address) = (self.pop(), self.pop());
        let place = self.place(memarg, address, bytes)?;
        self.memories[memarg.memory as usize][place].copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    /// Loads and stores. Whether it was one.
    fn accesses(&mut self, operator: &Operator) -> Result<bool> {
        use Operator as O;
        let signed = |value: u128, bits: u32| (value as i128) << (128 - bits) >> (128 - bits);
        let (memarg, bytes, sign) = match operator {
            O::I32Load8U { memarg } | O::I64Load8U { memarg } => (memarg, 1, None),
            O::I32AtomicLoad8U { memarg } | O::I64AtomicLoad8U { memarg } => (memarg, 1, None),
            O::I32Load16U { memarg } | O::I64Load16U { memarg } => (memarg, 2, None),
            O::I32AtomicLoad16U { memarg } | O::I64AtomicLoad16U { memarg } => (memarg, 2, None),
            O::I32Load { memarg } | O::I64Load32U { memarg } | O::V128Load32Zero { memarg } => (memarg, 4, None),
            O::I32AtomicLoad { memarg } | O::I64AtomicLoad32U { memarg } => (memarg, 4, None),
            O::I64Load { memarg } | O::F64Load { memarg } | O::I64AtomicLoad { memarg } => (memarg, 8, None),
            O::I32Load8S { memarg } => (memarg, 1, Some(32)),
            O::I32Load16S { memarg } => (memarg, 2, Some(32)),
            O::I64Load8S { memarg } => (memarg, 1, Some(64)),
            O::I64Load16S { memarg } => (memarg, 2, Some(64)),
            O::I64Load32S { memarg } => (memarg, 4, Some(64)),
            O::I32Store8 { memarg } | O::I64Store8 { memarg } => return self.write(memarg, 1).map(|()| true),
            O::I32AtomicStore8 { memarg } | O::I64AtomicStore8 { memarg } => {
                return self.write(memarg, 1).map(|()| true);
            }
            O::I32Store16 { memarg } | O::I64Store16 { memarg } => return self.write(memarg, 2).map(|()| true),
            O::I32AtomicStore16 { memarg } | O::I64AtomicStore16 { memarg } => {
                return self.write(memarg, 2).map(|()| true);
            }
            O::I32Store { memarg } | O::I64Store32 { memarg } | O::F32Store { memarg } => {
                return self.write(memarg, 4).map(|()| true);
            }
            O::I32AtomicStore { memarg } | O::I64AtomicStore32 { memarg } => {
                return self.write(memarg, 4).map(|()| true);
            }
            O::I64Store { memarg } | O::F64Store { memarg } | O::I64AtomicStore { memarg } => {
                return self.write(memarg, 8).map(|()| true);
            }
            O::V128Store { memarg } => return self.write(memarg, 16).map(|()| true),
            O::V128Load { memarg } => (memarg, 16, None),
            O::V128Load64Zero { memarg } => (memarg, 8, None),
            O::V128Load16x4S { memarg } => return self.widens(memarg, |lane| lane as i16 as u32),
            O::V128Load16x4U { memarg } => return self.widens(memarg, u32::from),
            other => return self.replaces(other),
        };
        let value = self.read(memarg, bytes)?;
        self.stack.push(match sign {
            None => value,
            Some(bits) => signed(value, 8 * bytes as u32) as u128 & (u128::MAX >> (128 - bits)),
        });
        Ok(true)
    }

    fn widens(&mut self, memarg: &MemArg, wide: impl Fn(u16) -> u32) -> Result<bool> {
        let value = self.read(memarg, 8)?;
        self.stack.push(vector::widened16(value as u64, wide));
        Ok(true)
    }

    /// Atomic operations that leave something else. Whether it was one.
    fn replaces(&mut self, operator: &Operator) -> Result<bool> {
        use Operator as O;
        type Combine = fn(u64, u64) -> u64;
        let (memarg, bytes, combine): (&MemArg, usize, Combine) = match operator {
            O::I32AtomicRmwAdd { memarg } => (memarg, 4, u64::wrapping_add),
            O::I64AtomicRmwAdd { memarg } => (memarg, 8, u64::wrapping_add),
            O::I32AtomicRmwAnd { memarg } => (memarg, 4, |old, value| old & value),
            O::I64AtomicRmwAnd { memarg } => (memarg, 8, |old, value| old & value),
            O::I32AtomicRmwOr { memarg } => (memarg, 4, |old, value| old | value),
            O::I64AtomicRmwOr { memarg } => (memarg, 8, |old, value| old | value),
            O::I32AtomicRmwXor { memarg } => (memarg, 4, |old, value| old ^ value),
            O::I64AtomicRmwXor { memarg } => (memarg, 8, |old, value| old ^ value),
            O::I32AtomicRmwCmpxchg { memarg } => return self.exchanges(memarg, 4),
            O::I64AtomicRmwCmpxchg { memarg } => return self.exchanges(memarg, 8),
            _ => return Ok(false),
        };
        let (value, address) = (self.pop() as u64, self.pop());
        self.stack.push(address);
        let old = self.read(memarg, bytes)?;
        self.stack.extend([address, combine(old as u64, value).into()]);
        self.write(memarg, bytes)?;
        self.stack.push(old);
        Ok(true)
    }

    fn exchanges(&mut self, memarg: &MemArg, bytes: usize) -> Result<bool> {
        let (new, expected, address) = (self.pop(), self.pop(), self.pop());
        self.stack.push(address);
        let old = self.read(memarg, bytes)?;
        self.stack.extend([address, if old == expected { new } else { old }]);
        self.write(memarg, bytes)?;
        self.stack.push(old);
        Ok(true)
    }
}
