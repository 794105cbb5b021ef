//! What a group runs for some of its lanes only (see [`crate::translate::masking`]).

use wasm_encoder::{BlockType, ValType};

use super::unit::{Unit, wasm_type};
use super::vector::{Lanes, Part};
use crate::translate::ir::{Access, Edge, Inst, Kind, Memory, Terminator, Value};
use crate::translate::lanes::{LANES, Shape};
use crate::translate::masking::Masked;

/// Memory that is there or not is so by pages of at least so many bytes.
const LEAST_PAGE: i32 = 4096;

impl Unit<'_> {
    /// Whether what is written is run for some lanes only.
    pub fn some_run(&self) -> bool {
        self.lanes.as_ref().is_some_and(|lanes| lanes.running.is_some())
    }

    /// Writes to a local the lanes for which the condition of a branch holds.
    pub fn lanes_taking(&mut self, masked: &Masked, taken: u32) {
        let Some(decision) = self.decision() else {
            self.lanes_where(masked.condition);
            self.sink().local_set(taken);
            return;
        };
        let splits = self.splits(decision);
        if splits {
            self.sink().if_(BlockType::Empty);
            self.define_for_each_group(masked.branch, &decision.indices);
            self.lanes_where(masked.condition);
            self.sink().local_set(taken).else_();
        }
        let all = self.all_lanes();
        self.sink().i32_const(all as i32).i32_const(0);
        self.decided(masked.condition);
        self.sink().select().local_set(taken);
        if splits {
            self.sink().end();
        }
    }

    /// Writes the side of a branch, of whose lanes those in the local `taken` find that the condition holds, and what the parameters behind it become.
    pub fn masked_side(&mut self, masked: &Masked, taken: u32, uniform: &[bool], depth: u32) {
        let function = self.function;
        let Terminator::Branch(_, yes, no) = &function.blocks[masked.branch as usize].terminator else { return };
        let Terminator::Jump(out) = &function.blocks[masked.side as usize].terminator else { return };
        let running = self.code.local(ValType::I32);
        self.sink().local_get(taken);
        if masked.inverted {
            let all = self.all_lanes();
            self.sink().i32_const(all as i32).i32_xor();
        }
        self.sink().local_set(running);
        self.set_running(Some(running));
        self.block(masked.side, uniform, depth);
        self.set_running(None);
        let edges = if masked.inverted { [yes, out] } else { [out, no] };
        self.selected(masked, edges);
        self.after_block(masked.side);
        self.code.release(running);
    }

    fn set_running(&mut self, running: Option<u32>) {
        if let Some(lanes) = &mut self.lanes {
            lanes.running = running;
        }
    }

    /// Each parameter gets what the first edge gives where the condition holds, else what the second does.
    fn selected(&mut self, masked: &Masked, [yes, no]: [&Edge; 2]) {
        let parameters = &self.function.blocks[masked.join as usize].parameters;
        let mut targets = Vec::new();
        for (parameter, (yes, no)) in parameters.iter().zip(yes.arguments.iter().zip(&no.arguments)) {
            if yes == no {
                self.argument(*parameter, *yes, &mut targets);
                continue;
            }
            self.each_group(|unit| {
                unit.vector_select(*parameter, masked.condition, [*yes, *no]);
                unit.targets(*parameter, &mut targets);
            });
        }
        for target in targets.into_iter().rev() {
            self.sink().local_set(target);
        }
    }

    /// Does something for each lane that runs.
    fn each_running(&mut self, mut write: impl FnMut(&mut Self, u32)) {
        let running = self.lanes.as_ref().and_then(|lanes| lanes.running).unwrap_or(0);
        if self.group_count() > 1 {
            self.any_of_group_runs();
            self.sink().if_(BlockType::Empty);
        }
        for lane in 0..LANES {
            let bit = 1_u32 << self.place(lane);
            self.sink().local_get(running).i32_const(bit as i32).i32_and().if_(BlockType::Empty);
            self.with_part(Part::Lane(lane), |unit| write(unit, lane));
            self.sink().end();
        }
        if self.group_count() > 1 {
            self.sink().end();
        }
    }

    /// Each lane that runs writes to memory.
    pub fn masked_store(&mut self, value: Value) {
        let Inst::Store(access, address, stored) = self.function.inst(value) else { return };
        let neighbours = self.shape(*address) == Shape::Line(access.bytes.into());
        if !neighbours || access.bytes != self.function.kind(*stored).bytes() {
            self.each_running(|unit, _| unit.expression(value));
            return;
        }
        let all = ((1 << LANES) - 1) << self.place(0);
        self.any_of_group_runs();
        self.sink().if_(BlockType::Empty);
        self.any_of_group_runs();
        self.sink().i32_const(all).i32_eq().if_(BlockType::Empty);
        self.vector_store(value, *access, *address, *stored);
        self.sink().else_();
        self.store_neighbours(value, *access, *address, *stored);
        self.sink().end().end();
    }

    /// At least one of a group's lanes writes its element; those that do not run write that of one that does once more, which nobody can see. So there is no branch for the processor to guess:
    /// who runs is often a matter of data.
    fn store_neighbours(&mut self, value: Value, access: Access, address: Value, stored: Value) {
        let kind = self.function.kind(stored);
        // What lies in a vector is moved as the number that it is.
        let (ty, moved) = match kind {
            Kind::F32 => (ValType::I32, Kind::I32),
            kind => (wasm_type(kind), kind),
        };
        let wide = access.memory == Memory::Device && self.parts.wide;
        let index = if wide { ValType::I64 } else { ValType::I32 };
        let (first, at) = (self.code.local(index), self.code.local(index));
        let own = self.code.local(ty);
        let same = self.shape(stored) == Shape::SAME;
        self.base(address);
        self.index(access);
        self.sink().local_set(first);
        if !wide {
            // Nothing is at the end of such a memory, nor does an element behind it wrap round to the beginning.
            let last = -((LANES * 8 * self.group_count()) as i32);
            self.sink().local_get(first).i32_const(last).local_get(first).i32_const(last).i32_lt_u().select();
            self.sink().local_set(first);
        }
        let running = self.lanes.as_ref().and_then(|lanes| lanes.running).unwrap_or(0);
        // From the last lane to the first, so that these hold what belongs to the first one that runs; and back.
        let order = (0..LANES).rev().map(|lane| (lane, false)).chain((0..LANES).map(|lane| (lane, true)));
        for (lane, stores) in order {
            let begins = !stores && lane == LANES - 1;
            let bit = 1 << self.place(lane);
            let choose = |unit: &mut Self, local: u32| {
                if !begins {
                    unit.sink().local_get(local).local_get(running).i32_const(bit).i32_and().select();
                }
                unit.sink().local_set(local);
            };
            if stores || lane > 0 {
                self.element(first, wide, self.place(lane) * access.bytes);
                choose(self, at);
                if !same || begins {
                    self.part_of(stored, Part::Lane(lane));
                    if kind == Kind::F32 {
                        self.sink().i32x4_extract_lane(0);
                    }
                    choose(self, own);
                }
            }
            if stores {
                self.sink().local_get(at).local_get(own);
                self.code.mark(self.function.values[value.0 as usize].position);
                self.store(access, moved);
            }
        }
        [first, at, own].into_iter().for_each(|local| self.code.release(local));
    }

    /// Puts the address of an element so many bytes behind the first on the stack.
    fn element(&mut self, first: u32, wide: bool, bytes: u32) {
        self.sink().local_get(first);
        if wide {
            self.sink().i64_const(bytes.into()).i64_add();
        } else {
            self.sink().i32_const(bytes as i32).i32_add();
        }
    }

    /// Each lane that runs reads memory; what the others get is nothing that is used. Where neighbours read neighbouring elements, all do, as long as these lie in one page with what a
    /// lane that runs reads: memory is there by whole pages, or not at all.
    pub fn masked_load(&mut self, value: Value) {
        let Inst::Load(access, address) = self.function.inst(value) else { return };
        let bytes = self.function.kind(value).bytes();
        let neighbours = self.shape(*address) == Shape::Line(bytes.into()) && access.bytes == bytes;
        if !neighbours || access.memory != Memory::Device {
            self.load_each_running(value);
            return;
        }
        if let Some(away) = self.lanes.as_ref().filter(|lanes| lanes.gives_up).map(Lanes::away) {
            // The first group asks for all of them.
            if self.place(0) == 0 {
                self.lies_in_a_page(*access, *address, self.lane_count());
                self.sink().i32_eqz().br_if(away);
            }
            self.vector_load(value, *access, *address);
            return;
        }
        let [one, other] = [0; 2].map(|_| self.code.local(ValType::V128));
        let locals = if bytes == 8 { vec![one, other] } else { vec![one] };
        self.lies_in_a_page(*access, *address, LANES);
        if self.group_count() > 1 {
            self.any_of_group_runs();
            self.sink().i32_const(0).i32_ne().i32_and();
        }
        self.sink().if_(BlockType::Empty);
        self.vector_load(value, *access, *address);
        self.set(&locals);
        self.sink().else_();
        self.load_each_running(value);
        self.set(&locals);
        self.sink().end();
        for local in &locals {
            self.sink().local_get(*local);
        }
        [one, other].into_iter().for_each(|local| self.code.release(local));
    }

    /// Writes what is on the stack to locals, the last of them first.
    fn set(&mut self, locals: &[u32]) {
        for local in locals.iter().rev() {
            self.sink().local_set(*local);
        }
    }

    /// Puts on the stack whether the elements of so many lanes, from the present group's first on, lie in one page.
    fn lies_in_a_page(&mut self, access: Access, address: Value, lanes: u32) {
        let first = access.offset.wrapping_add(u64::from(self.place(0) * access.bytes));
        self.base(address);
        let mut sink = self.sink();
        sink.i32_wrap_i64().i32_const(first as i32).i32_add().i32_const(LEAST_PAGE - 1).i32_and();
        sink.i32_const(LEAST_PAGE - (lanes * access.bytes) as i32).i32_le_u();
    }

    /// Puts the lanes of the present group that run on the stack, as the bits of a number that is 0 if there are none.
    fn any_of_group_runs(&mut self) {
        let running = self.lanes.as_ref().and_then(|lanes| lanes.running).unwrap_or(0);
        let group = self.place(0);
        self.sink().local_get(running).i32_const(((1 << LANES) - 1) << group).i32_and();
    }

    /// Each lane that runs reads memory; the others get 0.
    fn load_each_running(&mut self, value: Value) {
        let kind = self.function.kind(value);
        let (one, both) = (self.code.local(ValType::V128), self.code.local(ValType::V128));
        let vectors = [one, both];
        let scalar = self.code.local(wasm_type(kind));
        let count = if kind.bytes() == 8 { 2 } else { 1 };
        for vector in &vectors[..count] {
            self.sink().v128_const(0).local_set(*vector);
        }
        self.each_running(|unit, lane| {
            unit.expression(value);
            let (vector, place) =
                if count == 2 { (vectors[lane as usize / 2], lane as u8 % 2) } else { (one, lane as u8) };
            let mut sink = unit.sink();
            sink.local_set(scalar).local_get(vector).local_get(scalar);
            match kind {
                Kind::I32 => sink.i32x4_replace_lane(place),
                Kind::F32 => sink.f32x4_extract_lane(0).f32x4_replace_lane(place),
                Kind::I64 => sink.i64x2_replace_lane(place),
                Kind::F64 => sink.f64x2_replace_lane(place),
            };
            sink.local_set(vector);
        });
        for vector in &vectors[..count] {
            self.sink().local_get(*vector);
        }
        vectors.into_iter().chain([scalar]).for_each(|local| self.code.release(local));
    }
}
