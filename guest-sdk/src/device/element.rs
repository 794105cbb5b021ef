//! What a buffer can hold.

use std::fmt;

use crate::bindings::steadfast::job::device::Element as Kind;

/// A type that a [`Buffer`](super::Buffer) can hold: integers, floats, and the two small floats [`F16`] and [`Bf16`].
pub trait Element: Copy + Default + PartialEq + fmt::Debug + sealed::Sealed + 'static {}

/// A type that [`Gemm`](super::Gemm) multiplies: `f32`, `f64`, [`F16`] and [`Bf16`].
pub trait Float: Element {}

/// Half precision (IEEE binary16), as bits: 5 bits of exponent, 10 of mantissa.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16(pub u16);

/// The upper half of an `f32` (bfloat16), as bits: 8 bits of exponent, 7 of mantissa.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// The nearest number, ties to even.
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() {
            // Rounding could carry a NaN into an infinity.
            return Self((bits >> 16) as u16 | 0x40);
        }
        let odd = bits >> 16 & 1;
        Self((bits.wrapping_add(0x7fff + odd) >> 16) as u16)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl F16 {
    /// The nearest number, ties to even; infinite beyond 65519.
    pub fn from_f32(value: f32) -> Self {
        let sign = (value.to_bits() >> 16 & 0x8000) as u16;
        let magnitude = value.abs();
        let bits = if magnitude.is_nan() {
            0x7e00 | (magnitude.to_bits() >> 13 & 0x3ff) as u16
        } else if magnitude >= 65520.0 {
            0x7c00
        } else if magnitude < SMALLEST_NORMAL {
            // In units of the smallest number, which an addition rounds to: there an f32 has no bits below one.
            let unit = 1.0 / f32::from_bits((127 + 24) << 23);
            let one_bit = f32::from_bits((127 + 23) << 23);
            (((magnitude / unit) + one_bit).to_bits() & 0x7ff) as u16
        } else {
            let bits = magnitude.to_bits();
            let odd = bits >> 13 & 1;
            // From the exponent's bias of 127 to that of 15.
            ((bits + 0xfff + odd - ((127 - 15) << 23)) >> 13) as u16
        };
        Self(sign | bits)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        let sign = if self.0 & 0x8000 == 0 { 1.0 } else { -1.0 };
        let (exponent, mantissa) = (u32::from(self.0 >> 10 & 0x1f), u32::from(self.0 & 0x3ff));
        sign * match exponent {
            0 => mantissa as f32 * (SMALLEST_NORMAL / 1024.0),
            31 => f32::from_bits(0xff << 23 | mantissa << 13),
            _ => f32::from_bits((exponent + 127 - 15) << 23 | mantissa << 13),
        }
    }
}

/// 2⁻¹⁴: below it, numbers of half precision lose bits.
const SMALLEST_NORMAL: f32 = f32::from_bits((127 - 14) << 23);

pub(super) mod sealed {
    use super::Kind;

    /// What the device has to know of an element.
    pub trait Sealed: Sized {
        const KIND: Kind;
        const BYTES: u64;
        type Bytes: AsRef<[u8]> + for<'a> TryFrom<&'a [u8]>;
        fn to_bytes(self) -> Self::Bytes;
        fn from_bytes(bytes: Self::Bytes) -> Self;
    }
}

macro_rules! elements {
    ($($type:ty, $kind:ident;)*) => { $(
        impl Element for $type {}
        impl sealed::Sealed for $type {
            const KIND: Kind = Kind::$kind;
            const BYTES: u64 = size_of::<Self>() as u64;
            type Bytes = [u8; size_of::<Self>()];
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    )* };
}

elements! {
    u8, Byte; i8, Byte;
    u16, Int16; i16, Int16;
    u32, Int32; i32, Int32;
    u64, Int64; i64, Int64;
    f32, Float32; f64, Float64;
    F16, Float16; Bf16, Bfloat16;
}

impl Float for f32 {}
impl Float for f64 {}
impl Float for F16 {}
impl Float for Bf16 {}

macro_rules! small_floats {
    ($($type:ident)*) => { $(
        impl $type {
            pub(super) fn to_le_bytes(self) -> [u8; 2] {
                self.0.to_le_bytes()
            }
            fn from_le_bytes(bytes: [u8; 2]) -> Self {
                Self(u16::from_le_bytes(bytes))
            }
        }
    )* };
}

small_floats! { F16 Bf16 }

/// The elements as the device holds them: little-endian, one after the other.
pub(super) fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(elements));
    for element in elements {
        bytes.extend_from_slice(element.to_bytes().as_ref());
    }
    bytes
}

/// Elements from what the device holds.
pub(super) fn from_bytes<T: Element>(bytes: &[u8], elements: &mut [T]) {
    for (element, bytes) in elements.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
        if let Ok(bytes) = T::Bytes::try_from(bytes) {
            *element = T::from_bytes(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_from_their_bytes() {
        let floats = [1.5_f32, -0.0, f32::INFINITY, f32::MIN_POSITIVE];
        let mut back = [0.0; 4];
        from_bytes(&to_bytes(&floats), &mut back);
        assert_eq!(back.map(f32::to_bits), floats.map(f32::to_bits));
        assert_eq!(to_bytes(&[0x0102_0304_u32]), [4, 3, 2, 1]);
        assert_eq!(to_bytes(&[F16(0x3c00), F16(0xbc00)]), [0, 0x3c, 0, 0xbc]);
    }

    #[test]
    fn every_half_comes_back_and_what_lies_between_goes_to_the_nearest() {
        for bits in 0..=u16::MAX {
            let half = F16(bits);
            let back = F16::from_f32(half.to_f32());
            assert!(back == half || half.to_f32().is_nan() && back.to_f32().is_nan(), "{bits:#06x} {back:?}");
            // Between this number and the next the middle goes to the even one, and all else to the nearer.
            let next = F16(bits + u16::from(bits < u16::MAX));
            if bits & 0x7fff < 0x7bff {
                let middle = f32::midpoint(half.to_f32(), next.to_f32());
                let (below, above) = (middle.abs().next_down(), middle.abs().next_up());
                let even = if bits & 1 == 0 { half } else { next };
                assert_eq!(F16::from_f32(middle), even, "{bits:#06x}");
                assert_eq!(F16::from_f32(below.copysign(middle)), half, "{bits:#06x}");
                assert_eq!(F16::from_f32(above.copysign(middle)), next, "{bits:#06x}");
            }
        }
        assert_eq!(F16::from_f32(65519.9), F16(0x7bff));
        assert_eq!(F16::from_f32(-65520.0), F16(0xfc00));
        assert_eq!(F16::from_f32(f32::MIN_POSITIVE), F16(0));
    }

    #[test]
    fn upper_halves_round_to_even_and_keep_what_is_no_number() {
        for (value, bits) in
            [(1.0_f32, 0x3f80), (1.0 + 1.0 / 256.0, 0x3f80), (1.0 + 3.0 / 256.0, 0x3f82), (f32::MAX, 0x7f80)]
        {
            assert_eq!(Bf16::from_f32(value), Bf16(bits), "{value}");
        }
        assert!(Bf16::from_f32(f32::from_bits(0x7f80_0001)).to_f32().is_nan());
        assert_eq!(Bf16(0xc000).to_f32(), -2.0);
    }
}
