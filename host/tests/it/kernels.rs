//! What is told of a plugin's kernels: how the CPU runs them (`doctor --kernels`), and how long they took (`run --profile`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Phase, Place, component, undisturbed};

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
         .visible .entry counts(.param .u64 p) {{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n\
         \tatom.global.add.u32   %r, [%d], 1;\n\
         \tst.global.u32 [%d+4], %r; ret; }}\n\
         .visible .entry waits_too() .reqntid 32, 1, 1 {{ bar.sync 0; ret; }}\n\
         .visible .entry odd() .reqntid 7, 1, 1 {{ ret; }}\n"
    );
    let told = told(&place, &file(&place, "kernels.PTX", text));
    insta::assert_snapshot!(told, @r#"
           kernel     runs as           because                   line:column  in the text
     ok    doubles    vector lanes
     ok    waits      vector lanes
     note  counts     thread by thread  it has atomic operations  12:2         atom.global.add.u32 %r, [%d], 1;
     ok    waits_too  vector lanes
     note  odd        vector lanes

    hint: counts: let each thread or block write to a place of its own, and add up in a second kernel what they wrote
    hint: counts: its blocks run in order, on one core, since the outcome of its atomics depends on it (sums of floats, or results that are used): with integers whose results nobody uses, or sums by block that a second kernel adds up, all cores have work
    hint: odd: its blocks are as wide as `.reqntid` says, which is no multiple of four: such blocks run thread by thread
    "#);
}

#[test]
fn texts_are_found_in_a_plugin() {
    let place = Place::new();
    let shown = told(&place, &component("heat"));
    assert!(shown.lines().any(|line| line.contains("vector lanes")), "{shown}");
    let json = place.command(&["doctor", "--json", "--kernels"]).arg(component("gpt")).exits(0).stdout;
    let texts: serde_json::Value = serde_json::from_str(&json).unwrap();
    let texts = texts.as_array().unwrap();
    assert_eq!(texts.len(), 2, "{json}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/gpt/kernels");
    let sources = ["float32.ptx", "bfloat16.ptx"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    for text in texts {
        assert_eq!(text["error"], serde_json::Value::Null);
        let kernels = text["kernels"].as_array().unwrap();
        assert!(kernels.len() > 10, "{json}");
        assert!(sources.iter().any(|source| kernels.iter().all(|kernel| stands_in(source, kernel))), "{text}");
    }
}

/// Whether what keeps a kernel from being faster stands there in the file that the plugin was built with.
fn stands_in(source: &str, kernel: &serde_json::Value) -> bool {
    let Some((line, column)) = kernel["line"].as_u64().zip(kernel["column"].as_u64()) else { return true };
    let line = source.lines().nth(line as usize - 1).unwrap_or_default();
    let code: String = line.chars().skip(column as usize - 1).collect();
    kernel["code"] == code.trim() && kernel["advice"].as_array().is_some_and(|advice| !advice.is_empty())
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
    insta::assert_snapshot!(refusals.join("--\n"), @r#"
    steadfast: `[guests]/countdown.wasm` uses no device, and has no kernels
    --
    steadfast: no text of PTX stands in `[place]/made.wasm`, and it uses a device
    hint: if it puts its kernels together while it runs, `steadfast run --profile` tells of them; or give this command a text in a file that ends in .ptx
    --
    steadfast: no kernel stands in the PTX of `[place]/begun.wasm`, and it uses a device
    hint: if it puts its kernels together while it runs, `steadfast run --profile` tells of them; or give this command a text in a file that ends in .ptx
    --
    steadfast: `[place]/empty.ptx` has no kernel: no `.entry` stands in it
    --
    steadfast: `[place]/latin.ptx` is not text: what begins at byte 6 is no UTF-8
    --
    steadfast: `[place]/module.wasm` is not a plugin: a core WebAssembly module, not a component
    hint: build it as a component: `cargo build --release --target wasm32-wasip2`; a core module of another language becomes one with `wasm-tools component new`
    hint: a text of PTX is read from a file that ends in .ptx
    --
    steadfast: `[place]/kernels.txt` is not a plugin: not WebAssembly
    hint: a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, `cargo build --release --target wasm32-wasip2` makes one
    hint: a text of PTX is read from a file that ends in .ptx
    --
    steadfast: cannot read the plugin `nowhere.ptx`: No such file or directory (os error 2)
    hint: build it with `cargo build --release --target wasm32-wasip2`
    "#);
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
    insta::assert_snapshot!(refusals.join("--\n"), @r#"
    steadfast: `[place]/bad.ptx`, line 6, column 3: `rat` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`
      6 | rat;
    --
    steadfast: `[place]/unknown.ptx`, line 6, column 2: kernel `calls`: the function f is declared but not defined in this module
      6 | call f;
    --
    steadfast: `[place]/kernels.wasm`, text 2 of 2, line 6, column 3: `rat` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`
      6 | rat;
    hint: the CPU refuses it; a plugin that hands it to the driver unread (`cuda-only`) runs on a GPU only
    "#);
    // What can be read is told all the same.
    let shown = place.command(&["doctor", "--kernels"]).arg(&component).exits(1).stdout;
    assert!(shown.contains("good"), "{shown}");
}

const GUEST: &str = "keeps_buffers";
const CONFIG: &str = r#"{"steps": 5}"#;

/// Calls, blocks, threads and bytes of what an attempt's record says.
#[track_caller]
fn figures(place: &Place, what: &str) -> [u64; 4] {
    let profile = place.record(GUEST).profile;
    let found = profile.iter().find(|figures| figures.what == what);
    let found = found.unwrap_or_else(|| panic!("no {what} among {profile:?}"));
    [found.calls, found.blocks, found.threads, found.bytes]
}

#[test]
fn a_profile_tells_at_the_end_where_the_devices_time_went() {
    let place = Place::new();
    let ended = place.run(GUEST).config(CONFIG).args("--profile --every 2steps").done();
    ended.says("Done: ").says("\nProfile: the device worked ").says("; a launch that does nothing takes ");
    let ended = place.run(GUEST).config(CONFIG).args("--profile --fresh").done();
    let table: Vec<_> = ended.stderr.lines().skip_while(|line| !line.starts_with("Profile: ")).skip(1).collect();
    let columns: Vec<_> = table[0].split_whitespace().collect();
    assert_eq!(columns, ["what", "calls", "blocks", "threads", "bytes", "took", "each", "share", "runs", "as"]);
    let advance = table.iter().find(|line| line.contains(" advance ")).unwrap();
    assert!(advance.ends_with("thread by thread: neighbouring threads may part behind a store, line 31"), "{advance}");
    // Five steps in blocks of 128 over 1024 numbers.
    assert_eq!(figures(&place, "advance"), [5, 40, 5 * 1024, 0]);
    assert_eq!(figures(&place, "(products of float32)"), [5, 0, 0, 0]);
    assert_eq!(figures(&place, "(random fills)")[3] % 4096, 0);
    assert_eq!(figures(&place, "(buffers to files)"), [1, 0, 0, 4096]);
    assert_eq!(figures(&place, "(files to buffers)"), [1, 0, 0, 4096]);
    place.finished(GUEST).assert_equals(&undisturbed(GUEST, CONFIG), "under a profile");
}

#[test]
fn an_attempt_that_is_stopped_tells_of_its_own_part() {
    let place = Place::new();
    let run = place.run(GUEST).config(CONFIG).args("--profile --every 1steps");
    run.term_at(Phase::Step, 2).says("\nProfile: the device worked ");
    let first = figures(&place, "advance")[0];
    assert!(first >= 2, "{first}");
    assert!(figures(&place, "(checkpoints)")[3] >= 4096);
    run.done();
    assert_eq!(first + figures(&place, "advance")[0], 5);
    assert_eq!(figures(&place, "(restoring)")[0], 1);
}

#[test]
fn a_profile_is_for_machines_too() {
    let place = Place::new();
    let job = file(
        &place,
        "job.toml",
        format!("plugin = {:?}\nprofile = true\nlog = \"json\"\n[config]\nsteps = 5", component(GUEST)),
    );
    let ended = place.command(&["run"]).arg(job).arg("--volume").arg(place.volume()).exits(0);
    let lines = ended.stderr.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let advance = lines.into_iter().find(|line| line["what"] == "advance").unwrap();
    assert_eq!((&advance["calls"], &advance["threads"]), (&5.into(), &5120.into()));
    assert!(advance["took"].as_f64().is_some_and(|seconds| seconds > 0.0), "{advance}");
    assert!(advance["runs_as"].as_str().is_some_and(|path| path.starts_with("thread by thread")), "{advance}");
}

#[test]
fn nothing_is_profiled_unless_it_is_asked_for() {
    let place = Place::new();
    place.run(GUEST).config(CONFIG).done().never_says("Profile");
    assert!(place.record(GUEST).profile.is_empty());
    let ended = place.run("countdown").config(r#"{"steps": 2}"#).args("--profile").done();
    ended.says("\nProfile: nothing was asked of a device\n");
}
