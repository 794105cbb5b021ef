//! Blocks and jumps as WebAssembly's nested `block`, `loop` and `if`.
//!
//! From the dominator tree (Ramsey, "Beyond Relooper: Recursive Translation of Unstructured Control Flow to Structured Control Flow"): the code of a block
//! contains that of the blocks which it dominates; where several edges come together, the code stands behind a `block` whose end they jump to. A graph with a loop
//! that has two entries becomes a loop round a `br_table` over all blocks. Nothing here calls itself: kernels nest as deep as they like.

use wasm_encoder::{BlockType, ValType};

use super::unit::Unit;
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Suspension, Terminator, Value};
use crate::translate::masking::Masked;

/// How often the same code stands in a turn of a loop, at most; a power of 2.
const MOST_COPIES: usize = 8;
/// Operations in all copies of a loop of one block, at most.
const MOST_OPERATIONS: usize = 32;

/// What happens where control leaves a unit. `depth` labels are open within the unit: `br depth` jumps to the one round it.
pub trait Exits {
    /// Whether an edge to this block leaves the unit.
    fn leaves(&self, block: u32) -> bool;
    /// Goes on in another region.
    fn hop(&self, unit: &mut Unit<'_>, edge: &Edge, depth: u32);
    /// Whether lanes that wait at the end of a block can go on at once, within the unit, as they all are there.
    fn passes(&self, _: u32) -> bool {
        false
    }
    /// Does for them what they wait for.
    fn pass(&self, _: &mut Unit<'_>, _: u32) {}
    /// Waits.
    fn suspend(&self, unit: &mut Unit<'_>, suspension: &Suspension, edge: &Edge, depth: u32);
    /// Ends the thread, or the function.
    fn finish(&self, unit: &mut Unit<'_>, value: Option<Value>, depth: u32);
}

/// What is still to be written, last first.
enum Task<'f> {
    Tree(u32),
    Edge(u32, &'f Edge),
    Else,
    End,
    Trap,
    Release(u32),
}

/// A loop of one block.
struct ShortLoop<'f> {
    condition: Value,
    /// The condition ends it.
    inverted: bool,
    again: &'f Edge,
    out: &'f Edge,
    copies: u32,
}

struct Writer<'w, 'f> {
    unit: &'w mut Unit<'f>,
    graph: &'w Graph,
    uniform: &'w [bool],
    exits: &'w dyn Exits,
    depth: u32,
    /// By block, how many labels were open round the `block` at whose end its code stands.
    ends: Vec<Option<u32>>,
    /// By block, the same of the `loop` that begins with it.
    loops: Vec<Option<u32>>,
    children: Vec<Vec<u32>>,
    merges: Vec<bool>,
    /// If the graph is irreducible: the local with the number of the next block, and the depth of the loop.
    dispatch: Option<(u32, u32)>,
    tasks: Vec<Task<'f>>,
}

/// How often the code of a graph should stand in a turn of a loop round it: once if it has loops itself.
///
/// The engine looks at each turn of a loop whether the kernel is to stop, and keeps no floating-point number in a register across that. In a short loop this
/// would cost more than the work. But each copy has to be compiled, so together they have so many operations at most.
pub fn copies(function: &Function, graph: &Graph, most_operations: usize) -> u32 {
    let loops = |block: &u32| graph.predecessors[*block as usize].iter().any(|from| graph.goes_back(*from, *block));
    if graph.order.iter().any(loops) {
        return 1;
    }
    affordable(graph.order.iter().map(|block| function.blocks[*block as usize].insts.len()).sum(), most_operations)
}

/// The largest power of 2 up to the most copies with which so many operations don't become more than that.
pub fn affordable(operations: usize, most_operations: usize) -> u32 {
    let fitting = (most_operations / operations.max(1)).clamp(1, MOST_COPIES);
    1 << fitting.ilog2()
}

/// Writes the blocks of a graph from its first one on.
pub fn write<'f>(unit: &mut Unit<'f>, graph: &Graph, uniform: &[bool], exits: &dyn Exits) {
    let blocks = graph.position.len();
    let mut writer = Writer {
        unit,
        graph,
        uniform,
        exits,
        depth: 0,
        ends: vec![None; blocks],
        loops: vec![None; blocks],
        children: vec![Vec::new(); blocks],
        merges: vec![false; blocks],
        dispatch: None,
        tasks: Vec::new(),
    };
    if graph.reducible() {
        writer.find_children();
        writer.tasks.push(Task::Tree(graph.order[0]));
        writer.run();
    } else {
        writer.dispatched();
    }
}

impl<'f> Writer<'_, 'f> {
    /// Children in the dominator tree, and where several forward edges come together.
    fn find_children(&mut self) {
        let mut forward = vec![0_u32; self.graph.position.len()];
        for block in &self.graph.order {
            for edge in self.unit.function.blocks[*block as usize].terminator.edges() {
                if self.inside(*block, edge) && !self.graph.goes_back(*block, edge.block) {
                    forward[edge.block as usize] += 1;
                }
            }
        }
        // From the last to the first, so that the child which comes last is the outermost.
        for block in self.graph.order.iter().skip(1).rev() {
            self.merges[*block as usize] = forward[*block as usize] > 1;
            if self.merges[*block as usize] {
                self.children[self.graph.dominator[*block as usize] as usize].push(*block);
            }
        }
    }

    fn inside(&self, block: u32, edge: &Edge) -> bool {
        let suspends = matches!(self.unit.function.blocks[block as usize].terminator, Terminator::Suspend(..));
        (!suspends || self.exits.passes(block)) && !self.exits.leaves(edge.block)
    }

    fn run(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Tree(block) => self.tree(block),
                Task::Edge(from, edge) => self.edge(from, edge),
                Task::Else => {
                    self.unit.sink().else_();
                }
                Task::End => {
                    self.unit.sink().end();
                    self.depth -= 1;
                }
                Task::Trap => super::module::trap(&mut self.unit.code, crate::kernel::trap::TABLE),
                Task::Release(block) => self.unit.after_block(block),
            }
        }
    }

    fn open(&mut self) -> u32 {
        self.unit.sink().block(BlockType::Empty);
        self.depth += 1;
        self.depth - 1
    }

    fn tree(&mut self, block: u32) {
        if let Some(short) = self.short_loop(block) {
            self.repeated(block, &short);
            return;
        }
        let heads_loop = self.graph.predecessors[block as usize].iter().any(|from| self.graph.goes_back(*from, block));
        if heads_loop {
            self.unit.sink().loop_(BlockType::Empty);
            self.loops[block as usize] = Some(self.depth);
            self.depth += 1;
            self.tasks.push(Task::End);
        }
        for child in std::mem::take(&mut self.children[block as usize]) {
            self.ends[child as usize] = Some(self.open());
            self.tasks.push(Task::Tree(child));
            self.tasks.push(Task::End);
        }
        self.body(block);
    }

    /// A loop of this block alone that is worth repeating. It dominates nothing but what follows its only way out.
    fn short_loop(&self, block: u32) -> Option<ShortLoop<'f>> {
        let function = self.unit.function;
        let data = &function.blocks[block as usize];
        let Terminator::Branch(condition, yes, no) = &data.terminator else { return None };
        let (again, out) = if yes.block == block { (yes, no) } else { (no, yes) };
        let alone = |from: &u32| *from == block || !self.graph.goes_back(*from, block);
        let short = again.block == block
            && out.block != block
            && !self.exits.leaves(block)
            && self.graph.predecessors[block as usize].iter().all(alone);
        let copies = affordable(data.insts.len(), MOST_OPERATIONS);
        (short && copies > 1).then_some(ShortLoop { condition: *condition, inverted: again == no, again, out, copies })
    }

    /// Writes the block several times in a turn.
    fn repeated(&mut self, block: u32, short: &ShortLoop<'f>) {
        self.open();
        self.unit.sink().loop_(BlockType::Empty);
        self.depth += 1;
        for _ in 0..short.copies {
            // What it leaves behind is in the same locals each time, as long as none is released.
            self.unit.block(block, self.uniform, self.depth);
            self.unit.condition(short.condition, self.depth);
            let mut sink = self.unit.sink();
            if !short.inverted {
                sink.i32_eqz();
            }
            sink.br_if(1);
            self.arguments(short.again);
        }
        self.unit.sink().br(0).end().end();
        self.depth -= 2;
        self.tasks.push(Task::Release(block));
        self.tasks.push(Task::Edge(block, short.out));
    }

    fn body(&mut self, block: u32) {
        self.unit.block(block, self.uniform, self.depth);
        let function = self.unit.function;
        let data = &function.blocks[block as usize];
        self.tasks.push(Task::Release(block));
        match &data.terminator {
            Terminator::Jump(edge) => self.tasks.push(Task::Edge(block, edge)),
            Terminator::Branch(condition, yes, no) => self.branch(block, *condition, yes, no),
            Terminator::Table(index, edges) => self.table(block, *index, edges),
            Terminator::Return(value) => self.exits.finish(self.unit, *value, self.depth),
            Terminator::Trap(reason) => {
                self.unit.code.mark(data.position);
                super::module::trap(&mut self.unit.code, *reason);
            }
            Terminator::Suspend(_, edge) if self.exits.passes(block) => {
                self.exits.pass(self.unit, block);
                self.tasks.push(Task::Edge(block, edge));
            }
            Terminator::Suspend(suspension, edge) => {
                self.unit.code.mark(data.position);
                self.exits.suspend(self.unit, suspension, edge, self.depth);
            }
        }
    }

    fn branch(&mut self, block: u32, condition: Value, yes: &'f Edge, no: &'f Edge) {
        match self.unit.lanes.as_ref().and_then(|lanes| lanes.masked(block)) {
            Some(masked) => self.masked(&masked),
            None => self.unit.condition(condition, self.depth),
        }
        if let Some(label) = self.plain(block, yes) {
            let depth = self.depth;
            self.unit.sink().br_if(depth - 1 - label);
            self.tasks.push(Task::Edge(block, no));
        } else if let Some(label) = self.plain(block, no) {
            let depth = self.depth;
            self.unit.sink().i32_eqz().br_if(depth - 1 - label);
            self.tasks.push(Task::Edge(block, yes));
        } else {
            self.unit.sink().if_(BlockType::Empty);
            self.depth += 1;
            self.tasks.push(Task::End);
            self.tasks.push(Task::Edge(block, no));
            self.tasks.push(Task::Else);
            self.tasks.push(Task::Edge(block, yes));
        }
    }

    /// Where lanes do not agree, the side of a branch for some of them; else the condition is on the stack then.
    fn masked(&mut self, masked: &Masked) {
        let taken = self.unit.code.local(ValType::I32);
        self.unit.lanes_taking(masked, taken);
        // Neither none nor all.
        let mixed = self.unit.all_lanes() - 1;
        let mut sink = self.unit.sink();
        sink.local_get(taken).i32_const(1).i32_sub().i32_const(mixed as i32).i32_lt_u();
        sink.if_(BlockType::Empty);
        self.depth += 1;
        self.unit.masked_side(masked, taken, self.uniform, self.depth);
        self.jump(masked.branch, masked.join);
        self.unit.sink().end();
        self.depth -= 1;
        self.unit.sink().local_get(taken);
        self.unit.code.release(taken);
    }

    /// Jumps to a block within the unit whose code stands elsewhere.
    fn jump(&mut self, from: u32, to: u32) {
        let depth = self.depth;
        if let Some((next, label)) = self.dispatch {
            let number = self.graph.position[to as usize].unwrap_or(0);
            self.unit.sink().i32_const(number as i32).local_set(next).br(depth - 1 - label);
        } else if let Some(label) = self.label(from, to) {
            self.unit.sink().br(depth - 1 - label);
        }
    }

    /// The label of an edge that is nothing but a jump.
    fn plain(&mut self, from: u32, edge: &Edge) -> Option<u32> {
        if self.dispatch.is_some() || self.exits.leaves(edge.block) {
            return None;
        }
        let parameters = &self.unit.function.blocks[edge.block as usize].parameters;
        if parameters.iter().zip(&edge.arguments).any(|(parameter, argument)| parameter != argument) {
            return None;
        }
        self.label(from, edge.block)
    }

    fn label(&self, from: u32, to: u32) -> Option<u32> {
        if self.graph.goes_back(from, to) { self.loops[to as usize] } else { self.ends[to as usize] }
    }

    /// Nested blocks, one for each edge; behind the end of each, what its edge does.
    fn table(&mut self, block: u32, index: Value, edges: &'f [Edge]) {
        self.open();
        for _ in edges {
            self.open();
        }
        self.unit.value(index);
        let labels: Vec<u32> = (0..edges.len() as u32).collect();
        self.unit.sink().br_table(labels, edges.len() as u32);
        self.tasks.push(Task::Trap);
        self.tasks.push(Task::End);
        for edge in edges.iter().rev() {
            self.tasks.push(Task::Edge(block, edge));
            self.tasks.push(Task::End);
        }
    }

    fn edge(&mut self, from: u32, edge: &'f Edge) {
        if self.exits.leaves(edge.block) {
            self.exits.hop(self.unit, edge, self.depth);
            return;
        }
        self.arguments(edge);
        let depth = self.depth;
        if let Some((next, label)) = self.dispatch {
            let number = self.graph.position[edge.block as usize].unwrap_or(0);
            self.unit.sink().i32_const(number as i32).local_set(next).br(depth - 1 - label);
        } else if let Some(label) = self.label(from, edge.block) {
            self.unit.sink().br(depth - 1 - label);
        } else {
            self.tasks.push(Task::Tree(edge.block));
        }
    }

    /// All arguments are read before the first parameter is written.
    fn arguments(&mut self, edge: &Edge) {
        let parameters = &self.unit.function.blocks[edge.block as usize].parameters;
        let moves: Vec<(Value, Value)> = parameters.iter().copied().zip(edge.arguments.iter().copied()).collect();
        let moves = moves.into_iter().filter(|(parameter, argument)| parameter != argument);
        let mut targets = Vec::new();
        for (parameter, argument) in moves {
            self.unit.argument(parameter, argument, &mut targets);
        }
        for target in targets.into_iter().rev() {
            self.unit.sink().local_set(target);
        }
    }

    /// A loop round a table of all blocks.
    fn dispatched(&mut self) {
        let next = self.unit.code.local(ValType::I32);
        self.unit.sink().i32_const(0).local_set(next).loop_(BlockType::Empty);
        self.depth = 1;
        self.dispatch = Some((next, 0));
        let count = self.graph.order.len() as u32;
        for _ in 0..count {
            self.open();
        }
        let labels: Vec<u32> = (0..count).collect();
        self.unit.sink().local_get(next).br_table(labels, count - 1);
        for index in 0..count as usize {
            self.unit.sink().end();
            self.depth -= 1;
            self.body(self.graph.order[index]);
            self.run();
        }
        self.unit.sink().end();
    }
}
