//! Blocks of several warps: all of them run a region in one call where they can, and go on behind a barrier at once where all have come. Whatever one of them does otherwise, the
//! others must neither miss nor overtake it.

use steadfast_ptx::kernel::Form;

use crate::lanes::{leaves_the_same_in, text};
use crate::rig::Kernel;

/// Warps of one row, of two and of four rows; one warp; a last one that is not whole; rows in which no groups stand side by side.
const SHAPES: [[u32; 3]; 10] = [
    [64, 1, 1],
    [64, 2, 1],
    [16, 8, 1],
    [8, 16, 1],
    [32, 1, 1],
    [32, 3, 2],
    [48, 2, 1],
    [80, 1, 1],
    [128, 4, 1],
    [1024, 1, 1],
];

/// `%r1` is the thread's linear index, `%r2` how many there are, `%r0` a number; `S` are as many words of shared memory, of which `%d3` is the thread's own and `%d4` that of one in another warp.
fn agrees_in(body: &str, numbers: &[u32], shapes: &[[u32; 3]]) {
    let code = format!(
        ".shared .align 4 .b32 S[1024]; .shared .align 4 .b32 COUNT[1]; .reg .b32 %s<9>;\n\
         mov.u32 %r2, %ntid.x; mov.u32 %s1, %ntid.y; mul.lo.u32 %r2, %r2, %s1; mov.u32 %s1, %ntid.z; mul.lo.u32 %r2, %r2, %s1;\n\
         mov.u64 %d2, S; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d2, %d3;\n\
         add.u32 %s2, %r1, 37; rem.u32 %s2, %s2, %r2; mul.wide.u32 %d4, %s2, 4; add.u64 %d4, %d2, %d4;\n\
         shr.u32 %s3, %r1, 5; and.b32 %s4, %r1, 31; mov.u32 %r5, %r1; mov.u32 %r4, 0;\n{body}\nst.global.u32 [%d1], %r5; ret;"
    );
    let kernel = Kernel::new(&text(&code), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Vector, "{code}");
    leaves_the_same_in(&kernel, &code, numbers, shapes);
}

fn agrees(body: &str, numbers: &[u32]) {
    agrees_in(body, numbers, &SHAPES);
}

/// Everyone reads what someone in another warp wrote, between barriers.
const EXCHANGE: &str =
    "st.shared.u32 [%d3], %r5; bar.sync 0; ld.shared.u32 %r6, [%d4]; bar.sync 0; mad.lo.u32 %r5, %r5, 3, %r6;";
const AGAIN: &str = "add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 6; @%p0 bra AGAIN;";

#[test]
fn all_go_on_behind_a_barrier() {
    agrees(&format!("AGAIN: {EXCHANGE} {AGAIN}"), &[0]);
}

/// A warp, half of one or a single thread: at the beginning, in the middle, between the barriers.
#[test]
fn some_end_while_others_go_on() {
    for who in ["mov.u32 %s5, 0;", "and.b32 %s5, %s4, 16;", "and.b32 %s5, %s4, 30;"] {
        let ends = "setp.eq.u32 %p1, %s3, %r4; setp.eq.and.u32 %p1, %s5, 0, %p1; @%p1 ret;";
        agrees(&format!("AGAIN: {who} {ends} {EXCHANGE} {AGAIN}"), &[0]);
        let between = EXCHANGE.replacen("bar.sync 0;", &format!("bar.sync 0; {who} {ends}"), 1);
        agrees(&format!("AGAIN: {between} {AGAIN}"), &[0]);
    }
}

/// The same barrier at two places of the text, for warps, for parts of them and for single threads: behind it they go on at different places.
#[test]
fn some_come_to_the_barrier_elsewhere() {
    for way in ["and.b32 %s5, %s3, 1;", "and.b32 %s5, %s4, 16;", "and.b32 %s5, %s4, %r4;"] {
        let code = format!(
            "AGAIN: st.shared.u32 [%d3], %r5; {way} setp.eq.u32 %p1, %s5, 0; @%p1 bra OTHER;\n\
             bar.sync 0; ld.shared.u32 %r6, [%d4]; add.u32 %r6, %r6, 9; bar.sync 0; bra BEHIND;\n\
             OTHER: bar.sync 0; ld.shared.u32 %r6, [%d4]; bar.sync 0;\n\
             BEHIND: mad.lo.u32 %r5, %r5, 5, %r6; {AGAIN}"
        );
        agrees(&code, &[0]);
    }
}

/// Pairs of warps wait for each other, and nobody else does.
#[test]
fn barriers_of_some_warps() {
    // Each pair at a barrier of its own.
    let code = format!(
        "shr.u32 %s5, %r1, 6; add.u32 %s5, %s5, 1; xor.b32 %s6, %r1, 32; mul.wide.u32 %d4, %s6, 4; add.u64 %d4, %d2, %d4;\n\
         AGAIN: st.shared.u32 [%d3], %r5; bar.sync %s5, 64; ld.shared.u32 %r6, [%d4]; bar.sync %s5, 64; mad.lo.u32 %r5, %r5, 3, %r6; {AGAIN}"
    );
    // Not the largest block: its last pair would need a seventeenth barrier.
    agrees_in(&code, &[0], &[[64, 1, 1], [64, 2, 1], [16, 8, 1], [128, 4, 1]]);
    let constant = "AGAIN: st.shared.u32 [%d3], %r5; bar.sync 1, 64; ld.shared.u32 %r6, [%d4]; bar.sync 1, 64; mad.lo.u32 %r5, %r5, 3, %r6;";
    agrees_in(&format!("{constant} {AGAIN}"), &[0], &[[64, 1, 1], [16, 4, 1]]);
}

/// The first warp brings something and does not wait.
#[test]
fn some_arrive_and_go_on() {
    let code = "setp.eq.u32 %p1, %s3, 0; @!%p1 bra WAIT; st.shared.u32 [%d3], %r5; bar.arrive 1, %r2; bra BEHIND;\n\
        WAIT: bar.sync 1, %r2; mul.wide.u32 %d4, %s4, 4; add.u64 %d4, %d2, %d4; ld.shared.u32 %r6, [%d4]; mad.lo.u32 %r5, %r5, 3, %r6;\nBEHIND: bar.sync 0;";
    agrees_in(code, &[0], &[[64, 1, 1], [64, 2, 1], [16, 8, 1], [128, 4, 1]]);
}

#[test]
fn barriers_that_count() {
    let code = format!(
        "AGAIN: setp.lt.u32 %p1, %s4, %r4; bar.red.popc.u32 %r6, 0, %p1; add.u32 %r5, %r5, %r6; bar.red.and.pred %p2, 0, %p1; @%p2 add.u32 %r5, %r5, 1; {AGAIN}"
    );
    agrees(&code, &[0]);
}

/// What the order of warps decides: who gets which number, on the way to a barrier, behind one and between shuffles.
#[test]
fn tickets_are_drawn_in_order() {
    let draw = "atom.shared.add.u32 %r6, [COUNT], 1; mad.lo.u32 %r5, %r5, 3, %r6;";
    let swap = "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; add.u32 %r5, %r5, %r6;";
    let whole = [[64, 1, 1], [64, 2, 1], [16, 8, 1], [32, 3, 2], [128, 4, 1]];
    for body in [
        format!("AGAIN: {draw} {EXCHANGE} {AGAIN}"),
        format!("AGAIN: {EXCHANGE} {draw} {AGAIN}"),
        format!("AGAIN: {EXCHANGE} {swap} {draw} {swap} {AGAIN}"),
        format!("AGAIN: {swap} {EXCHANGE} {swap} {AGAIN} {draw}"),
        format!(
            "AGAIN: {EXCHANGE} and.b32 %s5, %s4, 3; setp.eq.u32 %p1, %s5, %r4; @!%p1 bra NOT; {draw}\nNOT: {AGAIN}"
        ),
    ] {
        agrees_in(&body, &[0], &whole);
    }
}

/// Groups of a warp part in front of a barrier, in one of the warps, and go on as groups: it has not come there with the others.
#[test]
fn one_warp_parts() {
    for (groups, work) in
        [(4, "mad.lo.u32 %r5, %r5, 3, %s6;"), (4, "st.global.u32 [%d1+4], %s6;"), (6, "mad.lo.u32 %r5, %r5, 3, %s6;")]
    {
        let parts = format!(
            "and.b32 %s5, %s4, {groups}; setp.ne.u32 %p1, %s5, 0; setp.eq.and.u32 %p1, %s3, %r0, %p1; @!%p1 bra OTHERS;\n\
             mov.u32 %s6, 9;\nLOOP: {work} sub.u32 %s6, %s6, 1; setp.gt.s32 %p2, %s6, 0; @%p2 bra LOOP;\nOTHERS:"
        );
        agrees(&format!("AGAIN: {parts} {EXCHANGE} {AGAIN}"), &[0, 1, 3, 100]);
        agrees(&format!("AGAIN: {EXCHANGE} {parts} {EXCHANGE} {AGAIN}"), &[0, 1, 3, 100]);
    }
}
