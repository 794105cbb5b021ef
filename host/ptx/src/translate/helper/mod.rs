//! Functions that stand for instructions WebAssembly lacks, written with the builder and lowered like everything else. A kernel gets those that it uses.

mod functions;
mod integers;
mod memory;
mod rounding;

pub use functions::exp2;
pub use rounding::{gives_integers, integer_below, sum_32};

use super::build::ssa::Builder;
use super::ir::Kind;

/// In which direction a result is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the nearest, ties to even.
    Nearest,
    /// To the nearest, ties away from 0.
    Away,
    /// Towards 0.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

/// A floating-point format narrower than 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// 5 bits of exponent, 10 of fraction.
    F16,
    /// 8 and 7.
    Bf16,
    /// 8 and 23.
    F32,
    /// 8 and 10, without the zeros that follow in an `f32`.
    Tf32,
}

/// A function that a kernel may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Helper {
    /// The upper half of a product of 64-bit integers.
    MulHigh {
        /// Whether they are signed.
        signed: bool,
    },
    /// The bits from the other end.
    Reverse {
        /// 64 bits, else 32.
        wide: bool,
    },
    /// `fns`.
    FindNthSet,
    /// An atomic minimum or maximum; gives the old value.
    AtomicExtreme {
        /// The maximum.
        larger: bool,
        /// Of signed integers.
        signed: bool,
        /// Of 64 bits.
        wide: bool,
    },
    /// So many bytes to an address from another, of which the last are not given and become 0; gives how many it copied.
    CopyPart,
    /// The bits of an `f16` to `f32`.
    Widen,
    /// An `f64` to the bits of a narrower format.
    Round(Format, Direction),
    /// A sum of `f64`, rounded to odd: inexact results have their last bit set, so that another rounding to fewer bits comes out as if it were the only one.
    AddOdd,
    /// A quotient, likewise.
    DivOdd,
    /// A square root, likewise.
    SqrtOdd,
    /// A sum of `f64`, rounded in a direction.
    Add64(Direction),
    /// A product.
    Mul64(Direction),
    /// A quotient.
    Div64(Direction),
    /// A square root.
    Sqrt64(Direction),
    /// A product and sum.
    Fma64(Direction),
    /// The sine of an `f32`, or the cosine.
    Sine {
        /// By a quarter of a turn: the cosine.
        shifted: bool,
    },
    /// The logarithm to the base 2 of an `f32`.
    Log2,
    /// The hyperbolic tangent of an `f32`.
    Tanh,
}

impl Helper {
    /// The kinds of its arguments and of what it gives.
    pub fn signature(self) -> (Vec<Kind>, Kind) {
        let int = |wide: bool| if wide { Kind::I64 } else { Kind::I32 };
        match self {
            Self::MulHigh { .. } => (vec![Kind::I64; 2], Kind::I64),
            Self::Reverse { wide } => (vec![int(wide)], int(wide)),
            Self::FindNthSet => (vec![Kind::I32; 3], Kind::I32),
            Self::AtomicExtreme { wide, .. } => (vec![Kind::I64, int(wide)], int(wide)),
            Self::CopyPart => (vec![Kind::I64, Kind::I64, Kind::I32, Kind::I32], Kind::I32),
            Self::Widen => (vec![Kind::I32], Kind::F32),
            Self::Round(..) => (vec![Kind::F64], Kind::I32),
            Self::AddOdd | Self::DivOdd | Self::Add64(_) | Self::Mul64(_) | Self::Div64(_) => {
                (vec![Kind::F64; 2], Kind::F64)
            }
            Self::SqrtOdd | Self::Sqrt64(_) => (vec![Kind::F64], Kind::F64),
            Self::Fma64(_) => (vec![Kind::F64; 3], Kind::F64),
            Self::Sine { .. } | Self::Log2 | Self::Tanh => (vec![Kind::F32], Kind::F32),
        }
    }

    /// Whether it does nothing but compute.
    pub fn pure(self) -> bool {
        !matches!(self, Self::AtomicExtreme { .. } | Self::CopyPart)
    }

    /// Writes it.
    pub fn build(self, b: &mut Builder) {
        let result = match self {
            Self::MulHigh { signed } => integers::mul_high(b, signed),
            Self::Reverse { wide } => integers::reverse(b, wide),
            Self::FindNthSet => integers::find_nth_set(b),
            Self::AtomicExtreme { larger, signed, wide } => integers::atomic_extreme(b, larger, signed, wide),
            Self::CopyPart => memory::copy_part(b),
            Self::Widen => rounding::widen(b),
            Self::Round(format, direction) => rounding::round(b, format, direction),
            Self::AddOdd => rounding::add_odd(b),
            Self::DivOdd => rounding::div_odd(b),
            Self::SqrtOdd => rounding::sqrt_odd(b),
            Self::Add64(direction) => rounding::add(b, direction),
            Self::Mul64(direction) => rounding::mul(b, direction),
            Self::Div64(direction) => rounding::div(b, direction),
            Self::Sqrt64(direction) => rounding::sqrt(b, direction),
            Self::Fma64(direction) => rounding::fma(b, direction),
            Self::Sine { shifted } => functions::sine(b, shifted),
            Self::Log2 => functions::log2(b),
            Self::Tanh => functions::tanh(b),
        };
        b.end(super::ir::Terminator::Return(Some(result)));
    }
}
