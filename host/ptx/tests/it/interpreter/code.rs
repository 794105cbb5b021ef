//! A module taken apart: functions with their jumps resolved.

use wasmparser::{
    BinaryReaderError, BlockType, ConstExpr, ElementItems, ElementKind, Operator, Parser, Payload, TypeRef,
};

type Result<T> = std::result::Result<T, BinaryReaderError>;

/// A module.
pub(super) struct Code<'a> {
    /// Of each type, how many parameters and results.
    pub(super) types: Vec<(usize, usize)>,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) table: Vec<Option<u32>>,
    pub(super) globals: usize,
    /// Whether the device memory has addresses of 64 bits.
    pub(super) wide: bool,
    /// The function that is exported as `run`.
    pub(super) entry: usize,
}

/// A function.
pub(super) struct Function<'a> {
    pub(super) ty: u32,
    /// Besides its parameters.
    pub(super) locals: usize,
    pub(super) steps: Vec<Step<'a>>,
}

/// An instruction; jumps go to the index of another.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Do(Operator<'a>),
    Jump(usize),
    JumpIf(usize),
    JumpUnless(usize),
    JumpTable(Vec<usize>),
    Return,
}

/// A block that is not closed yet.
struct Open {
    /// Where a jump to it goes: known for loops.
    start: Option<usize>,
    /// Jumps to its end.
    waiting: Vec<usize>,
    /// The jump of its `if`, over what is done where the condition holds.
    otherwise: Option<usize>,
}

impl<'a> Code<'a> {
    pub(super) fn of(wasm: &'a [u8]) -> Result<Self> {
        let mut code =
            Self { types: Vec::new(), functions: Vec::new(), table: Vec::new(), globals: 0, wide: false, entry: 0 };
        let mut declared = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(types) => {
                    for ty in types.into_iter_err_on_gc_types() {
                        let ty = ty?;
                        code.types.push((ty.params().len(), ty.results().len()));
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let TypeRef::Memory(memory) = import?.ty else {
                            panic!("something else than memory is imported")
                        };
                        code.wide = memory.memory64;
                    }
                }
                Payload::FunctionSection(functions) => {
                    declared = functions.into_iter().collect::<Result<Vec<u32>>>()?;
                }
                Payload::TableSection(tables) => {
                    for table in tables {
                        code.table = vec![None; table?.ty.initial as usize];
                    }
                }
                Payload::GlobalSection(globals) => code.globals = globals.count() as usize,
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        if export.name == "run" {
                            code.entry = export.index as usize;
                        }
                    }
                }
                Payload::ElementSection(elements) => {
                    for element in elements {
                        code.fill_table(&element?)?;
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let ty = declared[code.functions.len()];
                    let mut locals = 0;
                    for group in body.get_locals_reader()? {
                        locals += group?.0 as usize;
                    }
                    let steps = steps(body.get_operators_reader()?.into_iter())?;
                    code.functions.push(Function { ty, locals, steps });
                }
                _ => {}
            }
        }
        Ok(code)
    }

    fn fill_table(&mut self, element: &wasmparser::Element<'_>) -> Result<()> {
        let (ElementKind::Active { offset_expr, .. }, ElementItems::Functions(items)) = (&element.kind, &element.items)
        else {
            unreachable!("the translation writes no other elements");
        };
        let first = number(offset_expr)? as usize;
        for (index, function) in items.clone().into_iter().enumerate() {
            self.table[first + index] = Some(function?);
        }
        Ok(())
    }
}

fn number(expression: &ConstExpr<'_>) -> Result<i32> {
    match expression.get_operators_reader().read()? {
        Operator::I32Const { value } => Ok(value),
        other => unreachable!("an offset by {other:?}"),
    }
}

fn steps<'a>(operators: impl Iterator<Item = Result<Operator<'a>>>) -> Result<Vec<Step<'a>>> {
    let mut steps = Vec::new();
    let mut open = vec![Open { start: None, waiting: Vec::new(), otherwise: None }];
    for operator in operators {
        let here = steps.len();
        match operator? {
            Operator::Block { .. } => open.push(Open { start: None, waiting: Vec::new(), otherwise: None }),
            Operator::Loop { blockty } => {
                assert!(matches!(blockty, BlockType::Empty), "a loop that gives something");
                open.push(Open { start: Some(here), waiting: Vec::new(), otherwise: None });
            }
            Operator::If { .. } => {
                open.push(Open { start: None, waiting: Vec::new(), otherwise: Some(here) });
                steps.push(Step::JumpUnless(0));
            }
            Operator::Else => {
                let Some(block) = open.last_mut() else { continue };
                block.waiting.push(here);
                steps.push(Step::Jump(0));
                if let Some(at) = block.otherwise.take() {
                    steps[at] = Step::JumpUnless(here + 1);
                }
            }
            Operator::End => {
                let Some(block) = open.pop() else { continue };
                for at in block.waiting.into_iter().chain(block.otherwise) {
                    arrive(&mut steps[at], here);
                }
                if open.is_empty() {
                    steps.push(Step::Return);
                }
            }
            Operator::Br { relative_depth } => {
                let target = leave(&mut open, relative_depth, here);
                steps.push(Step::Jump(target));
            }
            Operator::BrIf { relative_depth } => {
                let target = leave(&mut open, relative_depth, here);
                steps.push(Step::JumpIf(target));
            }
            Operator::BrTable { targets } => {
                let depths = targets.targets().chain([Ok(targets.default())]).collect::<Result<Vec<u32>>>()?;
                let targets = depths.into_iter().map(|depth| leave(&mut open, depth, here)).collect();
                steps.push(Step::JumpTable(targets));
            }
            Operator::Return => steps.push(Step::Return),
            other => steps.push(Step::Do(other)),
        }
    }
    Ok(steps)
}

/// What stands for the end of the outermost block until it is known; the numbers below it stand for the ends of those within.
const UNKNOWN: usize = usize::MAX;

/// Where a jump of this depth goes.
fn leave(open: &mut [Open], depth: u32, here: usize) -> usize {
    let index = open.len() - 1 - depth as usize;
    let block = &mut open[index];
    block.start.unwrap_or_else(|| {
        block.waiting.push(here);
        // Which block it waits for: in a table there are several.
        UNKNOWN - index
    })
}

/// Puts the end of the block in the place of what stands for it. Blocks are closed from the innermost on, so that the greatest index among those that
/// a table waits for is the one.
fn arrive(step: &mut Step<'_>, here: usize) {
    match step {
        Step::Jump(target) | Step::JumpIf(target) | Step::JumpUnless(target) => *target = here,
        Step::JumpTable(targets) => {
            let innermost = targets.iter().filter(|target| **target > UNKNOWN / 2).min().copied();
            targets.iter_mut().filter(|target| Some(**target) == innermost).for_each(|target| *target = here);
        }
        Step::Do(_) | Step::Return => {}
    }
}
