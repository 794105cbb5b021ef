//! What a warp does with matrices: they are put together from what all lanes bring, element by element as PTX says where each stands.

use steadfast_ptx::module::{FloatMode, MatrixShape, Op, Rounding, Type};

use super::integer::signed_value;
use super::thread::Offer;
use super::{Oracle, Trap, convert, float};

const NEAREST: FloatMode = FloatMode { rounding: Rounding::NearestEven, flush: false, saturate: false, relu: false };
const LANES: usize = 32;
/// Columns of a product, rows and columns of what is loaded and stored.
const EIGHT: usize = 8;

/// A place in a matrix: row and column.
type Place = (usize, usize);

/// What each lane receives, if it is an instruction of a whole warp on matrices.
pub(super) fn results(oracle: &mut Oracle, offers: &[Option<Offer>; LANES]) -> Result<Vec<Vec<u64>>, Trap> {
    let all: Option<Vec<&Offer>> = offers.iter().map(Option::as_ref).collect();
    let Some(all) = all else { return Err(Trap::Undefined("a warp that is not whole")) };
    match &all[0].instruction.op {
        Op::Product { shape, factors, sum, .. } => Ok(product(&all, *shape, *factors, *sum)),
        Op::LoadMatrices { transposed, dst, .. } => load(oracle, &all, dst.len(), *transposed),
        Op::StoreMatrices { transposed, src, .. } => store(oracle, &all, src.len(), *transposed),
        _ => Ok((0..LANES)
            .map(|lane| {
                let halves = halves_of(lane).map(|(row, column)| half(&all, 0, (column, row)));
                vec![halves[1] << 16 | halves[0]]
            })
            .collect()),
    }
}

/// Where the two halves of a lane's register stand in a matrix of 8×8.
fn halves_of(lane: usize) -> [Place; 2] {
    [0, 1].map(|which| (lane / 4, lane % 4 * 2 + which))
}

/// The half at a place, from what the lanes bring in their n-th word.
fn half(all: &[&Offer], word: usize, (row, column): Place) -> u64 {
    all[row * 4 + column / 2].brought[word] >> (16 * (column % 2)) & 0xffff
}

/// The address of a row of the n-th matrix.
fn row_address(all: &[&Offer], matrix: usize, row: usize) -> u64 {
    all[EIGHT * matrix + row].a
}

fn load(oracle: &Oracle, all: &[&Offer], count: usize, transposed: bool) -> Result<Vec<Vec<u64>>, Trap> {
    let element = |matrix: usize, (row, column): Place| {
        let (row, column) = if transposed { (column, row) } else { (row, column) };
        oracle.load(row_address(all, matrix, row).wrapping_add(2 * column as u64), 2)
    };
    let word = |lane: usize, matrix: usize| {
        let [lower, upper] = halves_of(lane).map(|place| element(matrix, place));
        Ok((upper? << 16 | lower?) as u64)
    };
    (0..LANES).map(|lane| (0..count).map(|matrix| word(lane, matrix)).collect()).collect()
}

fn store(oracle: &mut Oracle, all: &[&Offer], count: usize, transposed: bool) -> Result<Vec<Vec<u64>>, Trap> {
    for matrix in 0..count {
        for row in 0..EIGHT {
            for column in 0..EIGHT {
                let place = if transposed { (column, row) } else { (row, column) };
                let at = row_address(all, matrix, row).wrapping_add(2 * column as u64);
                oracle.store(at, 2, half(all, matrix, place).into())?;
            }
        }
    }
    Ok(vec![Vec::new(); LANES])
}

/// Where the elements stand that a lane brings of the first factor, in the order of its registers.
fn first_factor(ty: Type, shape: MatrixShape, lane: usize) -> Vec<Place> {
    let (group, turn) = (lane / 4, lane % 4);
    let below = |is_below: bool, column: usize| (if is_below { group + 8 } else { group }, column);
    match (ty.bits(), shape.depth) {
        (8, 16) => (0..8).map(|i| below(i >= 4, turn * 4 + (i & 3))).collect(),
        (8, _) => (0..16)
            .map(|i| below(!(i < 4 || (8..12).contains(&i)), turn * 4 + (i & 3) + if i >= 8 { 16 } else { 0 }))
            .collect(),
        (16, 8) => (0..4).map(|i| below(i >= 2, turn * 2 + (i & 1))).collect(),
        (16, _) => (0..8)
            .map(|i| below(!(i < 2 || (4..6).contains(&i)), turn * 2 + (i & 1) + if i >= 4 { 8 } else { 0 }))
            .collect(),
        (_, 4) if shape.rows == 8 => vec![below(false, turn)],
        (_, 4) => (0..2).map(|i| below(i == 1, turn)).collect(),
        (_, 8) => (0..4).map(|i| below(i == 1 || i == 3, if i < 2 { turn } else { turn + 4 })).collect(),
        _ => (0..8).map(|i| below(i % 2 == 1, if i % 2 == 0 { i * 2 + turn } else { i * 2 - 2 + turn })).collect(),
    }
}

/// The same of the second.
fn second_factor(ty: Type, depth: u32, lane: usize) -> Vec<Place> {
    let (group, turn) = (lane / 4, lane % 4);
    let rows: Vec<usize> = match (ty.bits(), depth) {
        (8, 16) => (0..4).map(|i| turn * 4 + i).collect(),
        (8, _) => (0..8).map(|i| turn * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }).collect(),
        (16, 8) => vec![turn * 2, turn * 2 + 1],
        (16, _) => vec![turn * 2, turn * 2 + 1, turn * 2 + 8, turn * 2 + 9],
        (_, 4) => vec![turn],
        (_, 8) => vec![turn, turn + 4],
        _ => vec![turn, turn + 4, turn + 8, turn + 12],
    };
    rows.into_iter().map(|row| (row, group)).collect()
}

/// The same of what is added, and of the result.
fn sums(rows: u32, lane: usize) -> Vec<Place> {
    let (group, turn) = (lane / 4, lane % 4);
    let upper = [(group, turn * 2), (group, turn * 2 + 1)];
    let lower = [(group + 8, turn * 2), (group + 8, turn * 2 + 1)];
    if rows == 8 { upper.to_vec() } else { [upper, lower].concat() }
}

/// The elements in registers, from the lowest bits on.
fn elements(words: &[u64], ty: Type) -> Vec<u64> {
    let width = ty.bits();
    let register = width.max(32);
    words
        .iter()
        .flat_map(|word| (0..register / width).map(move |index| word >> (index * width) & (u64::MAX >> (64 - width))))
        .collect()
}

/// A whole matrix from what each lane brings of it.
fn gathered([rows, columns]: [usize; 2], lanes: impl Iterator<Item = (Vec<Place>, Vec<u64>)>) -> Vec<Vec<u64>> {
    let mut matrix = vec![vec![None; columns]; rows];
    for (places, values) in lanes {
        assert_eq!(places.len(), values.len(), "elements of a lane");
        for ((row, column), value) in places.into_iter().zip(values) {
            assert!(matrix[row][column].replace(value).is_none(), "two lanes bring the same element");
        }
    }
    matrix.into_iter().map(|row| row.into_iter().map(Option::unwrap).collect()).collect()
}

fn product(all: &[&Offer], shape: MatrixShape, factors: [Type; 2], sum: Type) -> Vec<Vec<u64>> {
    let (rows, depth) = (shape.rows as usize, shape.depth as usize);
    let registers = |ty: Type, count: usize| count * ty.bits() as usize / ty.bits().max(32) as usize / LANES;
    let of_first = registers(factors[0], rows * depth);
    let of_second = registers(factors[1], depth * EIGHT);
    let lanes = || all.iter().enumerate();
    let first = gathered(
        [rows, depth],
        lanes().map(|(lane, offer)| {
            let values = elements(&offer.brought[..of_first], factors[0]);
            (first_factor(factors[0], shape, lane), values)
        }),
    );
    let second = gathered(
        [depth, EIGHT],
        lanes().map(|(lane, offer)| {
            let values = elements(&offer.brought[of_first..of_first + of_second], factors[1]);
            (second_factor(factors[1], shape.depth, lane), values)
        }),
    );
    let added = gathered(
        [rows, EIGHT],
        lanes().map(|(lane, offer)| (sums(shape.rows, lane), elements(&offer.brought[of_first + of_second..], sum))),
    );
    let result = |(row, column): Place| {
        let pairs = (0..depth).map(|k| [first[row][k], second[k][column]]);
        element(pairs, factors, added[row][column], sum)
    };
    (0..LANES)
        .map(|lane| {
            let values: Vec<u64> = sums(shape.rows, lane).into_iter().map(result).collect();
            if sum == Type::F16 { values.chunks(2).map(|pair| pair[1] << 16 | pair[0]).collect() } else { values }
        })
        .collect()
}

/// One element of the result: the products are added in their order, to what is there, each with one rounding. Halves are added as singles.
fn element(pairs: impl Iterator<Item = [u64; 2]>, factors: [Type; 2], start: u64, sum: Type) -> u64 {
    if sum == Type::S32 {
        let total = pairs.fold(signed_value(Type::S32, start), |total, [a, b]| {
            total + signed_value(factors[0], a) * signed_value(factors[1], b)
        });
        return total as u32 as u64;
    }
    let computed = if sum == Type::F64 { Type::F64 } else { Type::F32 };
    let widened = |ty: Type, bits: u64| match ty {
        Type::Tf32 => bits >> 13 << 13,
        ty if ty == computed => bits,
        ty => convert::convert(computed, ty, NEAREST, bits),
    };
    let total = pairs.fold(widened(sum, start), |total, [a, b]| {
        float::fused(computed, NEAREST, widened(factors[0], a), widened(factors[1], b), total)
    });
    if sum == Type::F16 { convert::convert(Type::F16, computed, NEAREST, total) } else { total }
}
