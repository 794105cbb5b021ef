//! Each instruction on the values at which instructions go wrong: the oracle, the translation and rows written by hand agree.
//!
//! | module | what it is for |
//! |---|---|
//! | `form` | a form of an instruction, and kernels that apply forms to rows of operands |
//! | `tables` | which forms there are |
//! | `literal` | rows worked out by hand |

mod form;
mod literal;
mod tables;

use steadfast_ptx::module::Type;

use form::{Batch, Form, Tolerance};

use crate::rig::{self, Run, Start};

/// Forms in one kernel.
const FORMS: usize = 24;
/// Threads in a block: no multiple of a warp.
const THREADS: u32 = 96;
/// Rows of a form that a failure shows.
const SHOWN: usize = 4;

/// What the oracle and the translation make of the operands of a batch.
struct Results {
    oracle: Vec<u8>,
    translation: Vec<u8>,
}

fn run(batch: &Batch) -> Result<Results, String> {
    let rig = rig::Kernel::new(&batch.text(), "forms")?;
    let mut start = Start::of(&rig, batch.end);
    batch.fill(&mut start.memory);
    let run = Run { grid: [batch.threads().div_ceil(THREADS), 1, 1], block: [THREADS, 1, 1], ..Run::default() };
    Ok(Results {
        oracle: rig.oracle(&run, &start).map_err(|trap| format!("the oracle: {trap:?}"))?,
        translation: rig.translation(&run, &start)?,
    })
}

/// Every form alone must be taken; then all together, many to a kernel, must give what the oracle gives.
fn check(forms: Vec<Form>) {
    let mut failures = Vec::new();
    let taken: Vec<Form> = forms
        .into_iter()
        .filter(|form| {
            let text = Batch::new(std::slice::from_ref(form)).text();
            let refused = rig::Kernel::new(&text, "forms").err();
            failures.extend(refused.iter().map(|error| format!("{}\n    {error}", form.code)));
            refused.is_none()
        })
        .collect();
    for forms in taken.chunks(FORMS) {
        let batch = Batch::new(forms);
        let results = run(&batch).unwrap();
        for (index, form) in forms.iter().enumerate() {
            failures.extend(differences(&batch, index, form, &results));
        }
    }
    assert!(failures.is_empty(), "{} of the forms:\n{}", failures.len(), failures.join("\n"));
}

/// What a reader needs to see of the rows that differ.
fn differences(batch: &Batch, index: usize, form: &Form, results: &Results) -> Option<String> {
    let mut shown = Vec::new();
    let mut count = 0;
    for (row, operands) in form.rows.iter().enumerate() {
        let expected = batch.results(index, row, &results.oracle);
        let got = batch.results(index, row, &results.translation);
        if !expected.iter().zip(&got).all(|(expected, got)| agree(form.tolerance, *expected, *got)) {
            count += 1;
            if count <= SHOWN {
                shown.push(format!("    {operands:x?} gives {got:x?} and not {expected:x?}"));
            }
        }
    }
    (count > 0).then(|| format!("{}    ({count} of {} rows)\n{}", form.code, form.rows.len(), shown.join("\n")))
}

fn agree(tolerance: Tolerance, expected: u64, got: u64) -> bool {
    match tolerance {
        Tolerance::None => expected == got,
        Tolerance::Units(ty, units) => halves(ty, expected, got).all(|(expected, got)| {
            let number = |bits: u64| {
                let magnitude = (bits & ((1 << (ty.bits() - 1)) - 1)) as i64;
                if bits >> (ty.bits() - 1) & 1 == 1 { -magnitude } else { magnitude }
            };
            expected == got || number(expected).abs_diff(number(got)) <= units
        }),
        Tolerance::Near(ty, bound) => {
            let number =
                |bits: u64| if ty == Type::F64 { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
            let (expected, got) = (number(expected), number(got));
            expected.to_bits() == got.to_bits() || (expected - got).abs() <= bound * expected.abs().max(1.0)
        }
    }
}

/// The halves of results that may be packed, and the whole of others. What lies above is poison.
fn halves(ty: Type, expected: u64, got: u64) -> impl Iterator<Item = (u64, u64)> {
    let width = ty.bits();
    let count = if width == 16 { 2 } else { 1 };
    (0..count).map(move |half| {
        let part = |bits: u64| bits >> (half * width) & ((1 << width) - 1);
        (part(expected), part(got))
    })
}

#[test]
fn rows_written_by_hand() {
    let (forms, expected) = literal::forms();
    let mut failures = Vec::new();
    for (forms, expected) in forms.chunks(FORMS).zip(expected.chunks(FORMS)) {
        let batch = Batch::new(forms);
        let results = run(&batch).unwrap();
        for ((index, form), rows) in forms.iter().enumerate().zip(expected) {
            for (row, expected) in rows.iter().enumerate() {
                for (who, memory) in [("the oracle", &results.oracle), ("the translation", &results.translation)] {
                    let got: Vec<u64> = form.masked(batch.results(index, row, memory));
                    if got != *expected {
                        let operands = &form.rows[row];
                        failures.push(format!(
                            "{}\n    {operands:x?}: {who} has {got:x?} and not {expected:x?}",
                            form.code
                        ));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn integer_arithmetic() {
    check(tables::integer_arithmetic());
}

#[test]
fn carry_chains() {
    check(tables::carry_chains());
}

#[test]
fn bits() {
    check(tables::bits());
}

#[test]
fn single_precision() {
    check(tables::single_precision());
}

#[test]
fn double_precision() {
    check(tables::double_precision());
}

#[test]
fn half_precision() {
    check(tables::half_precision());
}

#[test]
fn comparisons() {
    check(tables::comparisons());
}

#[test]
fn selections() {
    check(tables::selections());
}

#[test]
fn conversions() {
    check(tables::conversions());
}

#[test]
fn packing() {
    check(tables::packing());
}

#[test]
fn memory() {
    check(tables::memory());
}

#[test]
fn copies() {
    check(tables::copies());
}

#[test]
fn barriers() {
    check(tables::barriers());
}

#[test]
fn atomics() {
    check(tables::atomics());
}

#[test]
fn approximations() {
    check(tables::approximations());
}
