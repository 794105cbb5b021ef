//! The control-flow graph of a function, or of a part of it: order, predecessors, dominators.

use super::ir::Function;

/// A graph of blocks that are reached from an entry.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Reachable blocks, each after its predecessors but for edges that go back (reverse postorder).
    pub order: Vec<u32>,
    /// Where a block stands in `order`.
    pub position: Vec<Option<u32>>,
    /// Reachable predecessors, each once.
    pub predecessors: Vec<Vec<u32>>,
    /// The immediate dominator of each block; of the entry and of unreachable blocks themselves.
    pub dominator: Vec<u32>,
}

impl Graph {
    /// All of a function.
    pub fn of(function: &Function) -> Self {
        let successors =
            |block: u32| function.blocks[block as usize].terminator.edges().map(|edge| edge.block).collect();
        Self::new(function.blocks.len(), 0, successors)
    }

    /// What is reached from `entry` over these edges.
    pub fn new(blocks: usize, entry: u32, successors: impl Fn(u32) -> Vec<u32>) -> Self {
        let mut order = postorder(blocks, entry, &successors);
        order.reverse();
        let mut position = vec![None; blocks];
        for (index, block) in order.iter().enumerate() {
            position[*block as usize] = Some(index as u32);
        }
        let mut predecessors = vec![Vec::new(); blocks];
        for block in &order {
            for successor in successors(*block) {
                let list: &mut Vec<u32> = &mut predecessors[successor as usize];
                if list.last() != Some(block) {
                    list.push(*block);
                }
            }
        }
        let dominator = dominators(entry, &order, &position, &predecessors);
        Self { order, position, predecessors, dominator }
    }

    /// Whether an edge goes back in the order: to the head of a loop.
    pub fn goes_back(&self, from: u32, to: u32) -> bool {
        self.position[to as usize] <= self.position[from as usize]
    }

    /// Whether every way to `block` goes through `over`.
    pub fn dominates(&self, over: u32, block: u32) -> bool {
        let mut at = block;
        loop {
            if at == over {
                return true;
            }
            let next = self.dominator[at as usize];
            if next == at || self.position[at as usize] < self.position[over as usize] {
                return false;
            }
            at = next;
        }
    }

    /// Whether each loop is entered at its head only.
    pub fn reducible(&self) -> bool {
        self.order.iter().all(|block| {
            let back = self.predecessors[*block as usize].iter().filter(|from| self.goes_back(**from, *block));
            back.into_iter().all(|from| self.dominates(*block, *from))
        })
    }

    /// The blocks of the loop with this head that the edge from `tail` closes.
    pub fn natural_loop(&self, head: u32, tail: u32) -> Vec<u32> {
        let mut blocks = vec![head];
        let mut pending = vec![tail];
        let mut seen = vec![false; self.position.len()];
        seen[head as usize] = true;
        while let Some(block) = pending.pop() {
            if !std::mem::replace(&mut seen[block as usize], true) {
                blocks.push(block);
                pending.extend(&self.predecessors[block as usize]);
            }
        }
        blocks
    }
}

fn postorder(blocks: usize, entry: u32, successors: &impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut order = Vec::new();
    let mut seen = vec![false; blocks];
    seen[entry as usize] = true;
    let mut stack = vec![(entry, successors(entry))];
    while let Some((block, left)) = stack.last_mut() {
        match left.pop() {
            Some(next) if !seen[next as usize] => {
                seen[next as usize] = true;
                stack.push((next, successors(next)));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order
}

/// Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
fn dominators(entry: u32, order: &[u32], position: &[Option<u32>], predecessors: &[Vec<u32>]) -> Vec<u32> {
    let mut dominator: Vec<u32> = (0..position.len() as u32).collect();
    let mut known = vec![false; position.len()];
    known[entry as usize] = true;
    loop {
        let mut changed = false;
        for block in order.iter().skip(1) {
            let mut ready = predecessors[*block as usize].iter().filter(|from| known[**from as usize]);
            let Some(mut common) = ready.next().copied() else { continue };
            for other in ready {
                let mut other = *other;
                while common != other {
                    if position[common as usize] > position[other as usize] {
                        common = dominator[common as usize];
                    } else {
                        other = dominator[other as usize];
                    }
                }
            }
            if !known[*block as usize] || dominator[*block as usize] != common {
                known[*block as usize] = true;
                dominator[*block as usize] = common;
                changed = true;
            }
        }
        if !changed {
            return dominator;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    fn graph(edges: &'static [&'static [u32]]) -> Graph {
        Graph::new(edges.len(), 0, |block| edges[block as usize].to_vec())
    }

    #[test]
    fn a_diamond_is_dominated_by_its_top() {
        let graph = graph(&[&[1, 2], &[3], &[3], &[], &[3]]);
        assert_eq!(graph.dominator[3], 0);
        assert_eq!(graph.position[4], None);
        assert!(graph.reducible());
        assert!(graph.dominates(0, 3) && !graph.dominates(1, 3));
    }

    #[test]
    fn a_loop_has_its_blocks_and_one_entry() {
        let nested = graph(&[&[1], &[2], &[3, 2], &[1, 4], &[]]);
        assert!(nested.reducible());
        assert!(nested.goes_back(3, 1) && nested.goes_back(2, 2) && !nested.goes_back(3, 4));
        let mut blocks = nested.natural_loop(1, 3);
        blocks.sort_unstable();
        assert_eq!(blocks, [1, 2, 3]);
        assert!(!graph(&[&[1, 2], &[2], &[1, 3], &[]]).reducible());
    }
}
