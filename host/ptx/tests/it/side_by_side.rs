//! Groups of lanes that run side by side: what decides branches for all of them, where they disagree, loops of different lengths, and what warps exchange on the way.

use steadfast_ptx::kernel::Form;

use crate::lanes::{filled, leaves_the_same_in, run, text};
use crate::rig::Kernel;

/// Rows of half a warp, of one and of several; such that are not, in which single groups run; and one row that ends within a warp.
const SHAPES: [[u32; 3]; 9] =
    [[32, 1, 1], [32, 3, 2], [64, 2, 1], [16, 4, 1], [8, 4, 1], [96, 1, 1], [20, 2, 1], [76, 1, 1], [48, 2, 1]];

/// `%r1` is the thread's linear index in its block, `%r3` its place in its row, `%r0` a number; `%d1` is the address of 16 bytes of its own.
fn agrees(code: &str, numbers: &[u32]) {
    let kernel = Kernel::new(&text(code), "k").unwrap();
    assert_eq!(kernel.translation.form, Form::Vector, "{code}");
    leaves_the_same_in(&kernel, code, numbers, &SHAPES);
}

/// Where a line of distance 1, 3 or -2 that begins somewhere passes a number, reaches it exactly, or wraps round as a signed or an unsigned one.
#[test]
fn comparisons_of_lines_decide_for_all_lanes_or_none() {
    let numbers = [
        0,
        1,
        4,
        15,
        16,
        17,
        31,
        32,
        33,
        40,
        63,
        64,
        95,
        0x7fff_ffff,
        0x7fff_fff0,
        0x8000_0010,
        0xffff_ffff,
        0xffff_ffe8,
    ];
    for step in [1, 3, -2] {
        for comparison in ["lt.s32", "le.u32", "gt.s32", "ge.u32", "eq.s32", "ne.u32"] {
            // Against a number, and from a number on against another: there it may wrap round.
            let line = format!("mul.lo.s32 %r4, %r3, {step};");
            agrees(
                &format!("{line} setp.{comparison} %p0, %r4, %r0; @%p0 ret; st.global.u32 [%d1], %r4; ret;"),
                &numbers,
            );
            agrees(
                &format!(
                    "{line} add.s32 %r4, %r4, %r0; setp.{comparison} %p0, %r4, 40; @!%p0 ret; st.global.u32 [%d1], %r4; ret;"
                ),
                &numbers,
            );
        }
    }
}

#[test]
fn lines_of_64_bits_decide_too() {
    for comparison in ["lt.s64", "ge.u64", "eq.s64"] {
        let code = format!(
            "cvt.u64.u32 %d2, %r0; shl.b64 %d2, %d2, 32; cvt.u64.u32 %d3, %r3; add.s64 %d3, %d2, %d3; add.s64 %d3, %d3, -16;\n\
             setp.{comparison} %p0, %d3, 4; @%p0 ret; st.global.u64 [%d1], %d3; ret;"
        );
        agrees(&code, &[0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]);
    }
}

/// Logic of comparisons: some agree and some do not, and what they come to may be the same for all lanes nevertheless.
#[test]
fn logic_of_comparisons_decides() {
    let conditions = "setp.lt.s32 %p0, %r3, %r0; setp.ge.s32 %p1, %r3, 5; setp.lt.u32 %p2, %r1, 70;";
    for logic in [
        "and.pred %p3, %p0, %p1;",
        "or.pred %p3, %p0, %p1;",
        "xor.pred %p3, %p0, %p1;",
        "not.pred %p4, %p0; and.pred %p3, %p4, %p1;",
    ] {
        for last in ["and.pred %p3, %p3, %p2;", "or.pred %p3, %p3, %p2;"] {
            agrees(
                &format!("{conditions} {logic} {last} @!%p3 ret; st.global.u32 [%d1], %r3; ret;"),
                &[0, 3, 5, 6, 16, 31, 32, 64, 200],
            );
        }
    }
}

/// Where a line wraps round behind other instructions, of which those need the results that go on one by one.
#[test]
fn lines_that_wrap_round_part_behind_what_comes_before() {
    for (line, extension) in [
        ("neg.s32 %r4, %r3;", "cvt.u64.u32 %d2, %r4;"),
        ("add.s32 %r4, %r3, %r0;", "cvt.s64.s32 %d2, %r4;"),
        ("sub.s32 %r4, %r0, %r3;", "cvt.u64.u32 %d2, %r4;"),
    ] {
        let code = format!(
            "{line} mul.lo.u32 %r5, %r1, %r1; st.global.u32 [%d1], %r5; mad.lo.u32 %r6, %r5, %r1, 7; xor.b32 %r7, %r6, %r5;\n\
             {extension} mul.lo.u64 %d2, %d2, 3; st.global.u64 [%d1+8], %d2; add.u32 %r7, %r7, %r6; st.global.u32 [%d1+4], %r7; ret;"
        );
        agrees(&code, &[0, 5, 20, 0x7fff_fffa, 0x7fff_ffe8, 0xffff_fff6]);
        agrees(
            &code.replacen("st.global.u32 [%d1], %r5;", "st.global.u32 [%d1], %r5; bar.sync 0;", 1),
            &[0, 5, 20, 0x7fff_fffa, 0xffff_fff6],
        );
    }
}

/// A loop of as many turns as the thread's place, or the place's half or eighth, says: groups leave it one after the other, with and without a store in it, and go on with something.
#[test]
fn loops_of_different_lengths() {
    for turns in ["mov.u32 %r4, %r3;", "shr.u32 %r4, %r3, 1;", "shr.u32 %r4, %r3, 3;", "sub.s32 %r4, %r0, %r3;"] {
        for store in ["", "st.global.u32 [%d1], %r5;"] {
            let code = format!(
                "{turns} mov.u32 %r5, 0;\nAGAIN: mad.lo.u32 %r5, %r5, 3, %r1; {store} sub.s32 %r4, %r4, 1; setp.gt.s32 %p0, %r4, 0; @%p0 bra AGAIN;\n\
                 bar.sync 0; st.global.u32 [%d1+4], %r5; mul.lo.u32 %r6, %r5, %r1; st.global.u32 [%d1+8], %r6; ret;"
            );
            agrees(&code, &[0, 5, 32, 40]);
        }
    }
}

/// The sum of a warp after loops of different lengths, in a loop, with what only its first lane does in between.
#[test]
fn warps_exchange_on_the_way() {
    let sum = "shfl.sync.bfly.b32 %r6, %r5, 16, 31, -1; add.u32 %r5, %r5, %r6; shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1; add.u32 %r5, %r5, %r6;\n\
        shfl.sync.bfly.b32 %r6, %r5, 4, 31, -1; add.u32 %r5, %r5, %r6; shfl.sync.down.b32 %r6, %r5, 2, 31, -1; add.u32 %r5, %r5, %r6;\n\
        shfl.sync.idx.b32 %r6, %r5, 3, 31, -1; add.u32 %r5, %r5, %r6;";
    let first_lane =
        "and.b32 %r7, %r1, 31; setp.ne.u32 %p1, %r7, 0; @%p1 bra OTHERS; st.global.u32 [%d1+4], %r5;\nOTHERS:";
    for tail in ["setp.lt.s32 %p0, %r4, %r0;", "setp.lt.u32 %p0, %r4, 100;"] {
        let code = format!(
            "mov.u32 %r8, 3; mov.u32 %r5, %r1;\nOUTER: mov.u32 %r4, %r3;\nAGAIN: mad.lo.u32 %r5, %r5, 5, %r4; add.s32 %r4, %r4, 32; {tail} @%p0 bra AGAIN;\n\
             {sum}\nvote.sync.ballot.b32 %r6, %p0, -1; add.u32 %r5, %r5, %r6;\n{first_lane} sub.s32 %r8, %r8, 1; setp.gt.s32 %p2, %r8, 0; @%p2 bra OUTER;\n\
             st.global.u32 [%d1], %r5; bar.sync 0; st.global.u32 [%d1+8], %r4; ret;"
        );
        // Of warps that are whole: in others these lanes would wait for ever.
        let kernel = Kernel::new(&text(&code), "k").unwrap();
        assert_eq!(kernel.translation.form, Form::Vector, "{code}");
        let whole = [[32, 1, 1], [32, 3, 1], [64, 2, 1], [16, 4, 1], [8, 4, 1], [96, 1, 1]];
        leaves_the_same_in(&kernel, &code, &[0, 31, 40, 96, 129], &whole);
    }
}

/// What WebAssembly lacks, lane by lane and as functions of vectors, on numbers of which every lane has another. Approximations differ from the oracle's, but not from one form to the other.
#[test]
fn functions_of_vectors() {
    for operation in [
        "add.rm.f32 %f2, %f1, %f0;",
        "mul.rz.f32 %f2, %f1, %f0;",
        "div.rp.f32 %f2, %f1, %f0;",
        "sqrt.rp.f32 %f2, %f1;",
        "sin.approx.f32 %f2, %f1;",
        "lg2.approx.f32 %f2, %f1;",
        "tanh.approx.f32 %f2, %f1;",
        "cvt.rn.f16.f32 %h1, %f1; mul.f16 %h2, %h1, %h1; cvt.f32.f16 %f2, %h2;",
        "cvt.rz.bf16.f32 %h1, %f1; mov.b32 %r4, {%h1, %h1}; mov.b32 %f2, %r4;",
        "cvt.f64.f32 %g1, %f1; add.rp.f64 %g1, %g1, %g1; mul.rm.f64 %g1, %g1, 0d3FD5555555555555; cvt.rz.f32.f64 %f2, %g1;",
    ] {
        let code = format!(
            "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2; ld.global.f32 %f0, [%d2]; ld.global.f32 %f1, [%d2+512];\n\
             {operation} st.global.f32 [%d1], %f2; ret;"
        );
        if operation.contains(".approx") {
            let kernel = Kernel::new(&text(&code), "k").unwrap();
            assert_eq!(kernel.translation.form, Form::Vector, "{code}");
            for block in SHAPES {
                kernel.translation(&run(block, 0), &filled(&kernel)).unwrap_or_else(|error| panic!("{error}\n{code}"));
            }
        } else {
            agrees(&code, &[0]);
        }
    }
}

/// Code for groups side by side is written for so much of a body as it is worth: the rest of a large one runs in single groups, and the kernel does not explode.
#[test]
fn a_large_kernel_stays_affordable() {
    let piece = "mad.lo.u32 %r5, %r5, 3, %r1; xor.b32 %r5, %r5, %r0; setp.lt.u32 %p0, %r5, %r1; @%p0 add.u32 %r5, %r5, 7;\n\
        shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; add.u32 %r5, %r5, %r6; bar.sync 0;\n";
    let code = |pieces: usize| format!("mov.u32 %r5, %r1;\n{} st.global.u32 [%d1], %r5; ret;", piece.repeat(pieces));
    let bytes = |pieces: usize| Kernel::new(&text(&code(pieces)), "k").unwrap().translation.wasm.len();
    let (some, more) = (bytes(20), bytes(80));
    assert!(more < 6 * some, "{some} bytes, and four times as much {more}");
    let kernel = Kernel::new(&text(&code(80)), "k").unwrap();
    leaves_the_same_in(&kernel, &code(80), &[3], &[[32, 1, 1], [64, 2, 1]]);
    println!("{some} bytes of 20 pieces, {more} of 80");
}

/// Elements side by side that some lanes write, as their data says: one or several of a group, at the very end and with something behind, numbers that differ and that are the same.
#[test]
fn what_some_lanes_store() {
    let data = "mul.wide.u32 %d2, %r1, SIZE; add.u64 %d2, %d0, %d2; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3; ld.global.u32 %r4, [%d3+8192];\n\
        cvt.rn.f32.u32 %f0, %r4; cvt.rn.f64.u32 %g0, %r4; mul.wide.u32 %d4, %r4, %r4; and.b32 %r5, %r4, %r0; setp.eq.u32 %p0, %r5, 0;";
    for (bytes, store) in [
        (4, "st.global.u32 [%d2], %r4;"),
        (4, "st.global.f32 [%d2], %f0;"),
        (4, "mov.u32 %r6, 0; st.global.u32 [%d2+4], %r6;"),
        (8, "st.global.u64 [%d2], %d4;"),
        (8, "st.global.f64 [%d2], %g0;"),
        (4, "st.global.u16 [%d2+2], %r4;"),
        (12, "st.global.u32 [%d2], %r4; st.global.f32 [%d2+4], %f0;"),
    ] {
        let data = data.replace("SIZE", &bytes.to_string());
        let numbers = [0, 1, 2, 3, 12, 0xff, 0xffff_ffff];
        agrees(&format!("{data} @%p0 ret; {store} ret;"), &numbers);
        agrees(&format!("{data} @%p0 bra BEHIND; {store}\nBEHIND: st.global.u32 [%d1], %r5; ret;"), &numbers);
        agrees(
            &format!("{data} bar.sync 0; @%p0 bra BEHIND; {store}\nBEHIND: bar.sync 0; st.global.u32 [%d1], %r5; ret;"),
            &numbers,
        );
    }
}

/// Quotients and rests of numbers of 32 bits where they are most likely to be rounded to the next, and where they would not fit.
#[test]
fn lanes_divide() {
    for operation in
        ["div.s32 %r6, %r4, %r5;", "div.u32 %r6, %r4, %r5;", "rem.s32 %r6, %r4, %r5;", "rem.u32 %r6, %r4, %r5;"]
    {
        for divisor in
            ["mov.u32 %r5, %r0;", "add.u32 %r5, %r1, %r0;", "sub.u32 %r5, %r0, %r1;", "mul.lo.u32 %r5, %r1, %r0;"]
        {
            for dividend in [
                "mul.lo.u32 %r4, %r1, %r5;",
                "mul.lo.u32 %r4, %r1, %r5; sub.u32 %r4, %r4, 1;",
                "sub.u32 %r4, 0x80000003, %r1;",
                "sub.u32 %r4, -1, %r1;",
            ] {
                let numbers = [0, 1, 2, 3, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_fffd, 46_341, 65_537];
                agrees(&format!("{divisor} {dividend} {operation} st.global.u32 [%d1], %r6; ret;"), &numbers);
            }
        }
    }
}
