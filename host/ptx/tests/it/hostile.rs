//! Kernels that mean harm, or that went wrong: each ends with a trap or an interruption, and none reaches beyond its memory.

use crate::oracle::Trap;
use crate::rig::{BUFFERS, BYTES, Kernel, Run, Start};

/// Beside the first result.
const BEHIND: u64 = BUFFERS + 8;
const HEAD: &str = ".version 8.2\n.target sm_75\n.address_size 64\n";

/// A kernel with one parameter of 64 bits, which is in `%a`. `before` stands outside of it.
fn kernel_with(before: &str, body: &str) -> Kernel {
    let text = format!(
        "{HEAD}{before}\n.visible .entry kernel(.param .u64 parameter)\n{{\n.reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %a, %d<8>;\n\
         ld.param.u64 %a, [parameter];\nmov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n",
    );
    Kernel::new(&text, "kernel").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn kernel(body: &str) -> Kernel {
    kernel_with("", body)
}

fn run(block: u32, parameter: u64) -> Run {
    Run { grid: [1, 1, 1], block: [block, 1, 1], dynamic_shared: 0, parameters: parameter.to_le_bytes().to_vec() }
}

/// With a small buffer.
fn start(kernel: &Kernel) -> Start {
    Start::of(kernel, BUFFERS + 4096)
}

/// How the translation ends, for a kernel that must not end well.
fn end(kernel: &Kernel, run: &Run) -> String {
    kernel.translation(run, &start(kernel)).err().unwrap_or_else(|| panic!("the kernel came to its end"))
}

#[test]
fn endless_loops_are_interrupted() {
    for body in [
        "again:\nbra again;",
        // With a barrier in it, and with a meeting of lanes.
        "again:\nbar.sync 0;\nbra again;",
        "again:\nbar.warp.sync -1;\nbra again;",
        // One thread, while the others wait.
        "setp.ne.u32 %p, %r0, 5;\n@%p bra over;\nagain:\nbra again;\nover:\nbar.sync 0;",
        // For a store that never comes.
        "again:\nld.volatile.global.u32 %r1, [%a];\nsetp.eq.u32 %p, %r1, 0;\n@%p bra again;",
        // For an arrival that never comes.
        ".shared .align 8 .b64 gate;\nmbarrier.init.shared.b64 [gate], 1000;\nagain:\nmbarrier.try_wait.parity.shared.b64 %p, [gate], 0;\n@!%p bra again;",
        // For a lock that is never given back.
        "again:\natom.global.cas.b32 %r1, [%a], 0, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra again;",
    ] {
        let kernel = kernel(body);
        let error = kernel.interrupt(&run(64, BUFFERS), &start(&kernel)).err();
        assert!(error.as_ref().is_some_and(|error| error.contains("wasm trap: interrupt")), "{body}\n{error:?}");
    }
}

#[test]
fn barriers_that_some_never_reach() {
    for (threads, body) in [
        // At another barrier.
        (64, "setp.lt.u32 %p, %r0, 32;\n@%p bra first;\nbar.sync 1;\nbra over;\nfirst:\nbar.sync 0;\nover:"),
        // More threads expected than there are.
        (64, "bar.sync 0, 96;"),
        // Lanes at a barrier of the block, which their own warp waits for.
        (64, "setp.lt.u32 %p, %r0, 16;\n@%p bra first;\nbar.sync 0;\nbra over;\nfirst:\nbar.warp.sync -1;\nover:"),
        // Of a warp that is not whole, matrices are not made; nor of one that some have left.
        (40, "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;"),
        (
            32,
            "setp.eq.u32 %p, %r0, 7;\n@%p exit;\nmma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2};",
        ),
        (
            32,
            "setp.lt.u32 %p, %r0, 16;\n@%p bra first;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, 0xFFFF0001;\nfirst:\nbar.sync 0;",
        ),
    ] {
        let kernel = kernel(body);
        let oracle = kernel.oracle(&run(threads, 0), &start(&kernel)).err();
        assert!(matches!(oracle, Some(Trap::Deadlock)), "{body}\n{oracle:?}");
        end(&kernel, &run(threads, 0));
    }
}

/// Threads that have ended are not waited for.
#[test]
fn barriers_without_those_that_have_ended() {
    let kernel = kernel(
        "setp.ge.u32 %p, %r0, 20;\n@%p exit;\nbar.sync 0;\nshfl.sync.idx.b32 %r1, %r0, 3, 31, -1;\n\
         mul.wide.u32 %d0, %r0, 4;\nadd.u64 %d0, %a, %d0;\nst.global.u32 [%d0], %r1;",
    );
    let memory = kernel.translation(&run(64, BUFFERS), &start(&kernel)).unwrap();
    let at = BUFFERS as usize;
    assert_eq!(memory[at..at + 80], [3, 0, 0, 0].repeat(20));
    assert_eq!(memory[at + 80..at + 256], [0; 176]);
}

#[test]
fn wild_pointers_trap() {
    let accesses = [
        "ld.global.u8 %r1, [%a];",
        "ld.u32 %r1, [%a];",
        "st.global.u8 [%a], %r0;",
        "st.f64 [%a], 0d3FF0000000000000;",
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];",
        "st.global.v2.u64 [%a], {%d0, %d1};",
        "atom.global.add.u32 %r1, [%a], 1;",
        "red.global.add.u64 [%a], 1;",
        "atom.shared.cas.b32 %r1, [%a], 0, 1;",
        "ld.shared.u16 %r1, [%a];",
        "ld.local.u64 %d0, [%a];",
        "ld.const.u32 %r1, [%a];",
        "cp.async.ca.shared.global [%a], [%d2], 8;",
        "cp.async.cg.shared.global [0], [%a], 16;",
        "cp.async.ca.shared.global [0], [%a], 4, 1;",
        "mbarrier.init.shared.b64 [%a], 1;",
        "mbarrier.arrive.shared.b64 %d1, [%a];",
        "mbarrier.test_wait.shared.b64 %p, [%a], %d1;\nselp.u32 %r1, 1, 0, %p;",
    ];
    for access in accesses {
        // What is loaded must not be left out: it is stored somewhere harmless.
        let kernel = kernel(&format!(
            "mov.u64 %d0, 0;\nmov.u64 %d1, 0;\nmov.u32 %r1, 0;\n{access}\nst.global.u32 [{BUFFERS}], %r1;\nst.global.u64 [{BEHIND}], %d0;",
        ));
        for address in [
            BYTES,
            BYTES + 4096,
            1 << 32,
            (1 << 32) + BUFFERS,
            1 << 48,
            1 << 63,
            (1 << 63) + BUFFERS,
            0u64.wrapping_sub(16),
            u64::MAX,
        ] {
            let oracle = kernel.oracle(&run(1, address), &start(&kernel)).err();
            assert!(matches!(oracle, Some(Trap::OutOfBounds(..))), "{access} {address:#x}: {oracle:?}");
            end(&kernel, &run(1, address));
        }
    }
}

/// A row of a matrix at a wild address is told with its place in the text, though one routine loads and stores for all lanes.
#[test]
fn wild_rows_trap() {
    for access in [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%d0];",
        "ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%r1, %r2}, [%d0];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%d0], {%r0};",
    ] {
        let kernel = kernel(&format!(
            "mov.u32 %r1, 0;\nmov.u64 %d0, {BUFFERS};\nsetp.eq.u32 %p, %r0, 5;\n@%p mov.u64 %d0, %a;\n{access}\nst.global.u32 [{BUFFERS}], %r1;",
        ));
        kernel.translation(&run(32, BUFFERS), &start(&kernel)).unwrap();
        for address in [BYTES, BYTES - 8, 1 << 48, u64::MAX - 7] {
            let oracle = kernel.oracle(&run(32, address), &start(&kernel)).err();
            assert!(matches!(oracle, Some(Trap::OutOfBounds(..))), "{access} {address:#x}: {oracle:?}");
            end(&kernel, &run(32, address));
        }
    }
}

/// An access that begins within the memory and ends behind it writes nothing.
#[test]
fn accesses_over_the_end_trap() {
    for (access, bytes) in
        [("ld.global.u16 %r1, [%a];", 2), ("st.global.u32 [%a], %r0;", 4), ("ld.global.u64 %d0, [%a];", 8)]
    {
        let kernel = kernel(&format!(
            "mov.u64 %d0, 0;\nmov.u32 %r1, 0;\n{access}\nst.global.u32 [{BUFFERS}], %r1;\nst.global.u64 [{BEHIND}], %d0;"
        ));
        end(&kernel, &run(1, BYTES - bytes + 1));
        kernel.translation(&run(1, BYTES - bytes), &start(&kernel)).unwrap();
    }
}

const RECURSIVE: &str = "\
.func (.param .b32 result) sum(.param .b32 n)
{
.reg .pred %p;
.reg .b32 %r<4>;
.local .align 4 .b8 kept[64];
ld.param.b32 %r0, [n];
st.local.u32 [kept], %r0;
setp.eq.u32 %p, %r0, 0;
@%p bra out;
sub.u32 %r1, %r0, 1;
{
.param .b32 inner_result;
.param .b32 inner;
st.param.b32 [inner], %r1;
call (inner_result), sum, (inner);
ld.param.b32 %r2, [inner_result];
}
ld.local.u32 %r3, [kept];
add.u32 %r0, %r3, %r2;
out:
st.param.b32 [result], %r0;
ret;
}
";

const CALL: &str = "\
{
.param .b32 result;
.param .b32 n;
cvt.u32.u64 %r1, %a;
st.param.b32 [n], %r1;
call (result), sum, (n);
ld.param.b32 %r2, [result];
}
";

fn recursive(function: &str) -> Result<Kernel, String> {
    let text = format!(
        "{HEAD}{function}.visible .entry kernel(.param .u64 parameter)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %a;\nld.param.u64 %a, [parameter];\n\
         {CALL}st.global.u32 [{BUFFERS}], %r2;\nret;\n}}\n",
    );
    Kernel::new(&text, "kernel")
}

#[test]
fn endless_recursion_ends() {
    let without_locals = RECURSIVE
        .replace(".local .align 4 .b8 kept[64];\n", "")
        .replace("st.local.u32 [kept], %r0;\n", "")
        .replace("ld.local.u32 %r3, [kept];\n", "mov.u32 %r3, %r0;\n");
    let kernel = recursive(&without_locals).unwrap();
    let memory = kernel.translation(&run(3, 10), &start(&kernel)).unwrap();
    assert_eq!(memory[BUFFERS as usize], 55);
    end(&kernel, &run(3, u64::from(u32::MAX)));
}

/// Its memory would have to grow with the calls.
#[test]
fn recursion_with_local_memory_is_refused() {
    let error = recursive(RECURSIVE).err().unwrap();
    assert!(error.contains("sum") && error.contains("recursive"), "{error}");
}

#[test]
fn tables_of_branches_are_not_left() {
    let kernel = kernel(&format!(
        "cvt.u32.u64 %r1, %a;\ntargets: .branchtargets zero, one, two;\nbrx.idx %r1, targets;\n\
         zero:\nmov.u32 %r2, 10;\nbra over;\none:\nmov.u32 %r2, 11;\nbra over;\ntwo:\nmov.u32 %r2, 12;\nover:\nst.global.u32 [{BUFFERS}], %r2;",
    ));
    for index in 0..3 {
        let memory = kernel.translation(&run(1, index), &start(&kernel)).unwrap();
        assert_eq!(u64::from(memory[BUFFERS as usize]), 10 + index);
    }
    for index in [3, 4, 0x7fff_ffff, 0xffff_ffff] {
        end(&kernel, &run(1, index));
    }
}

#[test]
fn a_trap_is_a_trap() {
    let kernel = kernel("setp.eq.u32 %p, %r0, 40;\n@%p trap;");
    kernel.translation(&run(40, 0), &start(&kernel)).unwrap();
    end(&kernel, &run(41, 0));
}

/// Where a parameter lies is nothing that a store reaches: not in this memory.
#[test]
fn parameters_cannot_be_written() {
    let kernel = kernel(&format!(
        "mov.u64 %d0, parameter;\nst.global.u64 [%d0], 77;\nst.u64 [%d0], 78;\nld.param.u64 %d1, [parameter];\nst.global.u64 [{BUFFERS}], %d1;",
    ));
    let memory = kernel.translation(&run(2, 0x1122_3344), &start(&kernel)).unwrap();
    assert_eq!(memory[BUFFERS as usize..][..8], 0x1122_3344u64.to_le_bytes());
}

/// Blocks far beyond what 32 bits count have the right places.
#[test]
fn more_than_four_thousand_million_blocks() {
    let kernel = kernel(
        "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ctaid.z;\nand.b32 %r4, %r1, 3;\nmul.wide.u32 %d0, %r4, 16;\n\
         add.u64 %d0, %a, %d0;\nst.global.v2.u32 [%d0], {%r1, %r2};\nst.global.u32 [%d0+8], %r3;",
    );
    let [x, y, z] = [0x7fff_fff0u64, 40, 30];
    let run = Run { grid: [x as u32, y as u32, z as u32], ..run(1, BUFFERS) };
    let first = 29 * x * y + 17 * x + 0x7000_0000;
    let memory = kernel.blocks(&run, &start(&kernel), first..first + 4).unwrap();
    for block in 0..4 {
        let at = BUFFERS as usize + 16 * block;
        let words: Vec<u32> =
            memory[at..at + 12].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [0x7000_0000 + block as u32, 17, 29]);
    }
}
