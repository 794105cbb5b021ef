//! Calls of device functions.
//!
//! Arguments and results lie in the private memory: the caller's `.param` variables, each at a fixed place of its call area. The callee gets their addresses, so a
//! structure by value costs no copy, and an inlined callee reads the same places.

use super::body::Body;
use crate::module::{Callee, FunctionId, Operand, Symbol, Type};
use crate::translate::error::Result;
use crate::translate::ir::{Input, Inst, Kind, Terminator, Value};
use crate::translate::trap;

impl Body<'_, '_> {
    pub(super) fn call(&mut self, callee: &Callee, returns: &[Operand], arguments: &[Operand]) -> Result<()> {
        let model = match callee {
            Callee::Direct(id) => *id,
            Callee::Indirect { candidates, .. } => match candidates.first() {
                Some(first) => *first,
                None => return Err(self.error("no function of this module can be meant by this call")),
            },
        };
        let function = self.shop.function(model);
        if function.parameters.len() != arguments.len() || function.returns.len() != returns.len() {
            let text = format!(
                "{} takes {} arguments and returns {}, but the call gives {} and expects {}",
                function.name,
                function.parameters.len(),
                function.returns.len(),
                arguments.len(),
                returns.len()
            );
            return Err(self.error(text));
        }
        if function.declaration {
            return self.undefined(model);
        }
        let mut places = Vec::new();
        for (argument, parameter) in arguments.iter().zip(&function.parameters) {
            places.push(self.argument_place(argument, parameter.element, parameter.bytes)?);
        }
        for (target, parameter) in returns.iter().zip(&function.returns) {
            places.push(self.return_place(target, parameter.bytes)?);
        }
        match callee {
            Callee::Direct(id) if self.shop.survey.inlined(*id) => self.inline(*id, places.clone())?,
            Callee::Direct(id) => {
                let routine = self.shop.routine(*id);
                let arguments = self.device_arguments(&places);
                self.b.push(Inst::Call(routine, arguments), None);
            }
            Callee::Indirect { target, candidates } => self.indirect(target, candidates, &places)?,
        }
        for (index, (target, parameter)) in returns.iter().zip(&function.returns).enumerate() {
            if let Operand::Register(register) = target {
                let kind = super::operand::kind(parameter.element);
                let place = places[arguments.len() + index];
                let value = self.b.load_private(place, 0, kind, parameter.element.bytes());
                self.write(*register, parameter.element, value);
            }
        }
        Ok(())
    }

    /// Puts the arguments that the function declares as registers there.
    pub(super) fn take_arguments(&mut self) {
        let function = self.function();
        for (index, parameter) in function.parameters.iter().enumerate() {
            let Some(register) = parameter.register else { continue };
            let place = self.current().arguments[index];
            let kind = super::operand::kind(parameter.element);
            let value = self.b.load_private(place, 0, kind, parameter.element.bytes());
            self.write(register, parameter.element, value);
        }
    }

    /// Stores the results that it declares as registers, for the caller to load.
    pub(super) fn give_results(&mut self) {
        let function = self.function();
        for (index, result) in function.returns.iter().enumerate() {
            let Some(register) = result.register else { continue };
            let place = self.current().arguments[function.parameters.len() + index];
            let variable = self.variable(register);
            let value = self.b.read(variable);
            self.b.store_private(place, 0, value, result.element.bytes());
        }
    }

    /// Calls of what the CUDA runtime gives every kernel, and of what nobody does.
    fn undefined(&mut self, id: FunctionId) -> Result<()> {
        let name = &self.shop.function(id).name;
        match name.as_str() {
            "__assertfail" => {
                self.b.end(Terminator::Trap(trap::ASSERTION));
                Ok(())
            }
            "vprintf" | "malloc" | "free" => Err(self
                .error(format!("{name} is not supported on the CPU device: a kernel can neither print nor allocate"))),
            _ => Err(self.error(format!("the function {name} is declared but not defined in this module"))),
        }
    }

    fn device_arguments(&mut self, places: &[Value]) -> Vec<Value> {
        let mut arguments = vec![self.input(Input::Linear), self.input(Input::Packed), self.input(Input::NextCallArea)];
        arguments.extend_from_slice(places);
        arguments
    }

    /// Where an argument lies: a `.param` variable does already, a register or an immediate is put into the call area.
    fn argument_place(&mut self, argument: &Operand, element: Type, bytes: u32) -> Result<Value> {
        if let Some(place) = self.own_place(argument)? {
            return Ok(place);
        }
        let value = self.operand(argument, element)?;
        let place = self.fresh_place(bytes)?;
        self.b.store_private(place, 0, value, element.bytes());
        Ok(place)
    }

    fn return_place(&mut self, target: &Operand, bytes: u32) -> Result<Value> {
        match self.own_place(target)? {
            Some(place) => Ok(place),
            None => self.fresh_place(bytes),
        }
    }

    fn own_place(&mut self, operand: &Operand) -> Result<Option<Value>> {
        let Operand::Address(symbol @ (Symbol::Function(_) | Symbol::Parameter(_) | Symbol::Return(_)), offset) =
            operand
        else {
            return Ok(None);
        };
        let location = self.symbol(*symbol)?;
        if self.b.kind(location.base) != Kind::I32 {
            return Err(self.error("an argument of a call must be a .param variable, a register or a constant"));
        }
        let offset = self.b.i32(location.offset.wrapping_add_signed(*offset) as u32);
        Ok(Some(self.b.add(location.base, offset)))
    }

    fn fresh_place(&mut self, bytes: u32) -> Result<Value> {
        let position = self.b.position;
        let offset = self.area(u64::from(bytes), 8, position)?;
        let (area, offset) = (self.input(Input::CallArea), self.b.i32(offset));
        Ok(self.b.add(area, offset))
    }

    fn inline(&mut self, id: FunctionId, places: Vec<Value>) -> Result<()> {
        let behind = self.b.block();
        let position = self.b.position;
        self.scope(id, places, Some(behind))?;
        self.b.position = position;
        self.b.close(behind);
        self.b.start(behind);
        Ok(())
    }

    fn indirect(&mut self, target: &Operand, candidates: &[FunctionId], places: &[Value]) -> Result<()> {
        for id in candidates {
            let function = self.shop.function(*id);
            if self.shop.survey.inlined(*id) {
                let text = format!(
                    "{} waits for other threads or ends the thread: it cannot be called through a register",
                    function.name
                );
                return Err(self.error(text));
            }
            if function.parameters.len() + function.returns.len() == places.len() && !function.declaration {
                self.shop.candidate(*id);
            }
        }
        let target = self.operand(target, Type::U32)?;
        let arguments = self.device_arguments(places);
        self.b.push(Inst::CallIndirect(target, arguments), None);
        Ok(())
    }
}
