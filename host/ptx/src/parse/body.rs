//! A function while its body is read.

use std::collections::{HashMap, HashSet};

use super::error::{Result, error, quote};
use super::labels::Labels;
use super::names::{Named, Names, Unresolved};
use crate::module::{
    Function, FunctionId, LabelId, Module, Parameter, Position, Register, RegisterId, Space, Symbol, Type,
};

/// What a function can see of the module around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outer<'m, 'a> {
    pub(super) module: &'m Module,
    pub(super) globals: &'m HashMap<&'a str, Symbol>,
}

/// What a call of a function must give and takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    /// Each return value: the type of an element, and bytes in all.
    pub(super) returns: Vec<(Type, u32)>,
    /// Each parameter.
    pub(super) parameters: Vec<(Type, u32)>,
}

impl Signature {
    /// Of these return values and parameters.
    pub(super) fn of(returns: &[Parameter], parameters: &[Parameter]) -> Self {
        let shape = |list: &[Parameter]| list.iter().map(|parameter| (parameter.element, parameter.bytes)).collect();
        Self { returns: shape(returns), parameters: shape(parameters) }
    }

    /// Of this function.
    pub(super) fn of_function(function: &Function) -> Self {
        Self::of(&function.returns, &function.parameters)
    }

    /// What has to agree between a prototype and a function that is called by it: sizes count, kinds of numbers don't.
    pub(super) fn sizes(&self) -> (Vec<u32>, Vec<u32>) {
        let bytes = |list: &[(Type, u32)]| list.iter().map(|(_, bytes)| *bytes).collect();
        (bytes(&self.returns), bytes(&self.parameters))
    }
}

/// A function, and what is known only while its body is read.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) function: Function,
    pub(super) names: Names<'a>,
    pub(super) labels: Labels<'a>,
    /// Lists of `.branchtargets`.
    pub(super) targets: Vec<Vec<LabelId>>,
    /// Lists of `.calltargets`.
    pub(super) callees: Vec<Vec<FunctionId>>,
    /// Prototypes of `.callprototype`.
    pub(super) prototypes: Vec<Signature>,
    /// Indirect calls by prototype, whose candidates are known at the end of the module: the statement and the prototype.
    pub(super) indirect: Vec<(usize, Signature)>,
    /// How many list entries the instructions may still repeat: without a limit, a text of n bytes could ask for n² of them.
    pub(super) list_budget: usize,
    /// The variables of the module that it names.
    pub(super) named: HashSet<u32>,
    /// Registers of ranges that are in use.
    ranged: HashMap<(u32, u32), RegisterId>,
}

impl<'a> Body<'a> {
    pub(super) fn new(function: Function, list_budget: usize) -> Self {
        Self {
            function,
            names: Names::default(),
            labels: Labels::default(),
            targets: Vec::new(),
            callees: Vec::new(),
            prototypes: Vec::new(),
            indirect: Vec::new(),
            list_budget,
            named: HashSet::new(),
            ranged: HashMap::new(),
        }
    }

    /// Declares a name in the innermost block.
    pub(super) fn declare(&mut self, name: &'a str, named: Named, position: Position) -> Result<()> {
        if self.names.declare(name, named) { Ok(()) } else { twice(name, position) }
    }

    /// Adds a register and declares its name.
    pub(super) fn declare_register(&mut self, name: &'a str, ty: Type, position: Position) -> Result<RegisterId> {
        let register = self.add_register(name, ty);
        self.declare(name, Named::Register(register), position)?;
        Ok(register)
    }

    /// Declares `prefix0` to `prefix(count - 1)`.
    pub(super) fn declare_range(&mut self, prefix: &'a str, count: u32, ty: Type, position: Position) -> Result<()> {
        if self.names.declare_range(prefix, count, ty) { Ok(()) } else { twice(prefix, position) }
    }

    fn add_register(&mut self, name: &str, ty: Type) -> RegisterId {
        self.function.registers.push(Register { name: name.to_owned(), ty });
        RegisterId(self.function.registers.len() as u32 - 1)
    }

    /// What a name stands for: in the function, then in the module. None where it is unknown.
    pub(super) fn find(&mut self, outer: Outer<'_, 'a>, name: &str, position: Position) -> Result<Option<Named>> {
        match self.names.resolve(name) {
            Ok(Named::Ranged { range, index, ty }) => {
                let known = self.ranged.get(&(range, index)).copied();
                let register = known.unwrap_or_else(|| self.add_register(name, ty));
                self.ranged.insert((range, index), register);
                Ok(Some(Named::Register(register)))
            }
            Ok(named) => Ok(Some(named)),
            Err(Unresolved::Ambiguous) => twice(name, position),
            Err(Unresolved::Unknown) => {
                let symbol = outer.globals.get(name).copied();
                if let Some(Symbol::Module(variable)) = symbol {
                    self.named.insert(variable);
                }
                Ok(symbol.map(Named::Symbol))
            }
        }
    }

    /// The space that a symbol is in; none for a function.
    pub(super) fn space(&self, module: &Module, symbol: Symbol) -> Option<Space> {
        match symbol {
            Symbol::Module(index) => Some(module.variables[index as usize].space),
            Symbol::Function(index) => Some(self.function.variables[index as usize].space),
            Symbol::Parameter(_) | Symbol::Return(_) => Some(Space::Param),
            Symbol::Code(_) => None,
        }
    }

    /// Takes a number of list entries from the budget.
    pub(super) fn spend(&mut self, entries: usize, position: Position) -> Result<()> {
        match self.list_budget.checked_sub(entries) {
            Some(left) => self.list_budget = left,
            None => {
                return error(
                    position,
                    "the lists of targets that instructions name are longer in all than the text itself",
                );
            }
        }
        Ok(())
    }
}

/// Says that a name has two declarations.
pub(super) fn twice<T>(name: &str, position: Position) -> Result<T> {
    error(position, format!("{} is declared twice in this block", quote(name)))
}
