//! Launches: what is refused before anything runs, and when a fault is told.

use steadfast::device::{Argument, Launch};

use super::lab::{Lab, from_bytes, lost, refused};

/// Writes each parameter of a kind of its own to a buffer; and one that writes to where it is told.
const KERNELS: &str = "
.visible .entry every(.param .u64 to, .param .s32 a, .param .u32 b, .param .s64 c, .param .f32 d, .param .f64 e, .param .align 4 .b8 f[8]) {
    .reg .u32 %r<5>;
    .reg .u64 %rd<3>;
    .reg .f32 %f<2>;
    .reg .f64 %fd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.s32 %r1, [a];
    ld.param.u32 %r2, [b];
    ld.param.s64 %rd2, [c];
    ld.param.f32 %f1, [d];
    ld.param.f64 %fd1, [e];
    ld.param.u32 %r3, [f];
    ld.param.u32 %r4, [f+4];
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u64 [%rd1+8], %rd2;
    st.global.f32 [%rd1+16], %f1;
    st.global.u32 [%rd1+20], %r3;
    st.global.f64 [%rd1+24], %fd1;
    st.global.u32 [%rd1+32], %r4;
    ret;
}
.visible .entry poke(.param .u64 to, .param .u64 offset) {
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [offset];
    add.s64 %rd3, %rd1, %rd2;
    st.global.u64 [%rd3], 7;
    ret;
}
.visible .entry fail() {
    trap;
    ret;
}";

pub fn no_argument_is_lost(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    let out = lab.poisoned::<u8>(44);
    let structure = [1, 2, 3, 4, 5, 6, 7, 8];
    let arguments = [
        Argument::Buffer(out, 4),
        Argument::Int32(-2),
        Argument::Uint32(u32::MAX - 1),
        Argument::Int64(i64::MIN + 3),
        Argument::Float32(-0.0),
        Argument::Float64(f64::MIN_POSITIVE / 2.0),
        Argument::Bytes(&structure),
    ];
    lab.launch(module, "every", 1, 1, &arguments).unwrap();
    let mut expected = vec![0xff; 4];
    expected.extend((-2_i32).to_le_bytes());
    expected.extend((u32::MAX - 1).to_le_bytes());
    expected.extend((i64::MIN + 3).to_le_bytes());
    expected.extend((-0.0_f32).to_le_bytes());
    expected.extend(&structure[..4]);
    expected.extend((f64::MIN_POSITIVE / 2.0).to_le_bytes());
    expected.extend(&structure[4..]);
    expected.extend([0xff; 4]);
    assert_eq!(lab.bytes(out), expected);
}

pub fn refusals(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    let buffer = lab.upload(&[1_u64; 2]);
    let gone = lab.upload(&[1_u64; 2]);
    lab.context.free(gone);
    let good = [Argument::Buffer(buffer, 0), Argument::Uint64(8)];
    for (arguments, words) in [
        (&good[..1], "`poke` takes 2 arguments, and 1 was given"),
        (&[good[0], Argument::Float64(1.0)], "argument 2 of `poke` is a float64, but the kernel takes .u64"),
        (&[good[0], Argument::Int32(1)], "argument 2 of `poke` is an int32, but the kernel takes .u64"),
        (&[Argument::Buffer(gone, 0), good[1]], "argument 1 of `poke` is a buffer that was dropped"),
        (&[Argument::Buffer(buffer, 17), good[1]], "argument 1 of `poke` is offset 17 of a buffer of 16 bytes"),
    ] {
        assert_eq!(refused(lab.launch(module, "poke", 1, 1, arguments)), words);
    }
    for (grid, block, shared_bytes) in [
        ([0, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 1, 0], 0),
        ([1, 1, 65_536], [1, 1, 1], 0),
        ([1, 1, 1], [33, 32, 1], 0),
        ([1, 1, 1], [1, 1, 1], (48 << 10) + 1),
    ] {
        let launch = Launch { entry: "poke", grid, block, shared_bytes, arguments: &good };
        assert!(refused(lab.context.launch(module, &launch)).starts_with("launch of `poke`"));
    }
    assert_eq!(lab.download::<u64>(buffer), [1, 1]);
    lab.launch(module, "poke", 1, 1, &good).unwrap();
    assert_eq!(lab.download::<u64>(buffer), [1, 7]);
}

pub fn faults_are_told_late_and_for_good(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    let buffer = lab.upload(&[1_u64; 2]);
    lab.launch(module, "fail", 3, 2, &[]).unwrap();
    // Nobody asked for data yet. A mistake is a mistake all the same.
    lab.context.write(buffer, 0, &[9]).unwrap();
    lab.launch(module, "poke", 1, 1, &[Argument::Buffer(buffer, 0), Argument::Uint64(0)]).unwrap();
    refused(lab.launch(module, "poke", 1, 1, &[]));
    let told = lost(lab.context.read(buffer, 0, &mut [0]));
    assert!(told.contains("`fail`"), "{told}");
    assert_eq!(lost(lab.context.finish_step()), told);
    assert_eq!(lost(lab.context.write(buffer, 0, &[9])), told);
    assert_eq!(lost(lab.context.allocate(1)), told);
    assert_eq!(lost(lab.context.load("")), told);
    assert_eq!(lost(lab.launch(module, "fail", 1, 1, &[])), told);
    lab.context.free(buffer);
    lab.context.unload(module);
}

pub fn dropped_while_ordered(lab: &mut Lab) {
    let module = lab.module(KERNELS);
    let kept = lab.upload(&[0_u64; 1]);
    for number in 0..50_u64 {
        let buffer = lab.upload(&[number; 1000]);
        lab.launch(module, "poke", 1, 1, &[Argument::Buffer(buffer, 0), Argument::Uint64(0)]).unwrap();
        lab.context.copy((kept, 0), (buffer, 0), 8).unwrap();
        lab.context.free(buffer);
    }
    lab.context.unload(module);
    lab.context.finish_step().unwrap();
    assert_eq!(from_bytes::<u64>(&lab.bytes(kept)), [7]);
}
