//! What a warp does with matrices: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`.

use super::modifiers::Table;
use super::reader::Reader;
use super::rules::Fit;
use crate::module::{MatrixShape, Op, Operand, RegisterId, Space, Type};
use crate::parse::error::Result;

/// Shapes of products. All have 8 columns.
const SHAPES: &Table<MatrixShape> = &[
    ("m8n8k4", MatrixShape { rows: 8, depth: 4 }),
    ("m16n8k4", MatrixShape { rows: 16, depth: 4 }),
    ("m16n8k8", MatrixShape { rows: 16, depth: 8 }),
    ("m16n8k16", MatrixShape { rows: 16, depth: 16 }),
    ("m16n8k32", MatrixShape { rows: 16, depth: 32 }),
];
const FACTORS: &[Type] = &[Type::F16, Type::Bf16, Type::Tf32, Type::F64, Type::S8, Type::U8];
const SUMS: &[Type] = &[Type::F32, Type::F16, Type::F64, Type::S32];
/// Lanes of a warp, and columns of a product.
const LANES: u32 = crate::kernel::WARP;
const COLUMNS: u32 = 8;

/// Whether there is a product of this shape, of these factors, with sums of this type.
fn exists(shape: MatrixShape, factors: [Type; 2], sum: Type) -> bool {
    let depths: &[u32] = match (factors, sum) {
        ([Type::F16, Type::F16], Type::F16 | Type::F32) | ([Type::Bf16, Type::Bf16], Type::F32) => &[8, 16],
        ([Type::Tf32, Type::Tf32], Type::F32) => &[4, 8],
        ([Type::S8 | Type::U8, Type::S8 | Type::U8], Type::S32) => &[16, 32],
        ([Type::F64, Type::F64], Type::F64) if shape.rows == 8 => return shape.depth == 4,
        ([Type::F64, Type::F64], Type::F64) => &[4, 8, 16],
        _ => return false,
    };
    shape.rows == 16 && depths.contains(&shape.depth)
}

/// The type of the registers that hold so many elements, and how many of them.
fn registers(ty: Type, elements: u32) -> (Type, usize) {
    match ty {
        Type::F32 | Type::F64 => (ty, elements as usize),
        _ => (Type::B32, (elements * ty.bits() / 32) as usize),
    }
}

/// `.sync.aligned`, which have to be there: all lanes of the warp come.
fn whole_warp(reader: &mut Reader) -> Result<()> {
    if reader.modifiers.flag("sync") && reader.modifiers.flag("aligned") {
        return Ok(());
    }
    Err(reader.needs("`.sync.aligned`"))
}

pub(super) fn mma(reader: &mut Reader) -> Result<Op> {
    whole_warp(reader)?;
    let shape = reader.choice(SHAPES, "a shape that can be translated, such as `.m16n8k16`")?;
    for layout in ["row", "col"] {
        if !reader.modifiers.flag(layout) {
            return Err(reader.needs("`.row.col`"));
        }
    }
    let sum = reader.ty(SUMS)?;
    let factors = [reader.ty(FACTORS)?, reader.ty(FACTORS)?];
    if reader.ty(SUMS)? != sum || !exists(shape, factors, sum) {
        return Err(reader.wrong("combines a shape and types that do not go together"));
    }
    if sum == Type::F64 {
        // The one rounding that sums of doubles have here, and the default.
        reader.modifiers.flag("rn");
    }
    let of_sum = registers(sum, shape.rows * COLUMNS / LANES);
    let dst = destinations(reader, of_sum)?;
    let a = sources(reader, registers(factors[0], shape.rows * shape.depth / LANES))?;
    let b = sources(reader, registers(factors[1], shape.depth * COLUMNS / LANES))?;
    let c = sources(reader, of_sum)?;
    Ok(Op::Product { shape, factors, sum, dst, a, b, c })
}

/// So many registers in braces; a single one may stand without.
fn destinations(reader: &mut Reader, (ty, count): (Type, usize)) -> Result<Vec<RegisterId>> {
    if reader.vector_length(0).is_none() && count == 1 {
        return Ok(vec![reader.dst(ty)?]);
    }
    let registers = reader.dst_braced(count, ty, Fit::Exact)?;
    let registers: Option<Vec<RegisterId>> = registers.into_iter().collect();
    registers.ok_or_else(|| reader.wrong("needs registers for all of its results, not `_`"))
}

fn sources(reader: &mut Reader, (ty, count): (Type, usize)) -> Result<Vec<Operand>> {
    if reader.vector_length(0).is_none() && count == 1 {
        return Ok(vec![reader.src(ty)?]);
    }
    reader.src_braced(count, ty, Fit::Exact)
}

/// What stands before `.b16` of a load or store: how many matrices, whether transposed, and where.
fn moved(reader: &mut Reader) -> Result<(usize, bool, Space)> {
    whole_warp(reader)?;
    reader.choice(&[("m8n8", ())], "`.m8n8`")?;
    let count = reader.choice(&[("x1", 1), ("x2", 2), ("x4", 4)], "`.x1`, `.x2` or `.x4`")?;
    let transposed = reader.modifiers.flag("trans");
    let space = reader.modifiers.take(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]);
    reader.ty(&[Type::B16])?;
    Ok((count, transposed, space.unwrap_or(Space::Generic)))
}

pub(super) fn ldmatrix(reader: &mut Reader) -> Result<Op> {
    let (count, transposed, space) = moved(reader)?;
    let dst = destinations(reader, (Type::B32, count))?;
    let (space, address) = reader.address(space)?;
    Ok(Op::LoadMatrices { space, transposed, dst, address })
}

pub(super) fn stmatrix(reader: &mut Reader) -> Result<Op> {
    let (count, transposed, space) = moved(reader)?;
    let (space, address) = reader.address(space)?;
    let src = sources(reader, (Type::B32, count))?;
    Ok(Op::StoreMatrices { space, transposed, address, src })
}

pub(super) fn movmatrix(reader: &mut Reader) -> Result<Op> {
    whole_warp(reader)?;
    reader.choice(&[("m8n8", ())], "`.m8n8`")?;
    reader.choice(&[("trans", ())], "`.trans`")?;
    reader.ty(&[Type::B16])?;
    Ok(Op::TransposeMatrix { dst: reader.dst(Type::B32)?, a: reader.src(Type::B32)? })
}
