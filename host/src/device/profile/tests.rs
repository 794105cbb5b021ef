//! A profile of the CPU device: what is counted, and how it is told.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;

use steadfast_ptx::kernel::Obstacle;
use steadfast_ptx::module::Position;

use super::*;
use crate::device::cpu::{CpuDevice, Settings};
use crate::device::{Argument, Context, Distribution, Element, Gemm, Launch, Matrix, ModuleId, Purpose, RandomFill};

const KERNELS: &str = ".version 8.2\n.target sm_75\n.address_size 64\n\
    .visible .entry lanes(.param .u64 p) { .reg .b64 %d<2>; .reg .b32 %r; ld.param.u64 %d0, [p]; mov.u32 %r, %tid.x; mul.wide.u32 %d1, %r, 4;\n\
    add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r; ret; }\n\
    .visible .entry waits(.param .u64 p) { bar.sync 0; ret; }\n";

fn context(profile: &Profile) -> Context {
    let settings =
        Settings { memory_bytes: 1 << 20, cores: NonZeroUsize::MIN, cache: None, canonical_nans: false, vectors: true };
    Context::new(profile.watch(Box::new(CpuDevice::open(&settings).unwrap())))
}

fn launch(context: &mut Context, module: ModuleId, entry: &str, grid: [u32; 3], block: [u32; 3]) {
    let buffer = context.allocate(4096).unwrap();
    let arguments = [Argument::Buffer(buffer, 0)];
    context.launch(module, &Launch { entry, grid, block, shared_bytes: 0, arguments: &arguments }).unwrap();
    context.finish_step().unwrap();
    context.free(buffer);
}

/// Calls, blocks, threads and bytes by what it was, and how.
fn counted(profile: &Profile) -> Vec<(String, [u64; 4])> {
    let mut counted: Vec<_> = profile
        .lines()
        .into_iter()
        .map(|Line { what, path, figures }| {
            let path = path.map(|path| format!(" {path}")).unwrap_or_default();
            (format!("{what}{path}"), [figures.calls, figures.blocks, figures.threads, figures.bytes])
        })
        .collect();
    counted.sort();
    counted
}

fn of(counted: &[(String, [u64; 4])], what: &str) -> [u64; 4] {
    counted.iter().find(|(name, _)| name == what).unwrap_or_else(|| panic!("no {what} among {counted:?}")).1
}

#[test]
fn launches_count_by_kernel_and_by_how_they_run() {
    let profile = Profile::default();
    assert_eq!(profile.empty_launch(), None);
    let mut context = context(&profile);
    let module = context.load(KERNELS).unwrap();
    launch(&mut context, module, "lanes", [3, 2, 1], [64, 2, 1]);
    launch(&mut context, module, "lanes", [1, 1, 1], [64, 1, 1]);
    launch(&mut context, module, "lanes", [5, 1, 1], [7, 1, 1]);
    launch(&mut context, module, "waits", [1, 1, 1], [32, 1, 1]);
    let counted = counted(&profile);
    assert_eq!(of(&counted, "lanes vector lanes"), [2, 7, 6 * 128 + 64, 0]);
    assert_eq!(of(&counted, "lanes thread by thread: blocks 7 wide"), [1, 5, 35, 0]);
    assert_eq!(of(&counted, "waits vector lanes"), [1, 1, 32, 0]);
    // The module and two kernels; the launch that does nothing is no guest's.
    assert_eq!(of(&counted, "(modules, compiling)"), [3, 0, 0, 0]);
    assert_eq!(of(&counted, "(new buffers)"), [4, 0, 0, 4 * 4096]);
    assert_eq!(of(&counted, "(ends of steps)"), [4, 0, 0, 0]);
    assert_eq!(counted.len(), 6);
    assert!(profile.empty_launch().is_some());
}

#[test]
fn bytes_count_by_what_moved_them() {
    let profile = Profile::default();
    let mut context = context(&profile);
    let buffer = context.allocate(1024).unwrap();
    context.write(buffer, 0, &[1; 100]).unwrap();
    context.write(buffer, 8, &[1; 28]).unwrap();
    context.read(buffer, 0, &mut [0; 64]).unwrap();
    context.fill(buffer, 0, 256, 0).unwrap();
    context.copy((buffer, 0), (buffer, 512), 40).unwrap();
    let fill = RandomFill { distribution: Distribution::Uniform, seed: 1, position: 0, count: 16 };
    context.fill_random(buffer, 0, &fill).unwrap();
    // A transfer in three pieces, as files are read.
    context.serve(Purpose::Load);
    (0..3).for_each(|piece| context.write(buffer, piece * 10, &[2; 10]).unwrap());
    context.serve(Purpose::Store);
    context.read(buffer, 0, &mut [0; 50]).unwrap();
    context.serve(Purpose::Guest);
    context.serve(Purpose::Save);
    context.begin_read(buffer, Vec::new()).unwrap();
    context.finish_step().unwrap();
    context.serve(Purpose::Guest);
    let matrix = Matrix { buffer, offset: 0, leading: 2, stride: 0, transpose: false };
    let c = Matrix { offset: 64, ..matrix };
    let (element, m, n, k, alpha, beta, batch) = (Element::Float32, 2, 2, 2, 1.0, 0.0, 1);
    context.gemm(&Gemm { element, m, n, k, alpha, a: matrix, b: matrix, beta, c, batch }).unwrap();
    let expected = [
        ("(buffers to files)", [1, 0, 0, 50]),
        ("(checkpoints)", [1, 0, 0, 1024]),
        ("(copies)", [1, 0, 0, 40]),
        ("(files to buffers)", [1, 0, 0, 30]),
        ("(fills)", [1, 0, 0, 256]),
        ("(new buffers)", [1, 0, 0, 1024]),
        ("(products of float32)", [1, 0, 0, 0]),
        ("(random fills)", [1, 0, 0, 64]),
        ("(reads)", [1, 0, 0, 64]),
        ("(writes)", [2, 0, 0, 128]),
    ];
    assert_eq!(counted(&profile), expected.map(|(what, figures)| (what.to_owned(), figures)));
    assert_eq!(profile.empty_launch(), None, "no kernel was launched");
}

#[test]
fn guests_of_an_attempt_share_its_profile() {
    let profile = Profile::default();
    for _ in 0..2 {
        let mut context = context(&profile);
        let module = context.load(KERNELS).unwrap();
        launch(&mut context, module, "lanes", [1; 3], [32, 1, 1]);
    }
    assert_eq!(of(&counted(&profile), "lanes vector lanes"), [2, 2, 64, 0]);
    assert_eq!(of(&counted(&profile), "(modules, compiling)"), [4, 0, 0, 0]);
}

#[test]
fn what_failed_is_told_as_without_a_profile() {
    let mut context = context(&Profile::default());
    let module = context.load(&KERNELS.replace("bar.sync 0;", "trap;")).unwrap();
    let buffer = context.allocate(8).unwrap();
    let arguments = [Argument::Buffer(buffer, 0)];
    let launch = Launch { entry: "waits", grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments: &arguments };
    context.launch(module, &launch).unwrap();
    assert!(context.finish_step().unwrap_err().to_string().contains("`waits`"));
}

#[test]
fn what_took_longest_comes_first() {
    let profile = Profile::default();
    let note = |work, ms| profile.note(work, Figures { time: Duration::from_millis(ms), ..Figures::default() });
    note(Work::Read, 1);
    note(Work::Write, 3);
    note(Work::Copy, 2);
    note(Work::Read, 4);
    let names: Vec<_> = profile.lines().into_iter().map(|line| (line.what, line.figures.time.as_millis())).collect();
    assert_eq!(names, [("(reads)".to_owned(), 5), ("(writes)".to_owned(), 3), ("(copies)".to_owned(), 2)]);
}

#[test]
fn paths_read_as_words() {
    let code = |form, one_core| Some(Code { form, one_core });
    let atomics = Form::Scalar(Obstacle::Atomics(Position { line: 7, column: 2 }));
    for (path, words) in [
        (Path::of(None, 7), "GPU"),
        (Path::of(code(Form::Vector, false), 64), "vector lanes"),
        (Path::of(code(atomics, true), 64), "thread by thread: it has atomic operations, line 7; on one core"),
        (Path::of(code(Form::Scalar(Obstacle::TooLarge), false), 3), "thread by thread: it is too large"),
    ] {
        assert_eq!(path.to_string(), words);
    }
}
