//! Target `ptx`: the text of a module, as a plugin hands it to the host, and on into WebAssembly.
//!
//! What must hold: no panic; an error says something and points into the text; a module agrees with itself in all that its readers
//! rely on without asking, since they index by it; and what is made of an entry is valid WebAssembly.

use steadfast_ptx::kernel::{Kernel, Options};
use steadfast_ptx::layout::Layout;
use steadfast_ptx::module::FunctionId;
use steadfast_ptx::module::{Callee, Function, LabelId, Module, Op, Parameter, Space, Statement, Variable};
use steadfast_ptx::parse::{ParseError, parse};
use steadfast_ptx::translate::translate;
use wasmparser::{Validator, WasmFeatures};

/// Variables of more bytes than this are not laid out in memory.
const MOST_IMAGE_BYTES: u64 = 1 << 20;

/// One input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(module) => {
            check(&module);
            check_translation(&module, bytes.len());
        }
        Err(error) => points_into(text, &error),
    }
}

fn points_into(text: &str, error: &ParseError) {
    assert!(!error.message.is_empty());
    let line = error.position.line.checked_sub(1).and_then(|line| text.split('\n').nth(line as usize));
    let characters = line.expect("an error is in a line of the text").chars().count();
    assert!((1..=characters + 1).contains(&(error.position.column as usize)), "{error}");
}

fn check(module: &Module) {
    module.variables.iter().for_each(|variable| check_variable(module, variable));
    module.functions.iter().for_each(|function| check_function(module, function));
    let layout = Layout::of(module);
    assert_eq!(layout.offsets.len(), module.variables.len());
    for (space, bytes) in [(Space::Global, layout.global_bytes), (Space::Const, layout.const_bytes)] {
        if bytes <= MOST_IMAGE_BYTES {
            assert_eq!(layout.image(module, space, 1 << 32, 1 << 33).len() as u64, bytes);
        }
    }
}

/// All entries, with and without canonical NaNs, vectors and wide addresses in turn.
fn check_translation(module: &Module, chance: usize) {
    for (id, function) in (0..).map(FunctionId).zip(&module.functions).filter(|(_, function)| function.entry) {
        let pick = chance + id.0 as usize;
        let (canonical_nans, vectors) = (pick.is_multiple_of(2), !pick.is_multiple_of(3));
        let wide = pick.is_multiple_of(5);
        let memory_bytes = if wide { 1 << 36 } else { 1 << 31 };
        let options = Options { memory_bytes, wide, canonical_nans, vectors };
        match translate(module, id, &options) {
            Ok(kernel) => check_kernel(&kernel, function),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn check_kernel(kernel: &Kernel, function: &Function) {
    // What the device's engine has.
    let features = WasmFeatures::default()
        | WasmFeatures::MEMORY64
        | WasmFeatures::MULTI_MEMORY
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::THREADS;
    if let Err(error) = Validator::new_with_features(features - WasmFeatures::BULK_MEMORY).validate_all(&kernel.wasm) {
        panic!("entry `{}` becomes invalid WebAssembly: {error}", function.name);
    }
    assert_eq!(kernel.parameters, function.parameters);
    assert!(kernel.places.is_sorted_by_key(|(offset, _)| *offset));
}

fn check_variable(module: &Module, variable: &Variable) {
    assert!(variable.align.is_power_of_two());
    assert!(variable.initial.len() as u64 <= variable.bytes);
    for relocation in &variable.relocations {
        assert!(relocation.at + u64::from(relocation.bytes) <= variable.bytes);
        assert!((relocation.variable as usize) < module.variables.len());
    }
}

fn check_function(module: &Module, function: &Function) {
    assert!(!function.declaration || function.body.is_empty());
    check_parameters(&function.parameters);
    let mut stands = vec![0; function.labels as usize];
    let mut targets = Vec::new();
    for statement in &function.body {
        match statement {
            Statement::Label(LabelId(label)) => stands[*label as usize] += 1,
            Statement::Instruction(instruction) => match &instruction.op {
                Op::Branch { target, .. } => targets.push(*target),
                Op::BranchTable { targets: table, .. } => targets.extend(table),
                Op::Call { callee, returns, arguments } => check_call(module, callee, returns.len(), arguments.len()),
                _ => {}
            },
        }
    }
    assert!(stands.iter().all(|times| *times == 1), "each label stands once");
    assert!(targets.iter().all(|target| target.0 < function.labels), "each target is a label");
}

fn check_parameters(parameters: &[Parameter]) {
    let mut end = 0;
    for parameter in parameters {
        assert!(parameter.offset >= end && parameter.offset.is_multiple_of(parameter.align));
        end = parameter.offset + parameter.bytes;
    }
}

fn check_call(module: &Module, callee: &Callee, returns: usize, arguments: usize) {
    let candidates = match callee {
        Callee::Direct(function) => std::slice::from_ref(function),
        Callee::Indirect { candidates, .. } => candidates,
    };
    for candidate in candidates {
        let function = &module.functions[candidate.0 as usize];
        assert!(!function.entry);
        assert_eq!((function.returns.len(), function.parameters.len()), (returns, arguments));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_read() {
        crate::each_seed("ptx", |name, bytes| {
            let text = std::str::from_utf8(bytes).expect("a seed is text");
            parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            run(bytes);
        });
    }
}
