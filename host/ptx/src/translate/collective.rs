//! Routines that do for a whole warp what its lanes came together for.
//!
//! Each finds what the lanes brought in the exchange area of their frames, and leaves there what each of them takes. A routine is written with the builder, as
//! helpers are, and called by the scheduler when all 32 lanes have come: `routine(exchange area of lane 0, bytes from lane to lane)`.
//!
//! # Products
//!
//! Lane `l` is in row `l / 4` of a group of eight rows, and brings of each row the elements of its turn `l % 4`:
//!
//! ```text
//!  k in order:     for each part: for each turn 0 … 3: `width` elements        width: 4 for bytes, 2 for halves, 1 for others; parts: depth / 4 / width
//!  brings:         first factor:  by part, by group of rows, by element
//!                  second factor: by part, by element (its columns lie as the first one's rows)
//!                  sums:          by group of rows, of the columns 2 · turn and 2 · turn + 1
//! ```
//!
//! An element of the result is the sum that was brought, then the products in the order of `k`, each added with one rounding. Hardware promises no order; with
//! another one the last bits differ.

use super::build::ssa::{Builder, Variable};
use super::ir::{Access, Inst, Kind, Memory, Terminator, Unary, Value};
use crate::kernel::WARP;

/// In an exchange area: where the words lie that are moved; before them is an address or a word.
pub const WORDS: u32 = 8;
/// Lanes that share a row.
const TURNS: u32 = 4;

/// What a routine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Collective {
    /// `mma`.
    Product(Product),
    /// `ldmatrix`: each lane brings the address of a row.
    Load {
        /// How many matrices.
        count: u32,
        /// Whether they are transposed on the way.
        transposed: bool,
    },
    /// `stmatrix`.
    Store {
        /// How many matrices.
        count: u32,
        /// Whether they are transposed on the way.
        transposed: bool,
    },
    /// `movmatrix`.
    Transpose,
}

/// The kind of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Product {
    /// In what it is computed.
    pub kind: Kind,
    /// Groups of eight rows.
    pub groups: u32,
    /// Elements that a lane brings of a row in one part.
    pub width: u32,
    /// How many products are summed.
    pub depth: u32,
}

impl Product {
    fn parts(self) -> u32 {
        self.depth / TURNS / self.width
    }

    /// Where a lane's elements of the first factor lie, by part, group and element …
    pub fn first(self) -> u32 {
        0
    }

    /// … those of the second …
    pub fn second(self) -> u32 {
        self.first() + self.parts() * self.groups * self.width * self.kind.bytes()
    }

    /// … and its sums.
    pub fn sums(self) -> u32 {
        self.second() + self.parts() * self.width * self.kind.bytes()
    }
}

impl Collective {
    /// The kinds of a routine's arguments.
    pub const ARGUMENTS: [Kind; 2] = [Kind::I32; 2];

    /// Bytes of the exchange area.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Product(product) => product.sums() + 2 * product.groups * product.kind.bytes(),
            Self::Load { count, .. } | Self::Store { count, .. } => WORDS + 4 * count,
            Self::Transpose => WORDS + 4,
        }
    }

    /// Writes the routine.
    pub fn build(self, b: &mut Builder) {
        let (head, behind) = (b.block(), b.block());
        let lane = b.variable(Kind::I32);
        b.jump(head);
        b.start(head);
        let mut warp = Warp::at(b, lane);
        match self {
            Self::Product(product) => warp.product(product),
            Self::Load { count, transposed } => (0..count).for_each(|matrix| warp.load_matrix(matrix, transposed)),
            Self::Store { count, transposed } => (0..count).for_each(|matrix| warp.store_matrix(matrix, transposed)),
            Self::Transpose => warp.transpose(),
        }
        let (one, end) = (b.i32(1), b.i32(WARP));
        let now = b.read(lane);
        let next = b.add(now, one);
        b.write(lane, next);
        let again = b.lt_u(next, end);
        b.branch(again, head, behind);
        b.start(behind);
        b.end(Terminator::Return(None));
    }
}

/// The warp, seen from one of its lanes.
struct Warp<'b> {
    b: &'b mut Builder,
    /// Of the lane.
    row: Value,
    turn: Value,
    own: Value,
}

impl<'b> Warp<'b> {
    fn at(b: &'b mut Builder, lane: Variable) -> Self {
        let lane = b.read(lane);
        let (two, three) = (b.i32(2), b.i32(3));
        let (row, turn) = (b.shr_u(lane, two), b.and(lane, three));
        let mut warp = Self { b, row, turn, own: lane };
        warp.own = warp.area(lane);
        warp
    }

    /// The exchange area of a lane.
    fn area(&mut self, lane: Value) -> Value {
        let (base, stride) = (self.b.argument(0), self.b.argument(1));
        let distance = self.b.mul(lane, stride);
        self.b.add(base, distance)
    }

    /// The lane `times · value + more`.
    fn area_of(&mut self, value: Value, times: u32, more: u32) -> Value {
        let (times, more) = (self.b.i32(times), self.b.i32(more));
        let lane = self.b.mul(value, times);
        let lane = self.b.add(lane, more);
        self.area(lane)
    }

    fn word(&mut self, area: Value, offset: u32, kind: Kind) -> Value {
        self.b.load_private(area, u64::from(offset), kind, kind.bytes())
    }

    fn product(&mut self, product: Product) {
        let kind = product.kind;
        let row: Vec<Value> = (0..TURNS).map(|turn| self.area_of(self.row, TURNS, turn)).collect();
        // Of the two columns: the lanes of each lie behind one another.
        let columns: Vec<Value> = (0..2 * TURNS).map(|lane| self.area_of(self.turn, 2 * TURNS, lane)).collect();
        let place = |group: u32, column: u32| product.sums() + (2 * group + column) * kind.bytes();
        let mut sums: Vec<Value> =
            (0..2 * product.groups).map(|index| self.word(self.own, place(index / 2, index % 2), kind)).collect();
        for part in 0..product.parts() {
            for turn in 0..TURNS {
                for element in 0..product.width {
                    let first = |group: u32| (part * product.groups + group) * product.width + element;
                    let second = product.second() + (part * product.width + element) * kind.bytes();
                    let right = [0, TURNS].map(|column| self.word(columns[(column + turn) as usize], second, kind));
                    for group in 0..product.groups {
                        let left = self.word(row[turn as usize], product.first() + first(group) * kind.bytes(), kind);
                        for (column, right) in right.into_iter().enumerate() {
                            let sum = &mut sums[2 * group as usize + column];
                            *sum = multiply_add(self.b, left, right, *sum);
                        }
                    }
                }
            }
        }
        for (index, sum) in (0..).zip(sums) {
            let sum = if kind.is_float() { self.b.canonical(sum) } else { sum };
            self.b.store_private(self.own, u64::from(place(index / 2, index % 2)), sum, kind.bytes());
        }
    }

    /// The address of a row of a matrix: the lane's own row, or one of the two rows that are its turn.
    fn row_address(&mut self, matrix: u32, row: Row) -> Value {
        let area = match row {
            Row::Own => self.area_of(self.row, 1, 8 * matrix),
            Row::OfTurn(which) => self.area_of(self.turn, 2, 8 * matrix + which),
        };
        self.word(area, 0, Kind::I64)
    }

    /// Adds `value · times` to an address.
    fn behind(&mut self, address: Value, value: Value, times: u32) -> Value {
        let times = self.b.i32(times);
        let distance = self.b.mul(value, times);
        let distance = self.b.unary(Unary::Widen { signed: false }, distance);
        self.b.add(address, distance)
    }

    fn load_matrix(&mut self, matrix: u32, transposed: bool) {
        let value = if transposed {
            let halves = [0, 1].map(|which| {
                let address = self.row_address(matrix, Row::OfTurn(which));
                let address = self.behind(address, self.row, 2);
                self.b.push(Inst::Load(device(2), address), Some(Kind::I32))
            });
            self.pair(halves)
        } else {
            let address = self.row_address(matrix, Row::Own);
            let address = self.behind(address, self.turn, 4);
            self.b.push(Inst::Load(device(4), address), Some(Kind::I32))
        };
        self.b.store_private(self.own, u64::from(WORDS + 4 * matrix), value, 4);
    }

    fn store_matrix(&mut self, matrix: u32, transposed: bool) {
        let value = self.word(self.own, WORDS + 4 * matrix, Kind::I32);
        if !transposed {
            let address = self.row_address(matrix, Row::Own);
            let address = self.behind(address, self.turn, 4);
            self.b.push(Inst::Store(device(4), address, value), None);
            return;
        }
        let sixteen = self.b.i32(16);
        let upper = self.b.shr_u(value, sixteen);
        for (which, half) in [(0, value), (1, upper)] {
            let address = self.row_address(matrix, Row::OfTurn(which));
            let address = self.behind(address, self.row, 2);
            self.b.push(Inst::Store(device(2), address, half), None);
        }
    }

    /// Two rows of the source are this lane's turn; which of their halves, its own row says.
    fn transpose(&mut self) {
        let (one, sixteen) = (self.b.i32(1), self.b.i32(16));
        let (lane_in_row, half) = (self.b.shr_u(self.row, one), self.b.and(self.row, one));
        let halves = [0, 1].map(|which| {
            let (eight, first) = (self.b.i32(2 * TURNS), self.b.i32(TURNS * which));
            let lane = self.b.mul(self.turn, eight);
            let lane = self.b.add(lane, first);
            let lane = self.b.add(lane, lane_in_row);
            let area = self.area(lane);
            let word = self.word(area, 0, Kind::I32);
            let mask = self.b.i32(0xffff);
            let distance = self.b.mul(half, sixteen);
            let moved = self.b.shr_u(word, distance);
            self.b.and(moved, mask)
        });
        let value = self.pair(halves);
        self.b.store_private(self.own, u64::from(WORDS), value, 4);
    }

    fn pair(&mut self, [lower, upper]: [Value; 2]) -> Value {
        let sixteen = self.b.i32(16);
        let upper = self.b.shl(upper, sixteen);
        self.b.or(upper, lower)
    }
}

/// Which row of a matrix.
#[derive(Clone, Copy)]
enum Row {
    Own,
    OfTurn(u32),
}

fn multiply_add(b: &mut Builder, left: Value, right: Value, sum: Value) -> Value {
    if b.kind(sum).is_float() {
        return b.fma(left, right, sum);
    }
    let product = b.mul(left, right);
    b.add(sum, product)
}

fn device(bytes: u32) -> Access {
    Access { memory: Memory::Device, bytes, signed: false, offset: 0, atomic: false, exclusive: false, constant: false }
}
