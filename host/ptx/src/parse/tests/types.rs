//! Which types each instruction has: with these it is accepted, with all others refused.

use super::form::read;

const TYPES: &str = "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64";
const INTEGERS: &str = "u16 u32 u64 s16 s32 s64";
const SIGNED: &str = "s16 s32 s64";
const BITS: &str = "b16 b32 b64";
const HALVES: &str = "f16 f16x2 bf16 bf16x2";
const FULL: &str = "f32 f64";
const FIELDS: &str = "u32 u64 s32 s64";

/// A register that an operand of this type can be.
fn register(ty: &str) -> &'static str {
    match ty {
        "pred" => "%p",
        "b8" | "u8" | "s8" | "b16" | "u16" | "s16" | "f16" | "bf16" => "%h1",
        "f32" => "%f1",
        "f64" => "%g1",
        "b128" => "%x1",
        _ if ty.ends_with("64") => "%d1",
        _ => "%r1",
    }
}

/// A register twice as wide.
fn wide(ty: &str) -> &'static str {
    if ty.ends_with("16") { "%r1" } else { "%d1" }
}

/// Tries an instruction, in which `TYPE` stands for a type, `T` for a register of it and `W` for one twice as wide.
#[track_caller]
fn exactly(instruction: &str, types: &[&str]) {
    let allowed: Vec<&str> = types.iter().flat_map(|types| types.split(' ')).collect();
    for ty in TYPES.split(' ') {
        let (opcode, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let operands = operands.replace('T', register(ty)).replace('W', wide(ty));
        let text = format!("{} {operands}", opcode.replace("TYPE", ty));
        match read(&text) {
            Ok(_) => assert!(allowed.contains(&ty), "accepted: {text}"),
            Err(error) => assert!(!allowed.contains(&ty), "{text}: {error}"),
        }
    }
}

#[test]
fn arithmetic() {
    exactly("add.TYPE T, T, T", &[INTEGERS, HALVES, FULL]);
    exactly("sub.TYPE T, T, T", &[INTEGERS, HALVES, FULL]);
    exactly("add.sat.TYPE T, T, T", &["s32 f16 f16x2 f32"]);
    exactly("add.ftz.TYPE T, T, T", &["f16 f16x2 f32"]);
    exactly("add.rz.TYPE T, T, T", &[FULL]);
    exactly("add.cc.TYPE T, T, T", &[FIELDS]);
    exactly("subc.TYPE T, T, T", &[FIELDS]);
    exactly("mul.lo.TYPE T, T, T", &[INTEGERS]);
    exactly("mul.TYPE T, T, T", &[HALVES, FULL]);
    exactly("mul.wide.TYPE W, T, T", &["u16 s16 u32 s32"]);
    exactly("mad.wide.TYPE W, T, T, W", &["u16 s16 u32 s32"]);
    exactly("mad.hi.TYPE T, T, T, T", &[INTEGERS]);
    exactly("mad.hi.sat.TYPE T, T, T, T", &["s32"]);
    exactly("madc.lo.cc.TYPE T, T, T, T", &[FIELDS]);
    exactly("mad24.lo.TYPE T, T, T, T", &["u32 s32"]);
    exactly("mad.rn.TYPE T, T, T, T", &[FULL]);
    exactly("fma.rn.TYPE T, T, T, T", &[HALVES, FULL]);
    exactly("fma.rm.TYPE T, T, T, T", &[FULL]);
    exactly("fma.rn.relu.TYPE T, T, T, T", &[HALVES]);
    exactly("div.TYPE T, T, T", &[INTEGERS]);
    exactly("div.rp.TYPE T, T, T", &[FULL]);
    exactly("div.full.ftz.TYPE T, T, T", &["f32"]);
    exactly("rem.TYPE T, T, T", &[INTEGERS]);
    exactly("sad.TYPE T, T, T, T", &[INTEGERS]);
    exactly("min.TYPE T, T, T", &[INTEGERS, HALVES, FULL]);
    exactly("max.NaN.TYPE T, T, T", &[HALVES, "f32"]);
    exactly("abs.TYPE T, T", &[SIGNED, HALVES, FULL]);
    exactly("neg.TYPE T, T", &[SIGNED, HALVES, FULL]);
    exactly("neg.ftz.TYPE T, T", &["f16 f16x2 f32"]);
    exactly("rcp.rn.TYPE T, T", &[FULL]);
    exactly("sqrt.approx.TYPE T, T", &["f32"]);
    exactly("rcp.approx.ftz.TYPE T, T", &[FULL]);
    exactly("rsqrt.approx.TYPE T, T", &[FULL]);
    exactly("lg2.approx.ftz.TYPE T, T", &["f32"]);
    exactly("ex2.approx.TYPE T, T", &[HALVES, "f32"]);
    exactly("tanh.approx.TYPE T, T", &[HALVES, "f32"]);
    exactly("copysign.TYPE T, T, T", &[FULL]);
    exactly("testp.normal.TYPE %q, T", &[FULL]);
}

#[test]
fn bits() {
    exactly("and.TYPE T, T, T", &["pred", BITS]);
    exactly("not.TYPE T, T", &["pred", BITS]);
    exactly("cnot.TYPE T, T", &[BITS]);
    exactly("shl.TYPE T, T, %r2", &[BITS]);
    exactly("shr.TYPE T, T, %r2", &[BITS, INTEGERS]);
    exactly("shf.l.wrap.TYPE T, T, T, 1", &["b32"]);
    exactly("popc.TYPE %r2, T", &["b32 b64"]);
    exactly("brev.TYPE T, T", &["b32 b64"]);
    exactly("bfind.TYPE %r2, T", &[FIELDS]);
    exactly("bfe.TYPE T, T, 1, 2", &[FIELDS]);
    exactly("bfi.TYPE T, T, T, 1, 2", &["b32 b64"]);
    exactly("szext.clamp.TYPE T, T, 2", &["u32 s32"]);
    exactly("prmt.TYPE T, T, T, 1", &["b32"]);
}

#[test]
fn choices_and_moves() {
    exactly("setp.eq.TYPE %q, T, T", &[BITS, INTEGERS, HALVES, FULL]);
    exactly("setp.lt.TYPE %q, T, T", &[INTEGERS, HALVES, FULL]);
    exactly("setp.lo.TYPE %q, T, T", &["u16 u32 u64"]);
    exactly("setp.ltu.TYPE %q, T, T", &[HALVES, FULL]);
    exactly("setp.num.ftz.TYPE %q, T, T", &["f16 f16x2 f32"]);
    exactly("set.eq.u32.TYPE %r2, T, T", &[BITS, INTEGERS, HALVES, FULL]);
    exactly("set.eq.TYPE.f32 T, %f1, %f2", &["u32 s32 f32"]);
    exactly("set.eq.TYPE.f16 T, %h1, %h2", &["u16 s16 u32 s32 f16"]);
    exactly("selp.TYPE T, T, T, %q", &[BITS, INTEGERS, FULL]);
    exactly("slct.TYPE.s32 T, T, T, %r2", &[BITS, INTEGERS, FULL]);
    exactly("mov.TYPE T, T", &["pred b128", BITS, INTEGERS, FULL]);
    exactly("ld.global.TYPE T, [%d2]", &["b8 u8 s8 b128", BITS, INTEGERS, FULL]);
    exactly("st.global.v2.TYPE [%d2], {T, T}", &["b8 u8 s8", BITS, INTEGERS, FULL]);
    exactly("st.local.v4.TYPE [%d2], {T, T, T, T}", &["b8 u8 s8 b16 u16 s16 b32 u32 s32 f32"]);
}

#[test]
fn conversions() {
    exactly("cvt.TYPE.s32 T, %r2", &["u8 s8", INTEGERS]);
    exactly("cvt.rzi.TYPE.f32 T, %f2", &["u8 s8 f32", INTEGERS]);
    exactly("cvt.rn.TYPE.u64 T, %d2", &["f16 bf16", FULL]);
    exactly("cvt.rz.TYPE.f64 T, %g2", &["f16 bf16 f32"]);
    exactly("cvt.TYPE.f16 T, %h2", &["f16", FULL]);
    exactly("cvt.rn.relu.TYPE.f32 T, %f1", &["f16 bf16"]);
    exactly("cvt.rn.TYPE.f32 T, %f1, %f2", &["f16x2 bf16x2"]);
    exactly("cvt.rn.f32.TYPE %f2, T", &["u8 s8 f64", INTEGERS]);
}

#[test]
fn together() {
    exactly("atom.global.add.TYPE T, [%d2], T", &[FIELDS, HALVES, FULL]);
    exactly("atom.global.min.TYPE T, [%d2], T", &[FIELDS]);
    exactly("atom.global.inc.TYPE T, [%d2], T", &["u32"]);
    exactly("atom.global.xor.TYPE T, [%d2], T", &["b32 b64"]);
    exactly("atom.global.exch.TYPE T, [%d2], T", &["b32 b64"]);
    exactly("atom.global.cas.TYPE T, [%d2], T, T", &[BITS]);
    exactly("red.global.or.TYPE [%d2], T", &["b32 b64"]);
    exactly("shfl.sync.idx.TYPE T, T, 1, 31, -1", &["b32"]);
    exactly("match.any.sync.TYPE %r2, T, -1", &["b32 b64"]);
    exactly("redux.sync.max.TYPE T, T, -1", &["u32 s32"]);
    exactly("redux.sync.and.TYPE T, T, -1", &["b32"]);
}
