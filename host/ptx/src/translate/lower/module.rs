//! The sections of the generated module.

use std::collections::HashMap;

use wasm_encoder::{
    CodeSection, ConstExpr, ElementSection, Elements, ExportKind, ExportSection, FunctionSection, GlobalSection,
    GlobalType, ImportSection, MemorySection, MemoryType, Module, RefType, TableSection, TableType, TypeSection,
    ValType,
};

use super::form::{self, Form};
use super::unit::{Area, Code, PRIVATE, Unit, wasm_type};
use super::{flat, frames, groups, lockstep, meet, plan, region, schedule, structure, vector_routine};
use crate::kernel::{self, Kernel, Launch, Options};
use crate::module::{Function as PtxFunction, Position};
use crate::translate::build::program::Built;
use crate::translate::error::{Result, TranslateError};
use crate::translate::frame::{Frames, Plan as Layout};
use crate::translate::graph::Graph;
use crate::translate::ir::{Edge, Function, Inst, Program, Routine, Suspension, Terminator, Value};
use crate::translate::regions::{Regions, yield_in_loops};
use crate::translate::uniform::uniform;

/// Offsets in a function and where in the text what stands there comes from.
pub type Places = Vec<(u32, Position)>;

/// Pages of a memory.
const PAGE: u64 = 65_536;
/// Of a memory with addresses of 32 bits, the last of which is never there: wild addresses become that one.
const MOST_NARROW_BYTES: u64 = (1 << 32) - PAGE;
/// Blocks of a graph that cannot be structured, at most: all of them become one loop round a table, in which every value lives everywhere. A thousand take the
/// compiler a gigabyte.
const MOST_TANGLED: usize = 500;
/// No engine takes a function that is larger.
const MOST_FUNCTION_BYTES: usize = 7_000_000;
/// Index of the global `trap`.
const TRAP: u32 = 0;
/// Index of the global that says that a thread of the warp only lets others run.
pub const YIELDED: u32 = 1;
/// Index of the global that says that neighbouring threads of the launch's blocks may run as groups: each group lies in one row.
pub const GROUPED: u32 = 2;

/// Index of the global that says the same of all groups that can run side by side.
pub const SIDE_BY_SIDE: u32 = 3;

/// Index of the global that says for how many warps behind the one that a region of groups is called for it runs, all their threads.
pub const MORE_WARPS: u32 = 4;
/// Index of the global to which vectors are written that nobody reads, so that they are computed before what follows.
pub const MADE: u32 = 5;

/// Functions of the generated module, in the order of their indices.
pub struct Functions {
    types: Vec<(Vec<ValType>, Vec<ValType>)>,
    bodies: Vec<(u32, Vec<u8>, u32, Places)>,
}

impl Functions {
    /// The index of a type.
    pub fn ty(&mut self, parameters: &[ValType], results: &[ValType]) -> u32 {
        let ty = (parameters.to_vec(), results.to_vec());
        if let Some(index) = self.types.iter().position(|known| *known == ty) {
            return index as u32;
        }
        self.types.push(ty);
        self.types.len() as u32 - 1
    }

    /// Adds a function.
    pub fn add(&mut self, parameters: &[ValType], results: &[ValType], code: Code) {
        let ty = self.ty(parameters, results);
        let (body, start, places) = code.finish();
        self.bodies.push((ty, body, start, places));
    }

    fn too_large(&self) -> bool {
        self.bodies.iter().any(|(_, body, ..)| body.len() > MOST_FUNCTION_BYTES)
    }
}

/// Stops the kernel for this reason.
pub fn trap(code: &mut Code, reason: i32) {
    if reason != 0 {
        code.sink().i32_const(reason).global_set(TRAP);
    }
    code.sink().unreachable();
}

/// What the functions of a kernel share.
pub struct Parts<'a> {
    /// All functions of the intermediate form.
    pub program: &'a Program,
    /// The body's regions.
    pub regions: &'a Regions,
    /// Which values of the body are uniform.
    pub uniform: &'a [bool],
    /// Where things lie in the private memory.
    pub layout: Layout,
    /// How frames lie.
    pub frames: Frames,
    /// Whether the device memory has addresses of 64 bits.
    pub wide: bool,
    /// Bytes of local memory for each thread.
    pub local_bytes: u32,
    /// Bytes of static shared memory.
    pub shared_bytes: u64,
    /// Index of the first region's function.
    pub first_region: u32,
    /// Index of the first function of a region for groups …
    pub first_lockstep: u32,
    /// … and which regions have one.
    pub lockstep: Vec<u32>,
    /// How many groups of a warp can run side by side.
    pub side_by_side: Option<u32>,
    /// A bit for each region, by its number, that may run for one warp after the other before any of them goes on.
    pub warp_after_warp: u64,
    /// Whether a barrier that all threads of a block have come to has nothing more to say: none of them ever arrives without waiting.
    pub lets_all_go: bool,
    /// Index of the first routine's function.
    pub first_routine: u32,
    /// Indices of the functions whose arguments are the lanes of a group.
    pub vector_routines: HashMap<Routine, u32>,
    /// The types of indirect calls by their number of arguments.
    pub indirect_types: &'a HashMap<usize, u32>,
}

/// Lowers what was built from an entry.
pub fn kernel(entry: &PtxFunction, built: Built, options: &Options) -> Result<Kernel> {
    let fail = |text: &str| TranslateError::new(entry.position, text);
    if !options.memory_bytes.is_multiple_of(PAGE) {
        return Err(fail("the device memory must be a multiple of 64 KiB"));
    }
    if !options.wide && options.memory_bytes > MOST_NARROW_BYTES {
        return Err(fail("a device memory of 4 GiB or more needs wide addresses"));
    }
    let Built { mut program, asking, .. } = built;
    let mut body = std::mem::take(&mut program.body);
    yield_in_loops(&mut body, &asking);
    let tangled = |function: &Function| {
        let graph = Graph::of(function);
        graph.order.len() > MOST_TANGLED && !graph.reducible()
    };
    if tangled(&body) || program.functions.iter().any(tangled) {
        return Err(fail("the kernel jumps into its loops from outside, and has more than 500 blocks"));
    }
    let too_many = || fail("the kernel is too large for the number of places where its threads wait");
    let local_bytes =
        u32::try_from(built.local_bytes.next_multiple_of(16)).map_err(|_| fail("too much local memory"))?;
    let form = form::choose(&mut body, &program, built.local_at, options).ok_or_else(too_many)?;
    let uniform = uniform_values(&body, &program);
    let none = Regions::new(&body, &[], &[], &[]);
    let regions = match &form {
        Form::Scheduled(regions, _) | Form::Lockstep(regions, _) => regions,
        Form::Flat(_) | Form::Groups(_) => &none,
    };
    let scheduled = !regions.regions.is_empty();
    let together = match &form {
        Form::Lockstep(regions, lockstep) => Some(lockstep::Together::new(lockstep, regions, &uniform)),
        _ => None,
    };
    let frames = frames::Frames::new(&body, program.exchange, regions, &uniform, together.is_some());
    let parameter_bytes =
        entry.parameters.iter().map(|parameter| parameter.offset + parameter.bytes).max().unwrap_or(0);
    let calls = program.functions.iter().any(|function| function.device);
    let layout = Layout::new(parameter_bytes, scheduled, calls, body.call_area);
    program.body = body;
    let shared_bytes = built.shared_bytes;
    let mut functions = Functions { types: Vec::new(), bodies: Vec::new() };
    let indirect_types = indirect_types(&program, &mut functions);
    let first_region = match &form {
        Form::Scheduled(..) | Form::Lockstep(..) => schedule::FUNCTIONS,
        Form::Groups(_) => groups::FUNCTIONS,
        Form::Flat(_) => flat::FUNCTIONS,
    };
    let first_lockstep = first_region + regions.regions.len() as u32;
    let first_routine = first_lockstep + together.as_ref().map_or(0, lockstep::Together::functions);
    let vector_routines = match &form {
        Form::Groups(wide) => vector_routine::found(&program, wide.body()),
        Form::Lockstep(_, lockstep) => vector_routine::found(&program, &lockstep.body),
        Form::Flat(_) | Form::Scheduled(..) => Vec::new(),
    };
    let parts = Parts {
        program: &program,
        regions,
        uniform: &uniform,
        layout,
        frames: if scheduled { frames.layout } else { Frames::default() },
        wide: options.wide,
        local_bytes,
        shared_bytes,
        first_region,
        first_lockstep,
        lockstep: together.as_ref().map(lockstep::Together::numbers).unwrap_or_default(),
        side_by_side: together.as_ref().and_then(lockstep::Together::side_by_side),
        warp_after_warp: together.as_ref().map_or(0, |together| together.warp_after_warp(&program)),
        lets_all_go: !program
            .body
            .blocks
            .iter()
            .any(|block| matches!(block.terminator, Terminator::Suspend(Suspension::Arrival { .. }, _))),
        first_routine,
        vector_routines: vector_routine::indices(&vector_routines, first_routine + program.functions.len() as u32),
        indirect_types: &indirect_types,
    };
    match &form {
        Form::Flat(_) => flat::add(&mut functions, &parts),
        Form::Groups(wide) => groups::add(&mut functions, &parts, wide),
        Form::Scheduled(..) | Form::Lockstep(..) => {
            schedule::add(&mut functions, &parts);
            meet::add(&mut functions, &parts);
            region::add(&mut functions, &parts, &frames);
        }
    }
    if let Some(together) = &together {
        together.add(&mut functions, &parts, &frames);
    }
    for function in &program.functions {
        routine(&mut functions, function, &parts);
    }
    vector_routine::add(&mut functions, &parts, &vector_routines);
    if functions.too_large() {
        return Err(fail("the kernel is too large: more than 7 MB of code in one function"));
    }
    let (wasm, places) = encode(&functions, &parts, options);
    Ok(Kernel {
        name: entry.name.clone(),
        wasm,
        parameters: entry.parameters.clone(),
        parameter_bytes,
        max_threads: entry.max_threads,
        required_threads: entry.required_threads,
        static_shared: u32::try_from(shared_bytes).map_err(|_| fail("too much shared memory"))?,
        local_bytes,
        frame_base: layout.frames,
        frame_bytes: parts.frames.bytes,
        sequential: built.sequential,
        form: match &form {
            Form::Groups(_) | Form::Lockstep(..) => kernel::Form::Vector,
            Form::Flat(obstacle) | Form::Scheduled(_, obstacle) => kernel::Form::Scalar(*obstacle),
        },
        places,
    })
}

pub fn uniform_values(function: &Function, program: &Program) -> Vec<bool> {
    uniform(function, |inst| matches!(inst, Inst::Call(routine, _) if program.functions[routine.0 as usize].pure))
}

/// A type for each number of arguments that an indirect call has.
fn indirect_types(program: &Program, functions: &mut Functions) -> HashMap<usize, u32> {
    let mut types = HashMap::new();
    for function in program.functions.iter().chain([&program.body]) {
        for definition in &function.values {
            if let Inst::CallIndirect(_, arguments) = &definition.inst {
                types.entry(arguments.len()).or_insert_with(|| functions.ty(&vec![ValType::I32; arguments.len()], &[]));
            }
        }
    }
    types
}

/// Control leaves a routine by returning only.
pub struct RoutineExits;

impl structure::Exits for RoutineExits {
    fn leaves(&self, _: u32) -> bool {
        false
    }

    fn hop(&self, _: &mut Unit<'_>, _: &Edge, _: u32) {}

    fn suspend(&self, unit: &mut Unit<'_>, _: &Suspension, _: &Edge, _: u32) {
        unit.sink().unreachable();
    }

    fn finish(&self, unit: &mut Unit<'_>, value: Option<Value>, _: u32) {
        match value {
            Some(value) if unit.lanes.is_some() => unit.whole(value),
            Some(value) => unit.value(value),
            None => {}
        }
        unit.sink().return_();
    }
}

fn routine<'a>(functions: &mut Functions, function: &'a Function, parts: &'a Parts<'a>) {
    let graph = Graph::of(function);
    let uniform = uniform_values(function, parts.program);
    let plan = plan::Plan::new(function, &graph, &uniform, &[], &[]);
    let code = Code::new(function.arguments.len() as u32);
    let mut unit = Unit::new(function, plan, code, parts);
    if function.device {
        unit.thread.packed = Some(1);
        unit.thread.call_area = Area { local: Some(2), offset: 0 };
        unit.thread.next_call_area = Area { local: Some(2), offset: function.call_area };
        if function.call_area > 0 {
            let most = parts.layout.calls_end - function.call_area.min(parts.layout.calls_end);
            unit.sink().local_get(2).i32_const(most as i32).i32_gt_u().if_(wasm_encoder::BlockType::Empty);
            trap(&mut unit.code, crate::kernel::trap::STACK);
            unit.sink().end();
        }
    }
    unit.preamble();
    structure::write(&mut unit, &graph, &uniform, &RoutineExits);
    if function.result.is_some() {
        unit.sink().unreachable();
    }
    let parameters: Vec<ValType> = function.arguments.iter().map(|kind| wasm_type(*kind)).collect();
    let results: Vec<ValType> = function.result.iter().map(|kind| wasm_type(*kind)).collect();
    functions.add(&parameters, &results, unit.code);
}

/// Writes to the private memory what depends on the launch and the kernel together.
pub fn prologue(code: &mut Code, parts: &Parts<'_>) {
    let at = |offset: u32, align: u32| wasm_encoder::MemArg { offset: u64::from(offset), align, memory_index: PRIVATE };
    let mut sink = code.sink();
    let dynamic = parts.shared_bytes.next_multiple_of(16);
    sink.i32_const(0).i32_const(0).i64_load(at(Launch::SHARED, 3)).i64_const(dynamic as i64).i64_add();
    sink.i64_store(at(Launch::DYNAMIC, 3));
    // The end of shared memory: behind the dynamic part, if there is one.
    sink.i32_const(0).i32_const(0).i64_load(at(Launch::SHARED, 3));
    sink.i64_const(dynamic as i64).i64_const(parts.shared_bytes as i64);
    sink.i32_const(0).i32_load(at(Launch::DYNAMIC_SHARED, 2)).select().i64_add();
    sink.i32_const(0).i64_load32_u(at(Launch::DYNAMIC_SHARED, 2)).i64_add().i64_store(at(Launch::SHARED_END, 3));
    sink.i32_const(0).i32_const(parts.local_bytes as i32).i32_store(at(crate::translate::LOCAL_BYTES, 2));
    sink.i32_const(0).i32_const(0).i64_load(at(Launch::LOCAL, 3)).i64_const(i64::from(parts.local_bytes));
    for axis in 0..3 {
        sink.i32_const(0).i64_load32_u(at(Launch::BLOCK + 4 * axis, 2)).i64_mul();
    }
    sink.i64_add().i64_store(at(Launch::LOCAL_END, 3));
}

/// Writes where block `first` (a local, `I64`) lies in the grid.
pub fn block_index(code: &mut Code, first: u32) {
    let at = |offset: u32| wasm_encoder::MemArg { offset: u64::from(offset), align: 2, memory_index: PRIVATE };
    let mut sink = code.sink();
    sink.i32_const(0).local_get(first);
    sink.i32_const(0).i64_load32_u(at(Launch::GRID)).i64_rem_u().i64_store32(at(Launch::BLOCK_INDEX));
    sink.i32_const(0).local_get(first);
    sink.i32_const(0).i64_load32_u(at(Launch::GRID)).i64_div_u();
    sink.i32_const(0).i64_load32_u(at(Launch::GRID + 4)).i64_rem_u().i64_store32(at(Launch::BLOCK_INDEX + 4));
    sink.i32_const(0).local_get(first);
    sink.i32_const(0).i64_load32_u(at(Launch::GRID)).i64_div_u();
    sink.i32_const(0).i64_load32_u(at(Launch::GRID + 4)).i64_div_u().i64_store32(at(Launch::BLOCK_INDEX + 8));
}

/// Goes on from where one block lies in the grid to where the next one does: without the divisions, which would take as long as a few hundred threads of a small kernel.
pub fn next_block_index(code: &mut Code) {
    let at = |offset: u32| wasm_encoder::MemArg { offset: u64::from(offset), align: 2, memory_index: PRIVATE };
    let place = code.local(ValType::I32);
    let mut sink = code.sink();
    sink.block(wasm_encoder::BlockType::Empty);
    for axis in [0, 4, 8] {
        sink.i32_const(0).i32_const(0).i32_load(at(Launch::BLOCK_INDEX + axis)).i32_const(1).i32_add();
        sink.local_tee(place).i32_store(at(Launch::BLOCK_INDEX + axis));
        sink.local_get(place).i32_const(0).i32_load(at(Launch::GRID + axis)).i32_ne().br_if(0);
        sink.i32_const(0).i32_const(0).i32_store(at(Launch::BLOCK_INDEX + axis));
    }
    sink.end();
    code.release(place);
}

fn encode(functions: &Functions, parts: &Parts<'_>, options: &Options) -> (Vec<u8>, Places) {
    let mut module = Module::new();
    let mut types = TypeSection::new();
    for (parameters, results) in &functions.types {
        types.ty().function(parameters.iter().copied(), results.iter().copied());
    }
    module.section(&types);
    let memory = |pages: u64, maximum: Option<u64>, memory64: bool| MemoryType {
        minimum: pages,
        maximum,
        memory64,
        shared: false,
        page_size_log2: None,
    };
    let pages = options.memory_bytes / PAGE;
    let mut imports = ImportSection::new();
    imports.import("device", "memory", memory(pages, Some(pages), parts.wide));
    module.section(&imports);
    let mut declared = FunctionSection::new();
    for (ty, ..) in &functions.bodies {
        declared.function(*ty);
    }
    module.section(&declared);
    table(&mut module, parts);
    let mut memories = MemorySection::new();
    memories.memory(memory(u64::from(parts.layout.frames).div_ceil(PAGE), None, false));
    module.section(&memories);
    let mut globals = GlobalSection::new();
    for _ in [TRAP, YIELDED, GROUPED, SIDE_BY_SIDE, MORE_WARPS] {
        globals.global(variable(ValType::I32), &ConstExpr::i32_const(0));
    }
    globals.global(variable(ValType::V128), &ConstExpr::v128_const(0));
    module.section(&globals);
    let mut exports = ExportSection::new();
    exports.export("private", ExportKind::Memory, PRIVATE);
    exports.export("run", ExportKind::Func, 0);
    exports.export("trap", ExportKind::Global, TRAP);
    module.section(&exports);
    elements(&mut module, parts);
    code(module, functions)
}

fn variable(val_type: ValType) -> GlobalType {
    GlobalType { val_type, mutable: true, shared: false }
}

/// One table: the regions, and behind them the functions that are called through registers, by their number in the PTX module.
fn table(module: &mut Module, parts: &Parts<'_>) {
    let candidates = parts.program.table.iter().map(|(index, _)| u64::from(*index) + 1).max().unwrap_or(0);
    let size = parts.regions.regions.len() as u64 + candidates;
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: size,
        maximum: Some(size),
        shared: false,
    });
    module.section(&tables);
}

fn elements(module: &mut Module, parts: &Parts<'_>) {
    let mut elements = ElementSection::new();
    let count = parts.regions.regions.len() as u32;
    let function = |number: u32| {
        let wide = parts.lockstep.iter().position(|own| *own == number);
        wide.map_or(parts.first_region + number, |index| parts.first_lockstep + index as u32)
    };
    let regions: Vec<u32> = (0..count).map(function).collect();
    elements.active(None, &ConstExpr::i32_const(0), Elements::Functions((&regions[..]).into()));
    for (index, routine) in &parts.program.table {
        let function = [parts.first_routine + routine.0];
        elements.active(
            None,
            &ConstExpr::i32_const((count + index) as i32),
            Elements::Functions((&function[..]).into()),
        );
    }
    module.section(&elements);
}

/// The code section, and the place of each instruction that may trap as an offset in all of the module.
fn code(mut module: Module, functions: &Functions) -> (Vec<u8>, Places) {
    let mut section = CodeSection::new();
    for (_, body, ..) in &functions.bodies {
        section.raw(body);
    }
    let payload: u32 = functions.bodies.iter().map(|(_, body, ..)| leb(body.len() as u32) + body.len() as u32).sum();
    let payload = payload + leb(functions.bodies.len() as u32);
    // Behind the section's identifier, its size and the number of functions.
    let mut at = module.as_slice().len() as u32 + 1 + leb(payload) + leb(functions.bodies.len() as u32);
    let mut places = Vec::new();
    for (_, body, start, positions) in &functions.bodies {
        at += leb(body.len() as u32);
        places.extend(positions.iter().map(|(offset, position)| (at + start + offset, *position)));
        at += body.len() as u32;
    }
    module.section(&section);
    (module.finish(), places)
}

/// Bytes of a number in LEB128.
fn leb(number: u32) -> u32 {
    (32 - (number | 1).leading_zeros()).div_ceil(7)
}
