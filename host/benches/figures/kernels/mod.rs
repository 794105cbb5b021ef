//! Kernels on the CPU device, against C of the same maths by `cc -O3 -msse4.2` (`native.c`), one core each.
//!
//! *Subject*: launches of a compiled kernel, waited for. *Baseline*: calls of the C function in a process of its own. Both work again and again on
//! the same memory, and hold the same numbers after the first round. Beside these: two cores against one, matrix products against calling their crate,
//! and how long a kernel takes from text to machine code.
//!
//! `threads` has the kernels again as they run thread by thread, which is what was promised before there were lanes of vectors.

mod first_launch;
mod measured;
mod native;
mod subject;

use std::path::Path;

use anyhow::{Result, ensure};
use steadfast::device::{Context, Element, Gemm, Launch, Matrix};
use steadfast::plugin::Runtime;

use crate::digits::{job, settings};
use crate::measure::{Row, in_turn, seconds};
use crate::places;
use measured::{Form, Measured, measured};
use native::Native;
use subject::{Subject, device};

const ROUNDS: usize = 15;
/// How far a kernel's numbers may be from C's, which adds millions of them in another order: a part of the number, or of 1.
const TOLERANCE: f32 = 1e-3;
/// Rows and columns of the matrix product.
const MATRIX: u32 = 1024;

const EMPTY: &str = ".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }";

pub fn figures() -> Result<Vec<Row>> {
    let folder = places::on_disk()?;
    let program = native::build(folder.path())?;
    let mut rows = Vec::new();
    for kernel in measured() {
        rows.push(against_c(&kernel, Form::Lanes, Some(kernel.target), &program)?);
    }
    rows.push(two_cores()?);
    rows.push(launches(folder.path())?);
    rows.push(product()?);
    rows.extend(first_launch::figures(folder.path())?);
    Ok(rows)
}

/// Thread by thread.
pub fn threads() -> Result<Vec<Row>> {
    let folder = places::on_disk()?;
    let program = native::build(folder.path())?;
    let mut rows = Vec::new();
    for kernel in measured().iter().filter(|kernel| kernel.target_of_threads.is_some()) {
        rows.push(against_c(kernel, Form::Threads, kernel.target_of_threads, &program)?);
    }
    rows.extend(first_launch::threads(folder.path())?);
    Ok(rows)
}

fn against_c(kernel: &Measured, form: Form, target: Option<f64>, program: &Path) -> Result<Row> {
    let mut both = (Subject::new(kernel, 1, form)?, Native::start(program, kernel.name)?);
    agree(kernel.entry, &mut both.0, &mut both.1)?;
    let times = kernel.times;
    let rounds = in_turn(&mut both, ROUNDS, |(subject, _)| subject.run(times), |(_, baseline)| baseline.run(times))?;
    let by = if form == Form::Threads { " thread by thread" } else { "" };
    let figure = format!("kernel `{}`{}{by} on one core : C", kernel.entry, kernel.variant);
    Ok(rounds.row(&figure, f64::from(times), target))
}

/// Both begin with the same numbers. What is not the same maths is no comparison.
fn agree(entry: &str, subject: &mut Subject<'_>, baseline: &mut Native) -> Result<()> {
    subject.run(1)?;
    baseline.run(1)?;
    let (ours, theirs) = (subject.numbers()?, baseline.numbers()?);
    for (at, (ours, theirs)) in floats(&ours).zip(floats(&theirs)).enumerate() {
        let close = (ours - theirs).abs() <= TOLERANCE * theirs.abs().max(1.0);
        ensure!(close, "kernel `{entry}` makes {ours} of number {at}, and C {theirs}");
    }
    Ok(())
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn two_cores() -> Result<Row> {
    let kernel = measured::gelu();
    let mut both = (Subject::new(&kernel, 2, Form::Lanes)?, Subject::new(&kernel, 1, Form::Lanes)?);
    let rounds = in_turn(&mut both, ROUNDS, |(two, _)| two.run(1), |(_, one)| one.run(1))?;
    Ok(rounds.row("kernel `gelu` on two cores : on one", 1.0, Some(1.0 / 1.8)))
}

/// An empty kernel, launched by a guest and by the host itself.
fn launches(folder: &Path) -> Result<Row> {
    const LAUNCHES: u32 = 20_000;
    let plugin = Runtime::new(None)?.load(&places::component("launches")?, &|_| {})?;
    let mut guest = plugin.instantiate(settings(folder.to_owned()))?;
    guest.start(&job(), &format!(r#"{{"launches": {LAUNCHES}}}"#))?;
    let (mut context, _) = device(1, Form::Lanes, None)?;
    let module = context.load(EMPTY)?;
    let rounds = in_turn(
        &mut (&mut guest, &mut context),
        ROUNDS,
        |(guest, _)| seconds(|| Ok(guest.step().map(drop)?)),
        |(_, context)| {
            seconds(|| {
                let launch = Launch { entry: "nothing", grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments: &[] };
                for _ in 0..LAUNCHES {
                    context.launch(module, &launch)?;
                }
                Ok(context.finish_step()?)
            })
        },
    )?;
    Ok(rounds.row("an empty launch by a guest : by the host", f64::from(LAUNCHES), None))
}

/// Calling the crate on memory of one's own is what nobody could undercut.
fn product() -> Result<Row> {
    let (mut context, [a, b, c, _]) = device(1, Form::Lanes, None)?;
    let matrix = |buffer| Matrix { buffer, offset: 0, leading: MATRIX, stride: 0, transpose: false };
    let (m, n, k) = (MATRIX, MATRIX, MATRIX);
    let [a, b, c] = [a, b, c].map(matrix);
    let gemm = Gemm { element: Element::Float32, m, n, k, alpha: 1.0, a, b, beta: 0.0, c, batch: 1 };
    let subject = |context: &mut Context| {
        seconds(|| {
            context.gemm(&gemm)?;
            Ok(context.finish_step()?)
        })
    };
    let mut own = crate::bare_unsafe::Product::new(MATRIX as usize);
    let rounds = in_turn(
        &mut (&mut context, &mut own),
        ROUNDS,
        |(context, _)| subject(context),
        |(_, own)| {
            seconds(|| {
                own.multiply();
                Ok(())
            })
        },
    )?;
    Ok(rounds.row("a product of 1024 × 1024 matrices : the crate", 1.0, Some(1.05)))
}
