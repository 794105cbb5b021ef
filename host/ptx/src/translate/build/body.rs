//! The statements of one function, and of those that are inlined into it.

use std::collections::HashMap;

use super::program::{Draft, Workshop};
use super::ssa::{Builder, Variable};
use crate::kernel::PARAMETERS;
use crate::module::{
    FunctionId, Instruction, LabelId, Op, Position, Predicate, RegisterId, Space, Statement, Symbol, Type,
};
use crate::translate::error::{Result, TranslateError};
use crate::translate::ir::{Input, Kind, Terminator, Value};
use crate::translate::trap;

/// The most functions that may be inlined into each other.
const DEEPEST_INLINING: usize = 64;

/// A function being built, and where in it we are.
pub struct Body<'w, 'a> {
    /// What it shares with others.
    pub shop: &'w mut Workshop<'a>,
    /// Writes it.
    pub b: Builder,
    /// The function whose statements are being read; inlined ones behind their callers.
    scopes: Vec<Scope>,
    /// Bytes of call area so far.
    pub area: u32,
    asking: Vec<u32>,
    pub(super) ordered: Vec<Value>,
    carry: Option<Variable>,
}

/// One use of a PTX function: its registers, labels and variables.
pub(super) struct Scope {
    /// The function.
    pub id: FunctionId,
    registers: HashMap<RegisterId, Variable>,
    labels: Vec<Label>,
    locals: Vec<u64>,
    /// Where its `.param` variables lie in the call area, by their index.
    areas: Vec<u32>,
    /// Where its parameters and then its results lie, as addresses in the private memory; empty for an entry.
    pub arguments: Vec<Value>,
    /// Where `ret` goes, if it is inlined.
    back: Option<u32>,
}

#[derive(Clone)]
struct Label {
    block: u32,
    /// References that have not been met yet.
    missing: u32,
}

impl<'w, 'a> Body<'w, 'a> {
    fn new(shop: &'w mut Workshop<'a>, b: Builder) -> Self {
        Self { shop, b, scopes: Vec::new(), area: 0, asking: Vec::new(), ordered: Vec::new(), carry: None }
    }

    /// The body of an entry, for one thread.
    pub fn entry(shop: &'w mut Workshop<'a>, id: FunctionId) -> Result<Draft> {
        let builder = Builder::new(Vec::new(), None, shop.options.canonical_nans);
        let mut body = Self::new(shop, builder);
        body.scope(id, Vec::new(), None)?;
        body.finish(false)
    }

    /// A device function.
    pub fn device(shop: &'w mut Workshop<'a>, id: FunctionId) -> Result<Draft> {
        let arguments = Workshop::device_arguments(shop.function(id));
        let count = arguments.len() as u32;
        let builder = Builder::new(arguments, None, shop.options.canonical_nans);
        let mut body = Self::new(shop, builder);
        let places = (3..count).map(|index| body.b.argument(index)).collect();
        body.scope(id, places, None)?;
        body.finish(true)
    }

    fn finish(mut self, device: bool) -> Result<Draft> {
        self.b.end(Terminator::Return(None));
        let mut function = self.b.finish();
        function.device = device;
        function.call_area = self.area.next_multiple_of(16);
        Ok(Draft { function, asking: self.asking, ordered: self.ordered })
    }

    /// Reads the statements of a function; behind them, control is where the function returns to.
    pub(super) fn scope(&mut self, id: FunctionId, arguments: Vec<Value>, back: Option<u32>) -> Result<()> {
        let function = self.shop.function(id);
        if self.scopes.len() > DEEPEST_INLINING {
            return Err(TranslateError::new(
                function.position,
                "more than 64 functions that wait for other threads are nested",
            ));
        }
        let labels = self.labels(id);
        let locals = self.shop.local_places(id, back.is_none())?;
        let areas = self.call_areas(id)?;
        self.scopes.push(Scope { id, registers: HashMap::new(), labels, locals, areas, arguments, back });
        self.take_arguments();
        let mut before = self.b.size();
        for statement in &function.body {
            match statement {
                Statement::Label(label) => self.label(*label),
                Statement::Instruction(instruction) => self.instruction(instruction)?,
            }
            let size = self.b.size();
            self.shop.spend(size - before, self.b.position)?;
            before = size;
        }
        self.leave();
        self.scopes.pop();
        Ok(())
    }

    fn labels(&mut self, id: FunctionId) -> Vec<Label> {
        let function = self.shop.function(id);
        let mut labels: Vec<Label> =
            (0..function.labels).map(|_| Label { block: self.b.block(), missing: 0 }).collect();
        for statement in &function.body {
            let Statement::Instruction(instruction) = statement else { continue };
            match &instruction.op {
                Op::Branch { target, .. } => labels[target.0 as usize].missing += 1,
                Op::BranchTable { targets, .. } => {
                    targets.iter().for_each(|target| labels[target.0 as usize].missing += 1);
                }
                _ => {}
            }
        }
        labels
    }

    /// Gives each `.param` variable of the function a place in the call area.
    fn call_areas(&mut self, id: FunctionId) -> Result<Vec<u32>> {
        let mut areas = Vec::new();
        for variable in &self.shop.function(id).variables {
            let mut offset = 0;
            if variable.space == Space::Param {
                offset = self.area(variable.bytes, variable.align, variable.position)?;
            }
            areas.push(offset);
        }
        Ok(areas)
    }

    /// So many bytes of the call area.
    pub(super) fn area(&mut self, bytes: u64, align: u32, position: Position) -> Result<u32> {
        let offset = self.area.next_multiple_of(align.clamp(1, 16));
        let end = u64::from(offset).saturating_add(bytes);
        if end > 1 << 20 {
            return Err(TranslateError::new(position, "more than 1 MiB of arguments of calls"));
        }
        self.area = end as u32;
        Ok(offset)
    }

    pub(super) fn current(&self) -> &Scope {
        &self.scopes[self.scopes.len() - 1]
    }

    /// The function whose statements are being read.
    pub fn function(&self) -> &'a crate::module::Function {
        self.shop.function(self.current().id)
    }

    /// An error at the instruction being read.
    pub fn error(&self, text: impl Into<String>) -> TranslateError {
        TranslateError::new(self.b.position, text)
    }

    /// The variable that stands for a register.
    pub(super) fn variable(&mut self, register: RegisterId) -> Variable {
        let kind = register_kind(self.function().ty(register));
        let scope = self.scopes.len() - 1;
        let builder = &mut self.b;
        *self.scopes[scope].registers.entry(register).or_insert_with(|| builder.variable(kind))
    }

    /// The variable that stands for the carry flag.
    pub(super) fn carry(&mut self) -> Variable {
        let builder = &mut self.b;
        *self.carry.get_or_insert_with(|| builder.variable(Kind::I32))
    }

    /// Notes that this place of the code reads what another thread may write: a loop round it lets others run.
    pub(super) fn asks(&mut self) {
        if let Some(block) = self.b.here() {
            self.asking.push(block);
        }
    }

    /// Whether a predicate holds.
    pub(super) fn predicate(&mut self, predicate: &Predicate) -> Value {
        let variable = self.variable(predicate.register);
        let value = self.b.read(variable);
        if predicate.negated { self.not(value) } else { value }
    }

    fn label(&mut self, label: LabelId) {
        let at = &self.current().labels[label.0 as usize];
        let (block, missing) = (at.block, at.missing);
        self.b.jump(block);
        if missing == 0 {
            self.b.close(block);
        }
        self.b.start(block);
    }

    /// The block of a label that a branch being read goes to.
    fn target(&mut self, label: LabelId) -> u32 {
        let scope = self.scopes.len() - 1;
        let at = &mut self.scopes[scope].labels[label.0 as usize];
        at.missing -= 1;
        at.block
    }

    /// What `ret` does.
    fn leave(&mut self) {
        if self.b.reachable() {
            self.give_results();
        }
        match self.current().back {
            Some(back) => self.b.jump(back),
            None => self.b.end(Terminator::Return(None)),
        }
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<()> {
        self.b.position = instruction.position;
        if !self.b.reachable() {
            self.forget(&instruction.op);
            return Ok(());
        }
        let Some(guard) = &instruction.guard else { return self.op(&instruction.op) };
        let guard = self.predicate(guard);
        if let Op::Branch { target, .. } = instruction.op {
            let (yes, no) = (self.target(target), self.b.block());
            self.b.branch(guard, yes, no);
            self.b.close(no);
            self.b.start(no);
            return Ok(());
        }
        let (inside, behind) = (self.b.block(), self.b.block());
        self.b.branch(guard, inside, behind);
        self.b.close(inside);
        self.b.start(inside);
        self.op(&instruction.op)?;
        self.b.jump(behind);
        self.b.close(behind);
        self.b.start(behind);
        Ok(())
    }

    /// A branch that is never reached is no reference to its label.
    fn forget(&mut self, op: &Op) {
        match op {
            Op::Branch { target, .. } => {
                self.target(*target);
            }
            Op::BranchTable { targets, .. } => targets.iter().for_each(|target| {
                self.target(*target);
            }),
            _ => {}
        }
    }

    /// What one instruction does, its guard aside.
    fn op(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Mov { .. } | Op::Pack { .. } | Op::Unpack { .. } => self.moves(op),
            Op::ToGeneric { ty, dst, src, .. } | Op::FromGeneric { ty, dst, src, .. } => {
                let value = self.operand(src, *ty)?;
                self.write(*dst, *ty, value);
                Ok(())
            }
            Op::IsSpace { space, dst, src } => self.is_space(*space, *dst, src),
            Op::Load { .. } | Op::Store { .. } | Op::AsyncCopy { .. } => self.memory(op),
            Op::MbarrierInit { .. }
            | Op::MbarrierArrive { .. }
            | Op::MbarrierTest { .. }
            | Op::MbarrierPending { .. } => self.mbarrier(op),
            Op::Atomic { .. } => self.atomic(op),
            Op::Convert { .. } | Op::ConvertPack { .. } => self.convert(op),
            Op::Integer { .. }
            | Op::MultiplyAdd { .. }
            | Op::SumAbsoluteDifference { .. }
            | Op::IntegerUnary { .. } => self.integer(op),
            Op::Logic { .. }
            | Op::Logic3 { .. }
            | Op::FunnelShift { .. }
            | Op::BitExtract { .. }
            | Op::BitInsert { .. }
            | Op::BitMask { .. }
            | Op::ExtendFrom { .. }
            | Op::FindNthSet { .. }
            | Op::Permute { .. }
            | Op::Dot4 { .. }
            | Op::Dot2 { .. } => self.bits(op),
            Op::Float { .. } | Op::Fma { .. } | Op::FloatUnary { .. } | Op::Test { .. } => self.float(op),
            Op::SetPredicate { .. } | Op::Set { .. } | Op::Select { .. } | Op::SelectBySign { .. } => self.compare(op),
            Op::Call { callee, returns, arguments } => self.call(callee, returns, arguments),
            Op::Branch { target, .. } => {
                let block = self.target(*target);
                self.b.jump(block);
                Ok(())
            }
            Op::BranchTable { index, targets } => {
                let index = self.operand(index, Type::U32)?;
                let edges = targets.iter().map(|target| super::ssa::edge(self.target(*target))).collect();
                self.b.end(Terminator::Table(index, edges));
                Ok(())
            }
            Op::Return => {
                self.leave();
                Ok(())
            }
            Op::Exit => {
                self.b.end(Terminator::Return(None));
                Ok(())
            }
            Op::Trap => {
                self.b.end(Terminator::Trap(trap::TRAP));
                Ok(())
            }
            Op::Hint | Op::Fence | Op::Yield => Ok(()),
            // Whatever is left is where threads meet.
            other => self.warp(other),
        }
    }

    /// The address of a symbol: a value, and what is to be added to it.
    pub(super) fn symbol(&mut self, symbol: Symbol) -> Result<Location> {
        let (id, position) = (self.current().id, self.b.position);
        if let Some(place) = self.shop.place(id, symbol, position)? {
            let base = self.b.launch(u64::from(place.record), Kind::I64, 8, false);
            return Ok(Location { base, offset: place.offset, constant: false });
        }
        match symbol {
            Symbol::Function(index) => {
                let variable = &self.function().variables[index as usize];
                if variable.space == Space::Local {
                    let offset = self.current().locals[index as usize];
                    let base = self.local_base();
                    return Ok(Location { base, offset, constant: false });
                }
                let offset = self.current().areas[index as usize];
                let base = self.input(Input::CallArea);
                Ok(Location { base, offset: u64::from(offset), constant: false })
            }
            Symbol::Parameter(index) => {
                let parameter = &self.function().parameters[index as usize];
                if self.function().entry {
                    let base = self.b.i32(0);
                    return Ok(Location { base, offset: u64::from(PARAMETERS + parameter.offset), constant: true });
                }
                let base = self.current().arguments[index as usize];
                Ok(Location { base, offset: 0, constant: false })
            }
            Symbol::Return(index) => {
                let base = self.current().arguments[self.function().parameters.len() + index as usize];
                Ok(Location { base, offset: 0, constant: false })
            }
            Symbol::Code(id) => {
                let base = self.b.i64(u64::from(id.0));
                Ok(Location { base, offset: 0, constant: false })
            }
            Symbol::Module(_) => Err(self.error("the variable has no address")),
        }
    }

    /// Something of this thread.
    pub(super) fn input(&mut self, input: Input) -> Value {
        self.b.input(input)
    }

    /// Where the thread's local memory begins.
    fn local_base(&mut self) -> Value {
        let base = self.b.launch(u64::from(crate::kernel::Launch::LOCAL), Kind::I64, 8, false);
        let bytes = self.b.launch(u64::from(crate::translate::LOCAL_BYTES), Kind::I32, 4, false);
        let linear = self.input(Input::Linear);
        let (linear, bytes) = (self.widen(linear, false), self.widen(bytes, false));
        let offset = self.b.mul(linear, bytes);
        self.b.add(base, offset)
    }
}

/// Where something lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location {
    /// An address: of 64 bits in the device memory, of 32 in the private.
    pub base: Value,
    /// Added to it.
    pub offset: u64,
    /// A parameter of the entry, which never changes.
    pub constant: bool,
}

/// The kind of the variable that stands for a register.
pub(super) fn register_kind(ty: Type) -> Kind {
    match ty {
        Type::F32 => Kind::F32,
        Type::F64 => Kind::F64,
        Type::B64 | Type::U64 | Type::S64 | Type::B128 => Kind::I64,
        _ => Kind::I32,
    }
}
