//! Floating-point arithmetic.

use super::modifiers::{ROUNDINGS, Table};
use super::reader::Reader;
use crate::module::{FloatMode, FloatOp, FloatTest, FloatUnary, Op, Rounding, Type};
use crate::parse::error::Result;

const ALL: &[Type] = &[Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2, Type::F32, Type::F64];
const SINGLE: &[Type] = &[Type::F32];
const FULL: &[Type] = &[Type::F32, Type::F64];

const NEAREST: &Table<Rounding> = &[("rn", Rounding::NearestEven)];
const APPROXIMATE: &Table<Rounding> = &[("approx", Rounding::Approximate)];
const SINGLE_DIVISIONS: &Table<Rounding> = &[
    ("approx", Rounding::Approximate),
    ("full", Rounding::Full),
    ("rn", Rounding::NearestEven),
    ("rz", Rounding::Zero),
    ("rm", Rounding::Down),
    ("rp", Rounding::Up),
];
const SINGLE_ROOTS: &Table<Rounding> = &[
    ("approx", Rounding::Approximate),
    ("rn", Rounding::NearestEven),
    ("rz", Rounding::Zero),
    ("rm", Rounding::Down),
    ("rp", Rounding::Up),
];

const EXACT: FloatMode = FloatMode { rounding: Rounding::NearestEven, flush: false, saturate: false, relu: false };

fn is_ieee_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2)
}

fn is_half(ty: Type) -> bool {
    is_ieee_half(ty) || matches!(ty, Type::Bf16 | Type::Bf16x2)
}

/// The roundings of sums and products of this type.
fn roundings(ty: Type) -> &'static Table<Rounding> {
    if is_half(ty) { NEAREST } else { ROUNDINGS }
}

/// `.ftz` and `.sat`, where this type has them.
fn flush_and_saturate(reader: &mut Reader, ty: Type, mode: FloatMode) -> FloatMode {
    if ty != Type::F32 && !is_ieee_half(ty) {
        return mode;
    }
    FloatMode { flush: reader.modifiers.flag("ftz"), saturate: reader.modifiers.flag("sat"), ..mode }
}

/// `.ftz`, for those types that it exists for.
fn flush(reader: &mut Reader, ty: Type) -> bool {
    (ty == Type::F32 || is_ieee_half(ty)) && reader.modifiers.flag("ftz")
}

/// `add`, `sub`, `mul`.
pub(super) fn sum(reader: &mut Reader, op: FloatOp) -> Result<Op> {
    let ty = reader.ty(ALL)?;
    let rounding = reader.modifiers.take(roundings(ty)).unwrap_or(Rounding::NearestEven);
    let mode = flush_and_saturate(reader, ty, FloatMode { rounding, ..EXACT });
    two_operands(reader, op, ty, mode)
}

fn two_operands(reader: &mut Reader, op: FloatOp, ty: Type, mode: FloatMode) -> Result<Op> {
    Ok(Op::Float { op, ty, mode, dst: reader.dst(ty)?, a: reader.src(ty)?, b: reader.src(ty)? })
}

pub(super) fn div(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(FULL)?;
    let table = if ty == Type::F32 { SINGLE_DIVISIONS } else { ROUNDINGS };
    let rounding = reader.choice(table, "a rounding such as `.rn`")?;
    let mode = FloatMode { rounding, flush: flush(reader, ty), ..EXACT };
    two_operands(reader, FloatOp::Div, ty, mode)
}

/// `min` and `max`.
pub(super) fn extreme(reader: &mut Reader, plain: FloatOp, with_nan: FloatOp) -> Result<Op> {
    let ty = reader.ty(ALL)?;
    let op = if ty != Type::F64 && reader.modifiers.flag("NaN") { with_nan } else { plain };
    let mode = FloatMode { flush: flush(reader, ty), ..EXACT };
    two_operands(reader, op, ty, mode)
}

pub(super) fn copysign(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(FULL)?;
    two_operands(reader, FloatOp::Copysign, ty, EXACT)
}

pub(super) fn fma(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(ALL)?;
    let rounding = reader.choice(roundings(ty), "a rounding such as `.rn`")?;
    let mut mode = flush_and_saturate(reader, ty, FloatMode { rounding, ..EXACT });
    mode.relu = is_half(ty) && !mode.saturate && reader.modifiers.flag("relu");
    fused(reader, ty, mode)
}

/// `mad` on floats, which is fused as `fma` is.
pub(super) fn mad(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(FULL)?;
    let rounding = reader.choice(ROUNDINGS, "a rounding such as `.rn`")?;
    let mode = flush_and_saturate(reader, ty, FloatMode { rounding, ..EXACT });
    fused(reader, ty, mode)
}

fn fused(reader: &mut Reader, ty: Type, mode: FloatMode) -> Result<Op> {
    Ok(Op::Fma { ty, mode, dst: reader.dst(ty)?, a: reader.src(ty)?, b: reader.src(ty)?, c: reader.src(ty)? })
}

/// `abs` and `neg`.
pub(super) fn sign(reader: &mut Reader, op: FloatUnary) -> Result<Op> {
    let ty = reader.ty(ALL)?;
    let mode = FloatMode { flush: flush(reader, ty), ..EXACT };
    one_operand(reader, op, ty, mode)
}

fn one_operand(reader: &mut Reader, op: FloatUnary, ty: Type, mode: FloatMode) -> Result<Op> {
    Ok(Op::FloatUnary { op, ty, mode, dst: reader.dst(ty)?, a: reader.src(ty)? })
}

pub(super) fn rcp(reader: &mut Reader) -> Result<Op> {
    reciprocal_or_root(reader, FloatUnary::Rcp)
}

pub(super) fn sqrt(reader: &mut Reader) -> Result<Op> {
    reciprocal_or_root(reader, FloatUnary::Sqrt)
}

fn reciprocal_or_root(reader: &mut Reader, op: FloatUnary) -> Result<Op> {
    let ty = reader.ty(FULL)?;
    let rounding = reader.choice(SINGLE_ROOTS, "a rounding such as `.rn`")?;
    let mut mode = FloatMode { rounding, flush: flush(reader, ty), ..EXACT };
    if ty == Type::F64 && rounding == Rounding::Approximate {
        // The one approximation of doubles is `rcp.approx.ftz.f64`, which flushes always.
        mode.flush = reader.modifiers.flag("ftz");
        if op != FloatUnary::Rcp || !mode.flush {
            return Err(reader.needs("a rounding such as `.rn` for `.f64`"));
        }
    }
    one_operand(reader, op, ty, mode)
}

pub(super) fn rsqrt(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(FULL)?;
    approximate(reader, FloatUnary::Rsqrt, ty, true)
}

pub(super) fn sin(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(SINGLE)?;
    approximate(reader, FloatUnary::Sin, ty, true)
}

pub(super) fn cos(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(SINGLE)?;
    approximate(reader, FloatUnary::Cos, ty, true)
}

pub(super) fn lg2(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(SINGLE)?;
    approximate(reader, FloatUnary::Lg2, ty, true)
}

pub(super) fn ex2(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])?;
    approximate(reader, FloatUnary::Ex2, ty, !is_ieee_half(ty))
}

pub(super) fn tanh(reader: &mut Reader) -> Result<Op> {
    let ty = reader.ty(&[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])?;
    approximate(reader, FloatUnary::Tanh, ty, false)
}

fn approximate(reader: &mut Reader, op: FloatUnary, ty: Type, flushes: bool) -> Result<Op> {
    let rounding = reader.choice(APPROXIMATE, "`.approx`")?;
    let mode = FloatMode { rounding, flush: flushes && reader.modifiers.flag("ftz"), ..EXACT };
    one_operand(reader, op, ty, mode)
}

pub(super) fn testp(reader: &mut Reader) -> Result<Op> {
    const TESTS: &Table<FloatTest> = &[
        ("finite", FloatTest::Finite),
        ("infinite", FloatTest::Infinite),
        ("number", FloatTest::Number),
        ("notanumber", FloatTest::NotANumber),
        ("normal", FloatTest::Normal),
        ("subnormal", FloatTest::Subnormal),
    ];
    let test = reader.choice(TESTS, "what it asks, such as `.finite`")?;
    let ty = reader.ty(FULL)?;
    Ok(Op::Test { test, ty, dst: reader.dst(Type::Pred)?, a: reader.src(ty)? })
}
