//! Small kernels about what random ones don't draw: barriers of some warps only, calls by address, special registers, spaces. Each thread stores four words;
//! what they must be is written here where it fits a line, and the oracle has the same.

use crate::oracle::Schedule;
use crate::random::Random;
use crate::rig::{BUFFERS, Kernel, Run, Start};

/// Words that a thread stores.
const WORDS: u32 = 4;

/// What a kernel is given: its shape, and bytes of dynamic shared memory.
#[derive(Clone, Copy)]
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
}

/// One block of so many threads.
fn block(threads: u32) -> Shape {
    Shape { grid: [1, 1, 1], block: [threads, 1, 1], dynamic: 0 }
}

/// A kernel that leaves its results in `%w0` to `%w3`; `%id` is the thread's number in its block. `before` stands outside of it.
fn kernel(before: &str, body: &str) -> Kernel {
    let text = format!(
        ".version 8.2\n.target sm_90\n.address_size 64\n{before}\n.visible .entry kernel(.param .u64 parameter)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %w<4>, %r<8>, %id, %gid;\n.reg .b64 %a<4>, %out;\n.reg .f32 %f<4>;\n\
         mov.u32 %r0, %tid.z;\nmov.u32 %r1, %ntid.y;\nmov.u32 %r2, %tid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;\n\
         mov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %id, %r0, %r1, %r2;\n\
         mov.u32 %w0, 0;\nmov.u32 %w1, 0;\nmov.u32 %w2, 0;\nmov.u32 %w3, 0;\nld.param.u64 %out, [parameter];\n\
         {body}\n\
         mov.u32 %r0, %ctaid.z;\nmov.u32 %r1, %nctaid.y;\nmov.u32 %r2, %ctaid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;\n\
         mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r0, %r0, %r1, %r2;\n\
         mov.u32 %r1, %ntid.x;\nmov.u32 %r2, %ntid.y;\nmul.lo.u32 %r1, %r1, %r2;\nmov.u32 %r2, %ntid.z;\nmul.lo.u32 %r1, %r1, %r2;\n\
         mad.lo.u32 %gid, %r0, %r1, %id;\nmul.wide.u32 %a0, %gid, 16;\nadd.u64 %a0, %out, %a0;\n\
         st.global.v4.u32 [%a0], {{%w0, %w1, %w2, %w3}};\nret;\n}}\n",
    );
    Kernel::new(&text, "kernel").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The words of each thread, from the translation; the oracle has the same.
fn words(kernel: &Kernel, shape: Shape) -> Vec<[u32; WORDS as usize]> {
    words_in(kernel, shape, Schedule::LowestFirst)
}

/// The same, where the oracle goes by another schedule.
fn words_in(kernel: &Kernel, shape: Shape, schedule: Schedule) -> Vec<[u32; WORDS as usize]> {
    let run = Run {
        grid: shape.grid,
        block: shape.block,
        dynamic_shared: shape.dynamic,
        parameters: BUFFERS.to_le_bytes().to_vec(),
    };
    let threads: u32 = shape.grid.iter().chain(&shape.block).product();
    let start = Start::of(kernel, BUFFERS + u64::from(4 * WORDS * threads));
    let memory = kernel.translation(&run, &start).unwrap();
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let words = |memory: &[u8]| -> Vec<[u32; WORDS as usize]> {
        memory[BUFFERS as usize..].chunks(16).map(|thread| [0, 4, 8, 12].map(|at| word(&thread[at..at + 4]))).collect()
    };
    let (translation, oracle) = (words(&memory), words(&kernel.oracle_with(&run, &start, schedule).unwrap()));
    assert_eq!(translation, oracle, "translation and oracle");
    translation
}

#[test]
fn special_registers() {
    let kernel = kernel(
        "",
        "mov.u32 %r0, %laneid;\nmov.u32 %r1, %warpid;\nmov.u32 %r2, %nwarpid;\nshl.b32 %r1, %r1, 8;\nor.b32 %w0, %r0, %r1;\n\
         shl.b32 %r2, %r2, 16;\nor.b32 %w0, %w0, %r2;\nmov.u32 %w1, %lanemask_lt;\nmov.u32 %r0, %lanemask_ge;\nxor.b32 %w1, %w1, %r0;\n\
         mov.u32 %w2, %lanemask_eq;\nmov.u32 %r0, %lanemask_le;\nmov.u32 %r1, %lanemask_gt;\nadd.u32 %w3, %r0, %r1;\n\
         mov.u32 %r0, %ctaid.y;\nmov.u32 %r1, %nctaid.z;\nmad.lo.u32 %w3, %r0, %r1, %w3;",
    );
    let shape = Shape { grid: [2, 3, 2], block: [5, 7, 2], dynamic: 0 };
    for (index, words) in (0..).zip(words(&kernel, shape)) {
        let (thread, block) = (index % 70, index / 70);
        let (lane, warp) = (thread % 32, thread / 32);
        let expected = [lane | warp << 8 | 3 << 16, u32::MAX, 1 << lane, u32::MAX.wrapping_add(block / 2 % 3 * 2)];
        assert_eq!(words, expected, "thread {thread} of block {block}");
    }
}

/// Some warps meet at a barrier of their own while others go on.
#[test]
fn barriers_of_some_warps() {
    let kernel = kernel(
        ".shared .align 4 .b32 cells[128];",
        "mov.u64 %a0, cells;\nmul.wide.u32 %a1, %id, 4;\nadd.u64 %a1, %a0, %a1;\nst.shared.u32 [%a1], %id;\n\
         setp.ge.u32 %p0, %id, 64;\n@%p0 bra others;\nbar.sync 3, 64;\nxor.b32 %r0, %id, 32;\nbra both;\n\
         others:\nbarrier.sync 4, 64;\nxor.b32 %r0, %id, 33;\n\
         both:\nmul.wide.u32 %a1, %r0, 4;\nadd.u64 %a1, %a0, %a1;\nld.shared.u32 %w0, [%a1];",
    );
    for (thread, words) in (0..).zip(words(&kernel, block(128))) {
        assert_eq!(words[0], if thread < 64 { thread ^ 32 } else { thread ^ 33 });
    }
}

/// One warp makes something and goes on, another waits for it; then the other way round.
#[test]
fn arriving_without_waiting() {
    let kernel = kernel(
        ".shared .align 4 .b32 cells[64];",
        "mov.u64 %a0, cells;\nand.b32 %r0, %id, 31;\nmul.wide.u32 %a1, %r0, 4;\nadd.u64 %a1, %a0, %a1;\nmov.u32 %r1, 0;\n\
         setp.ge.u32 %p0, %id, 32;\n@%p0 bra consumer;\n\
         producer:\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra first;\nbar.sync 2, 64;\nfirst:\nmad.lo.u32 %r2, %r1, 100, %r0;\nst.shared.u32 [%a1], %r2;\n\
         bar.arrive 1, 64;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra producer;\nbra done;\n\
         consumer:\nbar.sync 1, 64;\nxor.b32 %r3, %r0, 1;\nmul.wide.u32 %a2, %r3, 4;\nadd.u64 %a2, %a0, %a2;\nld.shared.u32 %r2, [%a2];\nadd.u32 %w0, %w0, %r2;\n\
         add.u32 %r1, %r1, 1;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra done;\nbar.arrive 2, 64;\nbra consumer;\n\
         done:",
    );
    for (thread, words) in (0..).zip(words(&kernel, block(64))) {
        assert_eq!(words[0], if thread < 32 { 0 } else { 1000 + 5 * ((thread % 32) ^ 1) });
    }
}

#[test]
fn reductions_at_barriers() {
    let kernel = kernel(
        "",
        "setp.lt.u32 %p0, %id, 33;\nbar.red.popc.u32 %w0, 0, %p0;\nbar.red.popc.u32 %w1, 0, !%p0;\nbar.red.and.pred %p1, 0, %p0;\nselp.u32 %w2, 1, 0, %p1;\n\
         bar.red.or.pred %p2, 5, %p0;\nselp.u32 %r0, 2, 0, %p2;\nor.b32 %w2, %w2, %r0;\n\
         @%p0 bra over;\nexit;\nover:\nbarrier.red.and.pred %p1, 0, %p0;\nselp.u32 %r0, 4, 0, %p1;\nor.b32 %w2, %w2, %r0;",
    );
    let all = words(&kernel, block(70));
    assert_eq!(all[..33], [[33, 37, 6, 0]; 33]);
    assert_eq!(all[33..], [[0; 4]; 37]);
}

/// A warp waits for a flag that another sets, with nothing but memory between them.
#[test]
fn spinning_on_another_warp() {
    let kernel = kernel(
        ".shared .align 4 .b32 flag;\n.shared .align 4 .b32 value;",
        "setp.ne.u32 %p0, %id, 0;\n@%p0 bra ready;\nst.shared.u32 [flag], 0;\nready:\nbar.sync 0;\nsetp.ge.u32 %p0, %id, 64;\n@%p0 bra giver;\n\
         again:\nld.volatile.shared.u32 %r0, [flag];\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 bra again;\nmembar.cta;\nld.volatile.shared.u32 %w0, [value];\nbra out;\n\
         giver:\nst.volatile.shared.u32 [value], 77;\nmembar.cta;\natom.shared.exch.b32 %r0, [flag], 1;\nout:",
    );
    for (thread, words) in (0..).zip(words(&kernel, block(96))) {
        assert_eq!(words[0], if thread < 64 { 77 } else { 0 });
    }
}

/// Warps that fill and empty a cell in turn, told by two barriers in memory, by parity and by state.
#[test]
fn barriers_in_memory_between_warps() {
    let kernel = kernel(
        ".shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.shared .align 4 .b32 cells[32];",
        "setp.ne.u32 %p0, %id, 0;\n@%p0 bra ready;\nmbarrier.init.shared.b64 [full], 32;\nmbarrier.init.shared.b64 [empty], 64;\nready:\nbar.sync 0;\n\
         mov.u64 %a1, cells;\nand.b32 %r0, %id, 31;\nmul.wide.u32 %a2, %r0, 4;\nadd.u64 %a1, %a1, %a2;\nmov.u32 %r1, 0;\nsetp.lt.u32 %p0, %id, 32;\n@%p0 bra giver;\n\
         taker:\nand.b32 %r2, %r1, 1;\nwait_full:\nmbarrier.try_wait.parity.shared.b64 %p1, [full], %r2;\n@!%p1 bra wait_full;\n\
         ld.shared.u32 %r3, [%a1];\nmad.lo.u32 %w0, %w0, 3, %r3;\nmbarrier.arrive.shared.b64 %a3, [empty];\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra taker;\nbra done;\n\
         giver:\nadd.u32 %r3, %r1, %r0;\nst.shared.u32 [%a1], %r3;\nmbarrier.arrive.release.cta.shared::cta.b64 _, [full];\nand.b32 %r2, %r1, 1;\n\
         wait_empty:\nmbarrier.test_wait.parity.shared.b64 %p1, [empty], %r2;\n@!%p1 bra wait_empty;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra giver;\ndone:",
    );
    for (thread, words) in (0u32..).zip(words(&kernel, block(96))) {
        let taken = (0..5).fold(0, |sum, round| 3 * sum + round + thread % 32);
        assert_eq!(words[0], if thread < 32 { 0 } else { taken });
    }
}

/// Lanes of one warp wait for those that took the other way, by the state that their own arrival gave them; the function that waits is called.
#[test]
fn barriers_in_memory_within_a_warp() {
    let function = ".shared .align 8 .b64 gate;\n.func wait(.param .b64 state)\n{\n.reg .b64 %s;\n.reg .pred %p;\nld.param.b64 %s, [state];\n\
        again:\nmbarrier.try_wait.shared::cta.b64 %p, [gate], %s;\n@%p bra over;\nbra again;\nover:\nret;\n}\n";
    let kernel = kernel(
        function,
        "setp.ne.u32 %p0, %id, 0;\n@%p0 bra ready;\nmbarrier.init.shared.b64 [gate], 40;\nready:\nbar.sync 0;\nand.b32 %r0, %id, 1;\nsetp.eq.u32 %p0, %r0, 1;\n\
         @%p0 bra odd;\nmbarrier.arrive.shared.b64 %a1, [gate];\n{\n.param .b64 state;\nst.param.b64 [state], %a1;\ncall wait, (state);\n}\nmov.u32 %w0, 1;\nbra both;\n\
         odd:\nmov.u32 %w0, 2;\nmbarrier.arrive.shared.b64 %a1, [gate];\nboth:\nbar.sync 0;\nmbarrier.test_wait.shared.b64 %p1, [gate], %a1;\nselp.u32 %w1, 1, 0, %p1;",
    );
    // Who goes by the lowest place in the text would never leave the function.
    let schedule = Schedule::Anyone(Random::new(7));
    for (thread, words) in (0u32..).zip(words_in(&kernel, block(40), schedule)) {
        assert_eq!(words, [1 + thread % 2, 1, 0, 0]);
    }
}

/// Copies of many threads that a barrier counts when they are done.
#[test]
fn copies_that_arrive_at_a_barrier() {
    let kernel = kernel(
        ".shared .align 8 .b64 done;\n.shared .align 16 .b8 tile[1024];\n.global .align 16 .b32 source[8] = {1, 2, 3, 4, 5, 6, 7, 8};",
        "setp.ne.u32 %p0, %id, 0;\n@%p0 bra ready;\nmbarrier.init.shared.b64 [done], 64;\nready:\nbar.sync 0;\nmov.u64 %a1, tile;\nmul.wide.u32 %a2, %id, 16;\n\
         add.u64 %a2, %a1, %a2;\nand.b32 %r0, %id, 1;\nmul.wide.u32 %a3, %r0, 16;\nmov.u64 %a0, source;\nadd.u64 %a3, %a0, %a3;\n\
         cp.async.cg.shared.global [%a2], [%a3], 16;\ncp.async.mbarrier.arrive.noinc.shared.b64 [done];\n\
         again:\nmbarrier.test_wait.parity.shared.b64 %p1, [done], 0;\n@!%p1 bra again;\n\
         xor.b32 %r1, %id, 63;\nmul.wide.u32 %a2, %r1, 16;\nadd.u64 %a2, %a1, %a2;\nld.shared.v4.u32 {%w0, %w1, %w2, %w3}, [%a2];",
    );
    for (thread, words) in (0u32..).zip(words(&kernel, block(64))) {
        let first = if thread % 2 == 0 { 5 } else { 1 };
        assert_eq!(words, [first, first + 1, first + 2, first + 3]);
    }
}

#[test]
fn one_lane_is_elected() {
    let kernel = kernel(
        "",
        "setp.eq.u32 %p0, %id, 32;\n@%p0 exit;\nelect.sync %w0|%p1, -1;\nselp.u32 %w1, 1, 0, %p1;\nand.b32 %r0, %id, 8;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 bra out;\n\
         elect.sync _|%p2, 0xFF00FF00;\nselp.u32 %w2, 1, 0, %p2;\nout:",
    );
    let all = words(&kernel, block(64));
    for (thread, words) in (0u32..).zip(&all).filter(|(thread, _)| *thread != 32) {
        let leader = thread / 32;
        assert_eq!(
            *words,
            [leader, u32::from(thread % 32 == leader), u32::from(thread % 32 == 8), 0],
            "thread {thread}"
        );
    }
}

const FUNCTIONS: &str = "\
.global .align 8 .u64 unused = 5;
.func (.param .b32 result) twice(.param .b32 x)
{
.reg .b32 %r;
ld.param.b32 %r, [x];
add.u32 %r, %r, %r;
st.param.b32 [result], %r;
ret;
}
.func (.param .b32 result) lane_zero(.param .b32 x)
{
.reg .b32 %r<2>;
ld.param.b32 %r0, [x];
bar.sync 0;
shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;
st.param.b32 [result], %r1;
ret;
}
.func (.reg .b32 %out) in_registers(.reg .b32 %x, .reg .f32 %y)
{
.reg .b32 %r;
cvt.rzi.s32.f32 %r, %y;
sub.s32 %out, %x, %r;
ret;
}
.func nothing()
{
ret;
}
";

fn call(function: &str, argument: &str, result: &str) -> String {
    format!(
        "{{\n.param .b32 result;\n.param .b32 x;\nst.param.b32 [x], {argument};\ncall.uni (result), {function}, (x);\nld.param.b32 {result}, [result];\n}}\n"
    )
}

#[test]
fn calls_that_wait_within() {
    let body = call("twice", "%id", "%w0")
        + &call("lane_zero", "%id", "%w1")
        + "call nothing, ();\nmov.f32 %f0, 0f40600000;\n"
        + "call (%w2), in_registers, (%id, %f0);";
    for (thread, words) in (0u32..).zip(words(&kernel(FUNCTIONS, &body), block(70))) {
        assert_eq!(words, [2 * thread, thread / 32 * 32, thread.wrapping_sub(3), 0]);
    }
}

/// Each lane calls another function, by its address.
#[test]
fn calls_by_address() {
    let functions = "\
.func (.param .b32 result) up(.param .b32 x)\n{\n.reg .b32 %r;\nld.param.b32 %r, [x];\nadd.u32 %r, %r, 1;\nst.param.b32 [result], %r;\nret;\n}
.func (.param .b32 result) down(.param .b32 x)\n{\n.reg .b32 %r;\nld.param.b32 %r, [x];\nsub.u32 %r, %r, 1;\nst.param.b32 [result], %r;\nret;\n}
";
    let body = "and.b32 %r0, %id, 1;\nsetp.eq.u32 %p0, %r0, 1;\nmov.u64 %a1, up;\nmov.u64 %a2, down;\nselp.b64 %a1, %a1, %a2, %p0;\n\
        {\n.param .b32 result;\n.param .b32 x;\nst.param.b32 [x], %id;\n\
        prototype: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (result), %a1, (x), prototype;\nld.param.b32 %w0, [result];\n}";
    for (thread, words) in (0u32..).zip(words(&kernel(functions, body), block(40))) {
        assert_eq!(words[0], if thread % 2 == 1 { thread + 1 } else { thread.wrapping_sub(1) });
    }
}

#[test]
fn dynamic_and_static_shared_memory() {
    let kernel = kernel(
        ".shared .align 4 .b8 odd[6];\n.extern .shared .align 16 .b8 dynamic[];",
        "mov.u64 %a0, dynamic;\nmul.wide.u32 %a1, %id, 4;\nadd.u64 %a1, %a0, %a1;\nst.shared.u32 [%a1], %id;\nst.shared.u16 [odd+4], 513;\nbar.sync 0;\n\
         xor.b32 %r0, %id, 1;\nmul.wide.u32 %a1, %r0, 4;\nadd.u64 %a1, %a0, %a1;\nld.shared.u32 %w0, [%a1];\nld.shared.u8 %w1, [odd+5];\nmov.u32 %w2, %dynamic_smem_size;\n\
         cvta.shared.u64 %a2, %a1;\nld.u32 %w3, [%a2];",
    );
    for (thread, words) in (0..).zip(words(&kernel, Shape { dynamic: 256, ..block(64) })) {
        assert_eq!(words, [thread ^ 1, 2, 256, thread ^ 1]);
    }
}

/// Each block finds zeros in its memory, however many ran before it on the same instance.
#[test]
fn memory_that_was_never_written() {
    let kernel = kernel(
        ".shared .align 4 .b8 odd[330];\n.extern .shared .align 16 .b8 dynamic[];",
        ".local .align 4 .b32 mine[3];\nmov.u64 %a0, dynamic;\nmul.wide.u32 %a1, %id, 4;\nadd.u64 %a1, %a0, %a1;\nld.shared.u32 %w0, [%a1];\nld.shared.u8 %w1, [odd+329];\n\
         ld.local.u32 %w2, [mine+8];\nmov.u64 %a2, odd;\nmul.wide.u32 %a3, %id, 4;\nadd.u64 %a2, %a2, %a3;\nld.shared.u32 %w3, [%a2];\nbar.sync 0;\n\
         st.shared.u32 [%a1], -1;\nst.shared.u8 [odd+329], 255;\nst.local.u32 [mine+8], 7;\nst.shared.u32 [%a2], %id;",
    );
    let shape = Shape { grid: [3, 2, 1], dynamic: 4 * 70 + 3, ..block(70) };
    assert!(words(&kernel, shape).iter().all(|words| *words == [0; 4]));
}

#[test]
fn spaces_of_generic_addresses() {
    let kernel = kernel(
        ".shared .align 4 .b32 shared_cell;\n.global .align 4 .b32 global_cell = 7;\n.const .align 4 .b32 const_cell = 9;\n\
         .global .align 8 .u64 pointer = generic(global_cell);",
        ".local .align 4 .b32 local_cell;\nst.local.u32 [local_cell], %id;\nmov.u64 %a0, local_cell;\ncvta.local.u64 %a0, %a0;\nld.u32 %w0, [%a0];\n\
         isspacep.local %p0, %a0;\nisspacep.shared %p1, %a0;\nselp.u32 %w1, 1, 0, %p0;\nselp.u32 %r0, 2, 0, %p1;\nor.b32 %w1, %w1, %r0;\n\
         cvta.shared.u64 %a1, shared_cell;\nisspacep.shared %p0, %a1;\nisspacep.global %p1, %a1;\nselp.u32 %r0, 4, 0, %p0;\nor.b32 %w1, %w1, %r0;\nselp.u32 %r0, 8, 0, %p1;\nor.b32 %w1, %w1, %r0;\n\
         ld.global.u64 %a2, [pointer];\nisspacep.global %p0, %a2;\nselp.u32 %r0, 16, 0, %p0;\nor.b32 %w1, %w1, %r0;\nld.u32 %w2, [%a2];\n\
         cvta.const.u64 %a3, const_cell;\nld.u32 %w3, [%a3];",
    );
    for (thread, words) in (0..).zip(words(&kernel, block(33))) {
        assert_eq!(words, [thread, 1 + 4 + 16, 7, 9]);
    }
}

/// The whole mask in a warp that is not whole, and lanes that have ended.
#[test]
fn meetings_without_lanes_that_are_not_there() {
    let kernel = kernel(
        "",
        "setp.eq.u32 %p0, %id, 34;\n@%p0 exit;\nsetp.lt.u32 %p1, %id, 36;\nvote.sync.ballot.b32 %w0, %p1, -1;\nvote.sync.all.pred %p2, %p1, -1;\nselp.u32 %w1, 1, 0, %p2;\n\
         redux.sync.add.u32 %w2, %id, -1;\nmatch.any.sync.b32 %w3, 5, -1;",
    );
    let all = words(&kernel, block(40));
    assert!(all[..32].iter().all(|words| *words == [u32::MAX, 1, 496, u32::MAX]));
    assert_eq!(all[34], [0; 4]);
    let second: u32 = (32..40).filter(|id| *id != 34).sum();
    assert!(all[35..].iter().all(|words| *words == [0b1011, 0, second, 0b1111_1011]), "{:?}", &all[35..]);
}

/// Lanes that took another way meet among themselves, at another place in the text but under one mask each.
#[test]
fn two_groups_of_a_warp() {
    let kernel = kernel(
        "",
        "and.b32 %r0, %id, 1;\nsetp.eq.u32 %p0, %r0, 1;\n@%p0 bra odd;\nredux.sync.add.u32 %w0, %id, 0x55555555;\nbar.warp.sync 0x55555555;\nbra both;\n\
         odd:\nredux.sync.max.u32 %w0, %id, 0xAAAAAAAA;\nshfl.sync.down.b32 %w1, %id, 2, 31, 0xAAAAAAAA;\n\
         both:\nbar.warp.sync -1;\nshfl.sync.bfly.b32 %w2, %id, 1, 31, -1;",
    );
    for (thread, words) in (0..).zip(words(&kernel, block(32))) {
        let expected = if thread % 2 == 0 { [240, 0] } else { [31, if thread + 2 < 32 { thread + 2 } else { thread }] };
        assert_eq!(words, [expected[0], expected[1], thread ^ 1, 0]);
    }
}

/// In a whole warp that goes one way, all lanes are active: the oracle does not say, since elsewhere the answer depends on who goes first.
#[test]
fn active_lanes_of_a_whole_warp() {
    let kernel = kernel("", "bar.sync 0;\nactivemask.b32 %w0;");
    let run = Run { grid: [1; 3], block: [64, 1, 1], dynamic_shared: 0, parameters: BUFFERS.to_le_bytes().to_vec() };
    let memory = kernel.translation(&run, &Start::of(&kernel, BUFFERS + 1024)).unwrap();
    for thread in memory[BUFFERS as usize..].chunks(16) {
        assert_eq!(thread[..4], [0xff; 4]);
    }
}
