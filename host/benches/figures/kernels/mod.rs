//! Kernels on the CPU device, against C of the same maths by `cc -O3 -msse4.2` (`native.c`), one core each.
//!
//! *Subject*: launches of a compiled kernel, waited for. *Baseline*: calls of the C function in a process of its own. Both work again and again on
//! the same memory. Beside these: two cores against one, matrix products against calling their crate, and how long a kernel takes from text to
//! machine code.

mod native;

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context as _, Result};
use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Argument, BufferId, Context, Element, Gemm, Launch, Matrix};
use steadfast::plugin::Runtime;

use crate::digits::{job, settings};
use crate::measure::{Row, in_turn, median, quickest, seconds};
use crate::places;
use native::Native;

const ROUNDS: usize = 15;
/// Of launches from the cache the quickest of so many counts.
const LAUNCHES_FROM_CACHE: usize = 9;
/// As in `native.c`.
const N: u32 = 1 << 22;
const ROWS: u32 = 1024;
const COLUMNS: u32 = 1024;
const EDGE: u32 = 128;
/// Rows and columns of the matrix product.
const MATRIX: u32 = 1024;

const EMPTY: &str = ".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }";

/// A kernel as it is measured.
struct Measured {
    /// In `native.c`.
    name: &'static str,
    file: &'static str,
    entry: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: fn([BufferId; 4]) -> Vec<Argument<'static>>,
    /// Runs a round.
    times: u32,
    target: Option<f64>,
}

const ALONG: fn(u32) -> [u32; 3] = |count| [count, 1, 1];

fn measured() -> [Measured; 6] {
    use Argument::{Buffer, Float32, Int32, Int64};
    [
        Measured {
            name: "saxpy",
            file: "host/ptx/tests/kernels/saxpy.ptx",
            entry: "saxpy",
            grid: ALONG(N / 256),
            block: ALONG(256),
            shared_bytes: 0,
            arguments: |[a, b, ..]| vec![Int32(N as i32), Float32(1.0001), Buffer(a, 0), Buffer(b, 0)],
            times: 4,
            target: Some(1.3),
        },
        Measured {
            name: "adamw",
            file: "host/ptx/tests/kernels/adam.ptx",
            entry: "adamw",
            grid: ALONG(N / 256),
            block: ALONG(256),
            shared_bytes: 0,
            arguments: |buffers| {
                let rates = [1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01].map(Float32);
                buffers.map(|buffer| Buffer(buffer, 0)).into_iter().chain([Int64(N.into())]).chain(rates).collect()
            },
            times: 1,
            target: Some(1.3),
        },
        Measured {
            name: "softmax",
            file: "host/ptx/tests/kernels/softmax.ptx",
            entry: "softmax",
            grid: ALONG(ROWS),
            block: ALONG(128),
            shared_bytes: 16,
            arguments: |[a, b, ..]| vec![Buffer(b, 0), Buffer(a, 0), Int32(ROWS as i32), Int32(COLUMNS as i32)],
            times: 1,
            target: Some(1.3),
        },
        Measured {
            name: "layernorm",
            file: "host/ptx/tests/kernels/softmax.ptx",
            entry: "layernorm",
            grid: ALONG(ROWS / 4),
            block: ALONG(128),
            shared_bytes: 0,
            arguments: |[a, b, c, d]| {
                let statistics = [Buffer(c, 0), Buffer(c, 4 * u64::from(ROWS))];
                let scales = [Buffer(d, 0), Buffer(d, 4 * u64::from(COLUMNS))];
                let sizes = [Int32(ROWS as i32), Int32(COLUMNS as i32)];
                [Buffer(b, 0)].into_iter().chain(statistics).chain([Buffer(a, 0)]).chain(scales).chain(sizes).collect()
            },
            times: 2,
            target: Some(1.5),
        },
        Measured {
            name: "diffuse",
            file: "plugins/heat/kernels/heat.ptx",
            entry: "diffuse",
            grid: [EDGE / 32, EDGE / 4, EDGE / 2],
            block: [32, 4, 2],
            shared_bytes: 0,
            arguments: |[a, b, ..]| {
                let edges = [Int32(EDGE as i32); 3];
                [Buffer(a, 0), Buffer(b, 0)].into_iter().chain(edges).chain([Float32(0.1)]).collect()
            },
            times: 2,
            target: Some(2.0),
        },
        Measured {
            name: "sum",
            file: "host/ptx/tests/kernels/reduce.ptx",
            entry: "block_reduce",
            grid: ALONG(256),
            block: ALONG(256),
            shared_bytes: 0,
            arguments: |[a, b, ..]| vec![Buffer(a, 0), Buffer(b, 0), Int32(N as i32)],
            times: 2,
            target: Some(1.5),
        },
    ]
}

pub fn figures() -> Result<Vec<Row>> {
    let folder = places::on_disk()?;
    let program = native::build(folder.path())?;
    let mut rows = Vec::new();
    for kernel in measured() {
        rows.push(against_c(&kernel, &program)?);
    }
    rows.push(two_cores()?);
    rows.push(launches(folder.path())?);
    rows.push(product()?);
    rows.extend(compilation(folder.path())?);
    Ok(rows)
}

/// A device of so many cores with four buffers of numbers between 0 and 1.
fn device(cores: usize, cache: Option<&Path>) -> Result<(Context, [BufferId; 4])> {
    let cores = NonZeroUsize::new(cores).context("no cores")?;
    let cache = cache.map(Path::to_owned);
    let settings = Settings { memory_bytes: 1 << 30, cores, cache, canonical_nans: false };
    let mut context = Context::new(Box::new(CpuDevice::open(&settings)?));
    let mut buffers = Vec::new();
    let values: Vec<u8> = (0..N).flat_map(|i| ((i % 977) as f32 / 977.0).to_le_bytes()).collect();
    for _ in 0..4 {
        let buffer = context.allocate(4 * u64::from(N))?;
        context.write(buffer, 0, &values)?;
        buffers.push(buffer);
    }
    let buffers = buffers.try_into().ok().context("four buffers")?;
    Ok((context, buffers))
}

/// Something that launches a kernel so many times and waits for it.
fn launcher(kernel: &Measured, cores: usize) -> Result<impl FnMut(u32) -> Result<f64> + use<>> {
    let (mut context, buffers) = device(cores, None)?;
    let text = std::fs::read_to_string(places::repository().join(kernel.file))?;
    let module = context.load(&text)?;
    let arguments = (kernel.arguments)(buffers);
    let Measured { entry, grid, block, shared_bytes, .. } = *kernel;
    Ok(move |times| {
        seconds(|| {
            for _ in 0..times {
                context.launch(module, &Launch { entry, grid, block, shared_bytes, arguments: &arguments })?;
            }
            Ok(context.finish_step()?)
        })
    })
}

fn against_c(kernel: &Measured, program: &Path) -> Result<Row> {
    let subject = launcher(kernel, 1)?;
    let baseline = Native::start(program, kernel.name)?;
    let times = kernel.times;
    let mut both = (subject, baseline);
    let rounds = in_turn(&mut both, ROUNDS, |(subject, _)| subject(times), |(_, baseline)| baseline.run(times))?;
    let figure = format!("kernel `{}` on one core : C", kernel.entry);
    Ok(rounds.row(&figure, f64::from(times), kernel.target))
}

/// A kernel that computes and hardly touches memory.
fn two_cores() -> Result<Row> {
    let kernel = Measured {
        name: "gelu",
        file: "host/ptx/tests/kernels/adam.ptx",
        entry: "gelu",
        grid: ALONG(N / 256),
        block: ALONG(256),
        shared_bytes: 0,
        arguments: |[a, b, ..]| vec![Argument::Buffer(b, 0), Argument::Buffer(a, 0), Argument::Int32(N as i32)],
        times: 1,
        target: Some(1.0 / 1.8),
    };
    let mut both = (launcher(&kernel, 2)?, launcher(&kernel, 1)?);
    let rounds = in_turn(&mut both, ROUNDS, |(two, _)| two(1), |(_, one)| one(1))?;
    Ok(rounds.row("kernel `gelu` on two cores : on one", 1.0, kernel.target))
}

/// An empty kernel, launched by a guest and by the host itself.
fn launches(folder: &Path) -> Result<Row> {
    const LAUNCHES: u32 = 20_000;
    let plugin = Runtime::new(None)?.load(&places::component("launches")?, &|_| {})?;
    let mut guest = plugin.instantiate(settings(folder.to_owned()))?;
    guest.start(&job(), &format!(r#"{{"launches": {LAUNCHES}}}"#))?;
    let (mut context, _) = device(1, None)?;
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
    let (mut context, [a, b, c, _]) = device(1, None)?;
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

/// From text to the end of the first launch, for each kernel alone in its module: as it is when a plugin first comes to a machine, and once its
/// code is in the cache, as the first thing that a new device does and on one that is in use.
fn compilation(folder: &Path) -> Result<Vec<Row>> {
    let (mut fresh, mut first, mut cached) = (Vec::new(), Vec::new(), Vec::new());
    for kernel in measured() {
        let text = alone(&std::fs::read_to_string(places::repository().join(kernel.file))?, kernel.entry)?;
        let cache = folder.join(kernel.entry);
        let on_a_new_device = || first_launch(&kernel, &text, &mut device(1, Some(&cache))?);
        fresh.push(on_a_new_device()?);
        first.push(quickest(LAUNCHES_FROM_CACHE, on_a_new_device)?);
        let mut device = device(1, Some(&cache))?;
        cached.push(quickest(LAUNCHES_FROM_CACHE, || first_launch(&kernel, &text, &mut device))?);
    }
    let row = |figure: &str, times: &[f64], goal: &str| Row {
        figure: format!("{figure} (median of {}{goal})", times.len()),
        subject: format!("{:.2}ms", 1e3 * median(times)),
        baseline: String::new(),
        ratios: Vec::new(),
        target: None,
    };
    Ok(vec![
        row("a kernel, text to first launch", &fresh, ", goal ≤ 60 ms"),
        row("of that, cached", &cached, ", goal ≤ 0.2 ms"),
        row("of that, cached, on a new device", &first, ""),
    ])
}

/// Nothing of the module is left on the device afterwards.
fn first_launch(kernel: &Measured, text: &str, device: &mut (Context, [BufferId; 4])) -> Result<f64> {
    let (context, buffers) = device;
    let arguments = (kernel.arguments)(*buffers);
    let Measured { entry, block, shared_bytes, .. } = *kernel;
    let mut module = None;
    let took = seconds(|| {
        let loaded = context.load(text)?;
        context.launch(loaded, &Launch { entry, grid: ALONG(1), block, shared_bytes, arguments: &arguments })?;
        context.finish_step()?;
        module = Some(loaded);
        Ok(())
    })?;
    module.into_iter().for_each(|module| context.unload(module));
    Ok(took)
}

/// The text with no entry but this one.
fn alone(text: &str, entry: &str) -> Result<String> {
    const ENTRY: &str = ".visible .entry ";
    let head = text.split(ENTRY).next().unwrap_or_default();
    let own = text.split(ENTRY).find(|part| part.starts_with(&format!("{entry}("))).context("no such entry")?;
    let (body, _) = own.split_once("\n}\n").context("an entry without an end")?;
    Ok(format!("{head}{ENTRY}{body}\n}}\n"))
}
