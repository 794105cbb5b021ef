//! Arithmetic on floats, comparisons, conversions.

use super::form::check;

#[test]
fn forms() {
    check(&[
        ("add.f32 %f1, %f2, 0f3F800000", "Float { op: Add, ty: F32, dst: %f1, a: %f2, b: Immediate(1065353216) }"),
        (
            "add.rz.ftz.sat.f32 %f1, %f2, 1.5",
            "Float { op: Add, ty: F32, mode: FloatMode { rounding: Zero, flush: true, saturate: true }, dst: %f1, a: %f2, b: Immediate(1069547520) }",
        ),
        (
            "sub.rm.f64 %g1, %g2, 0d3FF0000000000000",
            "Float { op: Sub, ty: F64, mode: FloatMode { rounding: Down }, dst: %g1, a: %g2, b: Immediate(4607182418800017408) }",
        ),
        (
            "mul.rp.f64 %g1, %g2, -2.5e-3",
            "Float { op: Mul, ty: F64, mode: FloatMode { rounding: Up }, dst: %g1, a: %g2, b: Immediate(13791283066904122491) }",
        ),
        ("add.f16 %h1, %h2, 0x3C00", "Float { op: Add, ty: F16, dst: %h1, a: %h2, b: Immediate(15360) }"),
        (
            "mul.rn.ftz.sat.f16x2 %r1, %r2, %r3",
            "Float { op: Mul, ty: F16x2, mode: FloatMode { rounding: NearestEven, flush: true, saturate: true }, dst: %r1, a: %r2, b: %r3 }",
        ),
        ("sub.bf16 %h1, %h2, %h3", "Float { op: Sub, ty: Bf16, dst: %h1, a: %h2, b: %h3 }"),
        ("add.rn.bf16x2 %r1, %r2, %r3", "Float { op: Add, ty: Bf16x2, dst: %r1, a: %r2, b: %r3 }"),
        (
            "div.approx.ftz.f32 %f1, %f2, %f3",
            "Float { op: Div, ty: F32, mode: FloatMode { rounding: Approximate, flush: true }, dst: %f1, a: %f2, b: %f3 }",
        ),
        (
            "div.full.f32 %f1, %f2, %f3",
            "Float { op: Div, ty: F32, mode: FloatMode { rounding: Full }, dst: %f1, a: %f2, b: %f3 }",
        ),
        ("div.rn.f64 %g1, %g2, %g3", "Float { op: Div, ty: F64, dst: %g1, a: %g2, b: %g3 }"),
        ("min.NaN.f32 %f1, %f2, %f3", "Float { op: MinNan, ty: F32, dst: %f1, a: %f2, b: %f3 }"),
        (
            "max.ftz.f16x2 %r1, %r2, %r3",
            "Float { op: Max, ty: F16x2, mode: FloatMode { rounding: NearestEven, flush: true }, dst: %r1, a: %r2, b: %r3 }",
        ),
        ("min.bf16 %h1, %h2, %h3", "Float { op: Min, ty: Bf16, dst: %h1, a: %h2, b: %h3 }"),
        ("max.f64 %g1, %g2, %g3", "Float { op: Max, ty: F64, dst: %g1, a: %g2, b: %g3 }"),
        ("copysign.f32 %f1, %f2, %f3", "Float { op: Copysign, ty: F32, dst: %f1, a: %f2, b: %f3 }"),
        ("fma.rn.f32 %f1, %f2, %f3, %r1", "Fma { ty: F32, dst: %f1, a: %f2, b: %f3, c: %r1 }"),
        (
            "fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4",
            "Fma { ty: Bf16x2, mode: FloatMode { rounding: NearestEven, relu: true }, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "fma.rz.f64 %g1, %g2, %g3, %g4",
            "Fma { ty: F64, mode: FloatMode { rounding: Zero }, dst: %g1, a: %g2, b: %g3, c: %g4 }",
        ),
        (
            "fma.rn.ftz.sat.f16 %h1, %h2, %h3, %h4",
            "Fma { ty: F16, mode: FloatMode { rounding: NearestEven, flush: true, saturate: true }, dst: %h1, a: %h2, b: %h3, c: %h4 }",
        ),
        (
            "mad.rn.ftz.f32 %f1, %f2, %f3, %f4",
            "Fma { ty: F32, mode: FloatMode { rounding: NearestEven, flush: true }, dst: %f1, a: %f2, b: %f3, c: %f4 }",
        ),
        (
            "abs.ftz.f32 %f1, %f2",
            "FloatUnary { op: Abs, ty: F32, mode: FloatMode { rounding: NearestEven, flush: true }, dst: %f1, a: %f2 }",
        ),
        ("neg.bf16x2 %r1, %r2", "FloatUnary { op: Neg, ty: Bf16x2, dst: %r1, a: %r2 }"),
        ("neg.f16 %h1, %h2", "FloatUnary { op: Neg, ty: F16, dst: %h1, a: %h2 }"),
        ("abs.f64 %g1, %g2", "FloatUnary { op: Abs, ty: F64, dst: %g1, a: %g2 }"),
        (
            "rcp.approx.ftz.f64 %g1, %g2",
            "FloatUnary { op: Rcp, ty: F64, mode: FloatMode { rounding: Approximate, flush: true }, dst: %g1, a: %g2 }",
        ),
        (
            "rcp.rz.f32 %f1, %f2",
            "FloatUnary { op: Rcp, ty: F32, mode: FloatMode { rounding: Zero }, dst: %f1, a: %f2 }",
        ),
        (
            "sqrt.approx.f32 %f1, %f2",
            "FloatUnary { op: Sqrt, ty: F32, mode: FloatMode { rounding: Approximate }, dst: %f1, a: %f2 }",
        ),
        ("sqrt.rn.f64 %g1, %g2", "FloatUnary { op: Sqrt, ty: F64, dst: %g1, a: %g2 }"),
        (
            "rsqrt.approx.ftz.f32 %f1, %f2",
            "FloatUnary { op: Rsqrt, ty: F32, mode: FloatMode { rounding: Approximate, flush: true }, dst: %f1, a: %f2 }",
        ),
        (
            "rsqrt.approx.f64 %g1, %g2",
            "FloatUnary { op: Rsqrt, ty: F64, mode: FloatMode { rounding: Approximate }, dst: %g1, a: %g2 }",
        ),
        (
            "sin.approx.f32 %f1, %f2",
            "FloatUnary { op: Sin, ty: F32, mode: FloatMode { rounding: Approximate }, dst: %f1, a: %f2 }",
        ),
        (
            "cos.approx.ftz.f32 %f1, %f2",
            "FloatUnary { op: Cos, ty: F32, mode: FloatMode { rounding: Approximate, flush: true }, dst: %f1, a: %f2 }",
        ),
        (
            "lg2.approx.f32 %f1, %f2",
            "FloatUnary { op: Lg2, ty: F32, mode: FloatMode { rounding: Approximate }, dst: %f1, a: %f2 }",
        ),
        (
            "ex2.approx.f16x2 %r1, %r2",
            "FloatUnary { op: Ex2, ty: F16x2, mode: FloatMode { rounding: Approximate }, dst: %r1, a: %r2 }",
        ),
        (
            "ex2.approx.ftz.bf16 %h1, %h2",
            "FloatUnary { op: Ex2, ty: Bf16, mode: FloatMode { rounding: Approximate, flush: true }, dst: %h1, a: %h2 }",
        ),
        (
            "tanh.approx.f32 %f1, %f2",
            "FloatUnary { op: Tanh, ty: F32, mode: FloatMode { rounding: Approximate }, dst: %f1, a: %f2 }",
        ),
        (
            "tanh.approx.bf16x2 %r1, %r2",
            "FloatUnary { op: Tanh, ty: Bf16x2, mode: FloatMode { rounding: Approximate }, dst: %r1, a: %r2 }",
        ),
        ("testp.subnormal.f64 %p, %g1", "Test { test: Subnormal, ty: F64, dst: %p, a: %g1 }"),
        (
            "setp.lt.s32 %p, %r1, 0",
            "SetPredicate { comparison: Lt, ty: S32, dst: %p, inverse: None, a: %r1, b: Immediate(0) }",
        ),
        (
            "setp.hs.u16 %p, %h1, -1",
            "SetPredicate { comparison: Ge, ty: U16, dst: %p, inverse: None, a: %h1, b: Immediate(65535) }",
        ),
        (
            "setp.eq.b64 %p|%q, %d1, %d2",
            "SetPredicate { comparison: Eq, ty: B64, dst: %p, inverse: %q, a: %d1, b: %d2 }",
        ),
        (
            "setp.neu.ftz.f32 %p, %f1, 0f00000000",
            "SetPredicate { comparison: Neu, ty: F32, flush: true, dst: %p, inverse: None, a: %f1, b: Immediate(0) }",
        ),
        (
            "setp.ge.and.f64 %p|_, %g1, %g2, !%q",
            "SetPredicate { comparison: Ge, ty: F64, dst: %p, inverse: None, a: %g1, b: %g2, combine: Some((And, Predicate { register: %q, negated: true })) }",
        ),
        (
            "setp.nan.xor.f16 _|%p, %h1, %h2, %q",
            "SetPredicate { comparison: Nan, ty: F16, dst: None, inverse: %p, a: %h1, b: %h2, combine: Some((Xor, Predicate { register: %q, negated: false })) }",
        ),
        (
            "setp.gtu.bf16x2 %p|%q, %r1, %r2",
            "SetPredicate { comparison: Gtu, ty: Bf16x2, dst: %p, inverse: %q, a: %r1, b: %r2 }",
        ),
        ("set.eq.u32.f32 %r1, %f1, %f2", "Set { comparison: Eq, to: U32, ty: F32, dst: %r1, a: %f1, b: %f2 }"),
        (
            "set.lt.or.f32.s32 %f1, %r1, %r2, %p",
            "Set { comparison: Lt, to: F32, ty: S32, dst: %f1, a: %r1, b: %r2, combine: Some((Or, Predicate { register: %p, negated: false })) }",
        ),
        (
            "set.ge.ftz.f16x2.f16x2 %r1, %r2, %r3",
            "Set { comparison: Ge, to: F16x2, ty: F16x2, flush: true, dst: %r1, a: %r2, b: %r3 }",
        ),
        (
            "selp.f32 %f1, %f2, 0f7FFFFFFF, %p",
            "Select { ty: F32, dst: %f1, a: %f2, b: Immediate(2147483647), predicate: %p }",
        ),
        (
            "selp.b16 %h1, -1, 0, %p",
            "Select { ty: B16, dst: %h1, a: Immediate(65535), b: Immediate(0), predicate: %p }",
        ),
        ("slct.u32.s32 %r1, %r2, %r3, %r4", "SelectBySign { ty: U32, c_ty: S32, dst: %r1, a: %r2, b: %r3, c: %r4 }"),
        (
            "slct.ftz.f64.f32 %g1, %g2, %g3, %f1",
            "SelectBySign { ty: F64, c_ty: F32, flush: true, dst: %g1, a: %g2, b: %g3, c: %f1 }",
        ),
        ("cvt.u16.u32 %h1, %r1", "Convert { to: U16, from: U32, rounding_given: false, dst: %h1, src: %r1 }"),
        ("cvt.s8.s32 %r1, %r2", "Convert { to: S8, from: S32, rounding_given: false, dst: %r1, src: %r2 }"),
        (
            "cvt.u64.u32 %d1, %tid.x",
            "Convert { to: U64, from: U32, rounding_given: false, dst: %d1, src: Special(Thread(X)) }",
        ),
        (
            "cvt.sat.u8.s32 %h1, %r1",
            "Convert { to: U8, from: S32, mode: FloatMode { rounding: NearestEven, saturate: true }, rounding_given: false, dst: %h1, src: %r1 }",
        ),
        (
            "cvt.rzi.s32.f32 %r1, %f1",
            "Convert { to: S32, from: F32, mode: FloatMode { rounding: IntegerZero }, rounding_given: true, dst: %r1, src: %f1 }",
        ),
        (
            "cvt.rpi.ftz.sat.u64.f32 %d1, %f1",
            "Convert { to: U64, from: F32, mode: FloatMode { rounding: IntegerUp, flush: true, saturate: true }, rounding_given: true, dst: %d1, src: %f1 }",
        ),
        ("cvt.rn.f32.s64 %f1, %d1", "Convert { to: F32, from: S64, rounding_given: true, dst: %f1, src: %d1 }"),
        (
            "cvt.rmi.f64.f64 %g1, %g2",
            "Convert { to: F64, from: F64, mode: FloatMode { rounding: IntegerDown }, rounding_given: true, dst: %g1, src: %g2 }",
        ),
        ("cvt.f64.f32 %g1, %f1", "Convert { to: F64, from: F32, rounding_given: false, dst: %g1, src: %f1 }"),
        (
            "cvt.rp.ftz.f32.f64 %f1, %g1",
            "Convert { to: F32, from: F64, mode: FloatMode { rounding: Up, flush: true }, rounding_given: true, dst: %f1, src: %g1 }",
        ),
        ("cvt.f32.f16 %f1, %h1", "Convert { to: F32, from: F16, rounding_given: false, dst: %f1, src: %h1 }"),
        ("cvt.rn.bf16.f32 %h1, %f1", "Convert { to: Bf16, from: F32, rounding_given: true, dst: %h1, src: %f1 }"),
        (
            "cvt.rn.relu.f16.f32 %h1, %f1",
            "Convert { to: F16, from: F32, mode: FloatMode { rounding: NearestEven, relu: true }, rounding_given: true, dst: %h1, src: %f1 }",
        ),
        (
            "cvt.rz.bf16x2.f32 %r1, %f1, %f2",
            "Convert { to: Bf16x2, from: F32, mode: FloatMode { rounding: Zero }, rounding_given: true, dst: %r1, src: %f1, second: %f2 }",
        ),
        (
            "cvt.sat.f32.f32 %f1, %f2",
            "Convert { to: F32, from: F32, mode: FloatMode { rounding: NearestEven, saturate: true }, rounding_given: false, dst: %f1, src: %f2 }",
        ),
        (
            "cvt.rni.f16.f16 %h1, %h2",
            "Convert { to: F16, from: F16, mode: FloatMode { rounding: IntegerNearestEven }, rounding_given: true, dst: %h1, src: %h2 }",
        ),
        ("cvt.pack.sat.s16.s32 %r1, %r2, %r3", "ConvertPack { to: S16, from: S32, dst: %r1, a: %r2, b: %r3, c: None }"),
        (
            "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4",
            "ConvertPack { to: U8, from: S32, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
    ]);
}
