//! The CPU device, and what only it promises.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Argument, Device, DeviceError, Element, Gemm, Launch, Matrix};

use super::kernels::source;
use super::lab::{Lab, lost, ptx, to_bytes};

fn open(cores: usize, cache: Option<PathBuf>) -> Box<dyn Device> {
    open_with(cores, cache, true)
}

fn open_with(cores: usize, cache: Option<PathBuf>, vectors: bool) -> Box<dyn Device> {
    let cores = NonZeroUsize::new(cores).unwrap();
    let settings = Settings { memory_bytes: 1 << 30, cores, cache, canonical_nans: false, vectors };
    Box::new(CpuDevice::open(&settings).unwrap())
}

/// For the suite.
pub fn lab(cores: usize) -> Lab {
    Lab::new(move || device(cores))
}

fn device(cores: usize) -> Box<dyn Device> {
    open(cores, None)
}

#[test]
fn results_are_the_same_on_any_number_of_cores() {
    let results = [1, 2, 3, 5].map(|cores| {
        let mut lab = Lab::new(move || device(cores));
        let numbers: Vec<f32> = (0..100_000).map(|index| ((index * 7919) % 1000) as f32 / 999.0 - 0.4).collect();
        let x = lab.upload(&numbers);
        let sum = lab.upload(&[0_f32]);
        let module = lab.context.load(source("reduce")).unwrap();
        // Blocks add to one float: their order decides the last bits.
        let arguments = [Argument::Buffer(x, 0), Argument::Buffer(sum, 0), Argument::Int32(100_000)];
        lab.launch(module, "block_reduce", 50, 256, &arguments).unwrap();
        let c = lab.poisoned::<f32>(1200 * 600);
        let matrix = |buffer, leading| Matrix { buffer, offset: 0, leading, stride: 0, transpose: false };
        let (m, n, k) = (1200, 600, 80);
        let (a, b, c_) = (matrix(x, m), matrix(x, k), matrix(c, m));
        let element = Element::Float32;
        lab.context.gemm(&Gemm { element, m, n, k, alpha: 0.3, a, b, beta: 0.0, c: c_, batch: 1 }).unwrap();
        (lab.bytes(sum), blake3::hash(&lab.bytes(c)))
    });
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
}

#[test]
fn beyond_four_gigabytes_of_addresses_kernels_do_the_same() {
    let cores = NonZeroUsize::new(2).unwrap();
    let settings = Settings { memory_bytes: 4 << 30, cores, cache: None, canonical_nans: false, vectors: true };
    let mut lab = Lab::new(move || Box::new(CpuDevice::open(&settings).unwrap()));
    let numbers: Vec<f32> = (0..64 * 64).map(|index| ((index * 7919) % 1000) as f32 / 999.0 - 0.4).collect();
    let [x, y, z] = [(); 3].map(|()| lab.upload(&numbers));
    let modules = ["saxpy", "softmax", "matmul", "reduce"].map(|name| lab.context.load(source(name)).unwrap());
    let results = |lab: &mut Lab| {
        let [saxpy, softmax, matmul, reduce] = modules;
        let of = |buffer| Argument::Buffer(buffer, 0);
        let count = Argument::Int32(64);
        lab.launch(saxpy, "saxpy", 8, 256, &[Argument::Int32(2000), Argument::Float32(0.5), of(x), of(y)]).unwrap();
        let (rows, product) = ([of(z), of(y), count, count], [of(x), of(y), of(z), count, count, count]);
        for (module, entry, grid, block, shared_bytes, arguments) in [
            (softmax, "softmax", [64, 1, 1], [64, 1, 1], 64, &rows[..]),
            (matmul, "matmul", [4, 4, 1], [16, 16, 1], 0, &product),
        ] {
            lab.context.launch(module, &Launch { entry, grid, block, shared_bytes, arguments }).unwrap();
        }
        lab.launch(reduce, "block_reduce", 16, 256, &[of(z), of(y), Argument::Int32(4000)]).unwrap();
        let left = [y, z].map(|buffer| lab.bytes(buffer));
        [y, z].into_iter().for_each(|buffer| lab.context.write(buffer, 0, &to_bytes(&numbers)).unwrap());
        left
    };
    let near = results(&mut lab);
    // Nothing is ever written there: it costs addresses only.
    let large = lab.context.allocate(3 << 30).unwrap();
    let far = results(&mut lab);
    lab.context.free(large);
    assert!(near == far && far == results(&mut lab), "a result depends on where buffers lie");
}

#[test]
fn the_first_block_that_fails_is_told_on_any_number_of_cores() {
    let told = [1, 2, 3].map(|cores| {
        let mut lab = Lab::new(move || device(cores));
        let module = lab.context.load(source("saxpy")).unwrap();
        let x = lab.upload(&vec![1_f32; 1 << 20]);
        // Blocks from 2^14 on reach behind the end.
        let arguments =
            [Argument::Int32(1 << 24), Argument::Float32(1.0), Argument::Buffer(x, 0), Argument::Buffer(x, 0)];
        let launch =
            Launch { entry: "saxpy", grid: [1 << 16, 1, 1], block: [64, 1, 1], shared_bytes: 0, arguments: &arguments };
        lab.context.launch(module, &launch).unwrap();
        lab.context.finish_step().unwrap_err().to_string()
    });
    assert!(told.iter().all(|text| *text == told[0]), "{told:?}");
    assert!(told[0].starts_with("kernel `saxpy` failed at line "), "{}", told[0]);
    let block = "in block (16384, 0, 0): it reached for byte 0 behind the end of argument 3, a buffer of 4194304 bytes";
    assert!(told[0].ends_with(block), "{}", told[0]);
}

/// What a thread writes so many bytes after an address, and what the end of the step says.
fn wrote(body: &str, bytes: u64, offset: i64) -> String {
    let mut lab = Lab::new(|| device(1));
    let module = lab.module(body);
    let buffer = lab.context.allocate(bytes).unwrap();
    lab.launch(module, "poke", 1, 1, &[Argument::Buffer(buffer, 0), Argument::Int64(offset)]).unwrap();
    lost(lab.context.finish_step())
}

#[test]
fn what_is_written_beside_a_buffer_ends_the_step() {
    let poke = ".visible .entry poke(.param .u64 to, .param .u64 offset) { .reg .b64 %to, %offset;
        ld.param.u64 %to, [to]; ld.param.u64 %offset, [offset]; add.u64 %to, %to, %offset; st.global.u8 [%to], 7; ret; }";
    let said = |place: &str| format!("a kernel of this step wrote to {place} of a buffer of 100 B");
    assert_eq!(wrote(poke, 100, 100), said("byte 0 behind the end"));
    assert_eq!(wrote(poke, 100, -1), said("byte 1 in front of the beginning"));
    assert!(wrote(poke, 100, 112).contains("it reached for byte 12 behind the end of argument 1"));
}

/// Element `i + by` of a buffer for thread `i` where there is one, else 0: read before anything is stored, and behind a store; and the same with a third of the lanes left out.
const SHIFTED: &str = ".visible .entry shift(.param .u64 from, .param .u64 first, .param .u64 second, .param .u32 count, .param .s32 by) {
    .reg .b32 %x, %at, %count, %part, %v; .reg .b64 %p, %q, %r, %wide; .reg .pred %in, %kept;
    ld.param.u64 %p, [from]; ld.param.u64 %q, [first]; ld.param.u64 %r, [second]; ld.param.u32 %count, [count]; ld.param.u32 %at, [by];
    mov.u32 %x, %ctaid.x; mov.u32 %v, %ntid.x; mul.lo.u32 %x, %x, %v; mov.u32 %v, %tid.x; add.u32 %x, %x, %v;
    mul.wide.u32 %wide, %x, 4; add.u64 %q, %q, %wide; add.u64 %r, %r, %wide;
    add.s32 %at, %at, %x; mul.wide.s32 %wide, %at, 4; add.s64 %p, %p, %wide;
    setp.lt.u32 %in, %at, %count; mov.u32 %v, 0;
    @!%in bra first_done;
    ld.global.u32 %v, [%p];
    first_done: st.global.u32 [%q], %v;
    rem.u32 %part, %x, 3; setp.ne.u32 %kept, %part, 0; and.pred %in, %in, %kept; mov.u32 %v, 0;
    @!%in bra second_done;
    ld.global.u32 %v, [%p];
    second_done: st.global.u32 [%r], %v; ret; }";

/// Buffers end where nothing follows, and begin behind nothing where they fill their pages: a lane that reads nothing must not reach there with those that do.
#[test]
fn lanes_that_leave_a_branch_out_reach_beyond_no_buffer() {
    let mut lab = Lab::new(|| device(1));
    let module = lab.module(SHIFTED);
    for count in [1024_u32, 992, 96] {
        let numbers: Vec<u32> = (1..=count).collect();
        let from = lab.upload(&numbers);
        let [first, second] = [0; 2].map(|_| lab.poisoned::<u32>(count as usize));
        for by in [-40_i32, -31, -4, -3, -1, 0, 1, 2, 4, 17, 32, 61] {
            let buffers = [from, first, second].map(|buffer| Argument::Buffer(buffer, 0));
            let arguments: Vec<_> =
                buffers.into_iter().chain([Argument::Int32(count as i32), Argument::Int32(by)]).collect();
            lab.launch(module, "shift", count / 32, 32, &arguments).unwrap();
            lab.context.finish_step().unwrap();
            let expected = |x: u32| x.checked_add_signed(by).filter(|at| *at < count).map_or(0, |at| at + 1);
            let all: Vec<u32> = (0..count).map(expected).collect();
            assert_eq!(lab.download::<u32>(first), all, "{count} elements, {by} further");
            let some: Vec<u32> = (0..count).map(|x| if x % 3 == 0 { 0 } else { expected(x) }).collect();
            assert_eq!(lab.download::<u32>(second), some, "{count} elements, {by} further");
        }
    }
}

#[test]
fn constants_cannot_be_written_to() {
    let poke = ".const .u32 constant = 5;
        .visible .entry poke(.param .u64 to, .param .u64 offset) { .reg .b64 %at;
        mov.u64 %at, constant; cvta.const.u64 %at, %at; st.u32 [%at], 7; ret; }";
    assert!(wrote(poke, 4, 0).starts_with("kernel `poke` failed at line "));
}

/// Two kernels, and variables of which one begins with the address of another.
const KNOWN: &str = ".global .u32 one = 41; .global .u64 where = one; .const .u32 step = 1;
    .visible .entry add(.param .u64 to) { .reg .b64 %p, %q; .reg .b32 %a, %b;
    ld.param.u64 %p, [to]; ld.global.u64 %q, [where]; ld.global.u32 %a, [%q]; ld.const.u32 %b, [step];
    add.u32 %a, %a, %b; st.global.u32 [%p], %a; ret; }
    .visible .entry take(.param .u64 to) { .reg .b64 %p; ld.param.u64 %p, [to]; st.global.u32 [%p], 7; ret; }";

#[test]
fn compiled_kernels_are_kept_and_give_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = |entry: &str, expected: u32| {
        let cache = folder.path().to_owned();
        let mut lab = Lab::new(move || open(2, Some(cache.clone())));
        let module = lab.context.load(&ptx(KNOWN)).unwrap();
        let to = lab.upload(&[0_u32]);
        lab.launch(module, entry, 1, 1, &[Argument::Buffer(to, 0)]).unwrap();
        assert_eq!(lab.bytes(to), to_bytes(&[expected]));
        let mut kept: Vec<_> =
            std::fs::read_dir(folder.path().join("kernels")).unwrap().map(|file| file.unwrap().path()).collect();
        kept.sort();
        kept
    };
    let first = run("add", 42);
    assert_eq!(first.len(), 2, "what the text declares, and the kernel that was launched, but no other");
    let written = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
    let when: Vec<_> = first.iter().map(written).collect();
    assert_eq!(run("add", 42), first);
    assert_eq!(first.iter().map(written).collect::<Vec<_>>(), when, "made again");
    // A damaged entry is made again, and nobody hears of it.
    for file in &first {
        let entry = std::fs::read(file).unwrap();
        std::fs::write(file, &entry[..entry.len() - 1]).unwrap();
        assert_eq!(run("add", 42), first);
        assert_eq!(std::fs::read(file).unwrap().len(), entry.len());
    }
    // Of a text that is known a kernel may be launched that nobody launched before.
    assert_eq!(run("take", 7).len(), 3);
    let known = run("add", 42);
    for file in known.iter().filter(|file| !first.contains(file)) {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(run("take", 7), known);
}

#[test]
fn code_for_lanes_and_code_for_threads_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let kept_after = |vectors: bool| {
        let cache = folder.path().to_owned();
        let mut lab = Lab::new(move || open_with(1, Some(cache.clone()), vectors));
        let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
        let (x, y) = (lab.upload(&numbers), lab.upload(&numbers));
        let module = lab.context.load(source("saxpy")).unwrap();
        let arguments = [Argument::Int32(1000), Argument::Float32(2.0), Argument::Buffer(x, 0), Argument::Buffer(y, 0)];
        lab.launch(module, "saxpy", 4, 256, &arguments).unwrap();
        let expected: Vec<f32> = numbers.iter().map(|number| 3.0 * number).collect();
        assert_eq!(lab.bytes(y), to_bytes(&expected));
        std::fs::read_dir(folder.path().join("kernels")).unwrap().count()
    };
    // Of each an outline and a kernel.
    assert_eq!([true, false, true, false].map(kept_after), [2, 4, 4, 4]);
}

#[test]
fn a_text_of_which_one_kernel_cannot_run_is_never_known() {
    let folder = tempfile::tempdir().unwrap();
    let bad = format!("{KNOWN} .extern .func nowhere(); .visible .entry bad() {{ call nowhere; ret; }}");
    for _ in 0..2 {
        let cache = folder.path().to_owned();
        let mut lab = Lab::new(move || open(1, Some(cache.clone())));
        let Err(DeviceError::InvalidModule(why)) = lab.context.load(&ptx(&bad)) else { panic!("it was loaded") };
        assert!(why.contains("nowhere"), "{why}");
    }
}
