//! Branches round a single block that a group runs for those of its lanes that take it.
//!
//! ```text
//!   B: branch c, S, J(n)         all take it: S; jump J(s)
//!   S: …  jump J(s)              none does:   jump J(n)
//!   J: …                         some do:     S, in which only they read and write memory; jump J(select c, s, n)
//! ```
//!
//! So the edge of an image, the end of a list, or what one lane of each warp stores, costs neither parting nor a second form for threads one by one. What computes is done for
//! all lanes, as in `if_conversion`; only where that may be noticed a lane is looked at.
//!
//! What `J` gets is one number for all lanes only if both ways give the same value.

use std::collections::HashSet;

use super::graph::Graph;
use super::ir::{Binary, Function, Inst, Memory, Terminator, Unary, Value};

/// Instructions of the block, at most: it stands twice in the code.
const MOST_INSTRUCTIONS: usize = 48;

/// Such a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// The block that ends with it.
    pub branch: u32,
    /// Its condition.
    pub condition: Value,
    /// The block that some lanes run.
    pub side: u32,
    /// It is run where the condition is 0.
    pub inverted: bool,
    /// Where all lanes go on.
    pub join: u32,
}

/// All branches of this kind, whether lanes can disagree on them or not.
pub fn candidates(function: &Function, graph: &Graph) -> Vec<Masked> {
    let found = graph.order.iter().filter_map(|block| {
        let Terminator::Branch(condition, yes, no) = &function.blocks[*block as usize].terminator else { return None };
        [(yes.block, no.block, false), (no.block, yes.block, true)].into_iter().find_map(|(side, join, inverted)| {
            let masked = Masked { branch: *block, condition: *condition, side, inverted, join };
            fits(function, graph, &masked).then_some(masked)
        })
    });
    found.collect()
}

fn fits(function: &Function, graph: &Graph, masked: &Masked) -> bool {
    let data = &function.blocks[masked.side as usize];
    let Terminator::Jump(edge) = &data.terminator else { return false };
    let join = &function.blocks[masked.join as usize];
    // What is behind all else is the body of a kernel that only the last threads of a grid leave out.
    let ends = join.insts.is_empty() && matches!(join.terminator, Terminator::Return(_));
    let ends = ends && by_place(function, masked.condition);
    edge.block == masked.join
        && !ends
        && masked.side != masked.join
        && graph.predecessors[masked.side as usize] == [masked.branch]
        && !graph.goes_back(masked.branch, masked.join)
        && data.parameters.is_empty()
        && data.insts.len() <= MOST_INSTRUCTIONS
        && data.insts.iter().all(|value| possible(function.inst(*value)))
}

/// Whether a condition compares places of threads and what is the same for all of them, as the edges of a grid do: neighbours agree on it nearly everywhere.
fn by_place(function: &Function, condition: Value) -> bool {
    let mut pending = vec![condition];
    let mut seen = HashSet::new();
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let inst = function.inst(value);
        let compared = |value: &Value| matches!(function.inst(*value), Inst::Binary(op, ..) if op.compares() || LOGIC.contains(op));
        let regular = match inst {
            Inst::Const(_) | Inst::Input(_) | Inst::Argument(_) => true,
            Inst::Load(access, _) => access.constant || access.memory == Memory::Private,
            Inst::Unary(op, a) => {
                matches!(op, Unary::Widen { .. } | Unary::Wrap) || (*op == Unary::IsZero && compared(a))
            }
            Inst::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Shl, ..) => true,
            Inst::Binary(op, a, b) => op.compares() || (LOGIC.contains(op) && compared(a) && compared(b)),
            _ => false,
        };
        if !regular {
            return false;
        }
        pending.extend(inst.operands());
    }
    true
}

const LOGIC: [Binary; 3] = [Binary::And, Binary::Or, Binary::Xor];

/// Whether an instruction does no harm for lanes that should not have run it, or can be left out for them.
fn possible(inst: &Inst) -> bool {
    match inst {
        Inst::Binary(Binary::DivS | Binary::DivU | Binary::RemS | Binary::RemU, ..) => false,
        Inst::Const(_) | Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) | Inst::Select(..) => true,
        Inst::Load(access, _) | Inst::Store(access, ..) => {
            access.constant || (access.memory == Memory::Device && !access.atomic && !access.exclusive)
        }
        _ => false,
    }
}
