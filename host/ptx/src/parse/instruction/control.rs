//! Jumps and calls.

use super::reader::Reader;
use super::rules::{self, Fit};
use crate::module::{Callee, FunctionId, Op, Operand, Position, Space, Symbol, Type};
use crate::parse::body::Signature;
use crate::parse::error::{Result, error, quote};
use crate::parse::names::Named;
use crate::parse::operand::{Raw, RawKind, Value};

pub(super) fn bra(reader: &mut Reader) -> Result<Op> {
    Ok(Op::Branch { uniform: reader.modifiers.flag("uni"), target: reader.label()? })
}

pub(super) fn brx(reader: &mut Reader) -> Result<Op> {
    if !reader.modifiers.flag("idx") {
        return Err(reader.needs("`.idx`"));
    }
    reader.modifiers.flag("uni");
    let index = reader.src(Type::U32)?;
    let (name, position) = reader.name("a list of `.branchtargets`")?;
    let Some(Named::Targets(list)) = reader.body.find(reader.outer, name, position)? else {
        return error(position, format!("{} is not a list of `.branchtargets`", quote(name)));
    };
    let length = reader.body.targets[list as usize].len();
    reader.body.spend(length, position)?;
    Ok(Op::BranchTable { index, targets: reader.body.targets[list as usize].clone() })
}

pub(super) fn ret(reader: &mut Reader) -> Result<Op> {
    reader.modifiers.flag("uni");
    Ok(Op::Return)
}

pub(super) fn exit(_: &mut Reader) -> Result<Op> {
    Ok(Op::Exit)
}

pub(super) fn trap(_: &mut Reader) -> Result<Op> {
    Ok(Op::Trap)
}

pub(super) fn nanosleep(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&[Type::U32])?;
    reader.src(ty)?;
    Ok(Op::Yield)
}

/// An event for a profiler.
pub(super) fn pmevent(reader: &mut Reader) -> Result<Op> {
    reader.modifiers.flag("mask");
    reader.constant("the event", 0..=0xffff)?;
    Ok(Op::Hint)
}

/// Launches run one after the other, so there is nothing to wait for.
pub(super) fn griddepcontrol(reader: &mut Reader) -> Result<Op> {
    reader.choice(&[("wait", ()), ("launch_dependents", ())], "`.wait` or `.launch_dependents`")?;
    Ok(Op::Hint)
}

pub(super) fn call(reader: &mut Reader) -> Result<Op> {
    reader.modifiers.flag("uni");
    let returns = reader.list();
    let (name, position) = reader.name("the function")?;
    let arguments = reader.list();
    let (callee, signature) = match reader.resolve(name, position)? {
        Named::Symbol(Symbol::Code(function)) => (Callee::Direct(function), direct(reader, function, name, position)?),
        Named::Register(register) => {
            let target = Operand::Register(register);
            if !rules::fits(reader.body.function.ty(register), Type::U64, Fit::Exact) {
                return error(position, format!("{} does not hold the 64-bit address of a function", quote(name)));
            }
            indirect(reader, target)?
        }
        _ => return error(position, format!("{} is not a function", quote(name))),
    };
    let returns = pass(reader, returns, &signature.returns, "returns", position)?;
    let arguments = pass(reader, arguments, &signature.parameters, "takes", position)?;
    Ok(Op::Call { callee, returns, arguments })
}

fn direct(reader: &Reader, function: FunctionId, name: &str, position: Position) -> Result<Signature> {
    let function = &reader.outer.module.functions[function.0 as usize];
    if function.entry {
        return error(position, format!("{} is an entry, which only the host can launch", quote(name)));
    }
    Ok(Signature::of_function(function))
}

/// Who an indirect call may reach, by the list or prototype that it names last.
fn indirect(reader: &mut Reader, target: Operand) -> Result<(Callee, Signature)> {
    let (name, position) = reader.name("a `.callprototype` or a list of `.calltargets`")?;
    match reader.body.find(reader.outer, name, position)? {
        Some(Named::Prototype(prototype)) => {
            let signature = reader.body.prototypes[prototype as usize].clone();
            // Functions may follow: the candidates are filled in at the end of the module.
            let statement = reader.body.function.body.len();
            reader.body.spend(signature.returns.len() + signature.parameters.len(), position)?;
            reader.body.indirect.push((statement, signature.clone()));
            Ok((Callee::Indirect { target, candidates: Vec::new() }, signature))
        }
        Some(Named::Callees(list)) => {
            let length = reader.body.callees[list as usize].len();
            reader.body.spend(length, position)?;
            let candidates = reader.body.callees[list as usize].clone();
            let signature = direct(reader, candidates[0], name, position)?;
            Ok((Callee::Indirect { target, candidates }, signature))
        }
        _ => error(position, format!("{} is neither a `.callprototype` nor a list of `.calltargets`", quote(name))),
    }
}

/// What is passed to or from parameters.
fn pass(
    reader: &mut Reader,
    given: Vec<Raw>,
    parameters: &[(Type, u32)],
    verb: &str,
    position: Position,
) -> Result<Vec<Operand>> {
    if given.len() != parameters.len() {
        return error(position, format!("the function {verb} {} values, not {}", parameters.len(), given.len()));
    }
    given.into_iter().zip(parameters).map(|(raw, (ty, bytes))| argument(reader, &raw, *ty, *bytes)).collect()
}

fn argument(reader: &mut Reader, raw: &Raw, ty: Type, bytes: u32) -> Result<Operand> {
    let value = match raw.kind {
        RawKind::Value(value) => value,
        _ => return error(raw.position, "a `.param` variable, a register or a number is needed"),
    };
    if let Value::Name { name, component: None, offset: 0 } = value
        && let Named::Symbol(symbol) = reader.resolve(name, raw.position)?
    {
        return match symbol {
            Symbol::Function(index) => {
                let variable = &reader.body.function.variables[index as usize];
                if variable.space == Space::Param && variable.bytes == u64::from(bytes) {
                    return Ok(Operand::Address(symbol, 0));
                }
                error(raw.position, format!("{} is not a `.param` of {bytes} bytes", quote(name)))
            }
            _ => error(raw.position, format!("{} is not a `.param` variable of this function", quote(name))),
        };
    }
    if ty.bytes() != bytes {
        return error(raw.position, format!("a `.param` variable of {bytes} bytes is needed"));
    }
    reader.value(value, ty, Fit::Exact, raw.position)
}
