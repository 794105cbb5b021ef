//! Every kernel of `tests/kernels` becomes a valid module, and what cannot be translated an error with its place.

use wasmparser::{Validator, WasmFeatures};

use super::translate;
use crate::kernel::{Form, Kernel, Obstacle, Options};
use crate::module::FunctionId;

fn kernels(text: &str, options: &Options) -> Vec<Result<Kernel, String>> {
    let module = crate::parse::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let entries = (0..module.functions.len() as u32).filter(|index| module.functions[*index as usize].entry);
    entries.map(|index| translate(&module, FunctionId(index), options).map_err(|error| error.to_string())).collect()
}

fn one(body: &str) -> Result<Kernel, String> {
    let text = format!(".version 8.2\n.target sm_75\n.address_size 64\n{body}\n");
    kernels(&text, &Options { memory_bytes: 1 << 20, wide: false, canonical_nans: true, vectors: true }).remove(0)
}

/// What the device's engine has.
fn validate(kernel: &Kernel) {
    let features =
        WasmFeatures::default() | WasmFeatures::MEMORY64 | WasmFeatures::MULTI_MEMORY | WasmFeatures::RELAXED_SIMD;
    let features = (features | WasmFeatures::THREADS) - WasmFeatures::BULK_MEMORY;
    if let Err(error) = Validator::new_with_features(features).validate_all(&kernel.wasm) {
        panic!("{}: {error}", kernel.name);
    }
}

#[test]
fn all_kernels_are_valid() {
    let folder = format!("{}/tests/kernels", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}")).flatten() {
        if file.path().extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap_or_else(|error| panic!("{error}"));
        for (canonical_nans, vectors) in [(false, false), (false, true), (true, false), (true, true)] {
            for kernel in kernels(&text, &Options { memory_bytes: 1 << 30, wide: false, canonical_nans, vectors }) {
                match kernel {
                    Ok(kernel) => validate(&kernel),
                    // NVRTC left a call to a function that it never defined.
                    Err(error) => assert!(error.contains("_Z6__dp4aiii"), "{error}"),
                }
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} kernels");
}

#[test]
fn loops_with_two_entries_become_a_table() {
    let kernel = one(".entry k(.param .u32 a) {\n.reg .u32 %r<3>;\n.reg .pred %p;\nld.param.u32 %r0, [a];\nsetp.eq.u32 %p, %r0, 1;\n@%p bra second;\n\
         first:\nadd.u32 %r0, %r0, 3;\nsecond:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p, %r0, 100;\n@%p bra first;\n\
         setp.lt.u32 %p, %r0, 200;\n@%p bra second;\nret;\n}")
    .unwrap_or_else(|error| panic!("{error}"));
    validate(&kernel);
}

#[test]
fn an_undefined_function_is_named() {
    let error = one(
        ".extern .func there(.param .b32 x);\n.entry k() {\n{\n.param .b32 x;\nst.param.b32 [x], 1;\ncall there, (x);\n}\nret;\n}",
    );
    assert_eq!(error, Err("line 9, column 1: the function there is declared but not defined in this module".into()));
}

#[test]
fn mazes_are_refused() {
    let body = |count: usize, target: fn(usize, usize) -> usize| {
        let block =
            |i: usize| format!("L{i}: add.u32 %r, %r, 1; setp.eq.u32 %p, %r, {i}; @%p bra L{};", target(i, count));
        let blocks: String = (0..count).map(block).collect();
        one(&format!(".entry k() {{ .reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; {blocks} ret; }}"))
    };
    let forward = |i: usize, count: usize| (i + 7).min(count - 1);
    assert!(body(4000, forward).is_ok());
    let many = body(6000, forward).err().unwrap_or_default();
    assert!(many.ends_with("`k` has 12000 branches and labels; at most 10000 are translated"), "{many}");
    let anywhere = |i: usize, count: usize| i * 7919 % count;
    assert!(body(200, anywhere).is_ok());
    let tangled = body(900, anywhere).err().unwrap_or_default();
    assert!(tangled.contains("jumps into its loops from outside"), "{tangled}");
}

#[test]
fn places_are_those_of_instructions_that_can_trap() {
    let kernel = one(".entry k() {\n.reg .u32 %r;\nld.global.u32 %r, [0];\n\nst.global.u32 [4], %r;\nret;\n}")
        .unwrap_or_else(|error| panic!("{error}"));
    let lines: Vec<u32> = kernel.places.iter().map(|(_, position)| position.line).collect();
    // The body stands several times in a turn of the loop over threads.
    assert!(!lines.is_empty() && lines.chunks(2).all(|lines| lines == [6, 8]), "{lines:?}");
    assert!(kernel.places.iter().all(|(offset, _)| (*offset as usize) < kernel.wasm.len()));
    // The instruction at the place is the access itself: a load into a vector lane's worth of an integer, a store from it.
    let opcodes: Vec<u8> = kernel.places.iter().map(|(offset, _)| kernel.wasm[*offset as usize]).collect();
    assert!(opcodes.chunks(2).all(|opcodes| opcodes == [0x28, 0x36]), "{opcodes:?}");
}

#[test]
fn what_only_counts_in_global_memory_needs_no_order() {
    let with = |instruction: &str| {
        let text =
            format!(".entry k() {{\n.reg .u32 %r;\n.reg .f32 %f;\n{instruction}\nst.global.u32 [64], %r;\nret;\n}}");
        one(&text).unwrap_or_else(|error| panic!("{error}")).sequential
    };
    assert!(!with("red.global.add.u32 [0], 1;"));
    assert!(!with("red.global.max.s32 [0], 1;"));
    assert!(!with("atom.shared.cas.b32 %r, [0], 1, 2;"));
    assert!(!with("red.global.add.u32 [0], 1;\nred.global.add.s32 [4], 2;"));
    assert!(!with("red.global.max.s32 [0], 1;\nred.shared.min.u32 [0], 1;"));
    for mixed in ["min.s32", "max.u32", "xor.b32", "add.u32", "max.s64"] {
        assert!(with(&format!("red.global.max.s32 [0], 1;\nred.global.{mixed} [0], 1;")), "{mixed}");
    }
    assert!(with("atom.global.add.u32 %r, [0], 1;"));
    assert!(with("red.global.add.f32 [0], %f;"));
    assert!(with("atom.global.exch.b32 %r, [0], 1;"));
}

/// What runs as the lanes of vectors, of the kernels that a compiler made, and why not.
#[test]
fn kernels_have_the_form_that_suits_them() {
    let forms = |file: &str| {
        let path = format!("{}/tests/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let kernels =
            kernels(&text, &Options { memory_bytes: 1 << 30, wide: false, canonical_nans: false, vectors: true });
        let told = |kernel: Kernel| match kernel.form {
            Form::Vector => format!("{}: vector", kernel.name),
            Form::Scalar(obstacle) => {
                let place = obstacle.place().unwrap_or_else(|| panic!("{obstacle}"));
                let line = text.lines().nth(place.line as usize - 1).unwrap_or_default();
                let code: String =
                    line.chars().skip(place.column as usize - 1).take_while(|c| !" \t;<[".contains(*c)).collect();
                format!("{}: {obstacle}, {code}", kernel.name)
            }
        };
        kernels.into_iter().flatten().map(told).collect::<Vec<_>>()
    };
    assert_eq!(forms("saxpy"), ["saxpy: vector", "saxpy_grid: vector", "axpy4: vector"]);
    assert_eq!(
        forms("adam"),
        [
            "adamw: vector",
            "gelu: vector",
            "trig: it has local memory, __local_depot2",
            "dbl: it has local memory, __local_depot3"
        ]
    );
    assert_eq!(forms("heat"), ["heat: vector", "heatz: vector"]);
    assert_eq!(forms("softmax"), ["softmax: vector", "layernorm: vector"]);
    let misc = forms("misc");
    for one in [
        "callfn: it calls a function that is no part of it, st.param.f32",
        "localarr: it has local memory, __local_depot2",
        "cas_loop: vector",
        "philox: vector",
        "rayt: vector",
    ] {
        assert!(misc.iter().any(|form| form == one), "{one} is not among {misc:?}");
    }
}

#[test]
fn vectors_can_be_left_out() {
    let text = ".version 8.2\n.target sm_75\n.address_size 64\n.entry k() { .reg .b32 %r; mov.u32 %r, %tid.x; st.global.u32 [64], %r; ret; }\n";
    let with = |vectors: bool| {
        let options = Options { memory_bytes: 1 << 20, wide: false, canonical_nans: true, vectors };
        kernels(text, &options).remove(0).unwrap_or_else(|error| panic!("{error}"))
    };
    let (with, without) = (with(true), with(false));
    assert_eq!((with.form, without.form), (Form::Vector, Form::Scalar(Obstacle::Disabled)));
    assert!(without.wasm.len() < with.wasm.len());
}
