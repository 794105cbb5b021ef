//! Which functions a kernel reaches, and which of them must become part of their caller.
//!
//! A thread that waits leaves its WebAssembly function and comes back later. Only what is part of the kernel's body can do that: a device function that waits (at a
//! barrier, for other lanes, in a loop that asks memory again and again), ends the thread, or calls one that does, is inlined. All others become functions.

use std::collections::{HashMap, HashSet};

use super::error::{Result, TranslateError};
use crate::module::{AtomicOp, Callee, Function, FunctionId, LabelId, Module, Op, Order, Position, Statement};

/// Branches of one function, at most. Real kernels have hundreds; with many more, translating and compiling take minutes that nothing can interrupt.
const MOST_BRANCHES: usize = 10_000;

/// What is known of the functions that an entry reaches.
pub struct Survey {
    facts: HashMap<FunctionId, Facts>,
}

#[derive(Default)]
struct Facts {
    callees: Vec<(FunctionId, Position)>,
    inlined: bool,
    recursive: bool,
}

fn refuse_mazes(function: &Function) -> Result<()> {
    let branches = |statement: &&Statement| match statement {
        Statement::Instruction(instruction) => matches!(instruction.op, Op::Branch { .. } | Op::BranchTable { .. }),
        Statement::Label(_) => true,
    };
    let count = function.body.iter().filter(branches).count();
    if count <= MOST_BRANCHES {
        return Ok(());
    }
    let text = format!("`{}` has {count} branches and labels; at most {MOST_BRANCHES} are translated", function.name);
    Err(TranslateError::new(function.position, text))
}

impl Survey {
    /// Walks the calls from `entry` on.
    pub fn of(module: &Module, entry: FunctionId) -> Result<Self> {
        let mut survey = Self { facts: HashMap::new() };
        let mut pending = vec![entry];
        while let Some(id) = pending.pop() {
            if survey.facts.contains_key(&id) {
                continue;
            }
            let Some(function) = module.functions.get(id.0 as usize) else { continue };
            refuse_mazes(function)?;
            let facts = Facts { callees: callees(function), inlined: id != entry && waits(function), recursive: false };
            pending.extend(facts.callees.iter().map(|(callee, _)| *callee));
            survey.facts.insert(id, facts);
        }
        survey.spread(entry);
        survey.find_recursion();
        for (id, facts) in &survey.facts {
            if facts.inlined && facts.recursive {
                let function = &module.functions[id.0 as usize];
                let text = format!(
                    "the function {} is recursive, and waits for other threads or ends the thread, which is not supported",
                    function.name
                );
                return Err(TranslateError::new(function.position, text));
            }
        }
        Ok(survey)
    }

    /// Whether calls of the function are replaced by its body.
    pub fn inlined(&self, function: FunctionId) -> bool {
        self.facts.get(&function).is_some_and(|facts| facts.inlined)
    }

    /// Whether the function may be running more than once in one thread.
    pub fn recursive(&self, function: FunctionId) -> bool {
        self.facts.get(&function).is_some_and(|facts| facts.recursive)
    }

    /// Who calls an inlined function is inlined too.
    fn spread(&mut self, entry: FunctionId) {
        let callers = self.callers();
        let mut pending: Vec<FunctionId> =
            self.facts.iter().filter(|(_, facts)| facts.inlined).map(|(id, _)| *id).collect();
        while let Some(id) = pending.pop() {
            for caller in callers.get(&id).into_iter().flatten().filter(|caller| **caller != entry) {
                if let Some(facts) = self.facts.get_mut(caller).filter(|facts| !facts.inlined) {
                    facts.inlined = true;
                    pending.push(*caller);
                }
            }
        }
    }

    /// A function that calls itself, also through others: what is left when functions that call nothing left, and then those that nothing left
    /// calls, are taken away.
    fn find_recursion(&mut self) {
        let callers = self.callers();
        let callees: HashMap<FunctionId, Vec<FunctionId>> = self
            .facts
            .iter()
            .map(|(id, facts)| (*id, facts.callees.iter().map(|(callee, _)| *callee).collect()))
            .collect();
        let mut left: HashSet<FunctionId> = self.facts.keys().copied().collect();
        peel(&mut left, &callees, &callers);
        peel(&mut left, &callers, &callees);
        for id in left {
            self.facts.entry(id).and_modify(|facts| facts.recursive = true);
        }
    }

    fn callers(&self) -> HashMap<FunctionId, Vec<FunctionId>> {
        let mut callers: HashMap<FunctionId, Vec<FunctionId>> = HashMap::new();
        for (id, facts) in &self.facts {
            for (callee, _) in &facts.callees {
                callers.entry(*callee).or_default().push(*id);
            }
        }
        callers
    }
}

/// Takes away what has no `ahead` left, until all have; `behind` is the other direction.
fn peel(
    left: &mut HashSet<FunctionId>,
    ahead: &HashMap<FunctionId, Vec<FunctionId>>,
    behind: &HashMap<FunctionId, Vec<FunctionId>>,
) {
    let count =
        |id: &FunctionId| ahead.get(id).map_or(0, |list| list.iter().filter(|other| left.contains(other)).count());
    let mut counts: HashMap<FunctionId, usize> = left.iter().map(|id| (*id, count(id))).collect();
    let mut pending: Vec<FunctionId> = counts.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = pending.pop() {
        left.remove(&id);
        for other in behind.get(&id).into_iter().flatten() {
            if let Some(count) = counts.get_mut(other).filter(|count| **count > 0) {
                *count -= 1;
                if *count == 0 {
                    pending.push(*other);
                }
            }
        }
    }
}

fn callees(function: &Function) -> Vec<(FunctionId, Position)> {
    let mut callees = Vec::new();
    for statement in &function.body {
        let Statement::Instruction(instruction) = statement else { continue };
        if let Op::Call { callee, .. } = &instruction.op {
            match callee {
                Callee::Direct(id) => callees.push((*id, instruction.position)),
                Callee::Indirect { candidates, .. } => {
                    callees.extend(candidates.iter().map(|id| (*id, instruction.position)));
                }
            }
        }
    }
    callees
}

/// Whether a thread may have to wait in the function, or ends there.
fn waits(function: &Function) -> bool {
    let mut seen: HashSet<LabelId> = HashSet::new();
    let (mut loops, mut asks) = (false, false);
    for statement in &function.body {
        match statement {
            Statement::Label(label) => {
                seen.insert(*label);
            }
            Statement::Instruction(instruction) => match &instruction.op {
                Op::Branch { target, .. } => loops |= seen.contains(target),
                Op::BranchTable { targets, .. } => loops |= targets.iter().any(|target| seen.contains(target)),
                Op::Load { order: Order::Strong, .. }
                | Op::MbarrierTest { .. }
                | Op::Atomic { op: AtomicOp::Cas | AtomicOp::Exch, .. } => {
                    asks = true;
                }
                Op::Exit => return true,
                op if op.meets() => return true,
                _ => {}
            },
        }
    }
    loops && asks
}
