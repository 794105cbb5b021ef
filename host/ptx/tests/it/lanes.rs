//! Kernels that run as the lanes of vectors, where that is delicate: lanes that disagree, indices that wrap round, the ends of memory, every width and distance.
//!
//! Each runs on the oracle too, and (see `rig`) one thread at a time.

use steadfast_ptx::kernel::{Form, Obstacle};

use crate::random::{Random, edges};
use crate::rig::{BUFFERS, BYTES, Kernel, Run, Start};
use steadfast_ptx::module::Type;

/// Blocks of widths that are multiples of four and not, short and long.
const SHAPES: [[u32; 3]; 6] = [[32, 1, 1], [4, 3, 2], [256, 1, 1], [8, 8, 1], [37, 2, 1], [20, 1, 3]];
/// Bytes of the buffer.
const BUFFER: u64 = 0x8000;

/// `%r0` is a number, `%d0` the buffer, `%r1` the thread's linear index in its block and `%d1` the address of 16 bytes that belong to it in the buffer's second half.
fn kernel(code: &str) -> Kernel {
    let kernel = Kernel::new(&text(code), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Vector, "{code}");
    kernel
}

pub(crate) fn text(code: &str) -> String {
    format!(
        ".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {{\n\
         .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<3>; .reg .b16 %h<3>; .reg .pred %p<9>;\n\
         ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n];\n\
         mov.u32 %r1, %tid.z; mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r1, %r2, %r3;\n\
         mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n\
         mul.wide.u32 %d1, %r1, 16; add.u64 %d1, %d0, %d1; add.u64 %d1, %d1, 0x4000;\n{code}\n}}\n"
    )
}

pub(crate) fn run(block: [u32; 3], number: u32) -> Run {
    let parameters = [BUFFERS.to_le_bytes().to_vec(), number.to_le_bytes().to_vec()].concat();
    Run { grid: [2, 1, 1], block, dynamic_shared: 0, parameters }
}

/// What the oracle and both forms leave is the same.
fn agrees(code: &str, numbers: &[u32]) {
    leaves_the_same(&kernel(code), code, numbers);
}

fn leaves_the_same(kernel: &Kernel, code: &str, numbers: &[u32]) {
    leaves_the_same_in(kernel, code, numbers, &SHAPES);
}

/// A buffer of numbers by chance.
pub(crate) fn filled(kernel: &Kernel) -> Start {
    let mut start = Start::of(kernel, BUFFERS + BUFFER);
    let mut random = Random::new(7);
    for word in start.memory[BUFFERS as usize..].chunks_mut(4) {
        word.copy_from_slice(&(random.operand(Type::F32) as u32).to_le_bytes());
    }
    start
}

/// The same for blocks of these shapes.
pub(crate) fn leaves_the_same_in(kernel: &Kernel, code: &str, numbers: &[u32], shapes: &[[u32; 3]]) {
    let start = filled(kernel);
    for block in shapes {
        for number in numbers {
            let run = run(*block, *number);
            let expected = kernel.oracle(&run, &start).unwrap_or_else(|trap| panic!("{trap:?}\n{code}"));
            let got = kernel.translation(&run, &start).unwrap_or_else(|error| panic!("{error}\n{code}"));
            let at = expected.iter().zip(&got).position(|(expected, got)| expected != got);
            assert_eq!(at, None, "block {block:?}, number {number}\n{code}");
        }
    }
}

#[test]
fn lanes_that_disagree_go_one_by_one() {
    let ends = [0, 1, 2, 3, 4, 5, 31, 1000];
    // At once, after a load, in a loop, and so often that the block loses its patience.
    agrees("setp.ge.u32 %p0, %r1, %r0; @%p0 ret; st.global.u32 [%d1], %r1; ret;", &ends);
    agrees(
        "ld.global.u32 %r4, [%d1]; and.b32 %r5, %r4, %r0; setp.eq.u32 %p0, %r5, 0; @%p0 ret; st.global.u32 [%d1+4], %r4; ret;",
        &ends,
    );
    agrees(
        "and.b32 %r4, %r1, %r0; mov.u32 %r5, 0;\nAGAIN: mad.lo.u32 %r5, %r5, 3, %r1; sub.u32 %r4, %r4, 1; setp.gt.s32 %p0, %r4, 0; @%p0 bra AGAIN;\n\
         st.global.u32 [%d1], %r5; ret;",
        &ends,
    );
    agrees("and.b32 %r4, %r1, 1; setp.eq.u32 %p0, %r4, 0; @%p0 ret; st.global.u32 [%d1], %r1; ret;", &[0]);
}

/// Of lanes that add to one place at the same moment, three would add nothing: whatever reads and writes in one, and knows no instruction that does.
#[test]
fn atomic_operations_of_neighbours_all_happen() {
    const OPERATIONS: [&str; 22] = [
        "add.u32 {old}%r4, [{at}], %r1",
        "add.u64 {old}%d4, [{at}], %d1",
        "add.f32 {old}%f4, [{at}], %f1",
        "add.f64 {old}%g2, [{at}], %g1",
        "add.noftz.f16 {old}%h2, [{at}], %h1",
        "add.noftz.bf16 {old}%h2, [{at}], %h1",
        "add.noftz.f16x2 {old}%r4, [{at}], %r1",
        "min.s32 {old}%r4, [{at}], %r1",
        "max.u32 {old}%r4, [{at}], %r1",
        "min.u64 {old}%d4, [{at}], %d1",
        "max.s64 {old}%d4, [{at}], %d1",
        "and.b32 {old}%r4, [{at}], %r1",
        "or.b64 {old}%d4, [{at}], %d1",
        "xor.b32 {old}%r4, [{at}], %r1",
        "inc.u32 {old}%r4, [{at}], 5",
        "dec.u32 {old}%r4, [{at}], 5",
        "xor.b64 {old}%d4, [{at}], %d1",
        "or.b32 {old}%r4, [{at}], %r1",
        "and.b64 {old}%d4, [{at}], %d1",
        "add.s32 {old}%r4, [{at}], -1",
        "min.u32 {old}%r4, [{at}], %r1",
        "max.s32 {old}%r4, [{at}], %r1",
    ];
    const BEGINNING: &str = "\
         .shared .align 8 .b8 s[32];\n\
         cvt.rn.f32.u32 %f1, %r1; cvt.rn.f64.u32 %g1, %r1; cvt.rn.f16.f32 %h1, %f1;\n\
         ld.global.u64 %d3, [%d1]; setp.eq.u32 %p0, %r1, 0; @%p0 st.shared.u64 [s+8], %d3;\n";
    // The last thread is the only one that knows what all have left there.
    const END: &str = "\
         mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y; mul.lo.u32 %r5, %r5, %r6; mov.u32 %r6, %ntid.z; mul.lo.u32 %r5, %r5, %r6; sub.u32 %r5, %r5, 1;\n\
         ld.shared.u64 %d5, [s+8]; setp.eq.u32 %p1, %r1, %r5; @%p1 st.global.u64 [%d1+8], %d5; ret;";
    for operation in OPERATIONS {
        for (space, at) in [("shared", "s+8"), ("global", "%d0+24")] {
            let red = operation.replace("{old}%r4, ", "").replace("{old}%d4, ", "").replace("{old}%f4, ", "");
            let red = red.replace("{old}%g2, ", "").replace("{old}%h2, ", "").replace("{at}", at);
            let atom = operation.replace("{old}", "").replace("{at}", at);
            for operation in [format!("red.{space}.{red};"), format!("atom.{space}.{atom}; st.global.u32 [%d1], %r4;")]
            {
                let code = format!("{BEGINNING}{operation}\n{END}");
                let kernel = Kernel::new(&text(&code), "k").unwrap_or_else(|error| panic!("{error}\n{code}"));
                leaves_the_same(&kernel, &code, &[0]);
            }
        }
    }
}

/// A group that began again after a store would add twice.
#[test]
fn what_was_stored_is_not_done_again() {
    let code = "ld.global.u32 %r4, [%d1]; add.u32 %r4, %r4, 1; st.global.u32 [%d1], %r4; setp.eq.u32 %p0, %r0, 0; @%p0 ret;\n\
         setp.lt.u32 %p1, %r1, %r0; @%p1 ret; st.global.u32 [%d1+4], %r4; ret;";
    let kernel = Kernel::new(&text(code), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Vector);
    leaves_the_same(&kernel, code, &[0, 1, 5, 1000]);
}

/// Lanes that read together what each of them adds to would lose what the others added.
#[test]
fn lanes_that_add_to_one_place_take_turns() {
    for code in [
        "cvt.rn.f32.u32 %f0, %r1; red.global.add.f32 [%d0], %f0; ret;",
        "red.global.add.f64 [%d0], 0d3FF0000000000000; ret;",
        "red.global.inc.u32 [%d0], 1000; ret;",
        "red.shared.add.u32 [sums], 1; ret;",
    ] {
        let code = format!(".shared .align 8 .b32 sums[4];\n{code}");
        let kernel = Kernel::new(&text(&code), "k").unwrap();
        assert!(matches!(kernel.translation.form, Form::Scalar(Obstacle::Atomics(_))), "{code}");
        leaves_the_same(&kernel, &code, &[0]);
    }
}

#[test]
fn some_lanes_read_and_write_and_the_others_do_not() {
    for guard in ["@%p0", "@!%p0"] {
        for store in ["", "st.global.u16 [%d1+2], %r4; st.global.f64 [%d1+8], %g1;"] {
            agrees(
                &format!(
                    "setp.lt.u32 %p0, %r1, %r0; mov.u32 %r4, 7; mov.f64 %g1, 0d4008000000000000; mov.f32 %f1, 0f3F800000; {guard} bra OVER;\n\
                     ld.global.u32 %r4, [%d1]; ld.global.f64 %g1, [%d1+8]; ld.global.f32 %f1, [%d1+4]; ld.global.u8 %r5, [%d0]; add.u32 %r4, %r4, %r5; {store}\n\
                     OVER: cvt.rzi.u32.f32 %r6, %f1; xor.b32 %r4, %r4, %r6; st.global.u32 [%d1], %r4; st.global.f64 [%d1+8], %g1; ret;"
                ),
                &[0, 1, 2, 3, 4, 5, 31, 1000],
            );
        }
    }
}

/// The end of the memory lies within a group: lanes behind it neither read nor write.
#[test]
fn lanes_beyond_the_end_of_memory_are_left_alone() {
    let code = "mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d2, %d0; setp.ge.u32 %p0, %r1, %r0; mov.u32 %r4, 1; @%p0 bra OVER;\n\
         ld.global.u32 %r4, [%d2]; add.u32 %r4, %r4, 1; st.global.u32 [%d2], %r4;\nOVER: mov.u32 %r5, 0x20000; cvt.u64.u32 %d3, %r5; mul.wide.u32 %d4, %r1, 4;\n\
         add.s64 %d3, %d3, %d4; st.global.u32 [%d3], %r4; ret;";
    let kernel = kernel(code);
    let start = Start::of(&kernel, BUFFERS + BUFFER);
    for count in 1..8_u64 {
        let from = |address: u64| {
            let parameters = [address.to_le_bytes().to_vec(), (count as u32).to_le_bytes().to_vec()].concat();
            kernel.translation(&Run { grid: [1; 3], block: [8, 1, 1], dynamic_shared: 0, parameters }, &start)
        };
        assert!(from(BYTES - 4 * count).is_ok(), "{count}");
        assert!(from(BYTES - 4 * count + 4).unwrap_err().contains("out of bounds"), "{count}");
    }
}

#[test]
fn indices_that_wrap_round_within_a_group() {
    let numbers: Vec<u32> = edges(Type::S32)
        .into_iter()
        .flat_map(|edge| (0..5).map(move |less| (edge as u32).wrapping_sub(less)))
        .collect();
    for index in ["add.u32 %r4, %r1, %r0;", "mad.lo.u32 %r4, %r1, 3, %r0;", "sub.u32 %r4, %r0, %r1;"] {
        for extension in [
            "cvt.s64.s32 %d2, %r4;",
            "cvt.u64.u32 %d2, %r4;",
            "mul.wide.s32 %d2, %r4, 12;",
            "mul.wide.u32 %d2, %r4, 4;",
        ] {
            agrees(&format!("{index} {extension} st.global.u64 [%d1], %d2; ret;"), &numbers);
        }
    }
}

#[test]
fn every_width_at_every_distance() {
    let accesses = [
        ("u8 %r4", "u8"),
        ("s8 %r4", "u8"),
        ("u16 %r4", "u16"),
        ("s16 %r4", "u16"),
        ("b32 %r4", "b32"),
        ("f32 %f1", "f32"),
        ("b64 %d4", "b64"),
        ("f64 %g1", "f64"),
    ];
    for (load, ty) in accesses {
        let register = load.split(' ').next_back().unwrap();
        for distance in [0, 1, 2, 4, 8, 16, -4, -8] {
            // 8 bytes are aligned only at multiples of 8, as PTX asks; 16 bytes of it belong to each thread.
            let width: i32 = load[1..3].trim().parse::<i32>().unwrap_or(8) / 8;
            if distance % width != 0 {
                continue;
            }
            agrees(
                &format!(
                    "mov.u32 %r5, %tid.x; mul.lo.s32 %r5, %r5, {distance}; cvt.s64.s32 %d2, %r5; add.s64 %d2, %d2, %d0;\n\
                     ld.global.{load}, [%d2+2048]; st.global.{ty} [%d1+8], {register}; ret;"
                ),
                &[0],
            );
        }
        // To elements side by side.
        let bytes = load[1..3].trim().parse::<u32>().unwrap_or(8) / 8;
        agrees(
            &format!(
                "ld.global.{load}, [%d1]; mul.wide.u32 %d2, %r1, {bytes}; add.s64 %d2, %d2, %d0; st.global.{ty} [%d2], {register}; ret;"
            ),
            &[0],
        );
    }
}

#[test]
fn the_last_bytes_of_memory_are_in_reach_and_nothing_behind() {
    for (ty, bytes) in [("u16", 2), ("b32", 4), ("f64", 8)] {
        let register = match ty {
            "f64" => "%g1",
            _ => "%r4",
        };
        let kernel = kernel(&format!(
            "mul.wide.u32 %d2, %r1, {bytes}; add.s64 %d2, %d2, %d0; ld.global.{ty} {register}, [%d2]; st.global.{ty} [%d2], {register}; ret;"
        ));
        let start = Start::of(&kernel, BUFFERS + BUFFER);
        let from = |address: u64| {
            let parameters = [address.to_le_bytes().to_vec(), vec![0; 4]].concat();
            kernel.translation(&Run { grid: [1; 3], block: [8, 1, 1], dynamic_shared: 0, parameters }, &start)
        };
        assert!(from(BYTES - 8 * bytes).is_ok());
        for behind in 1..=8 {
            let error = from(BYTES - 8 * bytes + behind * bytes).unwrap_err();
            assert!(error.contains("out of bounds"), "{error}");
        }
        // An address that wraps round.
        assert!(from(0_u64.wrapping_sub(2 * bytes)).is_err());
    }
}

#[test]
fn lanes_store_to_one_place_in_their_order() {
    agrees("st.global.u32 [%d0], %r1; st.global.u16 [%d0+8], %r1; ret;", &[0]);
    agrees("mul.wide.u32 %d2, %r1, 2; add.u64 %d2, %d2, %d0; st.global.u16 [%d2], %r1; ret;", &[0]);
}

#[test]
fn the_nans_of_the_processor_are_the_same_in_every_lane() {
    let operations = [
        "add.f32 %f2, %f0, %f1;",
        "sub.f32 %f2, %f0, %f1;",
        "mul.f32 %f2, %f0, %f1;",
        "div.rn.f32 %f2, %f0, %f1;",
        "fma.rn.f32 %f2, %f0, %f1, %f3;",
        "min.f32 %f2, %f0, %f1;",
        "max.NaN.f32 %f2, %f0, %f1;",
        "sqrt.rn.f32 %f2, %f0;",
        "ex2.approx.f32 %f2, %f0;",
        "cvt.f64.f32 %g0, %f0; cvt.f64.f32 %g1, %f1; add.f64 %g0, %g0, %g1; cvt.rn.f32.f64 %f2, %g0;",
        "cvt.f64.f32 %g0, %f0; cvt.f64.f32 %g1, %f1; fma.rn.f64 %g0, %g0, %g1, %g0; cvt.rn.f32.f64 %f2, %g0;",
        "cvt.f64.f32 %g0, %f0; cvt.f64.f32 %g1, %f1; div.rn.f64 %g0, %g1, %g0; cvt.rn.f32.f64 %f2, %g0;",
    ];
    for operation in operations {
        let code = format!(
            "ld.global.f32 %f0, [%d1]; ld.global.f32 %f1, [%d1+4]; ld.global.f32 %f3, [%d1+8]; {operation} st.global.f32 [%d1+12], %f2; ret;"
        );
        let kernel = Kernel::with_any_nans(&text(&code), "k").unwrap();
        assert_eq!(kernel.translation.form, Form::Vector, "{code}");
        let mut start = Start::of(&kernel, BUFFERS + BUFFER);
        let numbers =
            [0x7fc0_0000_u32, 0x7f80_0001, 0xffc0_1234, 0x7f80_0000, 0xff80_0000, 0, 0x8000_0000, 0x3f80_0000];
        let mut random = Random::new(3);
        for word in start.memory[BUFFERS as usize..].chunks_mut(4) {
            word.copy_from_slice(&numbers[random.below(numbers.len() as u64) as usize].to_le_bytes());
        }
        kernel.translation(&run([256, 1, 1], 0), &start).unwrap_or_else(|error| panic!("{operation} {error}"));
    }
}
