//! If-conversion: a short branch on which lanes may disagree becomes straight code and selections.
//!
//! ```text
//!   B: branch c, Y, N                      B: … Y's and N's instructions …
//!   Y: …  jump J(a)             becomes       p = select c, a, b
//!   N: …  jump J(b)                           jump J(p)
//! ```
//!
//! and so does a branch round a single block. Only instructions that can neither trap nor be noticed are executed where they would not have been: no accesses to
//! memory, no integer divisions, no calls. Values are the same bit for bit. It is done for the vector form alone: a thread by itself is better off with the
//! branch.

use std::collections::HashMap;

use super::graph::Graph;
use super::ir::{Binary, Definition, Edge, Function, Inst, Terminator, Value};

/// Instructions that are executed in vain at most, in both sides of a branch together.
const MOST_INSTRUCTIONS: usize = 64;

/// Joins each block with the one that alone follows it, if that has no other way in.
pub fn join_chains(function: &mut Function) {
    let graph = Graph::of(function);
    for block in &graph.order {
        while let Terminator::Jump(edge) = &function.blocks[*block as usize].terminator {
            let next = edge.block;
            if next == *block || !enters_once(function, &graph, next) {
                break;
            }
            let arguments = edge.arguments.clone();
            substitute(function, next, &arguments);
            swallow(function, *block, next);
        }
    }
}

/// Whether one edge leads to the block.
fn enters_once(function: &Function, graph: &Graph, block: u32) -> bool {
    let predecessors = &graph.predecessors[block as usize];
    let edges =
        |from: &u32| function.blocks[*from as usize].terminator.edges().filter(|edge| edge.block == block).count();
    // Where a block was swallowed, its predecessor has taken its place.
    predecessors.len() == 1 && predecessors.iter().map(edges).sum::<usize>() <= 1
}

/// Puts the arguments of a block's only edge in the place of its parameters.
fn substitute(function: &mut Function, block: u32, arguments: &[Value]) {
    let parameters = std::mem::take(&mut function.blocks[block as usize].parameters);
    if parameters.is_empty() {
        return;
    }
    let instead: HashMap<Value, Value> = parameters.into_iter().zip(arguments.iter().copied()).collect();
    let with = |value: Value| instead.get(&value).copied().unwrap_or(value);
    for definition in &mut function.values {
        definition.inst.replace(with);
    }
    for block in &mut function.blocks {
        block.terminator.replace(with);
    }
}

/// Puts a block behind another, whose terminator it replaces.
fn swallow(function: &mut Function, block: u32, next: u32) {
    let insts = std::mem::take(&mut function.blocks[next as usize].insts);
    let terminator = std::mem::replace(&mut function.blocks[next as usize].terminator, Terminator::Trap(0));
    let position = function.blocks[next as usize].position;
    let data = &mut function.blocks[block as usize];
    data.insts.extend(insts);
    data.terminator = terminator;
    data.position = position;
}

/// Converts the first branch found whose condition is one of these; whether there was one.
pub fn convert_one(function: &mut Function, graph: &Graph, diverges: impl Fn(Value) -> bool) -> bool {
    for block in graph.order.iter().rev() {
        let Terminator::Branch(condition, yes, no) = &function.blocks[*block as usize].terminator else { continue };
        if !diverges(*condition) {
            continue;
        }
        let (condition, yes, no) = (*condition, yes.clone(), no.clone());
        let sides = [side(function, graph, &yes), side(function, graph, &no)];
        let found = match &sides {
            [Some(a), Some(b)] if a.block == b.block => Some((a.clone(), b.clone(), vec![yes.block, no.block])),
            [Some(a), _] if a.block == no.block => Some((a.clone(), no.clone(), vec![yes.block])),
            [_, Some(b)] if b.block == yes.block => Some((yes.clone(), b.clone(), vec![no.block])),
            _ => None,
        };
        let Some((then, otherwise, emptied)) = found else { continue };
        let size: usize = emptied.iter().map(|block| function.blocks[*block as usize].insts.len()).sum();
        if size <= MOST_INSTRUCTIONS {
            straighten(function, *block, condition, [&then, &otherwise], &emptied);
            return true;
        }
    }
    false
}

/// Where a side of a branch comes out, if it is one block that may be executed in any case.
fn side(function: &Function, graph: &Graph, edge: &Edge) -> Option<Edge> {
    let data = &function.blocks[edge.block as usize];
    let Terminator::Jump(out) = &data.terminator else { return None };
    let fits = data.parameters.is_empty()
        && out.block != edge.block
        && enters_once(function, graph, edge.block)
        && data.insts.iter().all(|value| harmless(function.inst(*value)));
    fits.then(|| out.clone())
}

fn harmless(inst: &Inst) -> bool {
    match inst {
        Inst::Binary(Binary::DivS | Binary::DivU | Binary::RemS | Binary::RemU, ..) => false,
        Inst::Const(_) | Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) | Inst::Select(..) => true,
        Inst::Load(access, _) => access.constant,
        _ => false,
    }
}

/// Executes the emptied blocks in `block` and selects what the block behind them gets.
fn straighten(function: &mut Function, block: u32, condition: Value, edges: [&Edge; 2], emptied: &[u32]) {
    let position = function.blocks[block as usize].position;
    for side in emptied {
        let insts = std::mem::take(&mut function.blocks[*side as usize].insts);
        function.blocks[*side as usize].terminator = Terminator::Trap(0);
        function.blocks[block as usize].insts.extend(insts);
    }
    let mut arguments = Vec::new();
    for (yes, no) in edges[0].arguments.iter().zip(&edges[1].arguments) {
        if yes == no {
            arguments.push(*yes);
            continue;
        }
        let kind = function.values[yes.0 as usize].kind;
        function.values.push(Definition { inst: Inst::Select(condition, *yes, *no), kind, position });
        let selected = Value(function.values.len() as u32 - 1);
        function.blocks[block as usize].insts.push(selected);
        arguments.push(selected);
    }
    function.blocks[block as usize].terminator = Terminator::Jump(Edge { block: edges[0].block, arguments });
}

#[cfg(test)]
mod tests;
