//! Functions: their headers, and the statements of their bodies.

use super::body::{Body, Outer, Signature};
use super::cursor::Cursor;
use super::error::{Result, error, quote};
use super::instruction;
use super::lexer::{Kind, Token};
use super::names::Named;
use super::skip;
use super::variable::{declared, register_type, registers, shape};
use crate::kernel::MOST_PARAMETER_BYTES;
use crate::module::{Function, FunctionId, Parameter, Position, RegisterId, Space, Statement, Symbol, Variable};

/// How deep blocks may be nested.
const MOST_BLOCKS: usize = 128;
/// The most bytes that the parameters of a device function may have.
const MOST_ARGUMENT_BYTES: u32 = 1 << 20;

/// A header: the function without its body, and what its parameters are called.
pub(super) struct Header<'a> {
    pub(super) name: &'a str,
    pub(super) function: Function,
    returns: Vec<ParameterName<'a>>,
    parameters: Vec<ParameterName<'a>>,
}

/// The name of a parameter or return value, as its body knows it.
#[derive(Debug, Clone, Copy)]
struct ParameterName<'a> {
    name: &'a str,
    position: Position,
    in_register: bool,
}

/// From behind `.entry` or `.func` to the `{` or behind the `;`, which is told.
pub(super) fn header<'a>(cursor: &mut Cursor<'a>, entry: bool) -> Result<(Header<'a>, bool)> {
    let (returns, return_names) =
        if entry { (Vec::new(), Vec::new()) } else { parameters(cursor, MOST_ARGUMENT_BYTES)? };
    let position = cursor.position();
    let name = cursor.word("the name of the function")?;
    let most = if entry { MOST_PARAMETER_BYTES } else { MOST_ARGUMENT_BYTES };
    let (parameters, parameter_names) = parameters(cursor, most)?;
    let function = Function {
        name: name.to_owned(),
        entry,
        returns,
        parameters,
        registers: Vec::new(),
        variables: Vec::new(),
        labels: 0,
        body: Vec::new(),
        declaration: true,
        max_threads: None,
        required_threads: None,
        position,
    };
    let mut header = Header { name, function, returns: return_names, parameters: parameter_names };
    let has_body = directives(cursor, &mut header.function)?;
    Ok((header, has_body))
}

/// What is said about a function between its parameters and its body. Whether a body follows.
fn directives(cursor: &mut Cursor, function: &mut Function) -> Result<bool> {
    loop {
        let position = cursor.position();
        match cursor.peek() {
            Kind::Mark('{') => return Ok(true),
            Kind::Mark(';') => {
                cursor.advance()?;
                return Ok(false);
            }
            Kind::Dotted(word) => {
                cursor.advance()?;
                match word {
                    "maxntid" => function.max_threads = Some(threads(cursor)?),
                    "reqntid" => {
                        function.required_threads = Some(threads(cursor)?);
                        function.max_threads = function.required_threads;
                    }
                    // Advice on how many registers to use and how many blocks to run at a time.
                    "minnctapersm" | "maxnctapersm" | "maxnreg" => {
                        cursor.integer("a number")?;
                    }
                    "noreturn" => {}
                    "pragma" => skip::pragma(cursor)?,
                    _ => return error(position, format!("`.{word}` is not supported for a function")),
                }
            }
            _ => return Err(cursor.unexpected("`{`, `;` or a directive such as `.maxntid`")),
        }
    }
}

/// `256, 1, 1`; what is left out is 1.
fn threads(cursor: &mut Cursor) -> Result<[u32; 3]> {
    let mut threads = [1; 3];
    for (axis, count) in threads.iter_mut().enumerate() {
        if axis > 0 && !cursor.accept(',')? {
            break;
        }
        let position = cursor.position();
        *count = cursor.integer32("a number of threads")?;
        if *count == 0 {
            return error(position, "a block has at least one thread along each axis");
        }
    }
    Ok(threads)
}

/// What stands in parentheses, if anything does: parameters, and their names. `_` is a name that nobody can use.
fn parameters<'a>(cursor: &mut Cursor<'a>, most_bytes: u32) -> Result<(Vec<Parameter>, Vec<ParameterName<'a>>)> {
    let (mut parameters, mut names) = (Vec::new(), Vec::new());
    if !cursor.accept('(')? || cursor.accept(')')? {
        return Ok((parameters, names));
    }
    let mut end = 0;
    loop {
        let (parameter, name) = parameter(cursor, end, most_bytes)?;
        end = u64::from(parameter.offset) + u64::from(parameter.bytes);
        parameters.push(parameter);
        names.push(name);
        if !cursor.accept(',')? {
            cursor.expect(')')?;
            return Ok((parameters, names));
        }
    }
}

/// One parameter, where those before it need `end` bytes.
fn parameter<'a>(cursor: &mut Cursor<'a>, end: u64, most_bytes: u32) -> Result<(Parameter, ParameterName<'a>)> {
    let in_register = cursor.accept_dotted("reg")?;
    if !in_register && !cursor.accept_dotted("param")? {
        return Err(cursor.unexpected("`.param`"));
    }
    let (element, align, bytes, array, name, position) = if in_register {
        let (ty, position) = (register_type(cursor)?, cursor.position());
        (ty, ty.bytes(), u64::from(ty.bytes()), false, cursor.word("the name of a parameter")?, position)
    } else {
        let shape = shape(cursor, Space::Param)?;
        let declared = declared(cursor)?;
        if declared.open() {
            return error(declared.position, "the array needs a length: variable argument lists are not supported");
        }
        let array = shape.vector > 1 || !declared.dimensions.is_empty();
        (shape.element, shape.align, declared.bytes(shape)?, array, declared.name, declared.position)
    };
    let offset = end.next_multiple_of(u64::from(align));
    if offset.saturating_add(bytes) > u64::from(most_bytes) {
        return error(position, format!("the parameters are larger than {most_bytes} bytes"));
    }
    let parameter = Parameter {
        name: name.to_owned(),
        element,
        align,
        bytes: bytes as u32,
        offset: offset as u32,
        array,
        register: None,
    };
    Ok((parameter, ParameterName { name, position, in_register }))
}

impl<'a> Header<'a> {
    /// Begins the body, with the parameters as its first names.
    pub(super) fn into_body(self, list_budget: usize) -> Result<Body<'a>> {
        let mut body = Body::new(Function { declaration: false, ..self.function }, list_budget);
        for (index, name) in self.returns.into_iter().enumerate() {
            let register = declare_parameter(&mut body, name, Symbol::Return(index as u32))?;
            body.function.returns[index].register = register;
        }
        for (index, name) in self.parameters.into_iter().enumerate() {
            let register = declare_parameter(&mut body, name, Symbol::Parameter(index as u32))?;
            body.function.parameters[index].register = register;
        }
        Ok(body)
    }
}

/// Declares the name of a parameter: as a register or, which is usual, as a variable. `_` is none.
fn declare_parameter<'a>(body: &mut Body<'a>, name: ParameterName<'a>, symbol: Symbol) -> Result<Option<RegisterId>> {
    let ParameterName { name, position, in_register } = name;
    match symbol {
        _ if name == "_" => {}
        Symbol::Return(index) if in_register => {
            let ty = body.function.returns[index as usize].element;
            return body.declare_register(name, ty, position).map(Some);
        }
        Symbol::Parameter(index) if in_register => {
            let ty = body.function.parameters[index as usize].element;
            return body.declare_register(name, ty, position).map(Some);
        }
        _ => body.declare(name, Named::Symbol(symbol), position)?,
    }
    Ok(None)
}

/// The statements of a body, from its `{` to its `}`.
pub(super) fn statements<'a>(cursor: &mut Cursor<'a>, outer: Outer<'_, 'a>, body: &mut Body<'a>) -> Result<()> {
    cursor.expect('{')?;
    loop {
        let position = cursor.position();
        match cursor.peek() {
            Kind::Mark('{') => {
                if body.names.depth() == MOST_BLOCKS {
                    return error(position, format!("blocks are nested more than {MOST_BLOCKS} deep"));
                }
                cursor.advance()?;
                body.names.enter();
                body.labels.enter();
            }
            Kind::Mark('}') => {
                cursor.advance()?;
                if !body.names.leave() {
                    return finish(body);
                }
                body.labels.leave();
            }
            // An empty statement, as inline assembly leaves behind.
            Kind::Mark(';') => {
                cursor.advance()?;
            }
            Kind::Mark('@') => {
                let instruction = instruction::guarded(cursor, outer, body)?;
                body.function.body.push(Statement::Instruction(instruction));
            }
            Kind::Word(_) => {
                let first = cursor.advance()?;
                named(cursor, outer, body, &first)?;
            }
            Kind::Dotted(_) => directive(cursor, body)?,
            Kind::End => {
                return error(position, format!("the body of {} has no closing `}}`", quote(&body.function.name)));
            }
            _ => return Err(cursor.unexpected("an instruction, a label or a declaration")),
        }
    }
}

fn finish(body: &mut Body) -> Result<()> {
    let labels = std::mem::take(&mut body.labels);
    body.function.labels = labels.finish(&mut body.function.body)?;
    Ok(())
}

/// What begins with a name: a label, a list under a label, or an instruction.
fn named<'a>(cursor: &mut Cursor<'a>, outer: Outer<'_, 'a>, body: &mut Body<'a>, first: &Token<'a>) -> Result<()> {
    if !cursor.accept(':')? {
        let instruction = instruction::unguarded(cursor, outer, body, first)?;
        body.function.body.push(Statement::Instruction(instruction));
        return Ok(());
    }
    let Kind::Word(name) = first.kind else { return Ok(()) };
    if cursor.accept_dotted("branchtargets")? {
        let mut targets = Vec::new();
        list(cursor, |name, position| {
            targets.push(body.labels.mention(name, position));
            Ok(())
        })?;
        body.targets.push(targets);
        return body.declare(name, Named::Targets(body.targets.len() as u32 - 1), first.position);
    }
    if cursor.accept_dotted("calltargets")? {
        let mut callees: Vec<FunctionId> = Vec::new();
        list(cursor, |name, position| {
            let function = callee(outer, name, position)?;
            let sizes = |id: FunctionId| Signature::of_function(&outer.module.functions[id.0 as usize]).sizes();
            if callees.first().is_some_and(|first| sizes(*first) != sizes(function)) {
                return error(position, format!("{} takes or returns other than those before it", quote(name)));
            }
            callees.push(function);
            Ok(())
        })?;
        body.callees.push(callees);
        return body.declare(name, Named::Callees(body.callees.len() as u32 - 1), first.position);
    }
    if cursor.accept_dotted("callprototype")? {
        let prototype = prototype(cursor)?;
        body.prototypes.push(prototype);
        return body.declare(name, Named::Prototype(body.prototypes.len() as u32 - 1), first.position);
    }
    let label = body.labels.place(name, first.position)?;
    body.function.body.push(Statement::Label(label));
    Ok(())
}

/// `a, b, c;`.
fn list<'a>(cursor: &mut Cursor<'a>, mut each: impl FnMut(&'a str, Position) -> Result<()>) -> Result<()> {
    loop {
        let position = cursor.position();
        each(cursor.word("a name")?, position)?;
        if !cursor.accept(',')? {
            return cursor.expect(';');
        }
    }
}

fn callee(outer: Outer, name: &str, position: Position) -> Result<FunctionId> {
    match outer.globals.get(name) {
        Some(Symbol::Code(function)) => Ok(*function),
        _ => error(position, format!("{} is not a function that is declared before", quote(name))),
    }
}

/// `(.param .b32 _) _ (.param .b64 _);`.
fn prototype(cursor: &mut Cursor) -> Result<Signature> {
    let (returns, _) = parameters(cursor, MOST_ARGUMENT_BYTES)?;
    cursor.word("`_`")?;
    let (parameters, _) = parameters(cursor, MOST_ARGUMENT_BYTES)?;
    cursor.accept_dotted("noreturn")?;
    cursor.expect(';')?;
    Ok(Signature::of(&returns, &parameters))
}

/// A declaration or advice in a body.
fn directive<'a>(cursor: &mut Cursor<'a>, body: &mut Body<'a>) -> Result<()> {
    let (position, written) = (cursor.position(), cursor.written());
    let Kind::Dotted(word) = cursor.advance()?.kind else { return Ok(()) };
    match word {
        "reg" => registers(cursor, |name, count, ty, position| match count {
            Some(count) => body.declare_range(name, count, ty, position),
            None => body.declare_register(name, ty, position).map(|_| ()),
        }),
        "shared" => variables(cursor, body, Space::Shared),
        "local" => variables(cursor, body, Space::Local),
        "param" => variables(cursor, body, Space::Param),
        "pragma" => skip::pragma(cursor),
        "loc" => skip::location(cursor),
        _ => error(position, format!("{} is not supported inside a function", quote(written))),
    }
}

/// `.shared .align 4 .b8 x[64];`
fn variables<'a>(cursor: &mut Cursor<'a>, body: &mut Body<'a>, space: Space) -> Result<()> {
    let shape = shape(cursor, space)?;
    loop {
        let declared = declared(cursor)?;
        if declared.open() {
            return error(declared.position, format!("{} needs a length", quote(declared.name)));
        }
        if cursor.peek() == Kind::Mark('=') {
            return error(cursor.position(), "only `.global` and `.const` variables of the module can be initialised");
        }
        let variable = Variable {
            name: declared.name.to_owned(),
            space,
            element: shape.element,
            align: shape.align,
            bytes: declared.bytes(shape)?,
            initial: Vec::new(),
            relocations: Vec::new(),
            external: false,
            named: true,
            position: declared.position,
        };
        body.function.variables.push(variable);
        let symbol = Symbol::Function(body.function.variables.len() as u32 - 1);
        body.declare(declared.name, Named::Symbol(symbol), declared.position)?;
        if !cursor.accept(',')? {
            return cursor.expect(';');
        }
    }
}
