//! What the functions of one kernel share while they are built.

use std::collections::HashMap;

use super::atomics::Reduction;
use super::body::Body;
use super::ssa::Builder;
use crate::kernel::Options;
use crate::layout::Layout;
use crate::module::{Function as PtxFunction, FunctionId, Module, Position, Space, Symbol};
use crate::translate::collective::Collective;
use crate::translate::error::{Result, TranslateError};
use crate::translate::helper::Helper;
use crate::translate::ir::{Function, Kind, Program, Routine, Value};
use crate::translate::survey::Survey;

/// The most values that a kernel may have in all: inlining can make much of little.
const MOST_VALUES: usize = 2_000_000;

/// Where a variable lies: at an address from the launch record, and so many bytes behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset in the launch record of an address.
    pub record: u32,
    /// Added to it.
    pub offset: u64,
}

/// A kernel in the making.
pub struct Workshop<'a> {
    /// The module.
    pub module: &'a Module,
    /// Choices.
    pub options: &'a Options,
    /// Which functions are inlined.
    pub survey: Survey,
    /// The blocks must run in order, whether or not the results of `ordered` are used.
    pub sequential: bool,
    /// The one kind of operation on global memory that needs no order, once there is one.
    pub(super) reduction: Option<Reduction>,
    /// Bytes of static shared memory so far.
    pub shared_bytes: u64,
    /// Bytes of local memory for a thread so far.
    pub local_bytes: u64,
    /// The variable that was there first.
    local_at: Option<Position>,
    layout: Layout,
    shared: HashMap<(Option<FunctionId>, u32), u64>,
    locals: HashMap<FunctionId, Vec<u64>>,
    helpers: HashMap<Helper, Routine>,
    collectives: Vec<(Collective, Routine)>,
    routines: HashMap<FunctionId, Routine>,
    pending: Vec<(FunctionId, Routine)>,
    functions: Vec<Option<Function>>,
    table: Vec<(u32, Routine)>,
    spent: usize,
}

/// A kernel's program, and what the launch must know of it.
pub struct Built {
    /// All functions.
    pub program: Program,
    /// Blocks of the body that ask memory for something that another thread may write.
    pub asking: Vec<u32>,
    /// Values of the body and the functions whose use makes the order of blocks matter.
    pub sequential: bool,
    /// Bytes of static shared memory.
    pub shared_bytes: u64,
    /// Bytes of local memory for each thread.
    pub local_bytes: u64,
    /// The first variable in it.
    pub local_at: Option<Position>,
}

/// A function as it comes out of its body.
pub struct Draft {
    /// It.
    pub function: Function,
    /// Blocks that ask memory for something that another thread may write.
    pub asking: Vec<u32>,
    /// Results of atomics: where one is used, the order of blocks matters.
    pub ordered: Vec<Value>,
}

impl<'a> Workshop<'a> {
    /// Builds the entry and all that it calls.
    pub fn build(module: &'a Module, entry: FunctionId, options: &'a Options) -> Result<Built> {
        let survey = Survey::of(module, entry)?;
        let mut workshop = Self {
            module,
            options,
            survey,
            sequential: false,
            reduction: None,
            shared_bytes: 0,
            local_bytes: 0,
            local_at: None,
            layout: Layout::of(module),
            shared: HashMap::new(),
            locals: HashMap::new(),
            helpers: HashMap::new(),
            collectives: Vec::new(),
            routines: HashMap::new(),
            pending: Vec::new(),
            functions: Vec::new(),
            table: Vec::new(),
            spent: 0,
        };
        let draft = Body::entry(&mut workshop, entry)?;
        let (body, asking) = workshop.take(draft);
        while let Some((id, routine)) = workshop.pending.pop() {
            let draft = Body::device(&mut workshop, id)?;
            let (function, _) = workshop.take(draft);
            workshop.functions[routine.0 as usize] = Some(function);
        }
        Ok(Built {
            program: Program {
                body,
                functions: workshop.functions.into_iter().flatten().collect(),
                exchange: workshop.collectives.iter().map(|(collective, _)| collective.bytes()).max().unwrap_or(0),
                collectives: workshop.collectives.into_iter().map(|(_, routine)| routine).collect(),
                table: workshop.table,
            },
            asking,
            sequential: workshop.sequential,
            shared_bytes: workshop.shared_bytes,
            local_bytes: workshop.local_bytes,
            local_at: workshop.local_at,
        })
    }

    fn take(&mut self, mut draft: Draft) -> (Function, Vec<u32>) {
        crate::translate::tidy::tidy(&mut draft.function);
        self.sequential |= crate::translate::tidy::uses_any(&draft.function, &draft.ordered);
        (draft.function, draft.asking)
    }

    /// A function of the module.
    pub fn function(&self, id: FunctionId) -> &'a PtxFunction {
        &self.module.functions[id.0 as usize]
    }

    /// Says that so many values were made, and fails if they are too many.
    pub fn spend(&mut self, values: usize, position: Position) -> Result<()> {
        self.spent += values;
        if self.spent > MOST_VALUES {
            return Err(TranslateError::new(
                position,
                "the kernel is too large once all functions that wait for other threads are inlined",
            ));
        }
        Ok(())
    }

    /// A helper, made when it is first asked for.
    pub fn helper(&mut self, helper: Helper) -> Routine {
        if let Some(routine) = self.helpers.get(&helper) {
            return *routine;
        }
        let routine = self.reserve();
        self.helpers.insert(helper, routine);
        let (arguments, result) = helper.signature();
        let mut builder = Builder::new(arguments, Some(result), self.options.canonical_nans);
        helper.build(&mut builder);
        let mut function = builder.finish();
        function.pure = helper.pure();
        crate::translate::tidy::tidy(&mut function);
        self.functions[routine.0 as usize] = Some(function);
        routine
    }

    /// Calls a helper.
    pub fn call(&mut self, builder: &mut Builder, helper: Helper, arguments: &[Value]) -> Value {
        let routine = self.helper(helper);
        builder.call(routine, arguments.to_vec(), helper.signature().1)
    }

    /// The number of a routine for whole warps, which is made when it is first asked for.
    pub fn collective(&mut self, collective: Collective) -> u32 {
        if let Some(number) = self.collectives.iter().position(|(known, _)| *known == collective) {
            return number as u32;
        }
        let routine = self.reserve();
        self.collectives.push((collective, routine));
        let mut builder = Builder::new(Collective::ARGUMENTS.to_vec(), None, self.options.canonical_nans);
        collective.build(&mut builder);
        let mut function = builder.finish();
        crate::translate::tidy::tidy(&mut function);
        self.functions[routine.0 as usize] = Some(function);
        self.collectives.len() as u32 - 1
    }

    fn reserve(&mut self) -> Routine {
        self.functions.push(None);
        Routine(self.functions.len() as u32 - 1)
    }

    /// What a device function becomes.
    pub fn routine(&mut self, id: FunctionId) -> Routine {
        if let Some(routine) = self.routines.get(&id) {
            return *routine;
        }
        let routine = self.reserve();
        self.routines.insert(id, routine);
        self.pending.push((id, routine));
        routine
    }

    /// The same, for a function that a register may name.
    pub fn candidate(&mut self, id: FunctionId) {
        let routine = self.routine(id);
        if !self.table.iter().any(|(index, _)| *index == id.0) {
            self.table.push((id.0, routine));
        }
    }

    /// The kinds of a device function's arguments: the thread (linear and packed), the call area, and an address in the private memory for each
    /// parameter and each result.
    pub fn device_arguments(function: &PtxFunction) -> Vec<Kind> {
        vec![Kind::I32; 3 + function.parameters.len() + function.returns.len()]
    }

    /// Where a variable of the module or a function lies; none for those in local and parameter space.
    pub fn place(&mut self, owner: FunctionId, symbol: Symbol, position: Position) -> Result<Option<Place>> {
        use crate::kernel::Launch;
        let (variable, key) = match symbol {
            Symbol::Module(index) => (&self.module.variables[index as usize], (None, index)),
            Symbol::Function(index) => (&self.function(owner).variables[index as usize], (Some(owner), index)),
            _ => return Ok(None),
        };
        if variable.external && variable.space != Space::Shared {
            let text = format!("the variable {} is declared but not defined in this module", variable.name);
            return Err(TranslateError::new(position, text));
        }
        let offset = |layout: &Layout| layout.offsets[key.1 as usize].unwrap_or_default();
        Ok(match variable.space {
            Space::Global => Some(Place { record: Launch::GLOBALS, offset: offset(&self.layout) }),
            Space::Const => Some(Place { record: Launch::CONSTANTS, offset: offset(&self.layout) }),
            Space::Shared if variable.external => Some(Place { record: Launch::DYNAMIC, offset: 0 }),
            Space::Shared => {
                let end = &mut self.shared_bytes;
                let offset = *self.shared.entry(key).or_insert_with(|| {
                    let offset = end.next_multiple_of(u64::from(variable.align.max(1)));
                    *end = offset.saturating_add(variable.bytes);
                    offset
                });
                if self.shared_bytes > u64::from(u32::MAX) {
                    return Err(TranslateError::new(variable.position, "more than 4 GiB of shared memory"));
                }
                Some(Place { record: Launch::SHARED, offset })
            }
            Space::Local | Space::Param | Space::Generic => None,
        })
    }

    /// Where the local variables of one use of a function lie in the thread's local memory, by their index; a function that is not inlined has one
    /// place for all calls, since only one of them runs at a time.
    pub fn local_places(&mut self, id: FunctionId, shared: bool) -> Result<Vec<u64>> {
        if let Some(places) = self.locals.get(&id).filter(|_| shared) {
            return Ok(places.clone());
        }
        let function = self.function(id);
        let mut places = Vec::new();
        for variable in &function.variables {
            let mut offset = 0;
            if variable.space == Space::Local {
                if self.survey.recursive(id) {
                    let text = format!(
                        "{} is recursive and has variables in local memory, which is not supported",
                        function.name
                    );
                    return Err(TranslateError::new(variable.position, text));
                }
                offset = self.local_bytes.next_multiple_of(u64::from(variable.align.max(1)));
                self.local_bytes = offset.saturating_add(variable.bytes);
                self.local_at = self.local_at.or(Some(variable.position));
            }
            if self.local_bytes > 1 << 30 {
                return Err(TranslateError::new(variable.position, "more than 1 GiB of local memory for a thread"));
            }
            places.push(offset);
        }
        self.locals.insert(id, places.clone());
        Ok(places)
    }

    /// Bytes of constant variables.
    pub fn const_bytes(&self) -> u64 {
        self.layout.const_bytes
    }
}
