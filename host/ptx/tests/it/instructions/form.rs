//! One form of an instruction: its text, its operands and results, and the kernel that applies many forms to rows of operands.
//!
//! ```text
//!  memory:   rows of form 0 │ results of form 0 │ rows of form 1 │ …          8 bytes an operand or result
//!  kernel:   thread i: for each form with more than i rows: load row i, execute, store results i
//! ```

use std::fmt::Write;

use steadfast_ptx::module::Type;

use crate::random::{Random, edges};
use crate::rig::BUFFERS;

/// More rows than this and they are drawn by chance from the cross product.
const MOST_ROWS: usize = 2500;

/// How results may differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tolerance {
    /// Not at all.
    None,
    /// By so many units in the last place of the type; classes (NaN, infinities) not at all.
    Units(Type, u64),
    /// By so much, as a part of the result or, below 1, absolutely.
    Near(Type, f64),
}

/// A form of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Instructions on the registers named in the operands and results. `%in` and `%out` hold the addresses of this row.
    pub(super) code: String,
    operands: Vec<Slot>,
    results: Vec<Slot>,
    pub(super) tolerance: Tolerance,
    /// What to apply it to, one after the other.
    pub(super) rows: Vec<Vec<u64>>,
}

/// A register that is loaded or stored.
#[derive(Clone, Debug)]
struct Slot {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// All edges of the type.
    Of(Type),
    /// A number of bits to shift by, or a position among bits.
    Count,
    /// Below 32.
    Lane,
}

impl Kind {
    fn parse(text: &str) -> Self {
        Self::Of(match text {
            "count" => return Self::Count,
            "lane" => return Self::Lane,
            "pred" => Type::Pred,
            "b16" | "u16" => Type::U16,
            "s16" => Type::S16,
            "b32" | "u32" => Type::U32,
            "s32" => Type::S32,
            "b64" | "u64" => Type::U64,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "bf16" => Type::Bf16,
            "u16x2" | "s16x2" => Type::U16x2,
            "f16x2" => Type::F16x2,
            "bf16x2" => Type::Bf16x2,
            "f32" => Type::F32,
            "f64" => Type::F64,
            other => unreachable!("no operand has the type {other}"),
        })
    }

    fn edges(self) -> Vec<u64> {
        match self {
            Self::Of(ty) => edges(ty),
            Self::Count => {
                vec![0, 1, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 257, 0x8000_0000, 0xffff_ffff]
            }
            Self::Lane => vec![0, 1, 7, 15, 16, 30, 31],
        }
    }

    /// The type of the register and the letters that load and store it.
    fn register(self) -> &'static str {
        match self {
            Self::Of(Type::Pred) => "pred",
            Self::Of(Type::F32) => "f32",
            Self::Of(Type::F64) => "f64",
            Self::Of(ty) if ty.bits() == 16 => "b16",
            Self::Of(ty) if ty.bits() == 64 => "b64",
            _ => "b32",
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::Of(ty) => ty.bits().min(64),
            _ => 32,
        }
    }
}

fn slots(text: &str) -> Vec<Slot> {
    text.split_whitespace()
        .map(|slot| {
            let (name, kind) = slot.split_once(':').unwrap();
            Slot { name: format!("%{name}"), kind: Kind::parse(kind) }
        })
        .collect()
}

impl Form {
    /// `results` and `operands` are lists like `d:s32 p:pred`. The names in the code are the same, with `%`.
    pub(super) fn new(code: &str, results: &str, operands: &str) -> Self {
        let mut form = Self {
            code: code.to_owned(),
            operands: slots(operands),
            results: slots(results),
            tolerance: Tolerance::None,
            rows: Vec::new(),
        };
        form.rows = form.cross_product();
        form
    }

    pub(super) fn within(self, tolerance: Tolerance) -> Self {
        Self { tolerance, ..self }
    }

    pub(super) fn on(self, rows: Vec<Vec<u64>>) -> Self {
        Self { rows, ..self }
    }

    /// Every edge with every other, or a part of that, and as many rows of any bits as there are edges.
    fn cross_product(&self) -> Vec<Vec<u64>> {
        let edges: Vec<Vec<u64>> = self.operands.iter().map(|slot| slot.kind.edges()).collect();
        let count: usize = edges.iter().map(Vec::len).product();
        let row = |mut index: usize| {
            edges
                .iter()
                .map(|edges| {
                    let edge = edges[index % edges.len()];
                    index /= edges.len();
                    edge
                })
                .collect()
        };
        let mut random = Random::new(count as u64);
        let mut rows: Vec<Vec<u64>> = if count <= MOST_ROWS {
            (0..count).map(row).collect()
        } else {
            (0..MOST_ROWS).map(|_| row(random.below(count as u64) as usize)).collect()
        };
        for _ in 0..edges.iter().map(Vec::len).max().unwrap_or(1) {
            let bits = |slot: &Slot| random.next() & (u64::MAX >> (64 - slot.kind.bits()));
            rows.push(self.operands.iter().map(bits).collect());
        }
        if self.operands.iter().any(|slot| matches!(slot.kind, Kind::Lane)) {
            rows.truncate(count.min(MOST_ROWS));
        }
        rows
    }

    /// Results without the poison above them.
    pub(super) fn masked(&self, results: Vec<u64>) -> Vec<u64> {
        let bits = |slot: &Slot| if matches!(slot.kind, Kind::Of(Type::Pred)) { 32 } else { slot.kind.bits() };
        results.iter().zip(&self.results).map(|(value, slot)| value & (u64::MAX >> (64 - bits(slot)))).collect()
    }

    fn bytes_of_operands(&self) -> u64 {
        8 * (self.rows.len() * self.operands.len()) as u64
    }

    fn bytes_of_results(&self) -> u64 {
        8 * (self.rows.len() * self.results.len()) as u64
    }
}

/// Forms that one kernel executes.
pub(super) struct Batch<'a> {
    forms: &'a [Form],
    /// Where each form's operands and results lie.
    places: Vec<(u64, u64)>,
    /// Where the last of them ends.
    pub(super) end: u64,
}

impl<'a> Batch<'a> {
    pub(super) fn new(forms: &'a [Form]) -> Self {
        let mut end = BUFFERS;
        let places = forms
            .iter()
            .map(|form| {
                let place = (end, end + form.bytes_of_operands());
                end = place.1 + form.bytes_of_results();
                place
            })
            .collect();
        Self { forms, places, end }
    }

    /// How many threads it takes.
    pub(super) fn threads(&self) -> u32 {
        self.forms.iter().map(|form| form.rows.len()).max().unwrap_or(0) as u32
    }

    /// Writes the operands; results are poisoned.
    pub(super) fn fill(&self, memory: &mut [u8]) {
        for (form, (operands, results)) in self.forms.iter().zip(&self.places) {
            let mut at = *operands as usize;
            for value in form.rows.iter().flatten() {
                memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
                at += 8;
            }
            memory[*results as usize..][..form.bytes_of_results() as usize].fill(0xa5);
        }
    }

    /// The results of a row, as 8 bytes each.
    pub(super) fn results(&self, form: usize, row: usize, memory: &[u8]) -> Vec<u64> {
        let count = self.forms[form].results.len();
        let at = self.places[form].1 as usize + 8 * row * count;
        memory[at..at + 8 * count].chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// The module with its one entry `forms`.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            ".version 8.2\n.target sm_90\n.address_size 64\n.visible .entry forms()\n{\n\
             .reg .pred %skip;\n.reg .b32 %i, %block, %size;\n.reg .b64 %in, %out;\n\
             mov.u32 %block, %ctaid.x;\nmov.u32 %size, %ntid.x;\nmov.u32 %i, %tid.x;\nmad.lo.u32 %i, %block, %size, %i;\n",
        );
        for (index, (form, place)) in self.forms.iter().zip(&self.places).enumerate() {
            form.write(&mut text, index, *place).unwrap();
        }
        text + "ret;\n}\n"
    }
}

impl Form {
    fn write(&self, text: &mut String, index: usize, (operands, results): (u64, u64)) -> std::fmt::Result {
        let rows = self.rows.len();
        writeln!(text, "setp.ge.u32 %skip, %i, {rows};\n@%skip bra after_{index};\n{{")?;
        for slot in self.operands.iter().chain(&self.results) {
            writeln!(text, ".reg .{} {};", slot.kind.register(), slot.name)?;
        }
        for (name, count, base) in [("%in", self.operands.len(), operands), ("%out", self.results.len(), results)] {
            writeln!(text, "mul.wide.u32 {name}, %i, {};\nadd.u64 {name}, {name}, {base};", 8 * count)?;
        }
        for (at, slot) in (0..).step_by(8).zip(&self.operands) {
            match slot.kind.register() {
                "pred" => {
                    writeln!(text, "{{\n.reg .b32 %loaded;\nld.global.b32 %loaded, [%in+{at}];")?;
                    writeln!(text, "setp.ne.u32 {}, %loaded, 0;\n}}", slot.name)?;
                }
                ty => writeln!(text, "ld.global.{ty} {}, [%in+{at}];", slot.name)?,
            }
        }
        writeln!(text, "{}", self.code)?;
        for (at, slot) in (0..).step_by(8).zip(&self.results) {
            match slot.kind.register() {
                "pred" => {
                    writeln!(text, "{{\n.reg .b32 %stored;\nselp.u32 %stored, 1, 0, {};", slot.name)?;
                    writeln!(text, "st.global.b32 [%out+{at}], %stored;\n}}")?;
                }
                ty => writeln!(text, "st.global.{ty} [%out+{at}], {};", slot.name)?,
            }
        }
        writeln!(text, "}}\nafter_{index}:")
    }
}
