//! Kernels in which groups of four threads part and come together again: behind stores, in loops, at barriers, in exchanges of a warp.
//!
//! Each runs on the oracle too, and (see `rig`) one thread at a time.

use crate::lanes::{leaves_the_same_in, text};
use crate::rig::Kernel;
use steadfast_ptx::kernel::{Form, Obstacle};

/// Whole groups and warps, parts of them, one row and several.
const SHAPES: [[u32; 3]; 12] = [
    [1, 1, 1],
    [3, 1, 1],
    [4, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [64, 1, 1],
    [37, 2, 1],
    [8, 4, 2],
    [20, 1, 3],
    [130, 1, 1],
    [256, 1, 1],
    [1024, 1, 1],
];

/// `%r0` is the number, `%r1` the thread's linear index, `%d1` the address of its 16 bytes, `%d2` that of its word in shared memory.
const SHARED: &str =
    ".shared .align 16 .b8 sh[4096]; mov.u64 %d3, sh; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d3, %d2;\n";

fn agrees(code: &str, numbers: &[u32]) {
    let code = format!("{SHARED}{code}");
    let kernel = Kernel::new(&text(&code), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Vector, "{code}");
    leaves_the_same_in(&kernel, &code, numbers, &SHAPES);
}

/// Enough for threads to come together again in front of it.
fn more() -> String {
    "mad.lo.u32 %r6, %r6, 3, %r1; xor.b32 %r6, %r6, %r0;\n".repeat(8) + "st.global.u32 [%d1+8], %r6;\n"
}

#[test]
fn groups_part_behind_stores_and_come_together_again() {
    let numbers = [0, 1, 2, 3, 4, 5, 31, 1000];
    let more = more();
    agrees(
        &format!(
            "st.global.u32 [%d1], %r1; mov.u32 %r6, 7; setp.ge.u32 %p0, %r1, %r0; @%p0 bra OVER;\n\
             ld.global.u32 %r6, [%d1+4]; st.global.u32 [%d1+4], %r1;\nOVER: {more} ret;"
        ),
        &numbers,
    );
    // Both sides store, one ends.
    agrees(
        &format!(
            "st.global.u32 [%d1], %r1; mov.u32 %r6, 7; setp.ge.u32 %p0, %r1, %r0; @%p0 bra OTHER; st.global.u32 [%d1+4], %r1; bra OVER;\n\
             OTHER: st.global.u32 [%d1+4], %r0; and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; @%p1 exit;\nOVER: {more} ret;"
        ),
        &numbers,
    );
}

#[test]
fn what_was_one_number_for_all_may_be_several_behind_a_parting() {
    let more = more();
    // A constant that depends on the way; a counter that is read behind its loop; an address made of it.
    agrees(
        &format!(
            "st.global.u32 [%d1], %r1; mov.u32 %r6, 1; setp.ge.u32 %p0, %r1, %r0; @%p0 bra OVER; st.global.u32 [%d1+4], %r1; mov.u32 %r6, 2;\n\
             OVER: {more} and.b32 %r4, %r6, 3; mul.wide.u32 %d4, %r4, 4; add.u64 %d4, %d1, %d4; st.global.u32 [%d4], %r6; ret;"
        ),
        &[0, 2, 5, 1000],
    );
    agrees(
        &format!(
            "and.b32 %r4, %r1, 3; mad.lo.u32 %r4, %r4, %r0, 1; mov.u32 %r5, 0; mov.u32 %r6, %r0;\n\
             AGAIN: st.global.u32 [%d1+4], %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, %r4; @%p0 bra AGAIN;\n\
             {more} mul.wide.u32 %d4, %r5, 4; and.b64 %d4, %d4, 12; add.u64 %d4, %d1, %d4; st.global.u32 [%d4], %r5; ret;"
        ),
        &[0, 1, 3, 6],
    );
}

#[test]
fn loops_along_the_grid() {
    // Also where an index wraps round, as a signed number, within a group.
    for (bound, compare) in
        [("", "s32"), ("sub.u32 %r0, 0x7ffffb00, %r0;", "s32"), ("sub.u32 %r0, 0x80000045, %r0;", "u32")]
    {
        let first =
            if bound.is_empty() { "mov.u32 %r4, %r1;" } else { "sub.u32 %r4, %r0, 300; add.u32 %r4, %r4, %r1;" };
        agrees(
            &format!(
                "{bound} {first} mov.u32 %r6, 0;\nAGAIN: setp.ge.{compare} %p0, %r4, %r0; @%p0 bra OVER; cvt.s64.s32 %d4, %r4; shr.u64 %d5, %d4, 7; cvt.u32.u64 %r5, %d5;\n\
                 xor.b32 %r6, %r6, %r5; and.b64 %d4, %d4, 1023; mul.lo.u64 %d4, %d4, 4; add.u64 %d4, %d4, %d0; ld.global.u32 %r5, [%d4]; add.u32 %r6, %r6, %r5;\n\
                 st.global.u32 [%d1+12], %r6; add.u32 %r4, %r4, 64; bra AGAIN;\nOVER: st.global.u32 [%d1], %r6; ret;"
            ),
            &[0, 1, 2, 3, 77, 300],
        );
    }
}

#[test]
fn sums_in_shared_memory() {
    agrees(
        "st.shared.u32 [%d2], %r1; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mul.lo.u32 %r4, %r4, %r5; mov.u32 %r5, %ntid.z; mul.lo.u32 %r4, %r4, %r5; bar.sync 0;\n\
         AGAIN: shr.u32 %r4, %r4, 1; setp.eq.u32 %p0, %r4, 0; @%p0 bra OVER; setp.ge.u32 %p1, %r1, %r4; @%p1 bra WAIT;\n\
         mul.wide.u32 %d4, %r4, 4; add.u64 %d4, %d2, %d4; ld.shared.u32 %r5, [%d2]; ld.shared.u32 %r6, [%d4]; add.u32 %r5, %r5, %r6; st.shared.u32 [%d2], %r5;\n\
         WAIT: bar.sync 0; bra AGAIN;\nOVER: ld.shared.u32 %r5, [sh]; ld.shared.u32 %r6, [%d2]; st.global.v2.u32 [%d1], {%r5, %r6}; ret;",
        &[0],
    );
}

#[test]
fn barriers_with_predicates_and_of_some_threads() {
    agrees(
        "and.b32 %r4, %r1, %r0; setp.ne.u32 %p0, %r4, 0; bar.red.popc.u32 %r5, 0, %p0; bar.red.and.pred %p1, 1, %p0; bar.red.or.pred %p2, 0, !%p0;\n\
         selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2; or.b32 %r6, %r6, %r7; st.global.v2.u32 [%d1], {%r5, %r6}; ret;",
        &[0, 1, 3, 32, u32::MAX],
    );
    // Lanes that have ended keep nobody waiting.
    agrees(
        "st.shared.u32 [%d2], %r1; setp.lt.u32 %p0, %r1, %r0; @%p0 exit; bar.sync 0; ld.shared.u32 %r4, [%d2]; st.global.u32 [%d1], %r4; ret;",
        &[0, 1, 4, 30, 33, 2000],
    );
}

#[test]
fn shuffles_by_every_distance() {
    for mode in ["up", "down", "bfly", "idx"] {
        for clamp in [0, 31, 0x1807, 0x1c1c] {
            let mut code = String::from("mov.u32 %r4, %r1; mov.u32 %r5, 0;\n");
            for distance in [0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 30, 31] {
                // What a lane that is not there would bring is left out: where lanes are missing, the own number counts.
                code += &format!(
                    "shfl.sync.{mode}.b32 %r6|%p0, %r4, {distance}, {clamp}, -1; mad.lo.u32 %r5, %r5, 5, %r6; selp.u32 %r6, 1, 0, %p0; add.u32 %r5, %r5, %r6;\n"
                );
            }
            code += "st.global.u32 [%d1], %r5; ret;";
            let code = format!("{SHARED}{code}");
            let kernel = Kernel::new(&text(&code), "k").unwrap();
            assert_eq!(kernel.translation.form, Form::Vector, "{code}");
            leaves_the_same_in(
                &kernel,
                &code,
                &[0],
                &[[32, 1, 1], [64, 1, 1], [8, 8, 1], [256, 1, 1], [33, 32, 1]][..4],
            );
        }
    }
}

#[test]
fn sums_of_warps_in_a_row() {
    for kind in ["bfly", "down"] {
        let mut code = String::from(
            "ld.global.f32 %f0, [%d1]; abs.f32 %f0, %f0; min.f32 %f0, %f0, 0f447A0000; cvt.rn.f32.u32 %f2, %r0;\n",
        );
        for distance in [16, 8, 4, 2, 1, 16, 8, 4, 2, 1] {
            code += &format!(
                "mov.b32 %r4, %f0; shfl.sync.{kind}.b32 %r5|%p0, %r4, {distance}, 31, -1; mov.b32 %f1, %r5; fma.rn.f32 %f0, %f1, 0f3F000000, %f0; add.f32 %f0, %f0, %f2;\n"
            );
        }
        code += "and.b32 %r4, %r1, 31; setp.ne.u32 %p0, %r4, 0; @%p0 bra WAIT; st.shared.f32 [%d2], %f0;\nWAIT: bar.sync 0; ld.shared.f32 %f1, [sh];\n\
                 st.global.v2.f32 [%d1], {%f0, %f1}; ret;";
        let code = format!("{SHARED}{code}");
        let kernel = Kernel::new(&text(&code), "k").unwrap();
        assert_eq!(kernel.translation.form, Form::Vector, "{code}");
        leaves_the_same_in(&kernel, &code, &[0, 3], &[[32, 1, 1], [64, 2, 1], [96, 1, 1], [1024, 1, 1]]);
    }
}

#[test]
fn votes_matches_and_reductions() {
    agrees(
        "and.b32 %r4, %r1, %r0; setp.ne.u32 %p0, %r4, 0; vote.sync.ballot.b32 %r5, %p0, -1; vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred %p2, !%p0, -1;\n\
         selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2; or.b32 %r6, %r6, %r7; match.any.sync.b32 %r7, %r4, -1; xor.b32 %r6, %r6, %r7;\n\
         cvt.u64.u32 %d4, %r4; shl.b64 %d4, %d4, 33; match.all.sync.b64 %r7|%p3, %d4, -1; add.u32 %r6, %r6, %r7; redux.sync.max.u32 %r7, %r4, -1; mad.lo.u32 %r6, %r6, 3, %r7;\n\
         st.global.v2.u32 [%d1], {%r5, %r6}; ret;",
        &[0, 1, 3, 16, u32::MAX],
    );
}

#[test]
fn lanes_of_a_parted_group_exchange_with_whole_ones() {
    // The branch is one that no group agrees on; the mask is counted before.
    agrees(
        "and.b32 %r4, %r1, %r0; setp.eq.u32 %p0, %r4, 0; vote.sync.ballot.b32 %r5, %p0, -1; mov.u32 %r6, 0; @!%p0 bra OVER;\n\
         redux.sync.add.u32 %r6, %r1, %r5; shfl.sync.idx.b32 %r7, %r6, 0, 31, %r5; bar.warp.sync %r5; st.shared.u32 [%d2], %r6;\n\
         OVER: bar.sync 0; ld.shared.u32 %r7, [sh]; st.global.v2.u32 [%d1], {%r6, %r7}; ret;",
        &[0, 1, 2, 4, 6, 31],
    );
}

#[test]
fn atomics_come_in_the_order_of_threads() {
    for operation in [
        "red.shared.add.f32 [sh], %f0;",
        "atom.shared.add.u32 %r6, [sh], 3;",
        "atom.shared.exch.b32 %r6, [sh], %r1;",
        "red.global.add.f32 [%d0], %f0;",
        "red.shared.inc.u32 [sh], 5;",
        "atom.global.max.u32 %r6, [%d0], %r1;",
    ] {
        agrees(
            &format!(
                "cvt.rn.f32.u32 %f0, %r1; fma.rn.f32 %f0, %f0, 0f3F9D70A4, 0f3DCCCCCD; mov.u32 %r6, 0; bar.sync 0; setp.lt.u32 %p0, %r1, %r0; @%p0 bra OVER; {operation}\n\
                 OVER: st.global.u32 [%d1+4], %r6; bar.sync 0; ld.shared.u32 %r4, [sh]; st.global.u32 [%d1], %r4; ret;"
            ),
            &[0, 1, 5, 40],
        );
    }
}

#[test]
fn what_is_too_much_runs_one_by_one() {
    let branch = |index: usize| format!("setp.eq.u32 %p0, %r1, {index}; @%p0 exit; st.global.u32 [%d1], %r0;\n");
    let many: String = (0..200).map(branch).collect();
    let kernel = Kernel::new(&text(&format!("bar.sync 0; {many} ret;")), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Scalar(Obstacle::TooLarge));
}
