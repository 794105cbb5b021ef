//! The same component under another digest, and in another size.

use anyhow::Result;
use wasm_encoder::{
    CodeSection, ComponentSection, ConstExpr, DataSection, Function, FunctionSection, InstanceSection, MemorySection,
    MemoryType, Module, ModuleSection, TypeSection, ValType,
};
use wasmparser::{Parser, Payload};

/// What a component of 20 MB has more than others: mostly data, as where an interpreter and its library are in it.
const DATA: usize = 16 << 20;
const FUNCTIONS: u32 = 2048;
/// Six to a dozen bytes each.
const OPERATIONS: i64 = 150;

/// The component with a section at its end that means nothing, so that it is another one.
pub fn marked(component: &[u8], mark: u8) -> Vec<u8> {
    let mut bytes = component.to_vec();
    bytes.extend([0, 3, 1, b'v', mark]);
    bytes
}

/// The component with a large core module beside its own, which becomes an instance too.
pub fn grown(component: &[u8]) -> Result<Vec<u8>> {
    let index = core_modules(component)?;
    let mut bytes = component.to_vec();
    ModuleSection(&large_module()).append_to_component(&mut bytes);
    let mut instances = InstanceSection::new();
    instances.instantiate::<_, &str>(index, []);
    instances.append_to_component(&mut bytes);
    Ok(bytes)
}

/// How many core modules stand at the top of a component.
fn core_modules(component: &[u8]) -> Result<u32> {
    let (mut depth, mut found) = (0, 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { .. } => {
                found += u32::from(depth == 0);
                depth += 1;
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    Ok(found)
}

fn large_module() -> Module {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I64], [ValType::I64]);
    let mut functions = FunctionSection::new();
    let mut code = CodeSection::new();
    for number in 0..i64::from(FUNCTIONS) {
        functions.function(0);
        code.function(&function(number));
    }
    let mut memories = MemorySection::new();
    let minimum = (DATA >> 16) as u64;
    memories.memory(MemoryType { minimum, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut data = DataSection::new();
    // No zeros, which would not be kept.
    data.active(0, &ConstExpr::i32_const(0), (0..DATA).map(|at| (at % 251) as u8 | 1));
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&memories).section(&code).section(&data);
    module
}

/// Arithmetic that no compiler can leave out, different in each function.
fn function(number: i64) -> Function {
    let mut function = Function::new([]);
    let mut body = function.instructions();
    body.local_get(0);
    for operation in 0..OPERATIONS {
        body.i64_const(number << 32 | operation << 8 | 1).i64_xor().local_get(0).i64_mul();
    }
    body.end();
    function
}
