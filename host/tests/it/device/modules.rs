//! Modules: texts that are refused, and variables that kernels write.

use steadfast::device::Argument;

use super::lab::{Lab, ptx, refused};

pub fn refused_texts(lab: &mut Lab) {
    for (text, words) in [
        ("", "line 1"),
        ("not PTX", "line 1"),
        (&ptx(".entry f() { frobnicate.u32 %r1; }"), "line 4"),
        (&ptx(".entry f() { .reg .u32 %r<2>; add.u32 %r1, %r7, 1; ret; }"), "line 4"),
    ] {
        let said = refused(lab.context.load(text));
        assert!(said.contains(words), "{text}: {said}");
    }
    // The context is as well as before.
    lab.module(".entry f() { ret; }");
}

const COUNTER: &str = "
.global .u32 counter = 40;
.global .align 8 .u64 pointer = counter;
.const .u32 one = 1;
.visible .entry count() {
    .reg .u32 %r<4>;
    .reg .u64 %rd<2>;
    ld.global.u64 %rd1, [pointer];
    ld.global.u32 %r1, [%rd1];
    ld.const.u32 %r2, [one];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}";

pub fn variables(lab: &mut Lab) {
    let module = lab.module(COUNTER);
    let names = |lab: &Lab| {
        let variables = lab.context.module(module).unwrap().variables().iter();
        variables.map(|variable| (variable.name.clone(), variable.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(names(lab), [("counter".to_owned(), 4), ("pointer".to_owned(), 8)]);
    let read = |lab: &mut Lab| {
        let mut bytes = [0; 4];
        lab.context.read_variable(module, "counter", 0, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    assert_eq!(read(lab), 40);
    lab.launch(module, "count", 1, 1, &[]).unwrap();
    assert_eq!(read(lab), 41);
    lab.context.write_variable(module, "counter", 1, &[1, 0]).unwrap();
    assert_eq!(read(lab), 256 + 41);

    // What a checkpoint keeps says nothing about addresses, and bringing it back does not break them.
    let mut pointer = [9; 8];
    lab.context.read_variable(module, "pointer", 0, &mut pointer).unwrap();
    assert_eq!(pointer, [0; 8]);
    lab.context.write_variable(module, "pointer", 0, &pointer).unwrap();
    lab.launch(module, "count", 1, 1, &[]).unwrap();
    assert_eq!(read(lab), 256 + 42);

    // Another module of the same text has variables of its own.
    let other = lab.module(COUNTER);
    lab.launch(other, "count", 1, 1, &[]).unwrap();
    assert_eq!(read(lab), 256 + 42);

    assert_eq!(
        refused(lab.context.read_variable(module, "one", 0, &mut [])),
        "the module has no .global variable `one`"
    );
    refused(lab.context.write_variable(module, "counter", 3, &[0, 0]));
    lab.context.unload(module);
    assert_eq!(refused(lab.context.read_variable(module, "counter", 0, &mut [])), "the module was dropped");
    assert_eq!(refused(lab.launch(module, "count", 1, 1, &[])), "the module was dropped");
    lab.launch(other, "count", 1, 1, &[]).unwrap();
    assert_eq!(
        refused(lab.launch(other, "counts", 1, 1, &[Argument::Int32(1)])),
        "the module has no entry `counts`; it has `count`"
    );
}

pub fn cuda_only(lab: &mut Lab) {
    if lab.context.facts().backend == steadfast::device::Backend::Cpu {
        let text = refused(lab.context.load_cuda_only(&ptx(".entry f() { ret; }")));
        assert!(text.starts_with("this module is for the CUDA driver only, and the device here is the CPU"), "{text}");
    } else {
        lab.context.load_cuda_only(&ptx(".visible .entry f() { ret; }")).unwrap();
        refused(lab.context.load_cuda_only("\0"));
    }
}
