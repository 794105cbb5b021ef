//! Floating-point numbers as sign, integer and power of two, and the one function that rounds them. Every format and every rounding goes the
//! same way, so that nothing here resembles what the translation does.

use std::cmp::Ordering;

use steadfast_ptx::module::{Rounding, Type};

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// What arithmetic makes where the result is no number.
    pub(crate) nan: u64,
}

const F16: Format = Format { exponent_bits: 5, fraction_bits: 10, nan: 0x7fff };
const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7, nan: 0x7fff };
const F32: Format = Format { exponent_bits: 8, fraction_bits: 23, nan: 0x7fff_ffff };
const TF32: Format = Format { exponent_bits: 8, fraction_bits: 10, nan: 0x3_ffff };
const F64: Format = Format { exponent_bits: 11, fraction_bits: 52, nan: 0xfff8_0000_0000_0000 };

impl Format {
    /// Of a type of one float, or of the halves of a packed one.
    pub(crate) fn of(ty: Type) -> Self {
        match ty {
            Type::F16 | Type::F16x2 => F16,
            Type::Bf16 | Type::Bf16x2 => BF16,
            Type::F32 => F32,
            Type::Tf32 => TF32,
            Type::F64 => F64,
            other => unreachable!("{other:?} is no float"),
        }
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The weight of the last bit of the smallest numbers, as a power of two.
    fn lowest(self) -> i32 {
        1 - self.bias() - self.fraction_bits as i32
    }

    pub(crate) fn sign(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    pub(crate) fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    pub(crate) fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction_bits
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & !self.sign();
        magnitude != 0 && magnitude < 1 << self.fraction_bits
    }

    /// A denormal number as the zero of its sign.
    pub(crate) fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative { self.sign() | magnitude } else { magnitude }
    }

    pub(crate) fn decode(self, bits: u64) -> Number {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & !self.sign();
        match magnitude.cmp(&self.infinity()) {
            Ordering::Greater => return Number::Nan,
            Ordering::Equal => return Number::Infinite { negative },
            Ordering::Less => {}
        }
        let (field, fraction) = (magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1));
        let (mantissa, exponent) = match field {
            0 => (fraction, self.lowest()),
            field => (fraction | 1 << self.fraction_bits, self.lowest() + field as i32 - 1),
        };
        Number::Finite(Exact { negative, mantissa: mantissa.into(), exponent, more: false })
    }

    pub(crate) fn encode(self, number: Number, rounding: Rounding) -> u64 {
        match number {
            Number::Nan => self.nan,
            Number::Infinite { negative } => self.signed(negative, self.infinity()),
            Number::Finite(exact) => self.round(exact, rounding),
        }
    }

    fn round(self, exact: Exact, rounding: Rounding) -> u64 {
        let Exact { negative, mantissa, exponent, .. } = exact;
        if mantissa == 0 {
            return self.signed(negative, 0);
        }
        let top = exponent + 127 - mantissa.leading_zeros() as i32;
        // The weight of the last bit that is kept.
        let mut last = (top - self.fraction_bits as i32).max(self.lowest());
        let mut kept = exact.in_units_of(last, rounding) as u64;
        if kept >> (self.fraction_bits + 1) != 0 {
            kept >>= 1;
            last += 1;
        }
        if kept >> self.fraction_bits == 0 {
            return self.signed(negative, kept);
        }
        let field = last - self.lowest() + 1;
        if field >= (1 << self.exponent_bits) - 1 {
            let away = match rounding {
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
                _ => true,
            };
            return self.signed(negative, self.infinity() - u64::from(!away));
        }
        self.signed(negative, (field as u64) << self.fraction_bits | kept & ((1 << self.fraction_bits) - 1))
    }
}

/// What bits of a format stand for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// `± mantissa · 2^exponent`, and a little more in magnitude (less than one unit of the mantissa) where `more` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
    pub(crate) more: bool,
}

impl Exact {
    pub(crate) fn integer(value: i128) -> Self {
        Self { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0, more: false }
    }

    /// The magnitude as a whole number of `2^unit`, rounded.
    pub(crate) fn in_units_of(self, unit: i32, rounding: Rounding) -> u128 {
        if unit <= self.exponent {
            debug_assert!(!self.more, "what is cut off must lie below the rounding");
            return self.mantissa << (self.exponent - unit);
        }
        let drop = (unit - self.exponent) as u32;
        let (kept, tail, half) = match drop {
            0..=127 => (self.mantissa >> drop, self.mantissa & ((1 << drop) - 1), 1 << (drop - 1)),
            // All of it is below half a unit, unless the mantissa has its highest bit set; none here has.
            _ => (0, u128::from(self.mantissa != 0), 2),
        };
        let inexact = tail != 0 || self.more;
        let above_half = tail > half || tail == half && self.more;
        let up = match rounding {
            Rounding::NearestAway => above_half || tail == half,
            Rounding::Zero | Rounding::IntegerZero => false,
            Rounding::Down | Rounding::IntegerDown => self.negative && inexact,
            Rounding::Up | Rounding::IntegerUp => !self.negative && inexact,
            _ => above_half || tail == half && kept & 1 == 1,
        };
        kept + u128::from(up)
    }

    /// The same number with the highest bit of its mantissa at `bit`, which must not lose any.
    fn with_top_at(self, bit: u32) -> Self {
        let up = bit - (127 - self.mantissa.leading_zeros());
        Self { mantissa: self.mantissa << up, exponent: self.exponent - up as i32, ..self }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
            more: false,
        }
    }

    /// The sum; `rounding` tells the sign of a zero that two numbers of different sign make.
    pub(crate) fn plus(self, other: Self, rounding: Rounding) -> Self {
        if self.mantissa == 0 && other.mantissa == 0 {
            let negative = if self.negative == other.negative { self.negative } else { rounding == Rounding::Down };
            return Self { negative, ..self };
        }
        if self.mantissa == 0 {
            return other;
        }
        if other.mantissa == 0 {
            return self;
        }
        // No mantissa has more than 106 bits: where bits of the lower one fall off, it is so much smaller that nothing cancels.
        let (mut high, mut low) = (self.with_top_at(125), other.with_top_at(125));
        if (high.exponent, high.mantissa) < (low.exponent, low.mantissa) {
            (high, low) = (low, high);
        }
        let distance = (high.exponent - low.exponent) as u32;
        let aligned = low.mantissa.checked_shr(distance).unwrap_or(0);
        let lost = aligned.checked_shl(distance).unwrap_or(0) != low.mantissa;
        if high.negative == low.negative {
            return Self { mantissa: high.mantissa + aligned, more: lost, ..high };
        }
        let mantissa = high.mantissa - aligned - u128::from(lost);
        if mantissa == 0 && !lost {
            return Self { negative: rounding == Rounding::Down, mantissa: 0, ..high };
        }
        Self { mantissa, more: lost, ..high }
    }

    /// Neither is zero.
    pub(crate) fn over(self, other: Self) -> Self {
        let (above, below) = (self.with_top_at(126), other.with_top_at(60));
        Self {
            negative: self.negative != other.negative,
            mantissa: above.mantissa / below.mantissa,
            exponent: above.exponent - below.exponent,
            more: above.mantissa % below.mantissa != 0,
        }
    }

    /// Of a positive number.
    pub(crate) fn root(self) -> Self {
        let mut square = self.with_top_at(125);
        if square.exponent % 2 != 0 {
            square.mantissa <<= 1;
            square.exponent -= 1;
        }
        let root = square.mantissa.isqrt();
        Self { mantissa: root, exponent: square.exponent / 2, more: root * root != square.mantissa, ..square }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        let difference = self.plus(Self { negative: !other.negative, ..other }, Rounding::NearestEven);
        match (difference.mantissa, difference.negative) {
            (0, _) => Ordering::Equal,
            (_, true) => Ordering::Less,
            (_, false) => Ordering::Greater,
        }
    }
}
