//! One operation of the intermediate form as WebAssembly.

use wasm_encoder::{MemArg, ValType};

use super::unit::{DEVICE, PRIVATE, Unit, wasm_type};
use crate::translate::ir::{Access, Binary, Inst, Kind, Memory, Rmw, Unary, Value};

/// PTX's NaN of 32 bits, and of 64.
const NAN_32: u32 = 0x7fff_ffff;
const NAN_64: u64 = 0xfff8_0000_0000_0000;

impl Unit<'_> {
    /// Puts the result of an instruction on the stack, if it has one.
    pub fn expression(&mut self, value: Value) {
        let definition = &self.function.values[value.0 as usize];
        let kind = definition.kind.unwrap_or(Kind::I32);
        match &definition.inst {
            Inst::Const(_) | Inst::Argument(_) | Inst::BlockParameter | Inst::Input(_) => self.value(value),
            Inst::Unary(op, a) => self.unary(*op, *a),
            Inst::Binary(op, a, b) => self.binary(*op, *a, *b),
            Inst::Fma(a, b, c) => self.fma(kind, [*a, *b, *c]),
            Inst::Select(condition, yes, no) => {
                self.value(*yes);
                self.value(*no);
                self.value(*condition);
                match wasm_type(kind) {
                    ValType::V128 => self.sink().typed_select(ValType::V128),
                    _ => self.sink().select(),
                };
            }
            Inst::Load(access, address) => {
                self.value(*address);
                self.index(*access);
                self.code.mark(definition.position);
                self.load(*access, kind);
            }
            Inst::Store(access, address, stored) => {
                self.value(*address);
                self.index(*access);
                self.value(*stored);
                self.code.mark(definition.position);
                self.store(*access, self.function.kind(*stored));
            }
            Inst::Rmw(op, access, address, operand) => {
                self.value(*address);
                self.index(*access);
                self.value(*operand);
                self.code.mark(definition.position);
                let at = memarg(*access);
                let mut sink = self.sink();
                match (op, kind) {
                    (Rmw::Add, Kind::I64) => sink.i64_atomic_rmw_add(at),
                    (Rmw::And, Kind::I64) => sink.i64_atomic_rmw_and(at),
                    (Rmw::Or, Kind::I64) => sink.i64_atomic_rmw_or(at),
                    (Rmw::Xor, Kind::I64) => sink.i64_atomic_rmw_xor(at),
                    (Rmw::Add, _) => sink.i32_atomic_rmw_add(at),
                    (Rmw::And, _) => sink.i32_atomic_rmw_and(at),
                    (Rmw::Or, _) => sink.i32_atomic_rmw_or(at),
                    (Rmw::Xor, _) => sink.i32_atomic_rmw_xor(at),
                };
            }
            Inst::CompareExchange(access, address, expected, new) => {
                self.value(*address);
                self.index(*access);
                self.value(*expected);
                self.value(*new);
                self.code.mark(definition.position);
                let at = memarg(*access);
                match kind {
                    Kind::I64 => self.sink().i64_atomic_rmw_cmpxchg(at),
                    _ => self.sink().i32_atomic_rmw_cmpxchg(at),
                };
            }
            Inst::Call(routine, arguments) => {
                arguments.iter().for_each(|argument| self.value(*argument));
                self.code.mark(definition.position);
                let index = self.parts.first_routine + routine.0;
                self.sink().call(index);
            }
            Inst::CallIndirect(target, arguments) => {
                arguments.iter().for_each(|argument| self.value(*argument));
                // Behind the regions, whose type no such call has: a number that comes round to one of them traps.
                let first = self.parts.regions.regions.len() as i32;
                self.value(*target);
                self.sink().i32_const(first).i32_add();
                self.code.mark(definition.position);
                let ty = self.parts.indirect_types.get(&arguments.len()).copied().unwrap_or(0);
                self.sink().call_indirect(0, ty);
            }
        }
    }

    /// Makes of the address on the stack an index of the memory that is accessed. Where that has 32 bits, one that needs more becomes the last of all, which is
    /// never there. For all accesses at one address that is computed once.
    pub fn index(&mut self, access: Access) {
        if access.memory != Memory::Device || self.parts.wide {
            return;
        }
        let address = self.code.local(ValType::I64);
        let mut sink = self.code.sink();
        sink.local_tee(address).i32_wrap_i64().i32_const(-1);
        sink.local_get(address).i64_const(32).i64_shr_u().i64_eqz().select();
        self.code.release(address);
    }

    /// Reads from the address on the stack.
    pub fn load(&mut self, access: Access, kind: Kind) {
        let at = memarg(access);
        let mut sink = self.code.sink();
        match (kind, access.bytes, access.signed, access.atomic) {
            (Kind::F32, ..) => sink.v128_load32_zero(at),
            (Kind::F64, ..) => sink.f64_load(at),
            (Kind::I64, 1, _, true) => sink.i64_atomic_load8_u(at),
            (Kind::I64, 2, _, true) => sink.i64_atomic_load16_u(at),
            (Kind::I64, 4, _, true) => sink.i64_atomic_load32_u(at),
            (Kind::I64, _, _, true) => sink.i64_atomic_load(at),
            (Kind::I32, 1, _, true) => sink.i32_atomic_load8_u(at),
            (Kind::I32, 2, _, true) => sink.i32_atomic_load16_u(at),
            (Kind::I32, _, _, true) => sink.i32_atomic_load(at),
            (Kind::I64, 1, true, _) => sink.i64_load8_s(at),
            (Kind::I64, 1, false, _) => sink.i64_load8_u(at),
            (Kind::I64, 2, true, _) => sink.i64_load16_s(at),
            (Kind::I64, 2, false, _) => sink.i64_load16_u(at),
            (Kind::I64, 4, true, _) => sink.i64_load32_s(at),
            (Kind::I64, 4, false, _) => sink.i64_load32_u(at),
            (Kind::I64, ..) => sink.i64_load(at),
            (Kind::I32, 1, true, _) => sink.i32_load8_s(at),
            (Kind::I32, 1, false, _) => sink.i32_load8_u(at),
            (Kind::I32, 2, true, _) => sink.i32_load16_s(at),
            (Kind::I32, 2, false, _) => sink.i32_load16_u(at),
            (Kind::I32, ..) => sink.i32_load(at),
        };
    }

    /// Writes the value on the stack to the address below it.
    pub fn store(&mut self, access: Access, kind: Kind) {
        let at = memarg(access);
        let mut sink = self.code.sink();
        match (kind, access.bytes, access.atomic) {
            (Kind::F32, ..) => sink.f32x4_extract_lane(0).f32_store(at),
            (Kind::F64, ..) => sink.f64_store(at),
            (Kind::I64, 1, true) => sink.i64_atomic_store8(at),
            (Kind::I64, 2, true) => sink.i64_atomic_store16(at),
            (Kind::I64, 4, true) => sink.i64_atomic_store32(at),
            (Kind::I64, _, true) => sink.i64_atomic_store(at),
            (Kind::I32, 1, true) => sink.i32_atomic_store8(at),
            (Kind::I32, 2, true) => sink.i32_atomic_store16(at),
            (Kind::I32, _, true) => sink.i32_atomic_store(at),
            (Kind::I64, 1, _) => sink.i64_store8(at),
            (Kind::I64, 2, _) => sink.i64_store16(at),
            (Kind::I64, 4, _) => sink.i64_store32(at),
            (Kind::I64, ..) => sink.i64_store(at),
            (Kind::I32, 1, _) => sink.i32_store8(at),
            (Kind::I32, 2, _) => sink.i32_store16(at),
            (Kind::I32, ..) => sink.i32_store(at),
        };
    }

    fn fma(&mut self, kind: Kind, operands: [Value; 3]) {
        if kind == Kind::F32 {
            operands.into_iter().for_each(|operand| self.value(operand));
            self.sink().f32x4_relaxed_madd();
            return;
        }
        for operand in operands {
            self.value(operand);
            self.sink().f64x2_splat();
        }
        self.sink().f64x2_relaxed_madd().f64x2_extract_lane(0);
    }

    /// A value of `F32` as a scalar.
    fn scalar(&mut self, value: Value) {
        self.value(value);
        if self.function.kind(value) == Kind::F32 {
            self.sink().f32x4_extract_lane(0);
        }
    }

    /// One operand.
    pub fn unary(&mut self, op: Unary, a: Value) {
        let kind = self.function.kind(a);
        match (op, kind) {
            (Unary::Flush | Unary::Canonical | Unary::Saturate, Kind::F32) => return self.special_32(op, a),
            (Unary::Flush | Unary::Canonical | Unary::Saturate, _) => return self.special_64(op, a),
            (Unary::Reinterpret, Kind::F32) => {
                self.value(a);
                self.sink().i32x4_extract_lane(0);
                return;
            }
            (Unary::Promote | Unary::ToInteger { .. }, _) => self.scalar(a),
            _ => self.value(a),
        }
        let mut sink = self.code.sink();
        match (op, kind) {
            (Unary::Clz, Kind::I64) => sink.i64_clz(),
            (Unary::Clz, _) => sink.i32_clz(),
            (Unary::Popcnt, Kind::I64) => sink.i64_popcnt(),
            (Unary::Popcnt, _) => sink.i32_popcnt(),
            (Unary::IsZero, Kind::I64) => sink.i64_eqz(),
            (Unary::IsZero, _) => sink.i32_eqz(),
            (Unary::Extend8, _) => sink.i32_extend8_s(),
            (Unary::Extend16, _) => sink.i32_extend16_s(),
            (Unary::Wrap, _) => sink.i32_wrap_i64(),
            (Unary::Widen { signed: true }, _) => sink.i64_extend_i32_s(),
            (Unary::Widen { signed: false }, _) => sink.i64_extend_i32_u(),
            (Unary::Reinterpret, Kind::I32) => sink.i32x4_splat(),
            (Unary::Reinterpret, Kind::I64) => sink.f64_reinterpret_i64(),
            (Unary::Reinterpret, _) => sink.i64_reinterpret_f64(),
            (Unary::Promote, _) => sink.f64_promote_f32(),
            (Unary::Demote, _) => sink.f32_demote_f64().f32x4_splat(),
            (Unary::ToInteger { to: Kind::I64, signed: true }, Kind::F32) => sink.i64_trunc_sat_f32_s(),
            (Unary::ToInteger { to: Kind::I64, signed: false }, Kind::F32) => sink.i64_trunc_sat_f32_u(),
            (Unary::ToInteger { signed: true, .. }, Kind::F32) => sink.i32_trunc_sat_f32_s(),
            (Unary::ToInteger { signed: false, .. }, Kind::F32) => sink.i32_trunc_sat_f32_u(),
            (Unary::ToInteger { to: Kind::I64, signed: true }, _) => sink.i64_trunc_sat_f64_s(),
            (Unary::ToInteger { to: Kind::I64, signed: false }, _) => sink.i64_trunc_sat_f64_u(),
            (Unary::ToInteger { signed: true, .. }, _) => sink.i32_trunc_sat_f64_s(),
            (Unary::ToInteger { signed: false, .. }, _) => sink.i32_trunc_sat_f64_u(),
            (Unary::ToFloat { to: Kind::F32, signed: true }, Kind::I32) => sink.f32_convert_i32_s().f32x4_splat(),
            (Unary::ToFloat { to: Kind::F32, signed: false }, Kind::I32) => sink.f32_convert_i32_u().f32x4_splat(),
            (Unary::ToFloat { to: Kind::F32, signed: true }, _) => sink.f32_convert_i64_s().f32x4_splat(),
            (Unary::ToFloat { to: Kind::F32, signed: false }, _) => sink.f32_convert_i64_u().f32x4_splat(),
            (Unary::ToFloat { signed: true, .. }, Kind::I32) => sink.f64_convert_i32_s(),
            (Unary::ToFloat { signed: false, .. }, Kind::I32) => sink.f64_convert_i32_u(),
            (Unary::ToFloat { signed: true, .. }, _) => sink.f64_convert_i64_s(),
            (Unary::ToFloat { signed: false, .. }, _) => sink.f64_convert_i64_u(),
            (Unary::Neg, Kind::F32) => sink.f32x4_neg(),
            (Unary::Neg, _) => sink.f64_neg(),
            (Unary::Abs, Kind::F32) => sink.f32x4_abs(),
            (Unary::Abs, _) => sink.f64_abs(),
            (Unary::Sqrt, Kind::F32) => sink.f32x4_sqrt(),
            (Unary::Sqrt, _) => sink.f64_sqrt(),
            (Unary::Ceil, Kind::F32) => sink.f32x4_ceil(),
            (Unary::Ceil, _) => sink.f64_ceil(),
            (Unary::Floor, Kind::F32) => sink.f32x4_floor(),
            (Unary::Floor, _) => sink.f64_floor(),
            (Unary::Trunc, Kind::F32) => sink.f32x4_trunc(),
            (Unary::Trunc, _) => sink.f64_trunc(),
            (Unary::Nearest, Kind::F32) => sink.f32x4_nearest(),
            (Unary::Nearest, _) => sink.f64_nearest(),
            (Unary::Flush | Unary::Canonical | Unary::Saturate, _) => &mut sink,
        };
    }

    fn splat(&mut self, bits: u32) {
        let lane = u128::from(bits);
        self.sink().v128_const((lane | lane << 32 | lane << 64 | lane << 96) as i128);
    }

    fn special_32(&mut self, op: Unary, a: Value) {
        match op {
            Unary::Flush => {
                // a & !(|a| < smallest normal & !sign)
                self.value(a);
                self.value(a);
                self.sink().f32x4_abs();
                self.splat(f32::MIN_POSITIVE.to_bits());
                self.sink().f32x4_lt();
                self.splat(0x7fff_ffff);
                self.sink().v128_and().v128_andnot();
            }
            Unary::Canonical => {
                self.value(a);
                self.splat(NAN_32);
                self.value(a);
                self.value(a);
                self.sink().f32x4_eq().v128_bitselect();
            }
            _ => {
                // The pseudo-minimum and -maximum give their first operand where the second is NaN or equal.
                self.splat(1_f32.to_bits());
                self.splat(0);
                self.value(a);
                self.sink().f32x4_pmax().f32x4_pmin();
            }
        }
    }

    fn special_64(&mut self, op: Unary, a: Value) {
        match op {
            Unary::Flush => {
                self.value(a);
                self.sink().f64_const(0.0.into());
                self.value(a);
                self.sink().f64_copysign();
                self.sink().f64_const(f64::MIN_POSITIVE.into());
                self.value(a);
                self.sink().f64_abs().f64_le().i32_const(1);
                self.value(a);
                self.value(a);
                self.sink().f64_eq().select().select();
            }
            Unary::Canonical => {
                self.value(a);
                self.sink().f64_const(f64::from_bits(NAN_64).into());
                self.value(a);
                self.value(a);
                self.sink().f64_eq().select();
            }
            _ => {
                self.value(a);
                self.sink().f64_const(0.0.into());
                self.sink().f64_const(0.0.into());
                self.value(a);
                self.sink().f64_lt().select();
                self.sink().f64_const(1.0.into()).f64_min();
            }
        }
    }

    /// Two operands.
    pub fn binary(&mut self, op: Binary, a: Value, b: Value) {
        let kind = self.function.kind(a);
        match (op, kind) {
            (Binary::MinNumber | Binary::MaxNumber, Kind::F32) => {
                return self.extreme_32(op == Binary::MaxNumber, a, b);
            }
            (Binary::MinNumber | Binary::MaxNumber, _) => return self.extreme_64(op == Binary::MaxNumber, a, b),
            (Binary::Min | Binary::Max, Kind::F32) if self.known_number(b) => {
                // The pseudo-minimum and -maximum give their first operand where it is NaN; a known number is no 0 whose sign would matter.
                self.value(a);
                self.value(b);
                let mut sink = self.sink();
                if op == Binary::Min {
                    sink.f32x4_pmin()
                } else {
                    sink.f32x4_pmax()
                };
                return;
            }
            (Binary::Copysign, Kind::F32) => {
                self.value(b);
                self.value(a);
                self.splat(0x8000_0000);
                self.sink().v128_bitselect();
                return;
            }
            (op, Kind::F32) if op.compares() => {
                self.scalar(a);
                self.scalar(b);
            }
            _ => {
                self.value(a);
                self.value(b);
            }
        }
        match kind {
            Kind::I32 => self.binary_i32(op),
            Kind::I64 => self.binary_i64(op),
            Kind::F32 => self.binary_f32(op),
            Kind::F64 => self.binary_f64(op),
        }
    }

    fn binary_i32(&mut self, op: Binary) {
        let mut sink = self.code.sink();
        match op {
            Binary::Add => sink.i32_add(),
            Binary::Sub => sink.i32_sub(),
            Binary::Mul => sink.i32_mul(),
            Binary::DivS => sink.i32_div_s(),
            Binary::DivU => sink.i32_div_u(),
            Binary::RemS => sink.i32_rem_s(),
            Binary::RemU => sink.i32_rem_u(),
            Binary::And => sink.i32_and(),
            Binary::Or => sink.i32_or(),
            Binary::Xor => sink.i32_xor(),
            Binary::Shl => sink.i32_shl(),
            Binary::ShrS => sink.i32_shr_s(),
            Binary::ShrU => sink.i32_shr_u(),
            Binary::Rotl => sink.i32_rotl(),
            Binary::Ne => sink.i32_ne(),
            Binary::LtS => sink.i32_lt_s(),
            Binary::LtU => sink.i32_lt_u(),
            Binary::LeS => sink.i32_le_s(),
            Binary::LeU => sink.i32_le_u(),
            _ => sink.i32_eq(),
        };
    }

    fn binary_i64(&mut self, op: Binary) {
        let mut sink = self.code.sink();
        match op {
            Binary::Add => sink.i64_add(),
            Binary::Sub => sink.i64_sub(),
            Binary::Mul => sink.i64_mul(),
            Binary::DivS => sink.i64_div_s(),
            Binary::DivU => sink.i64_div_u(),
            Binary::RemS => sink.i64_rem_s(),
            Binary::RemU => sink.i64_rem_u(),
            Binary::And => sink.i64_and(),
            Binary::Or => sink.i64_or(),
            Binary::Xor => sink.i64_xor(),
            Binary::Shl => sink.i64_shl(),
            Binary::ShrS => sink.i64_shr_s(),
            Binary::ShrU => sink.i64_shr_u(),
            Binary::Rotl => sink.i64_rotl(),
            Binary::Ne => sink.i64_ne(),
            Binary::LtS => sink.i64_lt_s(),
            Binary::LtU => sink.i64_lt_u(),
            Binary::LeS => sink.i64_le_s(),
            Binary::LeU => sink.i64_le_u(),
            _ => sink.i64_eq(),
        };
    }

    fn binary_f32(&mut self, op: Binary) {
        let mut sink = self.code.sink();
        match op {
            Binary::Add => sink.f32x4_add(),
            Binary::Sub => sink.f32x4_sub(),
            Binary::Mul => sink.f32x4_mul(),
            Binary::Div => sink.f32x4_div(),
            Binary::Min => sink.f32x4_min(),
            Binary::Max => sink.f32x4_max(),
            Binary::Ne => sink.f32_ne(),
            Binary::Lt => sink.f32_lt(),
            Binary::Le => sink.f32_le(),
            _ => sink.f32_eq(),
        };
    }

    fn binary_f64(&mut self, op: Binary) {
        let mut sink = self.code.sink();
        match op {
            Binary::Add => sink.f64_add(),
            Binary::Sub => sink.f64_sub(),
            Binary::Mul => sink.f64_mul(),
            Binary::Div => sink.f64_div(),
            Binary::Min => sink.f64_min(),
            Binary::Max => sink.f64_max(),
            Binary::Copysign => sink.f64_copysign(),
            Binary::Ne => sink.f64_ne(),
            Binary::Lt => sink.f64_lt(),
            Binary::Le => sink.f64_le(),
            _ => sink.f64_eq(),
        };
    }

    /// Whether a value is a number that is known, and not 0.
    fn known_number(&self, value: Value) -> bool {
        match self.function.inst(value) {
            Inst::Const(bits) => {
                let number = f32::from_bits(*bits as u32);
                !number.is_nan() && number != 0.0
            }
            _ => false,
        }
    }

    /// The pseudo-minimum of (b, a) is `b` where one is NaN: right but where `b` is. Equal numbers differ at most in the sign of 0.
    fn extreme_32(&mut self, larger: bool, a: Value, b: Value) {
        let (a, b) = if self.known_number(a) { (b, a) } else { (a, b) };
        let known = self.known_number(b);
        if !known {
            self.value(a);
            self.value(a);
            self.value(b);
            let mut sink = self.sink();
            if larger {
                sink.v128_and()
            } else {
                sink.v128_or()
            };
        }
        self.value(b);
        self.value(a);
        let mut sink = self.sink();
        if larger {
            sink.f32x4_pmax()
        } else {
            sink.f32x4_pmin()
        };
        if !known {
            self.value(a);
            self.value(b);
            self.sink().f32x4_eq().v128_bitselect();
            self.value(b);
            self.value(b);
            self.sink().f32x4_ne().v128_bitselect();
        }
    }

    fn extreme_64(&mut self, larger: bool, a: Value, b: Value) {
        self.value(a);
        self.value(b);
        let mut sink = self.sink();
        if larger {
            sink.f64_max()
        } else {
            sink.f64_min()
        };
        self.value(a);
        self.value(b);
        self.value(b);
        self.sink().f64_eq().select();
        self.value(b);
        self.value(a);
        self.value(a);
        self.sink().f64_eq().select();
    }
}

/// The immediate of a memory instruction.
pub fn memarg(access: Access) -> MemArg {
    MemArg {
        offset: access.offset,
        align: access.bytes.trailing_zeros(),
        memory_index: if access.memory == Memory::Device { DEVICE } else { PRIVATE },
    }
}
