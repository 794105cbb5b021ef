//! Functions that stand for instructions WebAssembly lacks, for the four lanes of a group at once: halves of 16 bits, logarithms, sines, results rounded in a direction.
//!
//! Such a function that does the same whatever it is given, without a branch, has a second form whose arguments and result are vectors: one of 32 bits a lane, two of 64. Others are called
//! for one lane after the other.

use std::collections::HashMap;

use super::module::{Functions, Parts, RoutineExits, uniform_values};
use super::plan::Plan;
use super::structure;
use super::unit::{Code, Unit};
use super::vector::Lanes;
use crate::translate::graph::Graph;
use crate::translate::ir::{Definition, Function, Inst, Kind, Program, Routine, Terminator, Value};
use crate::translate::lanes::{Shapes, shapes_of_arguments};

/// Such a function.
pub struct VectorRoutine {
    routine: Routine,
    graph: Graph,
    uniform: Vec<bool>,
    found: Shapes,
}

/// All that the body of a kernel calls, and those that these call.
pub fn found(program: &Program, body: &Function) -> Vec<VectorRoutine> {
    let mut routines: Vec<VectorRoutine> = Vec::new();
    let mut pending = calls(body);
    while let Some(routine) = pending.pop() {
        if routines.iter().any(|known| known.routine == routine) {
            continue;
        }
        let function = &program.functions[routine.0 as usize];
        let straight = matches!(function.blocks[0].terminator, Terminator::Return(Some(_)));
        if !function.pure || !straight {
            continue;
        }
        let (graph, uniform) = (Graph::of(function), uniform_values(function, program));
        let found = shapes_of_arguments(function, &graph, &uniform);
        pending.extend(calls(function));
        routines.push(VectorRoutine { routine, graph, uniform, found });
    }
    routines
}

fn calls(function: &Function) -> Vec<Routine> {
    let called = |definition: &Definition| match definition.inst {
        Inst::Call(routine, _) => Some(routine),
        _ => None,
    };
    function.values.iter().filter_map(called).collect()
}

/// The indices of their functions, from this one on.
pub fn indices(routines: &[VectorRoutine], first: u32) -> HashMap<Routine, u32> {
    routines.iter().map(|routine| routine.routine).zip(first..).collect()
}

/// Adds them, in this order.
pub fn add<'a>(functions: &mut Functions, parts: &'a Parts<'a>, routines: &'a [VectorRoutine]) {
    for routine in routines {
        let function = &parts.program.functions[routine.routine.0 as usize];
        // By argument, its first local.
        let mut places = Vec::new();
        let mut count = 0;
        for kind in &function.arguments {
            places.push(count);
            count += kind.bytes() / 4;
        }
        let plan = Plan::with_locals(function, &routine.graph, &routine.uniform);
        let mut unit = Unit::new(function, plan, Code::new(count), parts);
        unit.lanes = Some(Lanes::of_arguments(&routine.found, places));
        unit.preamble();
        structure::write(&mut unit, &routine.graph, &routine.uniform, &RoutineExits);
        unit.sink().unreachable();
        let vectors = |bytes: u32| vec![wasm_encoder::ValType::V128; (bytes / 4) as usize];
        let results = vectors(function.result.map_or(0, Kind::bytes));
        functions.add(&vectors(4 * count), &results, unit.code);
    }
}

impl Unit<'_> {
    /// Puts all lanes of a value on the stack, as one vector or two.
    pub fn whole(&mut self, value: Value) {
        if self.function.kind(value).bytes() == 4 {
            self.words(value);
        } else {
            self.half(value, 0);
            self.half(value, 1);
        }
    }

    /// Calls a function for all lanes of a group, if it has a form for that.
    pub fn vector_call(&mut self, routine: Routine, arguments: &[Value]) -> bool {
        let Some(function) = self.parts.vector_routines.get(&routine).copied() else { return false };
        for argument in arguments {
            self.whole(*argument);
        }
        self.sink().call(function);
        true
    }
}
