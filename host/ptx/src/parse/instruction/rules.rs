//! PTX's rules of types: which registers an operand of a type may be, which bits a literal has in it, which machine registers there are.

use crate::module::{Axis, Comparison, Special, Type};
use crate::parse::number::Number;

/// How exactly a register has to match the type of its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The same width, as nearly everywhere.
    Exact,
    /// As wide or wider: `ld`, `st`, `cvt`.
    Wide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Pred,
    Bits,
    Integer,
    Float,
}

fn class(ty: Type) -> Class {
    match ty {
        Type::Pred => Class::Pred,
        Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128 => Class::Bits,
        _ if ty.is_float() => Class::Float,
        _ => Class::Integer,
    }
}

/// Whether a register may be an operand of type `ty`.
pub(super) fn fits(register: Type, ty: Type, fit: Fit) -> bool {
    if register == ty {
        return true;
    }
    let (same, wider) = (register.bits() == ty.bits(), register.bits() > ty.bits() && fit == Fit::Wide);
    match (class(register), class(ty)) {
        (Class::Pred, _) | (_, Class::Pred) | (Class::Integer, Class::Float) | (Class::Float, Class::Integer) => false,
        (Class::Float, Class::Float) => false,
        (Class::Float, Class::Bits) => same,
        (Class::Bits | Class::Integer, _) => same || wider,
    }
}

/// The bits of a literal as an operand of type `ty`: integers are cut to its width.
pub(in crate::parse) fn immediate(number: Number, ty: Type) -> Result<u64, &'static str> {
    let cut = |value: u64| if ty.bits() >= 64 { value } else { value & ((1 << ty.bits()) - 1) };
    match (number, ty) {
        (Number::Integer(value), Type::Pred) => Ok(u64::from(value != 0)),
        (Number::Integer(_), Type::F32) => {
            Err("an `.f32` is written with a decimal point or as its bits, `0f3F800000`")
        }
        (Number::Integer(_), Type::F64) => {
            Err("an `.f64` is written with a decimal point or as its bits, `0d3FF0000000000000`")
        }
        (Number::Integer(value), _) => Ok(cut(value)),
        (Number::Single(bits), Type::F32 | Type::B32) => Ok(u64::from(bits)),
        (Number::Single(bits), Type::F64) => Ok(f64::from(f32::from_bits(bits)).to_bits()),
        (Number::Double(bits), Type::F64 | Type::B64) => Ok(bits),
        (Number::Double(bits), Type::F32 | Type::B32) => Ok(u64::from((f64::from_bits(bits) as f32).to_bits())),
        (_, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2) => {
            Err("a 16-bit float is written as its bits, `0x3C00`")
        }
        _ => Err("a floating-point number has no meaning for this type"),
    }
}

/// The special register of this name and component, and its type.
pub(super) fn special(name: &str, component: Option<&str>) -> Option<(Special, Type)> {
    let axis = match component {
        None => None,
        Some("x") => Some(Axis::X),
        Some("y") => Some(Axis::Y),
        Some("z") => Some(Axis::Z),
        Some(_) => return None,
    };
    if let Some(axis) = axis {
        let special = match name {
            "%tid" => Special::Thread(axis),
            "%ntid" => Special::BlockSize(axis),
            "%ctaid" => Special::Block(axis),
            "%nctaid" => Special::GridSize(axis),
            _ => return None,
        };
        return Some((special, Type::U32));
    }
    let special = match name {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::WarpCount,
        "%smid" => Special::Processor,
        "%nsmid" => Special::ProcessorCount,
        "%gridid" => return Some((Special::Grid, Type::U64)),
        "%lanemask_eq" => Special::LaneMask(Comparison::Eq),
        "%lanemask_lt" => Special::LaneMask(Comparison::Lt),
        "%lanemask_le" => Special::LaneMask(Comparison::Le),
        "%lanemask_gt" => Special::LaneMask(Comparison::Gt),
        "%lanemask_ge" => Special::LaneMask(Comparison::Ge),
        "%clock64" | "%globaltimer" => return Some((Special::Clock, Type::U64)),
        "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => Special::Clock,
        "%dynamic_smem_size" => Special::DynamicSharedBytes,
        "%total_smem_size" => Special::TotalSharedBytes,
        _ => return None,
    };
    Some((special, Type::U32))
}
