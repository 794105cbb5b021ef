//! Rows worked out by hand from PTX's words, for what is notorious: they hold for the oracle and for the translation.

use super::form::Form;

/// An instruction, its results and operands, and rows of operands with what must come out.
type Literal = (&'static str, &'static str, &'static str, &'static [(&'static [u64], &'static [u64])]);

/// The forms with their rows, and what each row must give.
pub(super) fn forms() -> (Vec<Form>, Vec<Vec<&'static [u64]>>) {
    LITERALS
        .iter()
        .map(|(code, results, operands, rows)| {
            let form =
                Form::new(code, results, operands).on(rows.iter().map(|(operands, _)| operands.to_vec()).collect());
            (form, rows.iter().map(|(_, expected)| *expected).collect())
        })
        .unzip()
}

const ALL16: u64 = 0xffff;
const ALL32: u64 = 0xffff_ffff;
const ALL64: u64 = 0xffff_ffff_ffff_ffff;
const LEAST32: u64 = 0x8000_0000;
const LEAST64: u64 = 0x8000_0000_0000_0000;
const MOST32: u64 = 0x7fff_ffff;
const NAN32: u64 = 0x7fff_ffff;
const INF32: u64 = 0x7f80_0000;
const NEG_INF32: u64 = 0xff80_0000;
const NEG_ZERO32: u64 = 0x8000_0000;
const ONE32: u64 = 0x3f80_0000;

#[rustfmt::skip]
const LITERALS: &[Literal] = &[
    // Saturation.
    ("add.sat.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[
        (&[MOST32, 1], &[MOST32]), (&[LEAST32, ALL32], &[LEAST32]), (&[LEAST32, MOST32], &[ALL32]), (&[5, ALL32], &[4]),
    ]),
    ("sub.sat.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[
        (&[LEAST32, 1], &[LEAST32]), (&[0, LEAST32], &[MOST32]), (&[ALL32, LEAST32], &[MOST32]), (&[MOST32, ALL32], &[MOST32]),
    ]),
    ("mad.hi.sat.s32 %d, %a, %b, %c;", "d:s32", "a:s32 b:s32 c:s32", &[
        (&[LEAST32, LEAST32, MOST32], &[MOST32]), (&[LEAST32, MOST32, LEAST32], &[LEAST32]), (&[0x1_0000, 0x1_0000, 41], &[42]),
    ]),
    // Division.
    ("div.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[
        (&[LEAST32, ALL32], &[LEAST32]), (&[7, 0], &[ALL32]), (&[0xffff_fff9, 2], &[0xffff_fffd]), (&[7, 0xffff_fffe], &[0xffff_fffd]),
    ]),
    ("rem.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[
        (&[LEAST32, ALL32], &[0]), (&[7, 0], &[7]), (&[0xffff_fff9, 2], &[ALL32]), (&[7, 0xffff_fffe], &[1]),
    ]),
    ("div.u32 %d, %a, %b;", "d:u32", "a:u32 b:u32", &[(&[7, 0], &[ALL32]), (&[ALL32, 2], &[MOST32])]),
    ("div.s16 %d, %a, %b;", "d:s16", "a:s16 b:s16", &[(&[0x8000, 0xffff], &[0x8000]), (&[0xfff9, 2], &[0xfffd])]),
    ("rem.s16 %d, %a, %b;", "d:s16", "a:s16 b:s16", &[(&[0x8000, 0xffff], &[0]), (&[0xfff9, 4], &[0xfffd])]),
    ("div.s64 %d, %a, %b;", "d:s64", "a:s64 b:s64", &[(&[LEAST64, ALL64], &[LEAST64]), (&[1, 0], &[ALL64])]),
    ("rem.s64 %d, %a, %b;", "d:s64", "a:s64 b:s64", &[(&[LEAST64, ALL64], &[0]), (&[9, 0], &[9])]),
    // The smallest integer has no opposite.
    ("abs.s32 %d, %a;", "d:s32", "a:s32", &[(&[LEAST32], &[LEAST32]), (&[ALL32], &[1])]),
    ("abs.s16 %d, %a;", "d:s16", "a:s16", &[(&[0x8000], &[0x8000]), (&[0xffff], &[1])]),
    ("neg.s64 %d, %a;", "d:s64", "a:s64", &[(&[LEAST64], &[LEAST64]), (&[1], &[ALL64])]),
    ("sad.s32 %d, %a, %b, %c;", "d:s32", "a:s32 b:s32 c:s32", &[(&[LEAST32, MOST32, 0], &[ALL32]), (&[3, 5, 1], &[3])]),
    // Shifts do not wrap.
    ("shl.b32 %d, %a, %b;", "d:b32", "a:b32 b:count", &[
        (&[ALL32, 31], &[LEAST32]), (&[ALL32, 32], &[0]), (&[ALL32, 33], &[0]), (&[ALL32, ALL32], &[0]), (&[1, 256], &[0]),
    ]),
    ("shr.s32 %d, %a, %b;", "d:s32", "a:s32 b:count", &[
        (&[LEAST32, 31], &[ALL32]), (&[LEAST32, 32], &[ALL32]), (&[LEAST32, ALL32], &[ALL32]), (&[MOST32, 40], &[0]),
    ]),
    ("shr.u32 %d, %a, %b;", "d:u32", "a:u32 b:count", &[(&[LEAST32, 31], &[1]), (&[LEAST32, 32], &[0]), (&[ALL32, 64], &[0])]),
    ("shr.s16 %d, %a, %b;", "d:s16", "a:s16 b:count", &[(&[0x8000, 15], &[ALL16]), (&[0x8000, 16], &[ALL16]), (&[0x4000, 20], &[0])]),
    ("shl.b16 %d, %a, %b;", "d:b16", "a:b16 b:count", &[(&[ALL16, 15], &[0x8000]), (&[ALL16, 16], &[0]), (&[1, 0x1_0000], &[0])]),
    ("shr.s64 %d, %a, %b;", "d:s64", "a:s64 b:count", &[(&[LEAST64, 64], &[ALL64]), (&[LEAST64, 62], &[0xffff_ffff_ffff_fffe])]),
    ("shl.b64 %d, %a, %b;", "d:b64", "a:b64 b:count", &[(&[1, 63], &[LEAST64]), (&[1, 64], &[0]), (&[1, 65], &[0])]),
    ("shf.l.wrap.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:count", &[
        (&[0x8000_0001, 0x0000_0002, 1], &[5]), (&[0x1111_1111, 0x2222_2222, 32], &[0x2222_2222]),
    ]),
    ("shf.l.clamp.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:count", &[
        (&[0x1111_1111, 0x2222_2222, 32], &[0x1111_1111]), (&[0x1111_1111, 0x2222_2222, 100], &[0x1111_1111]),
    ]),
    ("shf.r.clamp.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:count", &[
        (&[0x1111_1111, 0x2222_2222, 0], &[0x1111_1111]), (&[0x1111_1111, 0x2222_2222, 33], &[0x2222_2222]),
        (&[0x0000_0001, 0x0000_0003, 1], &[0x8000_0000]),
    ]),
    // Bit fields.
    ("bfe.u32 %d, %a, %b, %c;", "d:u32", "a:u32 b:count c:count", &[
        (&[0x1234_5678, 8, 8], &[0x56]), (&[ALL32, 28, 8], &[0xf]), (&[ALL32, 32, 4], &[0]), (&[ALL32, 0, 0], &[0]), (&[ALL32, 256, 4], &[0xf]),
    ]),
    ("bfe.s32 %d, %a, %b, %c;", "d:s32", "a:s32 b:count c:count", &[
        (&[0x0000_0080, 4, 4], &[0xffff_fff8]), (&[LEAST32, 28, 8], &[0xffff_fff8]), (&[LEAST32, 40, 1], &[ALL32]), (&[ALL32, 5, 0], &[0]),
    ]),
    ("bfi.b32 %d, %a, %b, %c, %e;", "d:b32", "a:b32 b:b32 c:count e:count", &[
        (&[0xab, 0x1234_5678, 8, 8], &[0x1234_ab78]), (&[ALL32, 0, 28, 8], &[0xf000_0000]), (&[ALL32, 7, 32, 8], &[7]), (&[ALL32, 7, 0, 0], &[7]),
    ]),
    ("bmsk.clamp.b32 %d, %a, %b;", "d:b32", "a:count b:count", &[
        (&[4, 4], &[0xf0]), (&[28, 8], &[0xf000_0000]), (&[32, 1], &[0]), (&[0, 32], &[ALL32]), (&[3, 0], &[0]),
    ]),
    ("bmsk.wrap.b32 %d, %a, %b;", "d:b32", "a:count b:count", &[(&[36, 36], &[0xf0]), (&[0, 32], &[0])]),
    ("szext.wrap.s32 %d, %a, %b;", "d:s32", "a:s32 b:count", &[(&[0x80, 8], &[0xffff_ff80]), (&[0x180, 40], &[0xffff_ff80]), (&[5, 32], &[0])]),
    ("szext.clamp.u32 %d, %a, %b;", "d:u32", "a:u32 b:count", &[(&[0x1ff, 8], &[0xff]), (&[ALL32, 32], &[ALL32]), (&[ALL32, 0], &[0])]),
    ("bfind.s32 %d, %a;", "d:u32", "a:s32", &[(&[0], &[ALL32]), (&[ALL32], &[ALL32]), (&[1], &[0]), (&[0xffff_fffe], &[0]), (&[LEAST32], &[30])]),
    ("bfind.shiftamt.u32 %d, %a;", "d:u32", "a:u32", &[(&[0], &[ALL32]), (&[1], &[31]), (&[LEAST32], &[0])]),
    ("clz.b64 %d, %a;", "d:u32", "a:b64", &[(&[0], &[64]), (&[1], &[63]), (&[LEAST64], &[0])]),
    ("popc.b64 %d, %a;", "d:u32", "a:b64", &[(&[ALL64], &[64]), (&[0], &[0])]),
    ("brev.b32 %d, %a;", "d:b32", "a:b32", &[(&[1], &[LEAST32]), (&[0x1234_5678], &[0x1e6a_2c48])]),
    ("fns.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:lane c:s32", &[
        (&[0b1011_0100, 2, 0], &[2]), (&[0b1011_0100, 3, 0], &[ALL32]), (&[0b1011_0100, 2, 2], &[4]), (&[0b1011_0100, 7, ALL32], &[7]),
        (&[0b1011_0100, 7, 0xffff_fffc], &[2]), (&[0b1011_0100, 0, 5], &[ALL32]),
    ]),
    ("prmt.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[
        (&[0x3322_1100, 0x7766_5544, 0x7531], &[0x7755_3311]), (&[0x8000_0000, 0, 0xbbb0], &[0xffff_ff00]), (&[0x3322_1100, 0, 0xffff_0123], &[0x0011_2233]),
    ]),
    ("prmt.b32.b4e %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0x3322_1100, 0x7766_5544, 1], &[0x6677_0011])]),
    ("prmt.b32.ecl %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0x3322_1100, 0, 2], &[0x3322_2222])]),
    ("prmt.b32.ecr %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0x3322_1100, 0, 1], &[0x1111_1100])]),
    ("lop3.b32 %d, %a, %b, %c, 0xE8;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0xf0f0, 0xff00, 0x3333], &[0xf330])]),
    ("lop3.and.b32 %d|%q, %a, %b, %c, 0x80, %p;", "d:b32 q:pred", "a:b32 b:b32 c:b32 p:pred", &[(&[6, 3, 2, 1], &[2, 1]), (&[6, 3, 2, 0], &[2, 0]), (&[6, 3, 8, 1], &[0, 0])]),
    ("lop3.or.b32 _|%q, %a, %b, %c, 0x80, !%p;", "q:pred", "a:b32 b:b32 c:b32 p:pred", &[(&[6, 3, 8, 1], &[0]), (&[6, 3, 8, 0], &[1]), (&[6, 3, 2, 1], &[1])]),
    // Two halves do not touch each other.
    ("add.u16x2 %d, %a, %b;", "d:b32", "a:b32 b:b32", &[(&[0x0001_ffff, 0x0001_0001], &[0x0002_0000])]),
    ("min.s16x2 %d, %a, %b;", "d:b32", "a:b32 b:b32", &[(&[0x0001_8000, 0xffff_0001], &[0xffff_8000])]),
    ("max.u16x2 %d, %a, %b;", "d:b32", "a:b32 b:b32", &[(&[0x0001_8000, 0xffff_0001], &[0xffff_8000])]),
    ("max.relu.s16x2 %d, %a, %b;", "d:b32", "a:b32 b:b32", &[(&[0xfff0_0003, 0xffff_0001], &[0x0000_0003])]),
    ("min.relu.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[(&[ALL32, 5], &[0]), (&[7, 5], &[5])]),
    ("dp4a.s32.s32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0x8080_8080, 0x7f7f_7f7f, 1], &[0xffff_0201])]),
    ("dp4a.u32.s32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0x0000_00ff, 0x0000_00ff, 0], &[0xffff_ff01])]),
    ("dp2a.hi.s32.u32 %d, %a, %b, %c;", "d:b32", "a:b32 b:b32 c:b32", &[(&[0xffff_0002, 0x0305_0000, 0], &[7])]),
    // Products and carries.
    ("mul.hi.s64 %d, %a, %b;", "d:s64", "a:s64 b:s64", &[(&[LEAST64, 2], &[ALL64]), (&[ALL64, ALL64], &[0])]),
    ("mul.hi.u64 %d, %a, %b;", "d:u64", "a:u64 b:u64", &[(&[ALL64, ALL64], &[0xffff_ffff_ffff_fffe])]),
    ("mul.wide.s16 %d, %a, %b;", "d:s32", "a:s16 b:s16", &[(&[0x8000, 0x8000], &[0x4000_0000]), (&[0xffff, 2], &[0xffff_fffe])]),
    ("mul24.hi.s32 %d, %a, %b;", "d:s32", "a:s32 b:s32", &[(&[0x80_0000, 0x80_0000], &[0x4000_0000]), (&[0xff80_0000, 1], &[0xffff_ff80])]),
    ("mul24.lo.u32 %d, %a, %b;", "d:u32", "a:u32 b:u32", &[(&[0xff00_0001, 0xff00_0003], &[3])]),
    ("add.cc.u32 %d, %a, %b;\naddc.u32 %e, 0, 0;", "d:u32 e:u32", "a:u32 b:u32", &[(&[ALL32, 1], &[0, 1]), (&[MOST32, 1], &[LEAST32, 0])]),
    ("sub.cc.u32 %d, %a, %b;\nsubc.u32 %e, 0, 0;", "d:u32 e:u32", "a:u32 b:u32", &[(&[0, 1], &[ALL32, ALL32]), (&[1, 1], &[0, 0])]),
    ("add.cc.u64 %d, %a, %b;\naddc.u64 %e, %a, %b;", "d:u64 e:u64", "a:u64 b:u64", &[(&[ALL64, ALL64], &[ALL64 - 1, ALL64])]),
    ("mad.lo.cc.u32 %d, %a, %b, %c;\nmadc.hi.u32 %e, %a, %b, 0;", "d:u32 e:u32", "a:u32 b:u32 c:u32", &[(&[ALL32, ALL32, ALL32], &[0, ALL32])]),
    // Zeros, infinities and NaN.
    ("min.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[
        (&[0, NEG_ZERO32], &[NEG_ZERO32]), (&[NEG_ZERO32, 0], &[NEG_ZERO32]), (&[0x7fc0_0000, ONE32], &[ONE32]), (&[ONE32, 0x7f80_0001], &[ONE32]),
        (&[0xffc0_0000, 0x7f80_0001], &[NAN32]),
    ]),
    ("max.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[0, NEG_ZERO32], &[0]), (&[NEG_ZERO32, 0], &[0]), (&[0x7fc0_0000, NEG_INF32], &[NEG_INF32])]),
    ("max.NaN.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[0x7fc0_0000, ONE32], &[NAN32]), (&[ONE32, 0xff80_0001], &[NAN32]), (&[0, ONE32], &[ONE32])]),
    ("min.f64 %d, %a, %b;", "d:f64", "a:f64 b:f64", &[(&[0, LEAST64], &[LEAST64]), (&[0x7ff8_0000_0000_0000, 0], &[0])]),
    ("add.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[
        (&[INF32, NEG_INF32], &[NAN32]), (&[NEG_ZERO32, NEG_ZERO32], &[NEG_ZERO32]), (&[NEG_ZERO32, 0], &[0]), (&[0x7f7f_ffff, 0x7300_0000], &[INF32]),
    ]),
    ("add.rm.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[
        (&[ONE32, 0xbf80_0000], &[NEG_ZERO32]), (&[0x7f7f_ffff, 0x7f7f_ffff], &[0x7f7f_ffff]), (&[0xff7f_ffff, 0x8000_0001], &[NEG_INF32]), (&[ONE32, 1], &[ONE32]),
    ]),
    ("add.rp.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[ONE32, 1], &[ONE32 + 1]), (&[0xff7f_ffff, 0xff7f_ffff], &[0xff7f_ffff])]),
    ("add.rz.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[ONE32, 0x8000_0001], &[ONE32 - 1]), (&[0x7f7f_ffff, 0x7f7f_ffff], &[0x7f7f_ffff])]),
    ("mul.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[INF32, 0], &[NAN32]), (&[1, 0x3f00_0000], &[0]), (&[3, 0x3f00_0000], &[2]), (&[0x8000_0001, 0x3f00_0000], &[NEG_ZERO32])]),
    ("mul.ftz.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[0x807f_ffff, 0x7f00_0000], &[NEG_ZERO32]), (&[0x0080_0000, 0x3f00_0000], &[0])]),
    ("add.sat.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[INF32, NEG_INF32], &[0]), (&[ONE32, ONE32], &[ONE32]), (&[0xbf80_0000, 0], &[0])]),
    ("fma.rn.f32 %d, %a, %b, %c;", "d:f32", "a:f32 b:f32 c:f32", &[
        // (1 + 2^-23)² - 1 - 2^-22 = 2^-46: a product rounded before the sum would give 0.
        (&[ONE32 + 1, ONE32 + 1, 0xbf80_0002], &[0x2880_0000]), (&[INF32, 0, 0x7fc0_0000], &[NAN32]), (&[0, NEG_INF32, ONE32], &[NAN32]),
    ]),
    ("fma.rn.f64 %d, %a, %b, %c;", "d:f64", "a:f64 b:f64 c:f64", &[
        (&[0x3ff0_0000_0000_0001, 0x3ff0_0000_0000_0001, 0xbff0_0000_0000_0002], &[0x3970_0000_0000_0000]),
    ]),
    ("div.rn.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[ONE32, NEG_ZERO32], &[NEG_INF32]), (&[0, 0], &[NAN32]), (&[ONE32, 0x4040_0000], &[0x3eaa_aaab])]),
    ("div.rz.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[ONE32, 0x4040_0000], &[0x3eaa_aaaa])]),
    ("sqrt.rn.f32 %d, %a;", "d:f32", "a:f32", &[(&[NEG_ZERO32], &[NEG_ZERO32]), (&[0xbf80_0000], &[NAN32]), (&[0x4000_0000], &[0x3fb5_04f3])]),
    ("rcp.rn.f64 %d, %a;", "d:f64", "a:f64", &[(&[LEAST64], &[0xfff0_0000_0000_0000]), (&[0x4008_0000_0000_0000], &[0x3fd5_5555_5555_5555])]),
    ("copysign.f32 %d, %a, %b;", "d:f32", "a:f32 b:f32", &[(&[NEG_ZERO32, ONE32], &[0xbf80_0000]), (&[ONE32, NEG_INF32], &[INF32])]),
    ("abs.f32 %d, %a;", "d:f32", "a:f32", &[(&[NEG_ZERO32], &[0]), (&[NEG_INF32], &[INF32])]),
    ("testp.subnormal.f32 %p, %a;", "p:pred", "a:f32", &[(&[1], &[1]), (&[0], &[0]), (&[0x0080_0000], &[0]), (&[0x807f_ffff], &[1])]),
    ("testp.normal.f32 %p, %a;", "p:pred", "a:f32", &[(&[0], &[0]), (&[ONE32], &[1]), (&[INF32], &[0]), (&[0x7fc0_0000], &[0])]),
    // Comparisons with NaN.
    ("setp.ne.f32 %p|%q, %a, %b;", "p:pred q:pred", "a:f32 b:f32", &[(&[0x7fc0_0000, 0x7fc0_0000], &[0, 1]), (&[0, NEG_ZERO32], &[0, 1]), (&[0, ONE32], &[1, 0])]),
    ("setp.neu.f32 %p|%q, %a, %b;", "p:pred q:pred", "a:f32 b:f32", &[(&[0x7fc0_0000, ONE32], &[1, 0]), (&[0, NEG_ZERO32], &[0, 1])]),
    ("setp.ltu.f32 %p|%q, %a, %b;", "p:pred q:pred", "a:f32 b:f32", &[(&[0x7fc0_0000, ONE32], &[1, 0]), (&[ONE32, 0], &[0, 1])]),
    ("setp.num.f32 %p|%q, %a, %b;", "p:pred q:pred", "a:f32 b:f32", &[(&[0x7fc0_0000, ONE32], &[0, 1]), (&[INF32, 0], &[1, 0])]),
    ("setp.eq.ftz.f32 %p|%q, %a, %b;", "p:pred q:pred", "a:f32 b:f32", &[(&[1, 0x8000_0002], &[1, 0])]),
    ("setp.lt.and.s32 %p|%q, %a, %b, !%c;", "p:pred q:pred", "a:s32 b:s32 c:pred", &[(&[1, 2, 0], &[1, 0]), (&[2, 1, 0], &[0, 1]), (&[1, 2, 1], &[0, 0])]),
    ("setp.hi.u32 %p, %a, %b;", "p:pred", "a:u32 b:u32", &[(&[ALL32, 1], &[1]), (&[1, ALL32], &[0])]),
    ("set.eq.f32.s32 %d, %a, %b;", "d:f32", "a:s32 b:s32", &[(&[4, 4], &[ONE32]), (&[4, 5], &[0])]),
    ("set.eq.u32.s32 %d, %a, %b;", "d:u32", "a:s32 b:s32", &[(&[4, 4], &[ALL32]), (&[4, 5], &[0])]),
    ("slct.u32.f32 %d, %a, %b, %c;", "d:u32", "a:u32 b:u32 c:f32", &[(&[1, 2, NEG_ZERO32], &[1]), (&[1, 2, 0x7fc0_0000], &[2]), (&[1, 2, 0x8000_0001], &[2])]),
    // Conversions.
    ("cvt.rzi.s32.f32 %d, %a;", "d:s32", "a:f32", &[
        (&[0x7fc0_0000], &[0]), (&[INF32], &[MOST32]), (&[NEG_INF32], &[LEAST32]), (&[0x4f00_0000], &[MOST32]), (&[0xbfff_ffff], &[ALL32]),
    ]),
    ("cvt.rzi.u32.f32 %d, %a;", "d:u32", "a:f32", &[(&[0xbf80_0000], &[0]), (&[0x4f80_0000], &[ALL32]), (&[0x4f7f_ffff], &[0xffff_ff00])]),
    ("cvt.rni.s32.f32 %d, %a;", "d:s32", "a:f32", &[(&[0x3f00_0000], &[0]), (&[0x3fc0_0000], &[2]), (&[0x4020_0000], &[2]), (&[0xc020_0000], &[0xffff_fffe])]),
    ("cvt.rmi.s32.f32 %d, %a;", "d:s32", "a:f32", &[(&[0x8000_0001], &[ALL32]), (&[0x3fff_ffff], &[1])]),
    ("cvt.rpi.s32.f32 %d, %a;", "d:s32", "a:f32", &[(&[1], &[1]), (&[0xbf7f_ffff], &[0])]),
    ("cvt.rpi.ftz.s32.f32 %d, %a;", "d:s32", "a:f32", &[(&[1], &[0])]),
    ("cvt.rzi.s64.f32 %d, %a;", "d:s64", "a:f32", &[(&[0x7fc0_0000], &[LEAST64]), (&[INF32], &[0x7fff_ffff_ffff_ffff])]),
    ("cvt.rzi.s32.f64 %d, %a;", "d:s32", "a:f64", &[(&[0x7ff8_0000_0000_0000], &[LEAST32]), (&[0x41df_ffff_ffff_ffff], &[MOST32])]),
    ("cvt.rzi.u8.f32 %d, %a;", "d:b32", "a:f32", &[(&[0x4380_0000], &[0xff]), (&[0xc000_0000], &[0])]),
    ("cvt.rzi.s8.f32 %d, %a;", "d:b32", "a:f32", &[(&[0x4380_0000], &[0x7f]), (&[0xc380_0000], &[0xffff_ff80])]),
    ("cvt.s32.s8 %d, %a;", "d:s32", "a:b32", &[(&[0x1280], &[0xffff_ff80]), (&[0xff7f], &[0x7f])]),
    ("cvt.u32.u8 %d, %a;", "d:u32", "a:b32", &[(&[0x1280], &[0x80])]),
    ("cvt.s8.s32 %d, %a;", "d:b32", "a:s32", &[(&[0x180], &[0xffff_ff80])]),
    ("cvt.sat.s8.s32 %d, %a;", "d:b32", "a:s32", &[(&[0x180], &[0x7f]), (&[LEAST32], &[0xffff_ff80])]),
    ("cvt.sat.u8.s32 %d, %a;", "d:b32", "a:s32", &[(&[ALL32], &[0]), (&[300], &[255])]),
    ("cvt.sat.u32.s64 %d, %a;", "d:u32", "a:s64", &[(&[ALL64], &[0]), (&[0x1_0000_0000], &[ALL32])]),
    ("cvt.sat.s32.u32 %d, %a;", "d:s32", "a:u32", &[(&[ALL32], &[MOST32])]),
    ("cvt.rn.f32.s64 %d, %a;", "d:f32", "a:s64", &[(&[0x0100_0001], &[0x4b80_0000]), (&[0x0100_0003], &[0x4b80_0002]), (&[LEAST64], &[0xdf00_0000])]),
    ("cvt.rz.f32.u32 %d, %a;", "d:f32", "a:u32", &[(&[ALL32], &[0x4f7f_ffff])]),
    ("cvt.rn.f32.u64 %d, %a;", "d:f32", "a:u64", &[(&[ALL64], &[0x5f80_0000]), (&[0x8000_0080_0000_0001], &[0x5f00_0001])]),
    ("cvt.rn.f16.f32 %d, %a;", "d:f16", "a:f32", &[
        (&[0x477f_e000], &[0x7bff]), (&[0x477f_efff], &[0x7bff]), (&[0x477f_f000], &[0x7c00]), (&[0x3300_0000], &[0]), (&[0x3300_0001], &[1]), (&[0x7f80_0001], &[0x7fff]),
        (&[0x3f80_1000], &[0x3c00]), (&[0x3f80_3000], &[0x3c02]),
    ]),
    ("cvt.rz.f16.f32 %d, %a;", "d:f16", "a:f32", &[(&[0x7f7f_ffff], &[0x7bff]), (&[0x3f80_1fff], &[0x3c00])]),
    // Once, and not by way of f32: 1 + 2^-11 + 2^-40 is above the tie.
    ("cvt.rn.f16.f64 %d, %a;", "d:f16", "a:f64", &[(&[0x3ff0_0200_0000_1000], &[0x3c01]), (&[0x3ff0_0200_0000_0000], &[0x3c00])]),
    ("cvt.rn.bf16.f32 %d, %a;", "d:bf16", "a:f32", &[(&[0x3f80_8000], &[0x3f80]), (&[0x3f81_8000], &[0x3f82]), (&[0x7f7f_ffff], &[0x7f80]), (&[0x7fc0_0000], &[0x7fff])]),
    ("cvt.f32.f16 %d, %a;", "d:f32", "a:f16", &[(&[1], &[0x3380_0000]), (&[0x83ff], &[0xb87f_c000]), (&[0x7c00], &[INF32]), (&[0x7e01], &[NAN32])]),
    ("cvt.rni.f32.f32 %d, %a;", "d:f32", "a:f32", &[(&[0xbf00_0000], &[NEG_ZERO32]), (&[0x4020_0000], &[0x4000_0000]), (&[0x3fc0_0000], &[0x4000_0000])]),
    ("cvt.rpi.f32.f32 %d, %a;", "d:f32", "a:f32", &[(&[0xbf00_0000], &[NEG_ZERO32]), (&[1], &[ONE32])]),
    ("cvt.sat.f32.f32 %d, %a;", "d:f32", "a:f32", &[(&[0x7fc0_0000], &[0]), (&[0x4000_0000], &[ONE32]), (&[NEG_INF32], &[0])]),
    ("cvt.rn.f32.f64 %d, %a;", "d:f32", "a:f64", &[(&[0x47ef_ffff_f000_0000], &[INF32]), (&[0x3690_0000_0000_0000], &[0]), (&[0x3690_0000_0000_0001], &[1])]),
    ("cvt.rm.f32.f64 %d, %a;", "d:f32", "a:f64", &[(&[0x8000_0000_0000_0001], &[0x8000_0001]), (&[1], &[0])]),
    // The nearest of 10 bits of fraction, ties away from zero; the rest of the register is 0.
    ("cvt.rna.tf32.f32 %d, %a;", "d:b32", "a:f32", &[
        (&[0x3f80_1000], &[0x3f80_2000]), (&[0x3f80_0fff], &[ONE32]), (&[0xbf80_1000], &[0xbf80_2000]), (&[0x7f7f_f000], &[INF32]), (&[0x7f80_0001], &[0x7fff_e000]), (&[0x0000_1000], &[0x0000_2000]),
    ]),
    ("cvt.rn.tf32.f32 %d, %a;", "d:b32", "a:f32", &[(&[0x3f80_1000], &[ONE32]), (&[0x3f80_3000], &[0x3f80_4000])]),
    ("cvt.rz.relu.tf32.f32 %d, %a;", "d:b32", "a:f32", &[(&[0x3f80_3fff], &[0x3f80_2000]), (&[0xbf80_0000], &[0])]),
    // So many bytes, and zeros behind them.
    (".shared .align 8 .b8 cells[768];\n.reg .b64 %to;\n.reg .b32 %me;\nmov.u32 %me, %tid.x;\nmul.wide.u32 %to, %me, 8;\n.reg .b64 %all;\nmov.u64 %all, cells;\nadd.u64 %to, %to, %all;\nst.shared.b64 [%to], -1;\ncp.async.ca.shared.global [%to], [%in], 8, %b;\nld.shared.b64 %d, [%to];", "d:b64", "a:b64 b:b32", &[
        (&[0x1122_3344_5566_7788, 3], &[0x66_7788]), (&[0x1122_3344_5566_7788, 0], &[0]), (&[0x1122_3344_5566_7788, 8], &[0x1122_3344_5566_7788]),
    ]),
    ("cvt.rn.f16x2.f32 %d, %a, %b;", "d:b32", "a:f32 b:f32", &[(&[ONE32, 0x4000_0000], &[0x3c00_4000])]),
    ("cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "d:b32", "a:f32 b:f32", &[(&[0xbf80_0000, ONE32], &[0x0000_3f80])]),
    ("cvt.pack.sat.s16.s32 %d, %a, %b;", "d:b32", "a:s32 b:s32", &[(&[0x1_0000, LEAST32], &[0x7fff_8000])]),
    ("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", "d:b32", "a:s32 b:s32 c:b32", &[(&[300, ALL32, 0x1234_5678], &[0x5678_ff00])]),
    // Halves: one rounding of the exact result.
    ("fma.rn.f16 %d, %a, %b, %c;", "d:f16", "a:f16 b:f16 c:f16", &[
        (&[0x3c01, 0x3c01, 0xbc02], &[0x0010]), (&[0x7bff, 0x3c00, 0x4c00], &[0x7c00]), (&[0x6800, 0x0001, 0x3c00], &[0x3c00]),
    ]),
    ("add.f16 %d, %a, %b;", "d:f16", "a:f16 b:f16", &[(&[0x7bff, 0x4bff], &[0x7bff]), (&[0x7bff, 0x4c00], &[0x7c00]), (&[1, 1], &[2]), (&[0x7c00, 0xfc00], &[0x7fff])]),
    ("mul.f16x2 %d, %a, %b;", "d:f16x2", "a:f16x2 b:f16x2", &[(&[0x4000_3c00, 0x4200_3c01], &[0x4600_3c01])]),
    ("fma.rn.relu.bf16x2 %d, %a, %b, %c;", "d:bf16x2", "a:bf16x2 b:bf16x2 c:bf16x2", &[(&[0x3f80_bf80, 0x3f80_3f80, 0], &[0x3f80_0000])]),
    ("min.NaN.f16x2 %d, %a, %b;", "d:f16x2", "a:f16x2 b:f16x2", &[(&[0x7e00_3c00, 0x3c00_4000], &[0x7fff_3c00])]),
    // Memory extends by the sign of the type.
    ("ld.global.s8 %d, [%in];", "d:b64", "a:b64", &[(&[0x80], &[0xffff_ffff_ffff_ff80])]),
    ("ld.global.u8 %d, [%in];", "d:b64", "a:b64", &[(&[0xfff0], &[0xf0])]),
    ("st.global.u32 [%out], %a;\natom.global.inc.u32 %d, [%out], %b;\nld.global.u32 %e, [%out];", "d:u32 e:u32", "a:u32 b:u32", &[(&[3, 3], &[3, 0]), (&[2, 3], &[2, 3]), (&[9, 3], &[9, 0])]),
    ("st.global.u32 [%out], %a;\natom.global.dec.u32 %d, [%out], %b;\nld.global.u32 %e, [%out];", "d:u32 e:u32", "a:u32 b:u32", &[(&[0, 3], &[0, 3]), (&[2, 3], &[2, 1]), (&[9, 3], &[9, 3])]),
];
