//! Writes one WebAssembly function.

use std::collections::HashMap;

use wasm_encoder::{InstructionSink, ValType};

use super::module::{MADE, Parts, Places};
use super::plan::Plan;
use super::vector::{Lanes, Part};
use crate::module::Position;
use crate::translate::ir::{Function, Input, Inst, Kind, Value};
use crate::translate::tidy::has_effect;

/// Index of the device memory in the generated module.
pub const DEVICE: u32 = 0;
/// Index of the private memory.
pub const PRIVATE: u32 = 1;
/// Reads of a block that are written for one group before it is the next one's turn, at most.
const MOST_READS: u32 = 4;
/// Vectors that may be there at once: half as many as the processor has registers.
const MOST_VECTORS: u32 = 8;

/// The type in which values of a kind are held. `F32` lies in the lowest lane of a vector: fused multiplication and addition is a vector instruction, and moving
/// between scalars and vectors at each of them would cost more than the computation.
pub fn wasm_type(kind: Kind) -> ValType {
    match kind {
        Kind::I32 => ValType::I32,
        Kind::I64 => ValType::I64,
        Kind::F32 => ValType::V128,
        Kind::F64 => ValType::F64,
    }
}

/// The code of one WebAssembly function.
pub struct Code {
    bytes: Vec<u8>,
    parameters: u32,
    locals: Vec<ValType>,
    free: HashMap<ValType, Vec<u32>>,
    /// Offsets in `bytes` and where in the text the instruction there comes from.
    pub positions: Vec<(u32, Position)>,
}

impl Code {
    /// Of a function with so many parameters.
    pub fn new(parameters: u32) -> Self {
        Self { bytes: Vec::new(), parameters, locals: Vec::new(), free: HashMap::new(), positions: Vec::new() }
    }

    /// Where instructions are written to.
    pub fn sink(&mut self) -> InstructionSink<'_> {
        InstructionSink::new(&mut self.bytes)
    }

    /// A local, perhaps used before.
    pub fn local(&mut self, ty: ValType) -> u32 {
        if let Some(local) = self.free.get_mut(&ty).and_then(Vec::pop) {
            return local;
        }
        self.fresh(ty)
    }

    /// A local that nothing else uses: it is 0 until it is written.
    pub fn fresh(&mut self, ty: ValType) -> u32 {
        self.locals.push(ty);
        self.parameters + self.locals.len() as u32 - 1
    }

    /// Gives a local back.
    pub fn release(&mut self, local: u32) {
        let ty = self.locals[(local - self.parameters) as usize];
        self.free.entry(ty).or_default().push(local);
    }

    /// Notes that what is written next may trap, and where in the text it stands.
    pub fn mark(&mut self, position: Position) {
        if self.positions.last().is_none_or(|(_, last)| *last != position) {
            self.positions.push((self.bytes.len() as u32, position));
        }
    }

    /// The body of the function: declarations of locals and code; and where in it the code begins.
    pub fn finish(mut self) -> (Vec<u8>, u32, Places) {
        self.sink().end();
        let mut function = wasm_encoder::Function::new_with_locals_types(self.locals);
        let start = function.byte_len() as u32;
        function.raw(self.bytes);
        (function.into_raw_body(), start, self.positions)
    }
}

/// Where the things of a thread are found in this unit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Thread {
    /// Local with the linear index.
    pub linear: u32,
    /// Locals with the place by axis.
    pub axes: Option<[u32; 3]>,
    /// Local with the place in one number.
    pub packed: Option<u32>,
    /// Local with the address of the frame.
    pub frame: Option<u32>,
    /// The call area: at an address, or so many bytes behind one in a local.
    pub call_area: Area,
    /// That of functions which this one calls.
    pub next_call_area: Area,
}

/// An address in the private memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Area {
    /// A local with an address.
    pub local: Option<u32>,
    /// Added to it.
    pub offset: u32,
}

/// One function of the intermediate form, or a part of it, on its way to WebAssembly.
pub struct Unit<'a> {
    /// What is lowered.
    pub function: &'a Function,
    /// How its values are made.
    pub plan: Plan,
    /// The code so far.
    pub code: Code,
    /// Where the things of a thread are found.
    pub thread: Thread,
    /// What it shares with other units.
    pub parts: &'a Parts<'a>,
    /// What it needs to run four threads at once; without it, it runs one.
    pub lanes: Option<Lanes<'a>>,
    locals: Locals,
}

/// The local of a value, by the group of lanes whose it is: 0 where one stands for all.
pub type Locals = HashMap<(Value, u32), u32>;

impl<'a> Unit<'a> {
    /// A unit of which nothing is written yet.
    pub fn new(function: &'a Function, plan: Plan, code: Code, parts: &'a Parts<'a>) -> Self {
        Self { function, plan, code, thread: Thread::default(), parts, lanes: None, locals: HashMap::new() }
    }

    /// Where instructions are written to.
    pub fn sink(&mut self) -> InstructionSink<'_> {
        self.code.sink()
    }

    /// The local of a value.
    pub fn local_of(&mut self, value: Value) -> u32 {
        let slot = self.slot(value);
        if let Some(local) = self.locals.get(&slot) {
            return *local;
        }
        let local = self.code.local(self.local_type(value));
        self.locals.insert(slot, local);
        local
    }

    fn local_type(&self, value: Value) -> ValType {
        let vector = self.lanes.as_ref().is_some_and(|lanes| !lanes.is_line(value));
        if vector { ValType::V128 } else { wasm_type(self.function.kind(value)) }
    }

    /// Computes what is the same for all threads.
    pub fn preamble(&mut self) {
        for value in std::mem::take(&mut self.plan.first) {
            self.define(value);
        }
    }

    fn define(&mut self, value: Value) {
        self.expression(value);
        let local = self.local_of(value);
        self.sink().local_set(local);
    }

    /// The instructions of a block; `depth` labels are open within the unit.
    pub fn block(&mut self, block: u32, uniform: &[bool], depth: u32) {
        if let Some(lanes) = &mut self.lanes {
            lanes.depth = depth;
            if let Some(received) = lanes.received_at.remove(&block) {
                lanes.received = received;
            }
        }
        let insts = &self.function.blocks[block as usize].insts;
        let ends = self.ends(insts);
        // What is found out in front of the branch.
        let later =
            self.lanes.as_ref().and_then(|lanes| lanes.decision(block)).map_or(&[][..], |decision| &decision.indices);
        // What is still to be written for each of the groups that stand side by side.
        let mut waiting = Vec::new();
        let mut reads = 0;
        for (index, value) in insts.iter().enumerate() {
            if uniform[value.0 as usize] || self.plan.inlined[value.0 as usize] || later.contains(&index) {
                continue;
            }
            if self.for_each_group(*value) {
                reads += u32::from(matches!(self.function.inst(*value), Inst::Load(..)));
                if reads > MOST_READS {
                    self.groups(block, &std::mem::take(&mut waiting), &ends);
                    reads = 1;
                }
                waiting.push(index);
                continue;
            }
            if self.comes_after(insts, &waiting, *value) {
                self.groups(block, &std::mem::take(&mut waiting), &ends);
                reads = 0;
            }
            self.instruction(block, index);
            if waiting.is_empty() {
                self.forget_last(&ends, index);
            }
            self.keep_result(*value);
        }
        self.groups(block, &waiting, &ends);
        if let Some(lanes) = &mut self.lanes {
            lanes.at = (block, insts.len());
        }
    }

    /// By instruction, the values with a local for this block only that are read there for the last time.
    fn ends(&self, insts: &[Value]) -> HashMap<usize, Vec<Value>> {
        let mut ends: HashMap<usize, Vec<Value>> = HashMap::new();
        for value in insts.iter().filter(|value| !self.plan.global[value.0 as usize]) {
            let last = self.plan.last.get(value).copied().unwrap_or(insts.len());
            ends.entry(last).or_default().push(*value);
        }
        ends
    }

    /// Whether it is written once for each of several groups, all of a block's instructions for one after the other.
    fn for_each_group(&self, value: Value) -> bool {
        let line = self.function.values[value.0 as usize].kind.is_some()
            && self.lanes.as_ref().is_some_and(|lanes| lanes.is_line(value));
        !line && self.group_count() > 1
    }

    /// Whether an instruction must not come before those that are still to be written: it reads what they may write, or writes; or threads may part in front of it, which then need what
    /// these compute.
    fn comes_after(&self, insts: &[Value], waiting: &[usize], value: Value) -> bool {
        if self.may_part(value) {
            return true;
        }
        let effect = |value: Value| has_effect(self.function.inst(value));
        let reads = matches!(self.function.inst(value), Inst::Load(access, _) if !access.constant);
        effect(value) || reads && waiting.iter().any(|index| effect(insts[*index]))
    }

    /// Writes instructions of a block for each group.
    fn groups(&mut self, block: u32, waiting: &[usize], ends: &HashMap<usize, Vec<Value>>) {
        let insts = &self.function.blocks[block as usize].insts;
        let made = self.made_at_once(insts, waiting);
        self.each_group(|unit| {
            for index in waiting {
                unit.instruction(block, *index);
                unit.forget_last(ends, *index);
                unit.keep_result(insts[*index]);
            }
            for value in &made {
                let local = unit.local_of(*value);
                unit.sink().local_get(local).global_set(MADE);
            }
        });
    }

    /// What one group has to compute before it is the next one's turn. The compiler of WebAssembly leaves what has no effect until something with an effect needs it, but reads keep
    /// their places: the vectors that all groups read would be there at once, and not in registers.
    fn made_at_once(&self, insts: &[Value], written: &[usize]) -> Vec<Value> {
        let inst = |index: &&usize| self.function.inst(insts[**index]);
        let reads = written.iter().filter(|index| matches!(inst(index), Inst::Load(..))).count();
        if reads as u32 * self.group_count() <= MOST_VECTORS {
            return Vec::new();
        }
        let end = written.last().copied().unwrap_or_default();
        let later = |value: &Value| {
            let plan = &self.plan;
            plan.global[value.0 as usize] || plan.last.get(value).is_some_and(|last| *last > end)
        };
        let made = written.iter().filter(|index| !has_effect(inst(index)) && !matches!(inst(index), Inst::Load(..)));
        made.map(|index| insts[*index]).filter(later).collect()
    }

    /// Defines what was left to be found out in front of a block's branch.
    pub fn define_for_each_group(&mut self, block: u32, indices: &[usize]) {
        self.groups(block, indices, &HashMap::new());
        let end = self.function.blocks[block as usize].insts.len();
        if let Some(lanes) = &mut self.lanes {
            lanes.at = (block, end);
        }
    }

    fn instruction(&mut self, block: u32, index: usize) {
        let value = self.function.blocks[block as usize].insts[index];
        if let Some(lanes) = &mut self.lanes {
            lanes.at = (block, index);
            self.vector(value);
        } else {
            self.expression(value);
        }
    }

    /// Writes what is on the stack to the locals of a value that something reads.
    fn keep_result(&mut self, value: Value) {
        if self.function.values[value.0 as usize].kind.is_none() {
            return;
        }
        if self.plan.uses[value.0 as usize] > 0 || self.plan.global[value.0 as usize] {
            self.keep(value);
            return;
        }
        for _ in 0..self.locals_of(value) {
            self.sink().drop();
        }
    }

    /// Gives back the locals of what an instruction was the last to read. What stands for several groups is kept for those that come.
    fn forget_last(&mut self, ends: &HashMap<usize, Vec<Value>>, index: usize) {
        for value in ends.get(&index).into_iter().flatten() {
            if self.group_count() == 1 || self.for_each_group(*value) {
                self.forget(*value);
            }
        }
    }

    /// Gives back the locals of values that only this block reads, when its terminator is written.
    pub fn after_block(&mut self, block: u32) {
        let insts = &self.function.blocks[block as usize].insts;
        for value in insts {
            if !self.plan.global[value.0 as usize] {
                self.each_group(|unit| unit.forget(*value));
            }
        }
    }

    /// Of the group that is written.
    fn forget(&mut self, value: Value) {
        let slot = self.slot(value);
        let second = self.lanes.as_mut().and_then(|lanes| lanes.seconds.remove(&slot));
        for local in self.locals.remove(&slot).into_iter().chain(second) {
            self.code.release(local);
        }
    }

    /// The locals of what is the same for all threads.
    pub fn common_locals(&self, uniform: &[bool]) -> (Locals, Locals) {
        let common = self.locals.iter().filter(|((value, _), _)| uniform[value.0 as usize]);
        (common.map(|(slot, local)| (*slot, *local)).collect(), Locals::new())
    }

    /// Puts other locals in the place of those that hold values now, and gives these: for groups of threads whose code stands side by side.
    pub fn swap_locals(&mut self, (locals, seconds): (Locals, Locals)) -> (Locals, Locals) {
        let seconds = self.lanes.as_mut().map(|lanes| std::mem::replace(&mut lanes.seconds, seconds));
        (std::mem::replace(&mut self.locals, locals), seconds.unwrap_or_default())
    }

    /// Puts the condition of a branch on the stack, `depth` labels being open within the unit.
    pub fn condition(&mut self, value: Value, depth: u32) {
        if let Some(lanes) = &mut self.lanes {
            lanes.depth = depth;
            self.agreed(value);
        } else {
            self.value(value);
        }
    }

    /// Puts what a block's parameter becomes on the stack, and notes the locals where it belongs.
    pub fn argument(&mut self, parameter: Value, argument: Value, targets: &mut Vec<u32>) {
        if self.lanes.is_none() {
            self.value(argument);
            targets.push(self.local_of(parameter));
            return;
        }
        let mut one = |unit: &mut Self| {
            unit.vector_argument(parameter, argument);
            unit.targets(parameter, targets);
        };
        if self.for_each_group(parameter) {
            self.each_group(one);
        } else {
            one(self);
        }
    }

    /// Puts a value on the stack, or of a unit with lanes the part that is asked for.
    pub fn value(&mut self, value: Value) {
        match self.lanes.as_ref().map(|lanes| lanes.part) {
            None | Some(Part::Base) => self.scalar_value(value),
            Some(part) => self.part_of(value, part),
        }
    }

    /// Puts what stands in the first local of a value on the stack.
    pub fn scalar_value(&mut self, value: Value) {
        match self.function.inst(value) {
            Inst::Const(bits) => self.constant(self.function.kind(value), *bits),
            Inst::Argument(index) => {
                let local = self.lanes.as_ref().map_or(*index, |lanes| lanes.argument(*index));
                self.sink().local_get(local);
            }
            Inst::Input(input) => self.input(*input),
            _ if self.plan.inlined[value.0 as usize] => self.expression(value),
            _ => {
                let local = self.local_of(value);
                self.sink().local_get(local);
            }
        }
    }

    /// Writes what is on the stack to the locals of a value.
    fn keep(&mut self, value: Value) {
        if self.locals_of(value) > 1 {
            let second = self.second_of(value);
            self.sink().local_set(second);
        }
        let local = self.local_of(value);
        self.sink().local_set(local);
    }

    fn constant(&mut self, kind: Kind, bits: u64) {
        let mut sink = self.code.sink();
        match kind {
            Kind::I32 => sink.i32_const(bits as u32 as i32),
            Kind::I64 => sink.i64_const(bits as i64),
            Kind::F32 => {
                let lane = u128::from(bits as u32);
                sink.v128_const((lane | lane << 32 | lane << 64 | lane << 96) as i128)
            }
            Kind::F64 => sink.f64_const(f64::from_bits(bits).into()),
        };
    }

    fn input(&mut self, input: Input) {
        let thread = self.thread;
        let area = |area: Area, code: &mut Code| {
            match area.local {
                Some(local) if area.offset == 0 => code.sink().local_get(local),
                Some(local) => code.sink().local_get(local).i32_const(area.offset as i32).i32_add(),
                None => code.sink().i32_const(area.offset as i32),
            };
        };
        match input {
            Input::Linear => {
                self.sink().local_get(thread.linear);
            }
            Input::Frame => {
                self.sink().local_get(thread.frame.unwrap_or(0));
            }
            Input::CallArea => area(thread.call_area, &mut self.code),
            Input::NextCallArea => area(thread.next_call_area, &mut self.code),
            Input::Packed => match (thread.packed, thread.axes) {
                (None, Some([x, y, z])) => {
                    let mut sink = self.sink();
                    sink.local_get(x).local_get(y).i32_const(10).i32_shl().i32_or();
                    sink.local_get(z).i32_const(20).i32_shl().i32_or();
                }
                (packed, _) => {
                    self.sink().local_get(packed.unwrap_or(0));
                }
            },
            Input::Thread(axis) => {
                let index = axis as usize;
                match (thread.axes, thread.packed) {
                    (Some(axes), _) => {
                        self.sink().local_get(axes[index]);
                    }
                    (None, packed) => {
                        let mut sink = self.code.sink();
                        sink.local_get(packed.unwrap_or(0));
                        if index > 0 {
                            sink.i32_const(10 * index as i32).i32_shr_u();
                        }
                        if index < 2 {
                            sink.i32_const(0x3ff).i32_and();
                        }
                    }
                }
            }
        }
    }
}
