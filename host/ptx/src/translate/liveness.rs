//! Which values are needed at the beginning of each block.

use super::graph::Graph;
use super::ir::{Function, Value};

/// For each block, the values that it or what follows reads and that are defined before it; its parameters are not among them. Values for which
/// `kept` is false are left out.
pub fn live_in(function: &Function, graph: &Graph, kept: impl Fn(Value) -> bool) -> Vec<Vec<Value>> {
    let mut home = vec![None; function.values.len()];
    for block in &graph.order {
        let block_data = &function.blocks[*block as usize];
        for value in block_data.parameters.iter().chain(&block_data.insts) {
            home[value.0 as usize] = Some(*block);
        }
    }
    // By value, the blocks where it is read from outside.
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); function.values.len()];
    for block in &graph.order {
        for value in reads(function, *block) {
            let list = &mut readers[value.0 as usize];
            if kept(value) && home[value.0 as usize].is_some_and(|home| home != *block) && list.last() != Some(block) {
                list.push(*block);
            }
        }
    }
    let mut live: Vec<Vec<Value>> = vec![Vec::new(); function.blocks.len()];
    for (index, list) in readers.into_iter().enumerate() {
        let value = Value(index as u32);
        let mut pending = list;
        while let Some(block) = pending.pop() {
            if home[index] == Some(block) || live[block as usize].last() == Some(&value) {
                continue;
            }
            live[block as usize].push(value);
            pending.extend(&graph.predecessors[block as usize]);
        }
    }
    live
}

/// Everything that a block reads, also for its edges.
pub fn reads(function: &Function, block: u32) -> Vec<Value> {
    let block = &function.blocks[block as usize];
    let mut values: Vec<Value> = block.insts.iter().flat_map(|value| function.inst(*value).operands()).collect();
    values.extend(block.terminator.operands());
    values.extend(block.terminator.edges().flat_map(|edge| &edge.arguments));
    values
}
