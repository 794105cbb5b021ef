//! Writes a function of the intermediate form, instruction by instruction: variables become values.
//!
//! A variable (a PTX register) is read through [`Builder::read`] and written through [`Builder::write`]. Within a block, and through blocks with one
//! predecessor, a read finds the last write; at any other block it makes a parameter, whose arguments [`Builder::finish`] puts on the edges when all of them
//! are known. (Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", with all blocks sealed at the end.) Parameters that always
//! get the same value are taken out again by `tidy`.

use std::collections::HashMap;

use crate::module::Position;
use crate::translate::ir::{Access, Block, Definition, Edge, Function, Input, Inst, Kind, Memory, Terminator, Value};

/// A mutable variable.
pub type Variable = u32;

/// What is known of a block while it is written.
#[derive(Default)]
struct Draft {
    /// Its edges come from here, once for each.
    predecessors: Vec<u32>,
    /// More edges may come: a read must not look into the predecessors.
    open: bool,
    /// Variables whose value at the end of what is written so far is known.
    values: HashMap<Variable, Value>,
    /// Variables that are parameters, in the order of [`Block::parameters`].
    parameters: Vec<Variable>,
}

/// Writes one function.
#[derive(Default)]
pub struct Builder {
    function: Function,
    drafts: Vec<Draft>,
    kinds: Vec<Kind>,
    constants: HashMap<(Kind, u64), Value>,
    inputs: HashMap<Input, Value>,
    launch: HashMap<(u64, Kind, u32, bool), Value>,
    current: Option<u32>,
    /// Where in the text the instructions being written come from.
    pub position: Position,
    /// Whether arithmetic must give PTX's NaN.
    pub canonical: bool,
}

impl Builder {
    /// A function with these arguments, and its entry block.
    pub fn new(arguments: Vec<Kind>, result: Option<Kind>, canonical: bool) -> Self {
        let mut builder = Self { canonical, ..Self::default() };
        for (index, kind) in arguments.iter().enumerate() {
            builder.define(Inst::Argument(index as u32), Some(*kind));
        }
        builder.function.arguments = arguments;
        builder.function.result = result;
        let entry = builder.block();
        builder.drafts[entry as usize].open = false;
        builder.start(entry);
        builder
    }

    /// An argument of the function.
    pub fn argument(&self, index: u32) -> Value {
        Value(index)
    }

    /// How many values there are.
    pub fn size(&self) -> usize {
        self.function.values.len()
    }

    /// A new variable; before it is written, it is 0.
    pub fn variable(&mut self, kind: Kind) -> Variable {
        self.kinds.push(kind);
        self.kinds.len() as Variable - 1
    }

    /// A new block, to which any number of edges may come until [`Self::close`].
    pub fn block(&mut self) -> u32 {
        let position = self.position;
        self.function.blocks.push(Block {
            parameters: Vec::new(),
            insts: Vec::new(),
            terminator: Terminator::Trap(0),
            position,
        });
        self.drafts.push(Draft { open: true, ..Draft::default() });
        self.function.blocks.len() as u32 - 1
    }

    /// Promises that no more edges to the block come: now reads may look into its predecessors.
    pub fn close(&mut self, block: u32) {
        self.drafts[block as usize].open = false;
    }

    /// Goes on writing in this block.
    pub fn start(&mut self, block: u32) {
        self.current = Some(block);
    }

    /// The block that is being written.
    pub fn here(&self) -> Option<u32> {
        self.current
    }

    /// Whether what is written now can be reached.
    pub fn reachable(&self) -> bool {
        self.current.is_some()
    }

    fn leave(&mut self, terminator: Terminator) {
        let Some(current) = self.current.take() else { return };
        for edge in terminator.edges() {
            self.drafts[edge.block as usize].predecessors.push(current);
        }
        let block = &mut self.function.blocks[current as usize];
        block.terminator = terminator;
        block.position = self.position;
    }

    /// Ends the block.
    pub fn end(&mut self, terminator: Terminator) {
        self.leave(terminator);
    }

    /// Ends the block with a jump.
    pub fn jump(&mut self, block: u32) {
        self.leave(Terminator::Jump(edge(block)));
    }

    /// Ends the block with a conditional jump.
    pub fn branch(&mut self, condition: Value, yes: u32, no: u32) {
        self.leave(Terminator::Branch(condition, edge(yes), edge(no)));
    }

    fn define(&mut self, inst: Inst, kind: Option<Kind>) -> Value {
        let position = self.position;
        self.function.values.push(Definition { inst, kind, position });
        Value(self.function.values.len() as u32 - 1)
    }

    /// Appends an instruction to the block. Where nothing can be reached, it is nowhere.
    pub fn push(&mut self, inst: Inst, kind: Option<Kind>) -> Value {
        let value = self.define(inst, kind);
        if let Some(current) = self.current {
            self.function.blocks[current as usize].insts.push(value);
        }
        value
    }

    /// A constant.
    pub fn constant(&mut self, kind: Kind, bits: u64) -> Value {
        let bits = if kind.bytes() == 4 { bits & 0xffff_ffff } else { bits };
        if let Some(value) = self.constants.get(&(kind, bits)) {
            return *value;
        }
        let value = self.define(Inst::Const(bits), Some(kind));
        self.constants.insert((kind, bits), value);
        value
    }

    /// Reads what is the same for all threads of a block, at a fixed place of the private memory: the launch record and the parameters.
    pub fn launch(&mut self, at: u64, kind: Kind, bytes: u32, signed: bool) -> Value {
        if let Some(value) = self.launch.get(&(at, kind, bytes, signed)) {
            return *value;
        }
        let access = Access {
            memory: Memory::Private,
            bytes,
            signed,
            offset: at,
            atomic: false,
            exclusive: false,
            constant: true,
        };
        let zero = self.constant(Kind::I32, 0);
        let value = self.define(Inst::Load(access, zero), Some(kind));
        self.launch.insert((at, kind, bytes, signed), value);
        value
    }

    /// Something of this thread.
    pub fn input(&mut self, input: Input) -> Value {
        if let Some(value) = self.inputs.get(&input) {
            return *value;
        }
        let value = self.define(Inst::Input(input), Some(Kind::I32));
        self.inputs.insert(input, value);
        value
    }

    /// The bits of a value that is known.
    pub fn known(&self, value: Value) -> Option<u64> {
        match self.inst(value) {
            Inst::Const(bits) => Some(*bits),
            _ => None,
        }
    }

    /// What defines a value.
    pub fn inst(&self, value: Value) -> &Inst {
        self.function.inst(value)
    }

    /// The kind of a value.
    pub fn kind(&self, value: Value) -> Kind {
        self.function.kind(value)
    }

    /// Gives a variable another value.
    pub fn write(&mut self, variable: Variable, value: Value) {
        if let Some(current) = self.current {
            self.drafts[current as usize].values.insert(variable, value);
        }
    }

    /// The value of a variable.
    pub fn read(&mut self, variable: Variable) -> Value {
        match self.current {
            Some(current) => self.value_in(current, variable),
            None => self.constant(self.kinds[variable as usize], 0),
        }
    }

    /// The value of a variable at the end of what is written of a block.
    fn value_in(&mut self, block: u32, variable: Variable) -> Value {
        let mut at = block;
        let mut steps = 0;
        let found = loop {
            steps += 1;
            let draft = &self.drafts[at as usize];
            if let Some(value) = draft.values.get(&variable) {
                break *value;
            }
            match (draft.open, draft.predecessors.as_slice()) {
                // Blocks that lead only to each other are never reached, and would be walked round for ever.
                (false, [one]) if steps <= self.drafts.len() => at = *one,
                (false, [] | [_]) => break self.constant(self.kinds[variable as usize], 0),
                _ => break self.parameter(at, variable),
            }
        };
        // Remembered in the block that asked, so that long chains are not walked for each of their blocks.
        self.drafts[block as usize].values.insert(variable, found);
        found
    }

    fn parameter(&mut self, block: u32, variable: Variable) -> Value {
        let value = self.define(Inst::BlockParameter, Some(self.kinds[variable as usize]));
        self.function.blocks[block as usize].parameters.push(value);
        let draft = &mut self.drafts[block as usize];
        draft.parameters.push(variable);
        // A write that came after is what the block's end has; a read found nothing, so this is the value from its beginning on.
        draft.values.insert(variable, value);
        value
    }

    /// The function: each edge gets the arguments for the parameters of its block.
    pub fn finish(mut self) -> Function {
        self.leave(Terminator::Trap(0));
        for draft in &mut self.drafts {
            draft.open = false;
        }
        // Finding an argument may make new parameters, also in blocks that were done: go on until none is left.
        let mut done = vec![0; self.drafts.len()];
        let mut pending: Vec<u32> = (0..self.drafts.len() as u32).collect();
        while let Some(block) = pending.pop() {
            while let Some(variable) = self.drafts[block as usize].parameters.get(done[block as usize]).copied() {
                done[block as usize] += 1;
                let mut predecessors = self.drafts[block as usize].predecessors.clone();
                predecessors.sort_unstable();
                predecessors.dedup();
                for predecessor in predecessors {
                    let value = self.value_in(predecessor, variable);
                    let edges = self.function.blocks[predecessor as usize].terminator.edges_mut();
                    edges.filter(|edge| edge.block == block).for_each(|edge| edge.arguments.push(value));
                }
            }
            let late = (0..self.drafts.len()).filter(|at| self.drafts[*at].parameters.len() > done[*at]);
            if pending.is_empty() {
                pending.extend(late.map(|at| at as u32));
            }
        }
        self.function
    }
}

/// An edge whose arguments are not known yet.
pub fn edge(block: u32) -> Edge {
    Edge { block, arguments: Vec::new() }
}
