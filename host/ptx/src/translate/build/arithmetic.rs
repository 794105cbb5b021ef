//! The builder's vocabulary: one short method for each operation of the intermediate form, with the folding that keeps its output small.

use super::ssa::Builder;
use crate::translate::ir::{Access, Binary, Inst, Kind, Memory, Routine, Unary, Value};

impl Builder {
    /// A 32-bit integer.
    pub fn i32(&mut self, bits: u32) -> Value {
        self.constant(Kind::I32, u64::from(bits))
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, bits: u64) -> Value {
        self.constant(Kind::I64, bits)
    }

    /// A 64-bit float.
    pub fn f64(&mut self, number: f64) -> Value {
        self.constant(Kind::F64, number.to_bits())
    }

    /// An integer of this kind.
    pub fn int(&mut self, kind: Kind, bits: u64) -> Value {
        self.constant(kind, bits)
    }

    /// One operand.
    pub fn unary(&mut self, op: Unary, a: Value) -> Value {
        let kind = match (op, self.kind(a)) {
            (Unary::IsZero | Unary::Wrap, _) => Kind::I32,
            (Unary::Widen { .. }, _) => Kind::I64,
            (Unary::Reinterpret, Kind::I32) => Kind::F32,
            (Unary::Reinterpret, Kind::I64) => Kind::F64,
            (Unary::Reinterpret, Kind::F32) => Kind::I32,
            (Unary::Reinterpret, Kind::F64) => Kind::I64,
            (Unary::Promote, _) => Kind::F64,
            (Unary::Demote, _) => Kind::F32,
            (Unary::ToInteger { to, .. } | Unary::ToFloat { to, .. }, _) => to,
            (_, kind) => kind,
        };
        if let Some(bits) = self.known(a).and_then(|bits| fold_unary(op, bits)) {
            return self.constant(kind, bits);
        }
        if let (Unary::Reinterpret, Inst::Unary(Unary::Reinterpret, before)) = (op, self.inst(a)) {
            return *before;
        }
        self.push(Inst::Unary(op, a), Some(kind))
    }

    /// Two operands.
    pub fn binary(&mut self, op: Binary, a: Value, b: Value) -> Value {
        let kind = self.kind(a);
        if !kind.is_float() {
            let (left, right) = (self.known(a), self.known(b));
            if let (Some(left), Some(right)) = (left, right)
                && let Some(bits) = fold_binary(op, kind, left, right)
            {
                return self.constant(if op.compares() { Kind::I32 } else { kind }, bits);
            }
            let identity = matches!(
                op,
                Binary::Add | Binary::Sub | Binary::Or | Binary::Xor | Binary::Shl | Binary::ShrS | Binary::ShrU
            );
            if identity && right == Some(0) {
                return a;
            }
            if matches!(op, Binary::Add | Binary::Or | Binary::Xor) && left == Some(0) {
                return b;
            }
            if op == Binary::Mul
                && let Some(factor) = right.filter(|factor| factor.is_power_of_two())
            {
                let shift = self.constant(kind, u64::from(factor.trailing_zeros()));
                return self.binary(Binary::Shl, a, shift);
            }
        }
        self.push(Inst::Binary(op, a, b), Some(if op.compares() { Kind::I32 } else { kind }))
    }

    /// `yes` where the condition is not 0, else `no`.
    pub fn select(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        match self.known(condition) {
            Some(0) => no,
            Some(_) => yes,
            None if yes == no => yes,
            None => {
                let kind = self.kind(yes);
                self.push(Inst::Select(condition, yes, no), Some(kind))
            }
        }
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let kind = self.kind(a);
        self.push(Inst::Fma(a, b, c), Some(kind))
    }

    /// Calls a function that gives something.
    pub fn call(&mut self, routine: Routine, arguments: Vec<Value>, result: Kind) -> Value {
        self.push(Inst::Call(routine, arguments), Some(result))
    }

    /// Reads the private memory.
    pub fn load_private(&mut self, address: Value, offset: u64, kind: Kind, bytes: u32) -> Value {
        self.push(Inst::Load(private(offset, bytes), address), Some(kind))
    }

    /// Writes the private memory.
    pub fn store_private(&mut self, address: Value, offset: u64, value: Value, bytes: u32) {
        self.push(Inst::Store(private(offset, bytes), address, value), None);
    }

    /// The same bits as another kind of the same size.
    pub fn reinterpret(&mut self, value: Value, kind: Kind) -> Value {
        if self.kind(value) == kind { value } else { self.unary(Unary::Reinterpret, value) }
    }

    /// The result of float arithmetic, with PTX's NaN if asked for.
    pub fn canonical(&mut self, value: Value) -> Value {
        if self.canonical { self.unary(Unary::Canonical, value) } else { value }
    }
}

/// Names for the operations that occur most.
macro_rules! operations {
    ($($name:ident $op:ident)*) => {
        impl Builder {
            $(#[doc = concat!("`", stringify!($op), "`.")]
            pub fn $name(&mut self, a: Value, b: Value) -> Value {
                self.binary(Binary::$op, a, b)
            })*
        }
    };
}

operations! {
    add Add sub Sub mul Mul div Div and And or Or xor Xor shl Shl shr_s ShrS shr_u ShrU
    eq Eq ne Ne lt_s LtS lt_u LtU le_s LeS le_u LeU lt Lt le Le
}

fn private(offset: u64, bytes: u32) -> Access {
    Access { memory: Memory::Private, bytes, signed: false, offset, atomic: false, exclusive: false, constant: false }
}

fn fold_unary(op: Unary, bits: u64) -> Option<u64> {
    Some(match op {
        Unary::IsZero => u64::from(bits == 0),
        Unary::Wrap => bits & 0xffff_ffff,
        Unary::Widen { signed: true } => bits as u32 as i32 as i64 as u64,
        Unary::Widen { signed: false } | Unary::Reinterpret => bits,
        Unary::Extend8 => bits as i8 as i64 as u64,
        Unary::Extend16 => bits as i16 as i64 as u64,
        _ => return None,
    })
}

fn fold_binary(op: Binary, kind: Kind, a: u64, b: u64) -> Option<u64> {
    let width = kind.bytes() * 8;
    let signed = |bits: u64| if width == 32 { i64::from(bits as u32 as i32) } else { bits as i64 };
    Some(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl if b < u64::from(width) => a << b,
        Binary::ShrU if b < u64::from(width) => a >> b,
        Binary::ShrS if b < u64::from(width) => (signed(a) >> b) as u64,
        Binary::Eq => u64::from(a == b),
        Binary::Ne => u64::from(a != b),
        Binary::LtU => u64::from(a < b),
        Binary::LeU => u64::from(a <= b),
        Binary::LtS => u64::from(signed(a) < signed(b)),
        Binary::LeS => u64::from(signed(a) <= signed(b)),
        _ => return None,
    })
}
