//! Which values get a local, and which are computed where they are used.
//!
//! A value that is read once, later in its block, by something that comes before anything that could change its meaning, is computed there: no local, and less
//! code. Values that are the same for all threads are computed in front of everything.

use std::collections::HashMap;

use crate::translate::graph::Graph;
use crate::translate::ir::{Binary, Function, Inst, Kind, Unary, Value};
use crate::translate::liveness::reads;
use crate::translate::tidy::has_effect;

/// Expressions are not nested deeper than this.
const DEEPEST: u32 = 24;

/// How each value of a unit is made.
#[derive(Clone)]
pub struct Plan {
    /// Computed where they are used.
    pub inlined: Vec<bool>,
    /// Read in another block than where they are defined, or by a later part: they have a local for all of the unit.
    pub global: Vec<bool>,
    /// By value, how often it is read.
    pub uses: Vec<u32>,
    /// Uniform values that the unit needs, each after what it is computed from.
    pub first: Vec<Value>,
    /// For values with a local in their block only: the index of the instruction after which it is free, the terminator being behind the last.
    pub last: HashMap<Value, usize>,
}

impl Plan {
    /// For the blocks of `graph`, with a local for everything: what is wanted of a value differs from one use to the next.
    pub fn with_locals(function: &Function, graph: &Graph, uniform: &[bool]) -> Self {
        Self::for_blocks(function, graph, uniform, [&[]; 2], 0)
    }

    /// The same, where `loaded` are values that come from the frame, and others are read when the unit is left.
    pub fn for_lockstep(function: &Function, graph: &Graph, uniform: &[bool], outside: [&[Value]; 2]) -> Self {
        Self::for_blocks(function, graph, uniform, outside, 0)
    }

    /// For the blocks of `graph`; `loaded` are values that come from the frame, `kept` those that are read when the unit is left.
    pub fn new(function: &Function, graph: &Graph, uniform: &[bool], loaded: &[Value], kept: &[Value]) -> Self {
        Self::for_blocks(function, graph, uniform, [loaded, kept], DEEPEST)
    }

    fn for_blocks(function: &Function, graph: &Graph, uniform: &[bool], outside: [&[Value]; 2], deepest: u32) -> Self {
        let count = function.values.len();
        let mut plan = Self {
            inlined: vec![false; count],
            global: vec![false; count],
            uses: vec![0; count],
            first: Vec::new(),
            last: HashMap::new(),
        };
        plan.find_first(function, graph, uniform);
        plan.count(function, graph, uniform);
        for value in outside.into_iter().flatten() {
            plan.global[value.0 as usize] = true;
        }
        for block in &graph.order {
            plan.block(function, *block, uniform, deepest);
        }
        plan
    }

    /// Uniform values that something else reads, and what these are computed from.
    fn find_first(&mut self, function: &Function, graph: &Graph, uniform: &[bool]) {
        let mut seen = vec![false; function.values.len()];
        let mut pending: Vec<(Value, bool)> = Vec::new();
        for block in &graph.order {
            let needs = reads(function, *block);
            pending.extend(needs.into_iter().filter(|value| uniform[value.0 as usize]).map(|value| (value, false)));
            while let Some((value, done)) = pending.pop() {
                if done {
                    self.first.push(value);
                } else if !matches!(function.inst(value), Inst::Const(_))
                    && !std::mem::replace(&mut seen[value.0 as usize], true)
                {
                    pending.push((value, true));
                    pending.extend(function.inst(value).operands().map(|operand| (operand, false)));
                }
            }
        }
        for value in &self.first {
            self.global[value.0 as usize] = true;
        }
    }

    fn count(&mut self, function: &Function, graph: &Graph, uniform: &[bool]) {
        let mut home = vec![None; function.values.len()];
        for block in &graph.order {
            let data = &function.blocks[*block as usize];
            for parameter in &data.parameters {
                self.global[parameter.0 as usize] = true;
            }
            for value in &data.insts {
                home[value.0 as usize] = Some(*block);
            }
        }
        for value in self.first.clone() {
            self.read_by(function, value);
        }
        for block in &graph.order {
            let data = &function.blocks[*block as usize];
            for value in data.insts.iter().filter(|value| !uniform[value.0 as usize]) {
                self.read_by(function, *value);
            }
            for value in
                data.terminator.operands().iter().chain(data.terminator.edges().flat_map(|edge| &edge.arguments))
            {
                self.uses[value.0 as usize] += 1;
            }
            for value in reads(function, *block) {
                if home[value.0 as usize] != Some(*block) {
                    self.global[value.0 as usize] = true;
                }
            }
        }
    }

    fn read_by(&mut self, function: &Function, value: Value) {
        let inst = function.inst(value);
        let times = repeats(function, inst);
        for operand in inst.operands() {
            self.uses[operand.0 as usize] += times;
        }
    }

    fn block(&mut self, function: &Function, block: u32, uniform: &[bool], deepest: u32) {
        let data = &function.blocks[block as usize];
        let end = data.insts.len();
        // How many effects come before each instruction.
        let mut effects = Vec::with_capacity(end + 1);
        let mut so_far = 0_u32;
        for value in &data.insts {
            effects.push(so_far);
            so_far += u32::from(has_effect(function.inst(*value)));
        }
        effects.push(so_far);
        // From the end on: where each value is used first and last, by the instruction that stands in the code.
        let mut root: HashMap<Value, usize> = HashMap::new();
        let note = |root: &mut HashMap<Value, usize>, last: &mut HashMap<Value, usize>, value: Value, at: usize| {
            root.entry(value).or_insert(at);
            let last = last.entry(value).or_insert(at);
            *last = (*last).max(at);
        };
        for value in data.terminator.operands().iter().chain(data.terminator.edges().flat_map(|edge| &edge.arguments)) {
            note(&mut root, &mut self.last, *value, end);
        }
        let mut depths: HashMap<Value, u32> = HashMap::new();
        for (index, value) in data.insts.iter().enumerate().rev() {
            if uniform[value.0 as usize] {
                continue;
            }
            let inst = function.inst(*value);
            let used_at = root.get(value).copied();
            let once = self.uses[value.0 as usize] == 1 && !self.global[value.0 as usize];
            let depth = depths.get(value).copied().unwrap_or(0);
            let movable = match inst {
                Inst::Load(access, _) => !access.atomic && used_at.is_some_and(|at| effects[at] == effects[index]),
                _ => !has_effect(inst),
            };
            let inline = once && movable && depth < deepest && used_at.is_some();
            let at = if inline { used_at.unwrap_or(index) } else { index };
            self.inlined[value.0 as usize] = inline;
            for operand in inst.operands() {
                note(&mut root, &mut self.last, operand, at);
                let nested = if inline { depth + 1 } else { 1 };
                let deepest = depths.entry(operand).or_insert(0);
                *deepest = (*deepest).max(nested);
            }
        }
    }
}

/// How often the lowering of an instruction writes out its operands.
fn repeats(function: &Function, inst: &Inst) -> u32 {
    match inst {
        Inst::Unary(Unary::Flush | Unary::Canonical, _) => 3,
        Inst::Unary(Unary::Saturate, value) if function.kind(*value) == Kind::F64 => 3,
        Inst::Binary(Binary::MinNumber | Binary::MaxNumber, ..) => 3,
        _ => 1,
    }
}
