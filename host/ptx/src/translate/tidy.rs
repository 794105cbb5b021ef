//! Takes out of a function what does nothing: blocks that cannot be reached, parameters that always get the same value, values that nobody reads.

use super::graph::Graph;
use super::ir::{Function, Inst, Terminator, Value};

/// All of it.
pub fn tidy(function: &mut Function) {
    let graph = Graph::of(function);
    clear_unreachable(function, &graph);
    drop_equal_parameters(function, &graph);
    drop_unused(function);
}

/// Whether one of these values is read.
pub fn uses_any(function: &Function, values: &[Value]) -> bool {
    if values.is_empty() {
        return false;
    }
    let counts = uses(function);
    values.iter().any(|value| counts[value.0 as usize] > 0)
}

/// How often each value is read.
fn uses(function: &Function) -> Vec<u32> {
    let mut counts = vec![0; function.values.len()];
    for block in &function.blocks {
        for value in &block.insts {
            function.inst(*value).operands().for_each(|operand| counts[operand.0 as usize] += 1);
        }
        block.terminator.operands().into_iter().for_each(|operand| counts[operand.0 as usize] += 1);
        block.terminator.edges().flat_map(|edge| &edge.arguments).for_each(|operand| counts[operand.0 as usize] += 1);
    }
    counts
}

/// Empties blocks that cannot be reached; their numbers stay, so that nothing else changes.
fn clear_unreachable(function: &mut Function, graph: &Graph) {
    for (index, block) in function.blocks.iter_mut().enumerate() {
        if graph.position[index].is_none() {
            block.parameters.clear();
            block.insts.clear();
            block.terminator = Terminator::Trap(0);
        }
    }
}

/// A parameter whose edges all give one value (or the parameter itself) is that value.
fn drop_equal_parameters(function: &mut Function, graph: &Graph) {
    let mut instead: Vec<Value> = (0..function.values.len() as u32).map(Value).collect();
    loop {
        let mut changed = false;
        for block in &graph.order {
            for (index, parameter) in function.blocks[*block as usize].parameters.iter().enumerate() {
                if instead[parameter.0 as usize] != *parameter {
                    continue;
                }
                if let Some(value) = only_argument(function, graph, *block, index, *parameter, &mut instead) {
                    instead[parameter.0 as usize] = value;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let dropped: Vec<Vec<bool>> = function
        .blocks
        .iter()
        .map(|block| block.parameters.iter().map(|parameter| instead[parameter.0 as usize] != *parameter).collect())
        .collect();
    for index in 0..instead.len() {
        instead[index] = resolve(&mut instead, Value(index as u32));
    }
    for (index, block) in function.blocks.iter_mut().enumerate() {
        retain(&mut block.parameters, &dropped[index]);
        for edge in block.terminator.edges_mut() {
            retain(&mut edge.arguments, &dropped[edge.block as usize]);
        }
        block.terminator.replace(|value| instead[value.0 as usize]);
    }
    for definition in &mut function.values {
        definition.inst.replace(|value| instead[value.0 as usize]);
    }
}

fn only_argument(
    function: &Function,
    graph: &Graph,
    block: u32,
    index: usize,
    parameter: Value,
    instead: &mut [Value],
) -> Option<Value> {
    let mut only = None;
    for predecessor in &graph.predecessors[block as usize] {
        for edge in function.blocks[*predecessor as usize].terminator.edges().filter(|edge| edge.block == block) {
            let value = resolve(instead, *edge.arguments.get(index)?);
            if value != parameter && only.is_some_and(|only| only != value) {
                return None;
            }
            if value != parameter {
                only = Some(value);
            }
        }
    }
    only
}

/// Follows replacements to their end, and shortens the way for the next.
fn resolve(instead: &mut [Value], value: Value) -> Value {
    let mut end = value;
    while instead[end.0 as usize] != end {
        end = instead[end.0 as usize];
    }
    let mut at = value;
    while instead[at.0 as usize] != end {
        at = std::mem::replace(&mut instead[at.0 as usize], end);
    }
    end
}

fn retain(values: &mut Vec<Value>, dropped: &[bool]) {
    let mut index = 0;
    values.retain(|_| {
        index += 1;
        !dropped.get(index - 1).copied().unwrap_or(false)
    });
}

/// Leaves only what an effect, a decision or a result needs.
fn drop_unused(function: &mut Function) {
    let mut needed = vec![false; function.values.len()];
    let mut pending = Vec::new();
    for block in &function.blocks {
        pending.extend(block.insts.iter().copied().filter(|value| has_effect(function.inst(*value))));
        pending.extend(block.terminator.operands());
    }
    let mut owners = std::collections::HashMap::new();
    for (index, block) in function.blocks.iter().enumerate() {
        for (place, parameter) in block.parameters.iter().enumerate() {
            owners.insert(*parameter, (index as u32, place));
        }
    }
    let graph = Graph::of(function);
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut needed[value.0 as usize], true) {
            continue;
        }
        pending.extend(function.inst(value).operands());
        if let Some((block, place)) = owners.get(&value) {
            for predecessor in &graph.predecessors[*block as usize] {
                let edges = function.blocks[*predecessor as usize].terminator.edges();
                pending.extend(edges.filter(|edge| edge.block == *block).filter_map(|edge| edge.arguments.get(*place)));
            }
        }
    }
    let dropped: Vec<Vec<bool>> = function
        .blocks
        .iter()
        .map(|block| block.parameters.iter().map(|parameter| !needed[parameter.0 as usize]).collect())
        .collect();
    for (index, block) in function.blocks.iter_mut().enumerate() {
        block.insts.retain(|value| needed[value.0 as usize]);
        retain(&mut block.parameters, &dropped[index]);
        for edge in block.terminator.edges_mut() {
            retain(&mut edge.arguments, &dropped[edge.block as usize]);
        }
    }
}

/// Whether it does something besides giving a value. A load that nobody reads may be left out.
pub fn has_effect(inst: &Inst) -> bool {
    match inst {
        Inst::Store(..) | Inst::Rmw(..) | Inst::CompareExchange(..) | Inst::CallIndirect(..) | Inst::Call(..) => true,
        Inst::Load(access, _) => access.atomic,
        _ => false,
    }
}
