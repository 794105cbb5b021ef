//! Numbers by chance, the same for the same seed on every machine, and the values at which instructions go wrong.

use steadfast_ptx::module::Type;

/// A splitmix64 generator: small, and every seed is a good one.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    /// From 0 to 1, the latter not included.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn uniform(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    pub(crate) fn edge(&mut self, ty: Type) -> u64 {
        let edges = edges(ty);
        edges[self.below(edges.len() as u64) as usize]
    }

    /// An edge, or any bits.
    pub(crate) fn operand(&mut self, ty: Type) -> u64 {
        if self.chance(50) { self.edge(ty) } else { self.next() & (u64::MAX >> (64 - ty.bits().min(64))) }
    }
}

/// The values of a type at which instructions go wrong, as bits.
pub(crate) fn edges(ty: Type) -> Vec<u64> {
    match ty {
        Type::Pred => vec![0, 1],
        Type::B8 | Type::U8 | Type::S8 => vec![0, 1, 0x7f, 0x80, 0xff],
        Type::B16 | Type::U16 | Type::S16 => {
            vec![0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x1234, 0x7fff, 0x8000, 0x8001, 0xff80, 0xfffe, 0xffff]
        }
        Type::B32 | Type::U32 | Type::S32 => vec![
            0,
            1,
            2,
            7,
            31,
            32,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x1_0000,
            0x7f_ffff,
            0x80_0000,
            0x1234_5678,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            0xdead_beef,
            0xffff_8000,
            0xffff_fffe,
            0xffff_ffff,
        ],
        Type::B64 | Type::U64 | Type::S64 | Type::B128 => vec![
            0,
            1,
            2,
            63,
            64,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            0x0123_4567_89ab_cdef,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            0x8000_0000_0000_0001,
            0xffff_ffff_0000_0000,
            0xffff_ffff_8000_0000,
            0xffff_ffff_ffff_fffe,
            0xffff_ffff_ffff_ffff,
        ],
        Type::F16 => vec![
            0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x3800, 0x3e00, 0x4100, 0xc100,
            0x2e66, 0x5bff, 0x6400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe12,
        ],
        Type::Bf16 => vec![
            0, 0x8000, 1, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x3f81, 0x3f7f, 0x3f00, 0x3fc0, 0x4020, 0xc020,
            0x3dcd, 0x4b00, 0x4f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffd2,
        ],
        Type::U16x2 | Type::S16x2 => pairs(&edges(Type::U16)),
        Type::F16x2 => pairs(&edges(Type::F16)),
        Type::Bf16x2 => pairs(&edges(Type::Bf16)),
        Type::F32 | Type::Tf32 => singles(),
        Type::F64 => doubles(),
    }
}

/// Each as the lower half, with another as the upper.
fn pairs(halves: &[u64]) -> Vec<u64> {
    (0..halves.len()).map(|index| halves[(7 * index + 3) % halves.len()] << 16 | halves[index]).collect()
}

fn singles() -> Vec<u64> {
    let special = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x807f_ffff,
        0x0080_0000,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0xffc0_1234,
        0x3f80_0001,
        0x3f7f_ffff,
        0x3300_0000,
        0x3300_0001,
        0x3380_0000,
    ];
    let numbers = [
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.1,
        3.0,
        127.5,
        255.5,
        -128.5,
        32767.5,
        65504.0,
        65519.0,
        65520.0,
        8_388_609.0,
        16_777_216.0,
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -2_147_483_904.0,
        4_294_967_296.0,
        1e-20,
        1.9e19,
        -9.3e18,
        1.000_488_3,
        1.001_464_8,
    ];
    special.into_iter().chain(numbers.into_iter().map(|x: f32| u64::from(x.to_bits()))).collect()
}

fn doubles() -> Vec<u64> {
    let special = [
        0,
        1 << 63,
        1,
        1 << 63 | 1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0xffef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff8_0000_0000_1234,
        0x3ff0_0000_0000_0001,
        0x3fef_ffff_ffff_ffff,
    ];
    let numbers = [
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.1,
        3.0,
        127.5,
        -128.5,
        65504.0,
        65520.0,
        2_147_483_647.5,
        2_147_483_648.0,
        -2_147_483_648.5,
        -2_147_483_649.0,
        4_294_967_295.5,
        9.223_372_036_854_775e18,
        9.223_372_036_854_776e18,
        -9.223_372_036_854_776e18,
        1.844_674_407_370_955e19,
        1.844_674_407_370_955_2e19,
        3.402_823_466_385_288_6e38,
        3.402_823_567_797_336_6e38,
        1.401_298_464_324_817e-45,
        7.006_492_321_624_085e-46,
        1e-300,
        1.000_000_059_604_644_8,
    ];
    special.into_iter().chain(numbers.into_iter().map(|x: f64| x.to_bits())).collect()
}
