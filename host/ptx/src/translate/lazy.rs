//! Comparisons that need no vectors: those of lines, where nothing but a branch reads what they give.
//!
//! ```text
//!   i = first + lane      c = i < n      d = c & (row < rows)      branch d
//! ```
//!
//! That a line is below a number is found for the first lane and the last: if they agree, and the line does not wrap round between them, all do. So the branch is decided by a
//! few scalars, and the vectors that say it of each lane are made only where lanes disagree.

use super::graph::Graph;
use super::ir::{Binary, Function, Inst, Terminator, Unary, Value};
use super::lanes::{MOST_STRIDE, Shape};

/// Values that decide one branch, at most.
const MOST: usize = 24;

/// What decides a branch: logic and comparisons of its own block, each read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Places in the block's instructions.
    pub indices: Vec<usize>,
}

/// By block, what decides the branch at its end, if that can be found for the first lane and the last.
pub fn decisions(function: &Function, graph: &Graph, uniform: &[bool], shapes: &[Shape]) -> Vec<Option<Decision>> {
    let uses = uses(function, graph);
    let mut found = vec![None; function.blocks.len()];
    for block in &graph.order {
        let data = &function.blocks[*block as usize];
        let Terminator::Branch(condition, ..) = &data.terminator else { continue };
        if shapes[condition.0 as usize] == Shape::SAME {
            continue;
        }
        let mut indices = Vec::new();
        let mut pending = vec![*condition];
        let whole = loop {
            let Some(value) = pending.pop() else { break true };
            if uniform[value.0 as usize] || shapes[value.0 as usize] == Shape::SAME {
                continue;
            }
            let Some(index) = data.insts.iter().position(|own| *own == value).filter(|_| uses[value.0 as usize] == 1)
            else {
                break false;
            };
            indices.push(index);
            match function.inst(value) {
                Inst::Unary(Unary::IsZero, a) if is_logic(function, *a) => pending.push(*a),
                Inst::Binary(Binary::And | Binary::Or | Binary::Xor, a, b) => pending.extend([*a, *b]),
                Inst::Binary(op, a, b) if op.compares() && [a, b].iter().all(|line| is_line(**line, shapes)) => {}
                _ => break false,
            }
            if indices.len() > MOST {
                break false;
            }
        };
        if whole {
            indices.sort_unstable();
            found[*block as usize] = Some(Decision { indices });
        }
    }
    found
}

/// Whether it gives 0 or 1 by what it is made of.
fn is_logic(function: &Function, value: Value) -> bool {
    match function.inst(value) {
        Inst::Unary(Unary::IsZero, _) => true,
        Inst::Binary(op, ..) => op.compares() || matches!(op, Binary::And | Binary::Or | Binary::Xor),
        _ => false,
    }
}

fn is_line(value: Value, shapes: &[Shape]) -> bool {
    matches!(shapes[value.0 as usize], Shape::Line(stride) if stride.unsigned_abs() <= MOST_STRIDE)
}

/// By value, how often it is read.
fn uses(function: &Function, graph: &Graph) -> Vec<u32> {
    let mut uses = vec![0; function.values.len()];
    for block in &graph.order {
        let data = &function.blocks[*block as usize];
        let by_insts = data.insts.iter().flat_map(|value| function.inst(*value).operands());
        let by_edges = data.terminator.edges().flat_map(|edge| edge.arguments.iter().copied());
        for value in by_insts.chain(by_edges).chain(data.terminator.operands()) {
            uses[value.0 as usize] += 1;
        }
    }
    uses
}
