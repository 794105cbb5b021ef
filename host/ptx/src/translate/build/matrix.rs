//! What a warp does with matrices. Each lane puts what it brings into its frame and waits; when all have come, one routine does the work for the whole warp
//! (see `translate::collective`), and each lane takes what is its own.

use super::body::Body;
use super::float::is_half;
use crate::module::{Address, Op, Operand, RegisterId, Rounding, Space, Type};
use crate::translate::collective::{self, Collective, Product};
use crate::translate::error::Result;
use crate::translate::frame;
use crate::translate::ir::{Access, Input, Inst, Kind, Memory, Unary, Value};
use crate::translate::meeting;

/// Bytes of a row of a matrix of 8×8 halves, and rows of it.
const ROW: u64 = 16;
const ROWS: u32 = 8;

impl Body<'_, '_> {
    pub(super) fn matrix(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Product { .. } => self.matrix_product(op),
            Op::LoadMatrices { space, transposed, dst, address } => {
                self.bring_row(*space, address, dst.len() as u32)?;
                self.gather(Collective::Load { count: dst.len() as u32, transposed: *transposed });
                for (index, register) in dst.iter().enumerate() {
                    let value = self.taken(collective::WORDS + 4 * index as u32, Kind::I32);
                    self.write(*register, Type::B32, value);
                }
                Ok(())
            }
            Op::StoreMatrices { space, transposed, address, src } => {
                for (index, operand) in src.iter().enumerate() {
                    let value = self.operand(operand, Type::B32)?;
                    self.bring(collective::WORDS + 4 * index as u32, value);
                }
                self.bring_row(*space, address, src.len() as u32)?;
                self.gather(Collective::Store { count: src.len() as u32, transposed: *transposed });
                Ok(())
            }
            Op::TransposeMatrix { dst, a } => {
                let value = self.operand(a, Type::B32)?;
                self.bring(0, value);
                self.gather(Collective::Transpose);
                let value = self.taken(collective::WORDS, Kind::I32);
                self.write(*dst, Type::B32, value);
                Ok(())
            }
            _ => Err(self.error("this instruction has no translation")),
        }
    }

    /// Puts a value where the routine finds it.
    fn bring(&mut self, offset: u32, value: Value) {
        let (frame, bytes) = (self.input(Input::Frame), self.b.kind(value).bytes());
        self.b.store_private(frame, u64::from(frame::EXCHANGE + offset), value, bytes);
    }

    /// What the routine left for this lane.
    fn taken(&mut self, offset: u32, kind: Kind) -> Value {
        let frame = self.input(Input::Frame);
        self.b.load_private(frame, u64::from(frame::EXCHANGE + offset), kind, kind.bytes())
    }

    /// Waits for all lanes of the warp, for which the routine then has run.
    fn gather(&mut self, collective: Collective) {
        let purpose = self.shop.collective(collective);
        let all = self.b.i32(u32::MAX);
        self.meet(meeting::COLLECTIVE + purpose, Some(all), None, None);
    }

    /// Brings the address of a row, if this lane's counts. It is looked at here, so that a wild one is told with its place in the text.
    fn bring_row(&mut self, space: Space, address: &Address, matrices: u32) -> Result<()> {
        let target = self.target_of(space, address)?;
        let offset = self.b.i64(target.offset);
        let address = self.b.add(target.base, offset);
        self.bring(0, address);
        let (rows, lane) = (self.b.i32(ROWS * matrices), self.lane());
        let counts = self.b.lt_u(lane, rows);
        let (look, behind) = (self.b.block(), self.b.block());
        self.b.branch(counts, look, behind);
        self.b.start(look);
        // An atomic load is not left out, though nobody reads what it gives.
        let last = Access {
            memory: Memory::Device,
            bytes: 1,
            signed: false,
            offset: ROW - 1,
            atomic: true,
            exclusive: false,
            constant: false,
        };
        self.b.push(Inst::Load(last, address), Some(Kind::I32));
        self.b.jump(behind);
        self.b.start(behind);
        Ok(())
    }

    fn matrix_product(&mut self, op: &Op) -> Result<()> {
        let Op::Product { shape, factors, sum, dst, a, b, c } = op else { return Ok(()) };
        let product = Product {
            kind: computed(*sum),
            groups: shape.rows / ROWS,
            width: if factors[0].bits() <= 16 { 32 / factors[0].bits() } else { 1 },
            depth: shape.depth,
        };
        for (registers, ty, start) in
            [(a, factors[0], product.first()), (b, factors[1], product.second()), (c, *sum, product.sums())]
        {
            let mut at = start;
            for register in registers {
                for element in self.elements(register, ty)? {
                    self.bring(at, element);
                    at += product.kind.bytes();
                }
            }
        }
        self.gather(Collective::Product(product));
        self.take_sums(product, *sum, dst);
        Ok(())
    }

    fn take_sums(&mut self, product: Product, sum: Type, dst: &[RegisterId]) {
        let kind = product.kind;
        let mut at = product.sums();
        let mut next = |body: &mut Self| {
            at += kind.bytes();
            body.taken(at - kind.bytes(), kind)
        };
        for register in dst {
            let value = next(self);
            if !is_half(sum) {
                self.write(*register, sum, value);
                continue;
            }
            let halves = [value, next(self)].map(|value| {
                let wide = self.b.unary(Unary::Promote, value);
                self.f64_to_half(sum, wide, Rounding::NearestEven)
            });
            let value = self.packed(halves[0], halves[1]);
            self.write(*register, Type::B32, value);
        }
    }

    /// The elements in a register, each as the product computes with it.
    fn elements(&mut self, register: &Operand, ty: Type) -> Result<Vec<Value>> {
        if matches!(ty, Type::F32 | Type::F64 | Type::S32) {
            return Ok(vec![self.operand(register, ty)?]);
        }
        let bits = self.operand(register, Type::B32)?;
        if ty == Type::Tf32 {
            // The lower bits of the fraction do not count, whatever they are.
            let counting = self.b.i32(!0x1fff);
            let bits = self.b.and(bits, counting);
            return Ok(vec![self.b.reinterpret(bits, Kind::F32)]);
        }
        let pieces = (0..32 / ty.bits()).map(|index| {
            let distance = self.b.i32(index * ty.bits());
            let piece = self.b.shr_u(bits, distance);
            let piece = self.narrow(piece, ty);
            if is_half(ty) { self.half_to_f32(ty, piece) } else { piece }
        });
        Ok(pieces.collect())
    }
}

/// In what a sum is computed: halves as singles, rounded once at the end.
fn computed(sum: Type) -> Kind {
    match sum {
        Type::F64 => Kind::F64,
        Type::S32 => Kind::I32,
        _ => Kind::F32,
    }
}
