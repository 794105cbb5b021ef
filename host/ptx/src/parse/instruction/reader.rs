//! One instruction being read: its modifiers and operands, handed out one after the other and checked on the way.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::modifiers::{Modifiers, TYPES, Table};
use super::rules::{self, Fit};
use crate::module::{Address, LabelId, Operand, Position, Predicate, RegisterId, Space, Symbol, Type};
use crate::parse::body::{Body, Outer};
use crate::parse::error::{ParseError, Result, error, quote};
use crate::parse::names::Named;
use crate::parse::number::Number;
use crate::parse::operand::{Raw, RawKind, Value};

/// What to do about an instruction that is not understood.
const HINT: &str = "a module that only a GPU's driver has to understand can be given to `module.cuda-only`";

/// An instruction while it is read.
#[derive(Debug)]
pub(super) struct Reader<'r, 'a> {
    pub(super) outer: Outer<'r, 'a>,
    pub(super) body: &'r mut Body<'a>,
    pub(super) modifiers: Modifiers<'a>,
    pub(super) operands: VecDeque<Raw<'a>>,
    /// Of the instruction.
    pub(super) position: Position,
    /// The instruction with its modifiers.
    pub(super) written: &'a str,
}

impl<'a> Reader<'_, 'a> {
    /// An error about the instruction as a whole.
    pub(super) fn wrong(&self, why: &str) -> ParseError {
        ParseError { position: self.position, message: format!("{} {why}", quote(self.written)) }
    }

    /// An error: the instruction is none that can be translated.
    pub(super) fn unsupported(&self) -> ParseError {
        self.wrong(&format!("is not an instruction that can be translated; {HINT}"))
    }

    /// An error about what is missing among the modifiers.
    pub(super) fn needs(&self, what: &str) -> ParseError {
        self.wrong(&format!("needs {what}"))
    }

    fn unknown_modifier(&self, modifier: &str) -> ParseError {
        self.wrong(&format!("cannot be translated: `.{modifier}` is unknown or out of place in it; {HINT}"))
    }

    /// Says what is left over.
    pub(super) fn finish(&self) -> Result<()> {
        if let Some(modifier) = self.modifiers.first() {
            return Err(self.unknown_modifier(modifier));
        }
        match self.operands.front() {
            Some(raw) => error(raw.position, format!("{} has more operands than it takes", quote(self.written))),
            None => Ok(()),
        }
    }

    /// The next type among the modifiers, which must be one of these.
    pub(super) fn ty(&mut self, allowed: &[Type]) -> Result<Type> {
        let Some(ty) = self.modifiers.take(TYPES) else {
            // Types come last, so it is the last modifier that is meant as one.
            let last = self.modifiers.last();
            return Err(last.map_or_else(|| self.needs("a type"), |word| self.unknown_modifier(word)));
        };
        if allowed.contains(&ty) {
            return Ok(ty);
        }
        let name = TYPES.iter().find(|(_, known)| *known == ty).map_or("", |(name, _)| *name);
        Err(self.wrong(&format!("has no form for the type `.{name}`; {HINT}")))
    }

    /// A modifier that has to be there; `what` names it.
    pub(super) fn choice<T: Copy>(&mut self, table: &Table<T>, what: &str) -> Result<T> {
        self.modifiers.take(table).ok_or_else(|| self.needs(what))
    }

    fn next(&mut self, what: &str) -> Result<Raw<'a>> {
        self.operands.pop_front().ok_or_else(|| self.wrong(&format!("lacks an operand: {what}")))
    }

    /// Where the next operand stands.
    pub(super) fn operand_position(&self) -> Position {
        self.operands.front().map_or(self.position, |raw| raw.position)
    }

    /// Whether an operand is left.
    pub(super) fn more(&self) -> bool {
        !self.operands.is_empty()
    }

    /// What a name stands for.
    pub(super) fn resolve(&mut self, name: &str, position: Position) -> Result<Named> {
        let found = self.body.find(self.outer, name, position)?;
        found.map_or_else(|| error(position, format!("{} is not declared here", quote(name))), Ok)
    }

    /// The register of this name, which can be an operand of this type.
    pub(super) fn register(&mut self, name: &str, ty: Type, fit: Fit, position: Position) -> Result<RegisterId> {
        let Named::Register(register) = self.resolve(name, position)? else {
            return error(position, format!("{} is not a register", quote(name)));
        };
        self.check(register, ty, fit, position)?;
        Ok(register)
    }

    fn check(&self, register: RegisterId, ty: Type, fit: Fit, position: Position) -> Result<()> {
        let register = &self.body.function.registers[register.0 as usize];
        if rules::fits(register.ty, ty, fit) {
            return Ok(());
        }
        let (name, instruction) = (quote(&register.name), quote(self.written));
        error(position, format!("{name} is {}, where {instruction} needs {}", of(register.ty), of(ty)))
    }

    /// A register that receives a result of this type.
    pub(super) fn dst(&mut self, ty: Type) -> Result<RegisterId> {
        self.destination(ty, Fit::Exact)
    }

    /// A register that receives a result of this type, and may be wider.
    pub(super) fn wide_dst(&mut self, ty: Type) -> Result<RegisterId> {
        self.destination(ty, Fit::Wide)
    }

    fn destination(&mut self, ty: Type, fit: Fit) -> Result<RegisterId> {
        let raw = self.next("where the result goes")?;
        let register = self.as_destination(&raw, ty, fit)?;
        register.map_or_else(|| error(raw.position, "the result has to go to a register here, not `_`"), Ok)
    }

    /// A register, or `_`.
    pub(super) fn dst_or_sink(&mut self, ty: Type, fit: Fit) -> Result<Option<RegisterId>> {
        let raw = self.next("where the result goes")?;
        self.as_destination(&raw, ty, fit)
    }

    fn as_destination(&mut self, raw: &Raw<'a>, ty: Type, fit: Fit) -> Result<Option<RegisterId>> {
        match raw.kind {
            RawKind::Sink => Ok(None),
            RawKind::Value(Value::Name { name, component: None, offset: 0 }) => {
                self.register(name, ty, fit, raw.position).map(Some)
            }
            _ => error(raw.position, "the result has to go to a register"),
        }
    }

    /// `d` or `d|e`, each a register or `_`, of these types; what is not written is none.
    pub(super) fn dst_pair(&mut self, first: Type, second: Type) -> Result<[Option<RegisterId>; 2]> {
        let raw = self.next("where the result goes")?;
        let RawKind::Pair(a, b) = raw.kind else {
            return Ok([self.as_destination(&raw, first, Fit::Exact)?, None]);
        };
        let mut one =
            |name: Option<&str>, ty| name.map(|name| self.register(name, ty, Fit::Exact, raw.position)).transpose();
        Ok([one(a, first)?, one(b, second)?])
    }

    /// One or, in braces, `count` registers or `_`.
    pub(super) fn dst_vector(&mut self, count: usize, ty: Type, fit: Fit) -> Result<Vec<Option<RegisterId>>> {
        if count == 1 {
            return Ok(vec![self.dst_or_sink(ty, fit)?]);
        }
        self.dst_braced(count, ty, fit)
    }

    /// In braces, `count` registers or `_`.
    pub(super) fn dst_braced(&mut self, count: usize, ty: Type, fit: Fit) -> Result<Vec<Option<RegisterId>>> {
        let elements = self.vector(count)?.into_iter();
        elements
            .map(|(position, value)| match value {
                None => Ok(None),
                Some(Value::Name { name, component: None, offset: 0 }) => {
                    self.register(name, ty, fit, position).map(Some)
                }
                Some(_) => error(position, "the result has to go to a register"),
            })
            .collect()
    }

    /// One or, in braces, `count` values.
    pub(super) fn src_vector(&mut self, count: usize, ty: Type, fit: Fit) -> Result<Vec<Operand>> {
        if count == 1 {
            return Ok(vec![self.source(ty, fit)?]);
        }
        self.src_braced(count, ty, fit)
    }

    /// In braces, `count` values.
    pub(super) fn src_braced(&mut self, count: usize, ty: Type, fit: Fit) -> Result<Vec<Operand>> {
        let elements = self.vector(count)?.into_iter();
        elements
            .map(|(position, value)| match value {
                None => error(position, "`_` has no value"),
                Some(value) => self.value(value, ty, fit, position),
            })
            .collect()
    }

    fn vector(&mut self, count: usize) -> Result<Vec<(Position, Option<Value<'a>>)>> {
        let raw = self.next("a vector in braces")?;
        match raw.kind {
            RawKind::Vector(elements) if elements.len() == count => Ok(elements),
            RawKind::Vector(elements) => {
                error(raw.position, format!("{count} elements are needed, not {}", elements.len()))
            }
            _ => error(raw.position, format!("a vector of {count} elements in braces is needed")),
        }
    }

    /// How many elements the operand at `index` has if it is a vector.
    pub(super) fn vector_length(&self, index: usize) -> Option<usize> {
        match &self.operands.get(index)?.kind {
            RawKind::Vector(elements) => Some(elements.len()),
            _ => None,
        }
    }

    /// A value of this type.
    pub(super) fn src(&mut self, ty: Type) -> Result<Operand> {
        self.source(ty, Fit::Exact)
    }

    /// A value of this type in a register that may be wider.
    pub(super) fn wide_src(&mut self, ty: Type) -> Result<Operand> {
        self.source(ty, Fit::Wide)
    }

    fn source(&mut self, ty: Type, fit: Fit) -> Result<Operand> {
        let raw = self.next("a value")?;
        match raw.kind {
            RawKind::Value(value) => self.value(value, ty, fit, raw.position),
            RawKind::Negated(_) => error(raw.position, "`!` has no meaning for this operand"),
            _ => error(raw.position, "a register or a number is needed"),
        }
    }

    /// What a value is as an operand of this type.
    pub(super) fn value(&mut self, value: Value, ty: Type, fit: Fit, position: Position) -> Result<Operand> {
        let (name, component, offset) = match value {
            Value::Number(number) => {
                return rules::immediate(number, ty).map(Operand::Immediate).or_else(|why| error(position, why));
            }
            Value::Name { name, component, offset } => (name, component, offset),
        };
        match self.body.find(self.outer, name, position)? {
            Some(_) if component.is_some() => error(position, format!("{} has no components", quote(name))),
            Some(Named::Register(_)) if offset != 0 => {
                error(position, "an offset can be added to a variable, not to a register")
            }
            Some(Named::Register(register)) => {
                self.check(register, ty, fit, position)?;
                Ok(Operand::Register(register))
            }
            Some(Named::Symbol(symbol)) if !ty.is_float() && matches!(ty.bits(), 32 | 64) => {
                Ok(Operand::Address(symbol, offset))
            }
            Some(Named::Symbol(_)) => {
                error(position, format!("the address of {} does not fit in {}", quote(name), of(ty)))
            }
            Some(_) => error(position, format!("{} is a list, not a value", quote(name))),
            None if name == "WARP_SZ" && offset == 0 => Ok(Operand::Immediate(32)),
            None => self.special(name, component, ty, position),
        }
    }

    fn special(&self, name: &str, component: Option<&str>, ty: Type, position: Position) -> Result<Operand> {
        let Some((special, own)) = rules::special(name, component) else {
            let full = component.map_or_else(|| name.to_owned(), |component| format!("{name}.{component}"));
            return error(
                position,
                format!("{} is not declared here, and no special register that is supported", quote(&full)),
            );
        };
        if ty.is_float() || ty.bits() > own.bits() || ty == Type::Pred {
            return error(
                position,
                format!("{} is {}, where {} needs {}", quote(name), of(own), quote(self.written), of(ty)),
            );
        }
        Ok(Operand::Special(special))
    }

    /// A predicate, or its negation.
    pub(super) fn predicate(&mut self) -> Result<Predicate> {
        let raw = self.next("a predicate")?;
        let (name, negated) = match raw.kind {
            RawKind::Negated(name) => (name, true),
            RawKind::Value(Value::Name { name, component: None, offset: 0 }) => (name, false),
            _ => return error(raw.position, "a predicate is needed"),
        };
        let register = self.register(name, Type::Pred, Fit::Exact, raw.position)?;
        Ok(Predicate { register, negated })
    }

    /// Whether the next operand is a predicate.
    pub(super) fn predicate_is_next(&mut self) -> Result<bool> {
        let Some(Raw { position, kind }) = self.operands.front() else { return Ok(false) };
        match *kind {
            RawKind::Negated(_) => Ok(true),
            RawKind::Value(Value::Name { name, component: None, offset: 0 }) => {
                let found = self.body.find(self.outer, name, *position)?;
                Ok(matches!(found, Some(Named::Register(register)) if self.body.function.ty(register) == Type::Pred))
            }
            _ => Ok(false),
        }
    }

    /// A number that has to be written as one, in this range.
    pub(super) fn constant(&mut self, what: &str, range: RangeInclusive<u64>) -> Result<u64> {
        let raw = self.next(what)?;
        match raw.kind {
            RawKind::Value(Value::Number(Number::Integer(value))) if range.contains(&value) => Ok(value),
            _ => error(raw.position, format!("{what} is a number from {} to {}", range.start(), range.end())),
        }
    }

    /// A label of the function.
    pub(super) fn label(&mut self) -> Result<LabelId> {
        let raw = self.next("a label")?;
        match raw.kind {
            RawKind::Value(Value::Name { name, component: None, offset: 0 }) => {
                Ok(self.body.labels.mention(name, raw.position))
            }
            _ => error(raw.position, "a label is needed"),
        }
    }

    /// A name, whatever it stands for.
    pub(super) fn name(&mut self, what: &str) -> Result<(&'a str, Position)> {
        let raw = self.next(what)?;
        match raw.kind {
            RawKind::Value(Value::Name { name, component: None, offset: 0 }) => Ok((name, raw.position)),
            _ => error(raw.position, format!("{what} is needed")),
        }
    }

    /// What stands in parentheses, if that is the next operand.
    pub(super) fn list(&mut self) -> Vec<Raw<'a>> {
        match self.operands.pop_front() {
            Some(Raw { kind: RawKind::List(elements), .. }) => elements,
            Some(other) => {
                self.operands.push_front(other);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// `[a+4]`, in `space`. A variable in an address without a space is reached in its own.
    pub(super) fn address(&mut self, space: Space) -> Result<(Space, Address)> {
        let raw = self.next("an address in brackets")?;
        let RawKind::Address(value) = raw.kind else { return error(raw.position, "an address in brackets is needed") };
        let position = raw.position;
        let (name, offset) = match value {
            Value::Number(Number::Integer(at)) => {
                return Ok((space, Address { base: Operand::Immediate(at), offset: 0 }));
            }
            Value::Name { name, component: None, offset } => (name, offset),
            _ => return error(position, "an address is a register or a variable, with or without an offset"),
        };
        match self.resolve(name, position)? {
            Named::Register(register) => {
                let ty = if self.body.function.ty(register).bits() == 32 { Type::U32 } else { Type::U64 };
                self.check(register, ty, Fit::Exact, position)?;
                Ok((space, Address { base: Operand::Register(register), offset }))
            }
            Named::Symbol(symbol) => {
                let space = self.space_of(symbol, space, position)?;
                Ok((space, Address { base: Operand::Address(symbol, 0), offset }))
            }
            _ => error(position, format!("{} is a list, not an address", quote(name))),
        }
    }

    /// The space in which a variable is reached by an instruction that says `given`.
    pub(super) fn space_of(&self, symbol: Symbol, given: Space, position: Position) -> Result<Space> {
        match self.body.space(self.outer.module, symbol) {
            None => error(position, "a function is not data"),
            Some(own) if given == own || given == Space::Generic => Ok(own),
            Some(_) => {
                error(position, format!("this variable lies in another space than {} says", quote(self.written)))
            }
        }
    }
}

/// A type as messages name it: `.f32`.
pub(in crate::parse) fn of(ty: Type) -> String {
    let name = TYPES.iter().find(|(_, known)| *known == ty).map_or("", |(name, _)| *name);
    format!("`.{name}`")
}
