//! What is told of a plugin's kernels: how the CPU runs them (`doctor --kernels`), and how long they took (`run --profile`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Place, component};

const HEAD: &str = ".version 8.2\n.target sm_75\n.address_size 64\n";

fn file(place: &Place, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// What `doctor` prints of it, without blanks at the ends of lines.
#[track_caller]
fn told(place: &Place, file: &Path) -> String {
    let shown = place.command(&["doctor", "--kernels"]).arg(file).exits(0).stdout;
    shown.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What it says of a file without kernels that can be read.
#[track_caller]
fn refused(place: &Place, file: &Path) -> String {
    place.command(&["doctor", "--kernels"]).arg(file).exits(1).refusal(place)
}

#[test]
fn a_doctor_tells_how_kernels_run_and_what_would_make_them_faster() {
    let place = Place::new();
    let text = format!(
        "{HEAD}.visible .entry doubles(.param .u64 p) {{\n\
         .reg .b64 %d<3>; .reg .b32 %r; .reg .f32 %f;\n\
         ld.param.u64 %d0, [p]; mov.u32 %r, %tid.x; mul.wide.u32 %d1, %r, 4; add.u64 %d1, %d0, %d1;\n\
         ld.global.f32 %f, [%d1]; add.f32 %f, %f, %f; st.global.f32 [%d1], %f; ret; }}\n\
         .visible .entry waits() {{\n  bar.sync 0;\n  ret; }}\n\
         .visible .entry counts(.param .u64 p) {{ .reg .b64 %d; .reg .f32 %f; ld.param.u64 %d, [p]; mov.f32 %f, 0f3f800000;\n\
         \tatom.global.add.f32   %f, [%d], %f;\n\
         ret; }}\n\
         .visible .entry waits_too() .reqntid 32, 1, 1 {{ bar.sync 0; ret; }}\n\
         .visible .entry odd() .reqntid 7, 1, 1 {{ ret; }}\n"
    );
    let told = told(&place, &file(&place, "kernels.PTX", text));
    insta::assert_snapshot!(told, @"");
}

#[test]
fn texts_are_found_in_a_plugin() {
    let place = Place::new();
    let shown = told(&place, &component("heat"));
    assert!(shown.lines().any(|line| line.contains("vector lanes")), "{shown}");
    let json = place.command(&["doctor", "--json", "--kernels"]).arg(component("gpt")).exits(0).stdout;
    let texts: serde_json::Value = serde_json::from_str(&json).unwrap();
    let [one, other] = &texts.as_array().unwrap()[..] else { panic!("{json}") };
    for text in [one, other] {
        assert_eq!(text["error"], serde_json::Value::Null);
        let kernels = text["kernels"].as_array().unwrap();
        let waiting = kernels.iter().find(|kernel| kernel["because"] == "its threads wait for each other").unwrap();
        // The place is that in the file which the plugin was built with.
        let code = waiting["code"].as_str().unwrap();
        let name = ["float32.ptx", "bfloat16.ptx"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/gpt/kernels").join(name));
        let line = waiting["line"].as_u64().unwrap() as usize;
        let stands_there = |file: &PathBuf| fs::read_to_string(file).unwrap().lines().nth(line - 1).map(str::trim) == Some(code);
        assert!(name.iter().any(stands_there), "line {line}: {code}");
        assert!(!waiting["advice"].as_array().unwrap().is_empty());
    }
}

#[test]
fn what_has_no_kernels_says_why() {
    let place = Place::new();
    let device = "(component (import \"steadfast:job/device@0.1.0\" (instance)))";
    let begun = format!(
        "(component (import \"steadfast:job/device@0.1.0\" (instance)) (core module (memory 1) (data (i32.const 0) \"{}\")))",
        HEAD.replace('\n', "\\n")
    );
    let refusals = [
        refused(&place, &component("countdown")),
        refused(&place, &file(&place, "made.wasm", wat::parse_str(device).unwrap())),
        refused(&place, &file(&place, "begun.wasm", wat::parse_str(begun).unwrap())),
        refused(&place, &file(&place, "empty.ptx", HEAD)),
        refused(&place, &file(&place, "latin.ptx", b"// caf\xe9")),
        refused(&place, &file(&place, "module.wasm", wat::parse_str("(module)").unwrap())),
        refused(&place, &file(&place, "kernels.txt", HEAD)),
        place.command(&["doctor", "--kernels", "nowhere.ptx"]).exits(2).refusal(&place),
    ];
    insta::assert_snapshot!(refusals.join("--\n"), @"");
}

#[test]
fn a_text_that_cannot_be_read_is_told_with_its_place() {
    let place = Place::new();
    let good = format!("{HEAD}.visible .entry good() {{ ret; }}\n");
    let bad = format!("// Made by hand\n{HEAD}.visible .entry bad() {{\n  rat;\n}}\n");
    let unknown = format!("{HEAD}.extern .func f();\n.visible .entry calls() {{\n\tcall f;\n\tret; }}\n");
    let data = format!("{good}\0{bad}").replace('\n', "\\n").replace('\0', "\\00");
    let component = format!("(component (core module (memory 1) (data (i32.const 0) \"{data}\")))");
    let component = file(&place, "kernels.wasm", wat::parse_str(component).unwrap());
    let refusals = [
        refused(&place, &file(&place, "bad.ptx", bad)),
        refused(&place, &file(&place, "unknown.ptx", unknown)),
        refused(&place, &component),
    ];
    insta::assert_snapshot!(refusals.join("--\n"), @"");
    // What can be read is told all the same.
    let shown = place.command(&["doctor", "--kernels"]).arg(&component).exits(1).stdout;
    assert!(shown.contains("good"), "{shown}");
}
