//! Writes a module again, with functions around its bodies.

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, InstructionSink, MemArg, TypeSection, ValType,
};
use wasmparser::{Parser, Payload, TypeRef};

use super::plan::{Answer, Call, Plan};
use super::world::{Export, IMPORTS, Import};

/// Where things are in a module of `wasm-smith`.
pub(super) struct Shape {
    types: u32,
    functions: u32,
    /// By their place in [`IMPORTS`].
    imports: Vec<u32>,
    /// By their place in [`Export::ALL`].
    bodies: Vec<u32>,
}

impl Shape {
    /// Nothing if something of the shape is missing.
    pub(super) fn of(module: &[u8]) -> Option<Self> {
        let (mut types, mut functions) = (0, 0);
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(module) {
            match payload.ok()? {
                Payload::TypeSection(section) => {
                    for group in section {
                        types += u32::try_from(group.ok()?.types().len()).ok()?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.ok()?;
                        if matches!(import.ty, TypeRef::Func(_)) {
                            imports.push((import.module, import.name, functions));
                            functions += 1;
                        }
                    }
                }
                Payload::FunctionSection(section) => functions += section.count(),
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export.ok()?;
                        exports.push((export.name, export.index));
                    }
                }
                _ => {}
            }
        }
        let import = |wanted: &Import| {
            imports
                .iter()
                .find(|(module, name, _)| (*module, *name) == (wanted.module, wanted.name))
                .map(|found| found.2)
        };
        let body = |wanted: Export| exports.iter().find(|(name, _)| *name == wanted.name()).map(|found| found.1);
        Some(Self {
            types,
            functions,
            imports: IMPORTS.iter().map(import).collect::<Option<_>>()?,
            bodies: Export::ALL.into_iter().map(body).collect::<Option<_>>()?,
        })
    }
}

/// Writes a module again, with functions around its bodies.
pub(super) struct Wrapper {
    pub(super) plan: Plan,
    pub(super) shape: Shape,
}

type Outcome = std::result::Result<(), reencode::Error>;

impl Reencode for Wrapper {
    type Error = std::convert::Infallible;

    fn parse_type_section(&mut self, types: &mut TypeSection, section: wasmparser::TypeSectionReader<'_>) -> Outcome {
        reencode::utils::parse_type_section(self, types, section)?;
        for export in Export::ALL {
            types.ty().function(export.params().iter().copied(), [ValType::I32]);
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Outcome {
        reencode::utils::parse_function_section(self, functions, section)?;
        (0..5).for_each(|index| {
            functions.function(self.shape.types + index);
        });
        Ok(())
    }

    fn parse_export_section(&mut self, exports: &mut ExportSection, _: wasmparser::ExportSectionReader<'_>) -> Outcome {
        exports.export("memory", ExportKind::Memory, 0);
        for (index, export) in (self.shape.functions..).zip(Export::ALL) {
            exports.export(export.name(), ExportKind::Func, index);
        }
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: wasmparser::CodeSectionReader<'_>) -> Outcome {
        reencode::utils::parse_code_section(self, code, section)?;
        for (index, export) in Export::ALL.into_iter().enumerate() {
            code.function(&self.function(index, export));
        }
        Ok(())
    }
}

impl Wrapper {
    fn function(&self, index: usize, export: Export) -> Function {
        let around = &self.plan.functions[index];
        let parameters = u32::try_from(export.params().len()).unwrap_or(u32::MAX);
        // One local of its own: what the body answered.
        let mut function = Function::new([(1, ValType::I32)]);
        let mut code = function.instructions();
        for call in &around.before {
            self.call(&mut code, call, export.lent());
        }
        if around.body || matches!(around.answer, Answer::Body) {
            (0..parameters).for_each(|parameter| {
                code.local_get(parameter);
            });
            code.call(self.shape.bodies[index]).local_set(parameters);
        }
        if let Some((lent, drop)) = export.lent().filter(|_| around.gives_back) {
            code.local_get(lent).call(self.shape.imports[drop]);
        }
        match &around.answer {
            Answer::Body => {
                code.local_get(parameters);
            }
            Answer::Grown => grow(&mut code),
            Answer::Written { at, words } => write(&mut code, *at, words),
        }
        code.end();
        function
    }

    fn call(&self, code: &mut InstructionSink<'_>, call: &Call, lent: Option<(u32, usize)>) {
        let import = &IMPORTS[call.import];
        for (index, (ty, number)) in import.params.iter().zip(call.arguments).enumerate() {
            match (index, lent) {
                (0, Some((parameter, _))) if call.with_lent && *ty == ValType::I32 => code.local_get(parameter),
                _ if *ty == ValType::I64 => code.i64_const(number.0.cast_signed()),
                _ if *ty == ValType::F64 => code.f64_const(f64::from_bits(number.0).into()),
                _ => code.i32_const(number.0 as i32),
            };
        }
        code.call(self.shape.imports[call.import]);
        if import.result.is_some() {
            code.drop();
        }
    }
}

/// Grows the memory by whole pages and answers where it began; where it cannot, the answer leads nowhere.
fn grow(code: &mut InstructionSink<'_>) {
    let size = 3;
    code.local_get(size).i32_const(0xffff).i32_add().i32_const(16).i32_shr_u();
    code.memory_grow(0).i32_const(16).i32_shl();
}

fn write(code: &mut InstructionSink<'_>, at: u32, words: &[(u32, u32)]) {
    for (offset, word) in words {
        let place = MemArg { offset: u64::from(*offset), align: 0, memory_index: 0 };
        code.i32_const(at.cast_signed()).i32_const(word.cast_signed()).i32_store(place);
    }
    code.i32_const(at.cast_signed());
}
