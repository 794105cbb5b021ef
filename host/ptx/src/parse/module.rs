//! A module's own directives: version and target, variables, functions.

use std::collections::HashMap;

use super::body::{Outer, Signature, twice};
use super::cursor::Cursor;
use super::error::{Result, error, quote};
use super::function::{self, Header};
use super::initial::{self, Initial};
use super::lexer::Kind;
use super::skip;
use super::variable::{Declared, Shape, declared, shape};
use crate::module::{Callee, Function, FunctionId, Module, Op, Space, Statement, Symbol, Variable};

/// The versions of PTX that are read: major numbers.
const MAJOR_VERSIONS: std::ops::RangeInclusive<u32> = 2..=8;
/// How many bytes of initial data a byte of text may stand for: an element of 8 bytes takes two characters.
const INITIAL_BYTES_PER_BYTE: usize = 8;

/// A module while it is read.
struct Parser<'a> {
    cursor: Cursor<'a>,
    module: Module,
    globals: HashMap<&'a str, Symbol>,
    /// Bytes of initial data that may still come.
    initial_budget: usize,
    /// Entries of target lists that may still come.
    list_budget: usize,
    /// Indirect calls by prototype: function, statement and prototype.
    indirect: Vec<(usize, usize, Signature)>,
}

/// How a name is shared with other modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// Defined here: `.visible`, `.weak`, `.common`, or nothing said.
    Here,
    /// `.extern`.
    Elsewhere,
}

pub(super) fn parse(text: &str) -> Result<Module> {
    let mut cursor = Cursor::new(text)?;
    let version = version(&mut cursor)?;
    let target = target(&mut cursor)?;
    let module = Module { version, target, variables: Vec::new(), functions: Vec::new() };
    let mut parser = Parser {
        cursor,
        module,
        globals: HashMap::new(),
        initial_budget: text.len().saturating_mul(INITIAL_BYTES_PER_BYTE),
        list_budget: text.len(),
        indirect: Vec::new(),
    };
    while parser.cursor.peek() != Kind::End {
        parser.directive()?;
    }
    parser.finish()
}

/// `.version 8.2`.
fn version(cursor: &mut Cursor) -> Result<(u32, u32)> {
    if !cursor.accept_dotted("version")? {
        return Err(cursor.unexpected("`.version`, with which PTX begins"));
    }
    let (position, written) = (cursor.position(), cursor.written());
    let parts = written.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let Some((major, minor)) = parts else { return Err(cursor.unexpected("a version such as 8.2")) };
    cursor.advance()?;
    if !MAJOR_VERSIONS.contains(&major) {
        let (first, last) = (MAJOR_VERSIONS.start(), MAJOR_VERSIONS.end());
        return error(position, format!("PTX of version {written} is not supported: {first}.0 to {last}.x are"));
    }
    Ok((major, minor))
}

/// `.target sm_75, debug`.
fn target(cursor: &mut Cursor) -> Result<String> {
    if !cursor.accept_dotted("target")? {
        return Err(cursor.unexpected("`.target`"));
    }
    let position = cursor.position();
    let target = cursor.word("a target such as sm_75")?;
    let number = target.strip_prefix("sm_").map(|number| number.trim_end_matches(['a', 'f']));
    if !number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())) {
        return error(position, format!("{} is not a target such as sm_75", quote(target)));
    }
    while cursor.accept(',')? {
        cursor.word("an option of the target")?;
    }
    Ok(target.to_owned())
}

impl<'a> Parser<'a> {
    /// Whatever stands outside functions.
    fn directive(&mut self) -> Result<()> {
        let (position, written) = (self.cursor.position(), self.cursor.written());
        let Kind::Dotted(word) = self.cursor.peek() else {
            return Err(self.cursor.unexpected("a directive such as `.visible .entry`"));
        };
        self.cursor.advance()?;
        match word {
            "address_size" => self.address_size(),
            "visible" | "weak" | "common" => self.symbol(Linkage::Here),
            "extern" => self.symbol(Linkage::Elsewhere),
            "entry" | "func" | "global" | "const" | "shared" => self.define(word, Linkage::Here),
            "file" => skip::file(&mut self.cursor),
            "loc" => skip::location(&mut self.cursor),
            "section" => skip::section(&mut self.cursor),
            "pragma" => skip::pragma(&mut self.cursor),
            _ => error(position, format!("{} is not supported outside functions", quote(written))),
        }
    }

    /// `.address_size 64`.
    fn address_size(&mut self) -> Result<()> {
        let position = self.cursor.position();
        match self.cursor.integer("64")? {
            64 => Ok(()),
            other => error(position, format!("addresses of {other} bits are not supported: compile for 64")),
        }
    }

    /// What follows a linkage.
    fn symbol(&mut self, linkage: Linkage) -> Result<()> {
        let Kind::Dotted(word @ ("entry" | "func" | "global" | "const" | "shared")) = self.cursor.peek() else {
            return Err(self.cursor.unexpected("`.entry`, `.func`, `.global`, `.const` or `.shared`"));
        };
        self.cursor.advance()?;
        self.define(word, linkage)
    }

    fn define(&mut self, word: &str, linkage: Linkage) -> Result<()> {
        match word {
            "entry" => self.function(true, linkage),
            "func" => self.function(false, linkage),
            "global" => self.variables(Space::Global, linkage),
            "const" => self.variables(Space::Const, linkage),
            _ => self.variables(Space::Shared, linkage),
        }
    }

    /// `.align 4 .u32 x = 5, y[2];`, behind the space.
    fn variables(&mut self, space: Space, linkage: Linkage) -> Result<()> {
        let shape = shape(&mut self.cursor, space)?;
        loop {
            let mut declared = declared(&mut self.cursor)?;
            let initial = self.initial(space, linkage, shape, &mut declared)?;
            let external = linkage == Linkage::Elsewhere;
            if declared.open() && !external {
                return error(declared.position, format!("{} needs a length", quote(declared.name)));
            }
            let variable = Variable {
                name: declared.name.to_owned(),
                space,
                element: shape.element,
                align: shape.align,
                bytes: declared.bytes(shape)?,
                initial: initial.bytes,
                relocations: initial.relocations,
                external,
                named: false,
                position: declared.position,
            };
            self.add_variable(declared.name, variable)?;
            if !self.cursor.accept(',')? {
                return self.cursor.expect(';');
            }
        }
    }

    /// `= 5`, if that follows.
    fn initial(
        &mut self,
        space: Space,
        linkage: Linkage,
        shape: Shape,
        declared: &mut Declared<'a>,
    ) -> Result<Initial> {
        let position = self.cursor.position();
        if !self.cursor.accept('=')? {
            return Ok(Initial::default());
        }
        if linkage == Linkage::Elsewhere || space == Space::Shared {
            return error(position, "only `.global` and `.const` variables that are defined here can be initialised");
        }
        initial::initial(&mut self.cursor, &self.globals, shape, declared, &mut self.initial_budget)
    }

    /// Adds a variable. It may have been declared `.extern` before.
    fn add_variable(&mut self, name: &'a str, variable: Variable) -> Result<()> {
        let known = match self.globals.get(name) {
            None => None,
            Some(Symbol::Module(index)) => Some(*index as usize),
            Some(_) => return twice(name, variable.position),
        };
        let Some(index) = known else {
            self.globals.insert(name, Symbol::Module(self.module.variables.len() as u32));
            self.module.variables.push(variable);
            return Ok(());
        };
        let before = &mut self.module.variables[index];
        if before.space != variable.space || !(before.external || variable.external) {
            return twice(name, variable.position);
        }
        if before.external {
            *before = Variable { named: before.named, ..variable };
        }
        Ok(())
    }

    /// A function or entry, behind `.func` or `.entry`.
    fn function(&mut self, entry: bool, linkage: Linkage) -> Result<()> {
        let (header, has_body) = function::header(&mut self.cursor, entry)?;
        if has_body && linkage == Linkage::Elsewhere {
            return error(header.function.position, format!("{} is `.extern` and has a body", quote(header.name)));
        }
        let id = self.declare_function(&header, has_body)?;
        if !has_body {
            return Ok(());
        }
        let mut body = header.into_body(self.list_budget)?;
        let outer = Outer { module: &self.module, globals: &self.globals };
        function::statements(&mut self.cursor, outer, &mut body)?;
        self.list_budget = body.list_budget;
        for variable in body.named {
            self.module.variables[variable as usize].named = true;
        }
        let calls = body.indirect.into_iter().map(|(statement, prototype)| (id, statement, prototype));
        self.indirect.extend(calls);
        self.module.functions[id] = body.function;
        Ok(())
    }

    /// Makes a function known, so that its own body can name it; a declaration may have come before.
    fn declare_function(&mut self, header: &Header<'a>, has_body: bool) -> Result<usize> {
        let position = header.function.position;
        let known = match self.globals.get(header.name) {
            None => None,
            Some(Symbol::Code(function)) => Some(function.0 as usize),
            Some(_) => return twice(header.name, position),
        };
        let Some(index) = known else {
            let index = self.module.functions.len();
            self.globals.insert(header.name, Symbol::Code(FunctionId(index as u32)));
            self.module.functions.push(header.function.clone());
            return Ok(index);
        };
        let before = &self.module.functions[index];
        if has_body && !before.declaration {
            return error(position, format!("{} has two bodies", quote(header.name)));
        }
        if before.entry != header.function.entry || !agree(before, &header.function) {
            return error(position, format!("{} was declared otherwise before", quote(header.name)));
        }
        Ok(index)
    }

    /// What can be said and checked only when all has been read.
    fn finish(mut self) -> Result<Module> {
        let initial = self.module.variables.iter().flat_map(|variable| &variable.relocations);
        for target in initial.map(|relocation| relocation.variable as usize).collect::<Vec<_>>() {
            self.module.variables[target].named = true;
        }
        let missing = |variable: &&Variable| variable.external && variable.space != Space::Shared;
        if let Some(variable) = self.module.variables.iter().find(missing) {
            let name = quote(&variable.name);
            return error(
                variable.position,
                format!("{name} is `.extern` and not defined here: modules are not linked"),
            );
        }
        self.resolve_indirect()?;
        Ok(self.module)
    }

    /// Gives indirect calls by prototype the functions that they may reach: all that take and return as many bytes.
    fn resolve_indirect(&mut self) -> Result<()> {
        if self.indirect.is_empty() {
            return Ok(());
        }
        let mut by_sizes: HashMap<_, Vec<FunctionId>> = HashMap::new();
        for (index, function) in self.module.functions.iter().enumerate().filter(|(_, function)| !function.entry) {
            let signature = Signature::of_function(function);
            by_sizes.entry(signature.sizes()).or_default().push(FunctionId(index as u32));
        }
        for (function, statement, prototype) in std::mem::take(&mut self.indirect) {
            let Some(found) = by_sizes.get(&prototype.sizes()) else { continue };
            let Statement::Instruction(instruction) = &mut self.module.functions[function].body[statement] else {
                continue;
            };
            let position = instruction.position;
            let Some(left) = self.list_budget.checked_sub(found.len()) else {
                return error(
                    position,
                    "indirect calls may reach too many functions in all: list them with `.calltargets`",
                );
            };
            self.list_budget = left;
            if let Op::Call { callee: Callee::Indirect { candidates, .. }, .. } = &mut instruction.op {
                candidates.clone_from(found);
            }
        }
        Ok(())
    }
}

/// Whether two headers of a function say the same.
fn agree(before: &Function, now: &Function) -> bool {
    Signature::of_function(before).sizes() == Signature::of_function(now).sizes()
}
