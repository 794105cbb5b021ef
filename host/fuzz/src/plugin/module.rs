//! A core module out of bytes: bodies by `wasm-smith`, and around them functions with the signatures of the world.
//!
//! ```text
//! wasm-smith ──► module with five bodies, and functions, tables, data that they use
//!                   │   re-encoded: the bodies' exports are taken away, a function around each is put behind the last one
//!                   ▼
//!                start · step · snapshot · restore · cabi_realloc:
//!                   some calls of imports with made-up arguments · the body · an answer, made up or the body's own
//! ```
//!
//! A body alone would hardly ever answer anything that the host could read: an answer is a pointer to a record. So the
//! functions around them write one, which is in order more often than not; and nearly every `start` does no more than that.
//!
//! Which ones do more depends on the hash of all bytes. Were it a choice like all others, a fuzzer would soon have most of its
//! inputs fail in `start`, where there is as much to be found as in `step`.

use arbitrary::{Arbitrary, Result, Unstructured};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, InstructionSink, MemArg, TypeSection, ValType,
};
use wasm_smith::{Config, Module};
use wasmparser::{Parser, Payload, TypeRef};

/// What a guest may import: name, parameters, and the result that is dropped.
struct Import {
    module: &'static str,
    name: &'static str,
    params: &'static [ValType],
    result: Option<ValType>,
}

const fn import(
    module: &'static str,
    name: &'static str,
    params: &'static [ValType],
    result: Option<ValType>,
) -> Import {
    Import { module, name, params, result }
}

const STATE: &str = "steadfast:job/state@0.1.0";
const TELEMETRY: &str = "steadfast:job/telemetry@0.1.0";
const STREAMS: &str = "wasi:io/streams@0.2.3";

const IMPORTS: [Import; 16] = {
    use ValType::{F64, I32, I64};
    [
        import(STATE, "[method]writer.write", &[I32, I32, I32, I32, I32], None),
        import(STATE, "[method]reader.version", &[I32], Some(I32)),
        import(STATE, "[method]reader.sections", &[I32, I32], None),
        import(STATE, "[method]reader.size", &[I32, I32, I32, I32], None),
        import(STATE, "[method]reader.read", &[I32, I32, I32, I64, I64, I32], None),
        import(STATE, "[resource-drop]writer", &[I32], None),
        import(STATE, "[resource-drop]reader", &[I32], None),
        import(TELEMETRY, "log", &[I32, I32, I32], None),
        import(TELEMETRY, "metric", &[I32, I32, F64], None),
        import("wasi:cli/exit@0.2.3", "exit", &[I32], None),
        import("wasi:cli/stderr@0.2.3", "get-stderr", &[], Some(I32)),
        import(STREAMS, "[method]output-stream.blocking-write-and-flush", &[I32, I32, I32, I32], None),
        import(STREAMS, "[resource-drop]output-stream", &[I32], None),
        import("wasi:random/random@0.2.3", "get-random-u64", &[], Some(I64)),
        import("wasi:random/random@0.2.3", "get-random-bytes", &[I64, I32], None),
        import("wasi:random/insecure-seed@0.2.3", "insecure-seed", &[I32], None),
    ]
};

/// The functions that the world asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Export {
    Start,
    Step,
    Snapshot,
    Restore,
    Realloc,
}

impl Export {
    const ALL: [Self; 5] = [Self::Start, Self::Step, Self::Snapshot, Self::Restore, Self::Realloc];

    fn name(self) -> &'static str {
        match self {
            Self::Start => "steadfast:job/workload@0.1.0#start",
            Self::Step => "steadfast:job/workload@0.1.0#step",
            Self::Snapshot => "steadfast:job/workload@0.1.0#snapshot",
            Self::Restore => "steadfast:job/workload@0.1.0#restore",
            Self::Realloc => "cabi_realloc",
        }
    }

    /// Every one answers one i32.
    fn params(self) -> &'static [ValType] {
        use ValType::{I32, I64};
        match self {
            Self::Start => &[I32, I32, I32, I32, I32, I64, I32, I32],
            Self::Step => &[],
            Self::Snapshot => &[I32],
            Self::Restore => &[I32, I32, I32, I32, I32, I64, I32, I32, I32],
            Self::Realloc => &[I32, I32, I32, I32],
        }
    }

    /// The handle that it is lent, by its place among the parameters, and the import that gives it back.
    fn lent(self) -> Option<(u32, usize)> {
        match self {
            Self::Snapshot => Some((0, 5)),
            Self::Restore => Some((8, 6)),
            _ => None,
        }
    }
}

/// How many of 256 inputs have a `start` and an allocator like their other functions.
const DARING: u8 = 32;

/// The module, with the custom section that names its world.
pub(super) fn build(bytes: &[u8], world: &[u8]) -> Option<Vec<u8>> {
    let input = &mut Unstructured::new(bytes);
    let daring = blake3::hash(bytes).as_bytes()[0] < DARING;
    let plan = Plan::of(input, daring).ok()?;
    let module = Module::new(config(input).ok()?, input).ok()?.to_bytes();
    let mut wrapper = Wrapper { plan, shape: Shape::of(&module)? };
    let mut wrapped = wasm_encoder::Module::new();
    wrapper.parse_core_module(&mut wrapped, Parser::new(0), &module).ok()?;
    let mut bytes = wrapped.finish();
    bytes.extend_from_slice(world);
    Some(bytes)
}

/// What the engine knows of WebAssembly, and sizes that compile in milliseconds.
fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        module_shape: Some(shape()),
        allow_start_export: rarely(input)?,
        disallow_traps: input.ratio(1, 2)?,
        threads_enabled: false,
        // Without the feature `gc` the engine has neither references to objects nor exceptions.
        gc_enabled: false,
        exceptions_enabled: false,
        reference_types_enabled: false,
        max_memories: 2,
        max_memory32_bytes: 8 << 20,
        max_memory64_bytes: 8 << 20,
        max_table_elements: 1000,
        max_data_segments: 4,
        max_element_segments: 4,
        max_funcs: 12,
        max_types: 12,
        max_globals: 8,
        max_instructions: 80,
        ..Config::default()
    })
}

/// The imports and exports of every module, before anything is put around its bodies.
fn shape() -> Vec<u8> {
    let words = |types: &[ValType]| types.iter().map(|ty| format!(" {ty:?}").to_lowercase()).collect::<String>();
    let mut text = "(module".to_owned();
    for Import { module, name, params, result } in &IMPORTS {
        let result: Vec<ValType> = result.iter().copied().collect();
        text += &format!("(import \"{module}\" \"{name}\" (func (param{}) (result{})))", words(params), words(&result));
    }
    text += "(memory (export \"memory\") 1)";
    for export in Export::ALL {
        text += &format!(
            "(func (export \"{}\") (param{}) (result i32) unreachable)",
            export.name(),
            words(export.params())
        );
    }
    text += ")";
    wat::parse_str(text).expect("the shape is a module")
}

/// True for few inputs, and for none that ran out of bytes.
fn rarely(input: &mut Unstructured<'_>) -> Result<bool> {
    Ok(input.int_in_range(0..=15)? == 15)
}

/// What the functions around the bodies do.
struct Plan {
    functions: [Around; 5],
}

/// One of them.
struct Around {
    before: Vec<Call>,
    body: bool,
    gives_back: bool,
    answer: Answer,
}

/// A call of an import.
struct Call {
    import: usize,
    /// Whether the first argument is what the function was lent.
    with_lent: bool,
    arguments: [Number; 6],
}

/// Where a call's answer is.
enum Answer {
    /// Where the body says.
    Body,
    /// Memory that grows by as much as is asked for.
    Grown,
    /// At this address, where these words are written first.
    Written { at: u32, words: Vec<(u32, u32)> },
}

/// A number that is small more often than not, so that it is an address, a length or a handle.
#[derive(Clone, Copy, Default)]
struct Number(u64);

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match input.int_in_range(0..=7)? {
            0..=2 => input.int_in_range(0..=15)?,
            3..=5 => input.int_in_range(0..=0x400)?,
            6 => input.int_in_range(0..=0x2_0000)?,
            _ => input.arbitrary()?,
        }))
    }
}

impl Plan {
    fn of(input: &mut Unstructured<'_>, daring: bool) -> Result<Self> {
        let [start, step, snapshot, restore, realloc] = Export::ALL;
        let mut around = |export| Around::of(export, daring, input);
        Ok(Self { functions: [around(start)?, around(step)?, around(snapshot)?, around(restore)?, around(realloc)?] })
    }
}

impl Around {
    fn of(export: Export, daring: bool, input: &mut Unstructured<'_>) -> Result<Self> {
        // Nothing is reached behind a `start` that fails, and nothing starts without memory for its arguments.
        if matches!(export, Export::Start | Export::Realloc) && !daring {
            let answer = match export {
                Export::Realloc => Answer::Grown,
                _ => Answer::Written { at: ANSWER, words: vec![(0, 0)] },
            };
            return Ok(Self { before: Vec::new(), body: false, gives_back: false, answer });
        }
        let mut before = Vec::new();
        for _ in 0..input.int_in_range(0..=4)? {
            before.push(Call::of(export, input)?);
        }
        let body = input.ratio(3, 4)?;
        let gives_back = !rarely(input)?;
        let answer = if export == Export::Realloc || rarely(input)? { Answer::Body } else { answer(export, input)? };
        Ok(Self { before, body, gives_back, answer })
    }
}

impl Call {
    fn of(export: Export, input: &mut Unstructured<'_>) -> Result<Self> {
        // What a function is lent a resource for, it mostly does.
        let own: &[usize] = match export {
            Export::Snapshot => &[0],
            Export::Restore => &[1, 2, 3, 4],
            _ => &[7, 8, 10, 11, 13, 14],
        };
        let import = match input.ratio(3, 4)? {
            true => *input.choose(own)?,
            false => input.choose_index(IMPORTS.len())?,
        };
        let mut arguments = [Number::default(); 6];
        for argument in &mut arguments {
            *argument = input.arbitrary()?;
        }
        Ok(Self { import, with_lent: !rarely(input)?, arguments })
    }
}

/// Where answers are written, out of the way of nothing in particular.
const ANSWER: u32 = 1024;

/// A record as the canonical ABI lays it out: a result, in it an outcome, a version or nothing, or an error with a text.
fn answer(export: Export, input: &mut Unstructured<'_>) -> Result<Answer> {
    let at = if rarely(input)? { input.arbitrary::<Number>()?.0 as u32 } else { ANSWER };
    let mut number = || -> Result<u32> { Ok(input.arbitrary::<Number>()?.0 as u32) };
    let payload = if export == Export::Step { 8 } else { 4 };
    let kind = number()? % 8;
    let words = match (kind, export) {
        (7, _) => vec![(0, number()?), (4, number()?), (8, number()?), (16, number()?), (20, number()?)],
        (6, _) => vec![(0, 1), (payload, number()? % 3), (payload + 4, number()?), (payload + 8, number()?)],
        (4 | 5, Export::Step) => vec![(0, 0), (8, 1), (16, number()?), (20, number()?)],
        (_, Export::Step) => vec![(0, 0), (8, 0), (16, number()?), (20, 0), (24, number()? % 2), (32, number()?)],
        (_, Export::Snapshot) => vec![(0, 0), (4, number()?)],
        _ => vec![(0, 0)],
    };
    Ok(Answer::Written { at, words })
}

/// Where things are in a module of `wasm-smith`.
struct Shape {
    types: u32,
    functions: u32,
    /// By their place in [`IMPORTS`].
    imports: Vec<u32>,
    /// By their place in [`Export::ALL`].
    bodies: Vec<u32>,
}

impl Shape {
    /// Nothing if something of the shape is missing.
    fn of(module: &[u8]) -> Option<Self> {
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
struct Wrapper {
    plan: Plan,
    shape: Shape,
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
