//! Cuts the body of a kernel at the places where threads wait.
//!
//! A region is what a thread runs between two waits: one head, at which it begins or goes on, and the blocks reached from there. Blocks reached from several heads
//! belong to each of their regions (a copy) while few instructions follow; else the first of them becomes a head itself, and a thread that gets
//! there goes on in another region without waiting. So the code grows only by a factor that does not depend on the kernel.
//!
//! Where threads run in groups that part (see [`super::parting`]), there are regions for those that have parted too: from there to where they wait, or meet again. All others
//! pass by these places.

use super::graph::Graph;
use super::ir::{Block, Edge, Function, Suspension, Terminator};

/// The most instructions that are copied into each region that reaches them.
const COPIED: usize = 48;
/// The most regions times what the body has: each region is lowered with all of the body in view.
const MOST_WORK: usize = 100_000_000;

/// A part of the body that runs without waiting.
pub struct Region {
    /// Its number: that of a thread which goes on here.
    pub number: u32,
    /// Where it begins.
    pub head: u32,
    /// Its blocks, in the order in which they are reached.
    pub graph: Graph,
    /// Whether threads run here that have left a group, and meet again where they can.
    pub parted: bool,
}

/// The regions of a body; the first begins at its entry. Empty if no thread ever waits.
pub struct Regions {
    /// In the order of their numbers.
    pub regions: Vec<Region>,
    /// By block, the number of the region that begins there and that others leave for.
    pub number: Vec<Option<u32>>,
    /// By block, whether threads that have left a group meet there. Others pass by.
    joins: Vec<bool>,
}

impl Regions {
    /// Of a body with such heads (see [`heads`]); of blocks at which a thread goes on alone that began with others; and of those at which such threads meet again.
    pub fn new(body: &Function, heads: &[bool], alone: &[u32], joins: &[u32]) -> Self {
        let whole = Graph::of(body);
        let mut all =
            Self { regions: Vec::new(), number: vec![None; body.blocks.len()], joins: vec![false; body.blocks.len()] };
        let mut begin: Vec<(u32, bool)> =
            whole.order.iter().filter(|block| is_head(heads, **block)).map(|block| (*block, false)).collect();
        let joins = joins.iter().filter(|block| !is_head(heads, **block)).copied();
        for (number, block) in (begin.len() as u32..).zip(joins) {
            all.joins[block as usize] = true;
            begin.push((block, true));
            all.number[block as usize] = Some(number);
        }
        for (number, (block, _)) in (0..).zip(&begin) {
            all.number[*block as usize] = Some(number);
        }
        begin.extend(alone.iter().map(|block| (*block, true)));
        for (number, (head, parted)) in (0..).zip(begin) {
            let graph =
                Graph::new(body.blocks.len(), head, |from| inside(body, from, |block| all.leaves(head, parted, block)));
            all.regions.push(Region { number, head, graph, parted });
        }
        all
    }

    /// Whether only threads begin there that have left a group.
    pub fn is_join(&self, head: u32) -> bool {
        self.joins[head as usize]
    }

    /// Whether an edge to a block leaves the region with this head.
    pub fn leaves(&self, head: u32, parted: bool, block: u32) -> bool {
        block != head && self.number[block as usize].is_some() && (parted || !self.joins[block as usize])
    }
}

/// The edges of a block that do not leave.
pub fn inside(body: &Function, block: u32, leaves: impl Fn(u32) -> bool) -> Vec<u32> {
    match &body.blocks[block as usize].terminator {
        Terminator::Suspend(..) => Vec::new(),
        terminator => terminator.edges().map(|edge| edge.block).filter(|next| !leaves(*next)).collect(),
    }
}

/// By block, whether a region begins there; none of them if no thread ever waits. No answer if there are too many for the body's size.
pub fn heads(body: &Function) -> Option<Vec<bool>> {
    let whole = Graph::of(body);
    let mut heads = vec![false; body.blocks.len()];
    let mut waits = false;
    for block in &whole.order {
        if let Terminator::Suspend(_, edge) = &body.blocks[*block as usize].terminator {
            heads[edge.block as usize] = true;
            waits = true;
        }
    }
    if waits {
        heads[0] = true;
        while cut(body, &whole, &mut heads) {}
    }
    let work = heads.iter().filter(|head| **head).count() * (body.blocks.len() + body.values.len());
    (work <= MOST_WORK).then_some(heads)
}

/// Blocks that were added later are none.
fn is_head(heads: &[bool], block: u32) -> bool {
    heads.get(block as usize).copied().unwrap_or(false)
}

/// From which heads a block is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    None,
    One(u32),
    Many,
}

/// Makes a head of each block where regions come together and too much follows to copy it; whether there was one.
fn cut(body: &Function, whole: &Graph, heads: &mut [bool]) -> bool {
    let mut owners = vec![Owner::None; body.blocks.len()];
    loop {
        let mut changed = false;
        for block in &whole.order {
            let owner = if heads[*block as usize] { Owner::One(*block) } else { joined(body, whole, &owners, *block) };
            changed |= owner != owners[*block as usize];
            owners[*block as usize] = owner;
        }
        if !changed {
            break;
        }
    }
    let mut any = false;
    for block in &whole.order {
        if heads[*block as usize] {
            continue;
        }
        // Heads that were made just now count already: what follows them may have one owner again.
        owners[*block as usize] = joined(body, whole, &owners, *block);
        if owners[*block as usize] == Owner::Many && size_after(body, heads, *block) > COPIED {
            heads[*block as usize] = true;
            owners[*block as usize] = Owner::One(*block);
            any = true;
        }
    }
    any
}

fn joined(body: &Function, whole: &Graph, owners: &[Owner], block: u32) -> Owner {
    let mut owner = Owner::None;
    for from in &whole.predecessors[block as usize] {
        if matches!(body.blocks[*from as usize].terminator, Terminator::Suspend(..)) {
            continue;
        }
        owner = match (owner, owners[*from as usize]) {
            (owner, Owner::None) => owner,
            (Owner::None, other) => other,
            (Owner::One(one), Owner::One(other)) if one == other => owner,
            _ => Owner::Many,
        };
    }
    owner
}

/// How many instructions are reached from a block without waiting; counted only until they are too many.
fn size_after(body: &Function, heads: &[bool], block: u32) -> usize {
    let mut seen = std::collections::HashSet::from([block]);
    let mut pending = vec![block];
    let mut size = 0;
    while let Some(block) = pending.pop() {
        size += body.blocks[block as usize].insts.len() + 1;
        if size > COPIED {
            break;
        }
        let next = inside(body, block, |next| heads[next as usize]);
        pending.extend(next.into_iter().filter(|next| seen.insert(*next)));
    }
    size
}

/// Lets other threads run at the end of each innermost loop that asks memory for what they may write: else a thread that waits for a lock would keep its
/// owner from ever giving it back.
pub fn yield_in_loops(body: &mut Function, asking: &[u32]) {
    let graph = Graph::of(body);
    let mut innermost: Vec<Option<(usize, u32, u32)>> = vec![None; asking.len()];
    for head in &graph.order {
        for tail in graph.predecessors[*head as usize].iter().filter(|tail| graph.goes_back(**tail, *head)) {
            let blocks = graph.natural_loop(*head, *tail);
            for (index, asks) in asking.iter().enumerate() {
                let smaller = innermost[index].is_none_or(|(size, _, _)| blocks.len() < size);
                if smaller && blocks.contains(asks) {
                    innermost[index] = Some((blocks.len(), *head, *tail));
                }
            }
        }
    }
    let mut edges: Vec<(u32, u32)> = innermost.into_iter().flatten().map(|(_, head, tail)| (tail, head)).collect();
    edges.sort_unstable();
    edges.dedup();
    for (tail, head) in edges {
        yield_on_edge(body, tail, head);
    }
}

fn yield_on_edge(body: &mut Function, tail: u32, head: u32) {
    let position = body.blocks[tail as usize].position;
    let mut waits = Vec::new();
    let first = body.blocks.len() as u32;
    for edge in body.blocks[tail as usize].terminator.edges_mut().filter(|edge| edge.block == head) {
        let next = std::mem::replace(edge, Edge { block: first + waits.len() as u32, arguments: Vec::new() });
        waits.push(next);
    }
    for edge in waits {
        body.blocks.push(Block {
            parameters: Vec::new(),
            insts: Vec::new(),
            terminator: Terminator::Suspend(Suspension::Yield, edge),
            position,
        });
    }
}
