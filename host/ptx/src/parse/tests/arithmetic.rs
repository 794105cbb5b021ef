//! Integer arithmetic, carry chains, bits.

use super::form::check;

#[test]
fn forms() {
    check(&[
        ("add.s32 %r1, %r2, -5", "Integer { op: Add, ty: S32, dst: %r1, a: %r2, b: Immediate(4294967291) }"),
        ("add.u16 %h1, %h2, 0x12345", "Integer { op: Add, ty: U16, dst: %h1, a: %h2, b: Immediate(9029) }"),
        ("add.sat.s32 %r1, %r2, %r3", "Integer { op: Add, ty: S32, saturate: true, dst: %r1, a: %r2, b: %r3 }"),
        (
            "add.cc.u32 %r1, %r2, %r3",
            "Integer { op: Add, ty: U32, carry: Carry { reads: false, writes: true }, dst: %r1, a: %r2, b: %r3 }",
        ),
        (
            "addc.u32 %r1, %r2, %r3",
            "Integer { op: Add, ty: U32, carry: Carry { reads: true, writes: false }, dst: %r1, a: %r2, b: %r3 }",
        ),
        (
            "addc.cc.s64 %d1, %d2, %d3",
            "Integer { op: Add, ty: S64, carry: Carry { reads: true, writes: true }, dst: %d1, a: %d2, b: %d3 }",
        ),
        (
            "sub.u64 %d1, %d2, 18446744073709551615",
            "Integer { op: Sub, ty: U64, dst: %d1, a: %d2, b: Immediate(18446744073709551615) }",
        ),
        (
            "sub.cc.u32 %r1, %r2, 1",
            "Integer { op: Sub, ty: U32, carry: Carry { reads: false, writes: true }, dst: %r1, a: %r2, b: Immediate(1) }",
        ),
        (
            "subc.cc.u32 %r1, %r2, 0b101U",
            "Integer { op: Sub, ty: U32, carry: Carry { reads: true, writes: true }, dst: %r1, a: %r2, b: Immediate(5) }",
        ),
        (
            "subc.u64 %d1, %d2, 017",
            "Integer { op: Sub, ty: U64, carry: Carry { reads: true, writes: false }, dst: %d1, a: %d2, b: Immediate(15) }",
        ),
        ("mul.lo.s32 %r1, %r2, %r3", "Integer { op: MulLo, ty: S32, dst: %r1, a: %r2, b: %r3 }"),
        ("mul.hi.u64 %d1, %d2, %d3", "Integer { op: MulHi, ty: U64, dst: %d1, a: %d2, b: %d3 }"),
        ("mul.wide.s16 %r1, %h1, %h2", "Integer { op: MulWide, ty: S16, dst: %r1, a: %h1, b: %h2 }"),
        ("mul.wide.u32 %d1, %r1, 12", "Integer { op: MulWide, ty: U32, dst: %d1, a: %r1, b: Immediate(12) }"),
        ("mul24.lo.u32 %r1, %r2, %r3", "Integer { op: Mul24Lo, ty: U32, dst: %r1, a: %r2, b: %r3 }"),
        ("mul24.hi.s32 %r1, %r2, %r3", "Integer { op: Mul24Hi, ty: S32, dst: %r1, a: %r2, b: %r3 }"),
        ("mad.lo.u16 %h1, %h2, %h3, %h4", "MultiplyAdd { op: MulLo, ty: U16, dst: %h1, a: %h2, b: %h3, c: %h4 }"),
        ("mad.wide.u32 %d1, %r1, %r2, %d2", "MultiplyAdd { op: MulWide, ty: U32, dst: %d1, a: %r1, b: %r2, c: %d2 }"),
        (
            "mad.hi.sat.s32 %r1, %r2, %r3, %r4",
            "MultiplyAdd { op: MulHi, ty: S32, saturate: true, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "mad.lo.cc.u32 %r1, %r2, %r3, %r4",
            "MultiplyAdd { op: MulLo, ty: U32, carry: Carry { reads: false, writes: true }, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "madc.hi.cc.u32 %r1, %r2, %r3, %r4",
            "MultiplyAdd { op: MulHi, ty: U32, carry: Carry { reads: true, writes: true }, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "madc.lo.u64 %d1, %d2, %d3, 0",
            "MultiplyAdd { op: MulLo, ty: U64, carry: Carry { reads: true, writes: false }, dst: %d1, a: %d2, b: %d3, c: Immediate(0) }",
        ),
        (
            "mad24.hi.sat.s32 %r1, %r2, %r3, %r4",
            "MultiplyAdd { op: Mul24Hi, ty: S32, saturate: true, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        ("mad24.lo.u32 %r1, %r2, %r3, %r4", "MultiplyAdd { op: Mul24Lo, ty: U32, dst: %r1, a: %r2, b: %r3, c: %r4 }"),
        ("div.s64 %d1, %d2, %d3", "Integer { op: Div, ty: S64, dst: %d1, a: %d2, b: %d3 }"),
        ("rem.u16 %h1, %h2, %h3", "Integer { op: Rem, ty: U16, dst: %h1, a: %h2, b: %h3 }"),
        ("min.s32 %r1, %r2, %r3", "Integer { op: Min, ty: S32, dst: %r1, a: %r2, b: %r3 }"),
        ("max.u64 %d1, %d2, %d3", "Integer { op: Max, ty: U64, dst: %d1, a: %d2, b: %d3 }"),
        ("abs.s32 %r1, %r2", "IntegerUnary { op: Abs, ty: S32, dst: %r1, a: %r2 }"),
        ("neg.s16 %h1, %h2", "IntegerUnary { op: Neg, ty: S16, dst: %h1, a: %h2 }"),
        ("sad.u32 %r1, %r2, %r3, %r4", "SumAbsoluteDifference { ty: U32, dst: %r1, a: %r2, b: %r3, c: %r4 }"),
        ("dp4a.u32.s32 %r1, %r2, %r3, %r4", "Dot4 { a_ty: U32, b_ty: S32, dst: %r1, a: %r2, b: %r3, c: %r4 }"),
        (
            "dp2a.lo.s32.u32 %r1, %r2, %r3, %r4",
            "Dot2 { upper: false, a_ty: S32, b_ty: U32, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "dp2a.hi.u32.u32 %r1, %r2, %r3, 7",
            "Dot2 { upper: true, a_ty: U32, b_ty: U32, dst: %r1, a: %r2, b: %r3, c: Immediate(7) }",
        ),
        ("and.b16 %h1, %h2, %h3", "Logic { op: And, ty: B16, dst: %h1, a: %h2, b: %h3 }"),
        ("or.pred %p, %q, 1", "Logic { op: Or, ty: Pred, dst: %p, a: %q, b: Immediate(1) }"),
        ("xor.b64 %d1, %d2, -1", "Logic { op: Xor, ty: B64, dst: %d1, a: %d2, b: Immediate(18446744073709551615) }"),
        ("not.pred %p, %q", "IntegerUnary { op: Not, ty: Pred, dst: %p, a: %q }"),
        ("not.b32 %r1, %r2", "IntegerUnary { op: Not, ty: B32, dst: %r1, a: %r2 }"),
        ("cnot.b64 %d1, %d2", "IntegerUnary { op: Cnot, ty: B64, dst: %d1, a: %d2 }"),
        (
            "lop3.or.b32 _|%p, %r2, %r3, %r4, 1, !%q",
            "Logic3 { dst: None, a: %r2, b: %r3, c: %r4, table: 1, truth: Some((Or, %p, Predicate { register: %q, negated: true })) }",
        ),
        ("min.relu.s16x2 %r1, %r2, %r3", "Integer { op: Min, ty: S16x2, saturate: true, dst: %r1, a: %r2, b: %r3 }"),
        ("add.u16x2 %r1, %r2, 65537", "Integer { op: Add, ty: U16x2, dst: %r1, a: %r2, b: Immediate(65537) }"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 0xE8", "Logic3 { dst: %r1, a: %r2, b: %r3, c: %r4, table: 232 }"),
        ("shl.b64 %d1, %d2, %r1", "Integer { op: Shl, ty: B64, dst: %d1, a: %d2, b: %r1 }"),
        ("shr.s16 %h1, %h2, 40", "Integer { op: Shr, ty: S16, dst: %h1, a: %h2, b: Immediate(40) }"),
        ("shr.b32 %r1, %r2, %r3", "Integer { op: Shr, ty: B32, dst: %r1, a: %r2, b: %r3 }"),
        (
            "shf.l.wrap.b32 %r1, %r2, %r3, %r4",
            "FunnelShift { left: true, wrap: true, dst: %r1, a: %r2, b: %r3, c: %r4 }",
        ),
        (
            "shf.r.clamp.b32 %r1, %r2, %r3, 8",
            "FunnelShift { left: false, wrap: false, dst: %r1, a: %r2, b: %r3, c: Immediate(8) }",
        ),
        ("popc.b64 %r1, %d1", "IntegerUnary { op: Popc, ty: B64, dst: %r1, a: %d1 }"),
        ("clz.b32 %r1, %r2", "IntegerUnary { op: Clz, ty: B32, dst: %r1, a: %r2 }"),
        ("brev.b64 %d1, %d2", "IntegerUnary { op: Brev, ty: B64, dst: %d1, a: %d2 }"),
        ("bfind.s64 %r1, %d1", "IntegerUnary { op: Bfind { shift_amount: false }, ty: S64, dst: %r1, a: %d1 }"),
        ("bfind.shiftamt.u32 %r1, %r2", "IntegerUnary { op: Bfind { shift_amount: true }, ty: U32, dst: %r1, a: %r2 }"),
        ("bfe.s64 %d1, %d2, %r1, 8", "BitExtract { ty: S64, dst: %d1, a: %d2, pos: %r1, len: Immediate(8) }"),
        (
            "bfi.b32 %r1, %r2, %r3, 8, %r4",
            "BitInsert { ty: B32, dst: %r1, a: %r2, b: %r3, pos: Immediate(8), len: %r4 }",
        ),
        ("bmsk.clamp.b32 %r1, %r2, 5", "BitMask { wrap: false, dst: %r1, pos: %r2, len: Immediate(5) }"),
        ("szext.wrap.s32 %r1, %r2, %r3", "ExtendFrom { wrap: true, ty: S32, dst: %r1, a: %r2, n: %r3 }"),
        (
            "fns.b32 %r1, 0xaaaaaaaa, 3, -1",
            "FindNthSet { dst: %r1, mask: Immediate(2863311530), base: Immediate(3), offset: Immediate(4294967295) }",
        ),
        (
            "prmt.b32 %r1, %r2, %r3, 0x5410",
            "Permute { mode: Default, dst: %r1, a: %r2, b: %r3, selector: Immediate(21520) }",
        ),
        ("prmt.b32.f4e %r1, %r2, %r3, %r4", "Permute { mode: F4e, dst: %r1, a: %r2, b: %r3, selector: %r4 }"),
    ]);
}
