//! What a plugin says of itself, making one, and trying one before it is swapped in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Phase, Place, Run, component};

fn inspected(place: &Place, plugin: &Path) -> (String, Value) {
    let inspect = place.command(&["plugin", "inspect"]).arg(plugin);
    let people = inspect.exits(0).stdout;
    let row = people.lines().find_map(|line| line.strip_prefix("  state")).unwrap_or_else(|| panic!("{people}"));
    (row.trim().to_owned(), serde_json::from_str(&inspect.arg("--json").exits(0).stdout).unwrap())
}

/// The component with one more custom section at its end.
fn with_section(place: &Place, guest: &str, content: &[u8]) -> PathBuf {
    let name = "steadfast:state-versions";
    let mut bytes = fs::read(component(guest)).unwrap();
    bytes.extend([0, u8::try_from(1 + name.len() + content.len()).unwrap(), u8::try_from(name.len()).unwrap()]);
    bytes.extend(name.as_bytes().iter().chain(content));
    let file = place.path().join("with-section.wasm");
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn inspect_tells_which_state_a_plugin_writes_and_reads() {
    let place = Place::new();
    let (row, json) = inspected(&place, &component("digits"));
    assert_eq!(row, "writes version 3, reads 1, 2 and 3");
    assert_eq!(json["state_versions"], serde_json::json!({"writes": 3, "reads": [1, 2, 3]}));
    assert_eq!(inspected(&place, &component("writes_version")).0, "writes version 1, reads 1");
    assert_eq!(inspected(&place, &component("swap_good_b")).0, "writes version 2, reads 1, 2 and 3");
}

#[test]
fn a_plugin_that_makes_no_sense_about_its_state_is_a_plugin_all_the_same() {
    let place = Place::new();
    for (content, said) in [
        (&b"\x02\0\0\0\x02\0\0\0"[..], "two sections contradict each other"),
        (b"", "it is empty"),
        (b"\x01\0\0\0\x01\0", "6 bytes are not a number of u32s"),
    ] {
        let (row, json) = inspected(&place, &with_section(&place, "writes_version", content));
        assert_eq!(row, format!("says nothing that can be understood: {said}"));
        assert_eq!((&json["state_versions"], &json["is_plugin"]), (&Value::Null, &true.into()));
    }
}

#[test]
fn what_new_makes_builds_and_runs() {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let new = place.command(&["plugin", "new", "my-walk", "--lang", "rust", "--sdk"]).arg(root.join("guest-sdk"));
    assert!(new.exits(0).stdout.contains("cargo build --release --target wasm32-wasip2"));
    let folder = place.path().join("my-walk");
    // The versions that are there already, so that nothing is asked of a registry.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-plugin");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--release", "--offline", "--target", "wasm32-wasip2"]).current_dir(&folder);
    let built = build.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let plugin = target.join("wasm32-wasip2/release/my_walk.wasm");
    assert_eq!(inspected(&place, &plugin).0, "writes version 1, reads 1");
    let run = place.command(&["run"]).arg(&plugin).arg("--volume").arg(place.volume());
    run.config(r#"{"steps": 20}"#).exits(0).says("Done: ");
}

#[test]
fn new_refuses_what_would_not_become_a_crate_and_what_is_there() {
    let place = Place::new();
    let new = |name: &str| place.command(&["plugin", "new", name]);
    for name in ["2x", "a/b", "..", "fn", "test", ""] {
        new(name).exits(2);
    }
    fs::create_dir(place.path().join("there")).unwrap();
    let there = new("there").exits(2);
    insta::assert_snapshot!(there.stderr, @r"
    steadfast: there is something called `there` already
    hint: give another name, or move it away; nothing was changed
    ");
    assert_eq!(fs::read_dir(place.path().join("there")).unwrap().count(), 0);
    new("walk").args("--sdk .").exits(2).says("`.` is not the crate steadfast-guest");
    assert!(!place.path().join("walk").exists());
    assert!(new("walk").exits(0).stdout.contains("let steadfast-guest point to the folder guest-sdk"));
}

const STEPS: &str = r#"{"steps": 12}"#;
const JOB: &str = "swap_good_a";

/// A job that was stopped before its step 4, with checkpoints of the steps 0 and 4.
fn stopped() -> Place {
    let place = Place::new();
    place.run(JOB).config(STEPS).args("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    place
}

fn trying(place: &Place, plugin: &str, against: &Path) -> Run {
    let run = place.command(&["plugin", "try"]).arg(component(plugin)).arg("--against").arg(against);
    run.arg("--scratch").arg(place.path().join("scratch"))
}

fn tried(place: &Place, plugin: &str, code: i32) -> Value {
    let ended = trying(place, plugin, &place.task(JOB)).arg("--json").exits(code);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// All below a folder: bytes, and when they were written.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let about = fs::metadata(&path).unwrap();
        let bytes = match about.is_dir() {
            true => {
                pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            false => fs::read(&path).unwrap(),
        };
        found.insert(path, (bytes, about.modified().unwrap()));
    }
    found
}

#[test]
fn try_tells_how_a_good_plugin_compares_with_the_old_one() {
    let place = stopped();
    let before = everything(&place.volume());
    let same = trying(&place, JOB, &place.volume().join(JOB)).exits(0).stdout;
    let first = same.lines().next().unwrap();
    assert_eq!(first, "fits      swap_good_a · task 0 of 1 · 3 steps from step 4 · as the old plugin, to the bit");
    let words: Vec<_> = same.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    insta::assert_snapshot!(words.join(" "), @"plugin from progress outputs metrics state random memory steps");

    let other = tried(&place, "swap_good_b", 0);
    let trial = &other["trials"][0];
    assert_eq!((&trial["verdict"], &trial["steps"], &trial["state_version"]), (&"fits".into(), &3.into(), &2.into()));
    assert_eq!(trial["from"]["state_version"], 1);
    assert_eq!(other["state_versions"]["reads"], serde_json::json!([1, 2, 3]));
    let differing: Vec<_> =
        trial["compared"]["aspects"].as_array().unwrap().iter().filter(|one| one["equal"] == false).collect();
    let differing: Vec<_> = differing.iter().map(|one| format!("{}: {}", one["what"], one["text"])).collect();
    insta::assert_snapshot!(differing.join("\n").replace('"', ""), @r"
    outputs: latest.txt differs from byte 2 on (20 bytes, the old one's 20); steps.csv differs from byte 86 on (147 bytes, the old one's 147)
    metrics: first version = 2 at step 4; the old one: version = 1 at step 4
    state: 30 bytes of version 2; the old one's: 29 bytes of version 1
    ");
    assert!(everything(&place.volume()) == before, "a trial wrote to the volume");
    assert_eq!(fs::read_dir(place.path().join("scratch")).unwrap().count(), 0, "a trial left something behind");

    place.run(JOB).config(STEPS).done();
    let done = trying(&place, "swap_good_c", &place.volume()).args("--steps 99").exits(0).stdout;
    assert!(done.contains("8 steps from step 4") && done.contains("the task is done: "), "{done}");
}

#[test]
fn try_tells_what_a_run_would_say_of_a_bad_plugin_and_writes_nothing() {
    let place = stopped();
    let before = everything(&place.volume());
    let limits = "--memory-limit 64MiB --step-timeout 300ms";
    for (plugin, said) in [
        (
            "swap_traps_in_restore",
            "the guest failed in `restore` at step 4: the guest panicked: this release traps in restore",
        ),
        ("swap_traps_in_step", "the guest failed in `step` at step 4: the guest panicked: "),
        (
            "swap_endless",
            "the guest failed in `step` at step 4: interrupted: the call took longer than --step-timeout allows",
        ),
        ("swap_refuses", "incompatible state: this release does not go on from any state"),
        ("swap_hungry", "the guest failed in `restore` at step 4: out of memory"),
        ("swap_scribbles", "the guest failed in `step` at step 4: the guest panicked: "),
        ("swap_snapshot_fails", "the guest failed in `snapshot` at step 7: the guest panicked: "),
        ("writes_version", "incompatible state: "),
    ] {
        let ended = trying(&place, plugin, &place.volume()).args(limits).exits(1);
        let first = ended.stdout.lines().next().unwrap();
        assert!(first.starts_with("misfit    swap_good_a · task 0 of 1 · from step 4: "), "{plugin}: {first}");
        assert!(first.contains(said), "{plugin}: {first}");
        assert_eq!(fs::read_dir(place.path().join("scratch")).unwrap().count(), 0, "{plugin} left something behind");
    }
    let asleep = trying(&place, "swap_endless", &place.volume()).config(r#"{"sleeps": true}"#).args(limits).exits(1);
    assert!(asleep.stdout.contains("the call took longer than --step-timeout allows"), "{}", asleep.stdout);
    assert!(asleep.stdout.contains("another configuration than that of the checkpoint"), "{}", asleep.stdout);
    trying(&place, "command", &place.volume()).exits(1).says("is not a Steadfast plugin");
    assert!(everything(&place.volume()) == before, "a trial wrote to the volume");
    assert_eq!(place.run(JOB).config(STEPS).done().resumed_from(), Some(4));
}

#[test]
fn try_takes_the_checkpoint_that_a_run_would_take_or_the_one_that_is_named() {
    let place = stopped();
    let [first, newest] = &place.checkpoints(JOB)[..] else { panic!("{:?}", place.checkpoints(JOB)) };
    let named = trying(&place, JOB, first).exits(0).stdout;
    assert!(named.contains("3 steps from step 0"), "{named}");

    let mut bytes = fs::read(newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(newest, bytes).unwrap();
    let trial = &tried(&place, JOB, 0)["trials"][0];
    assert_eq!(trial["from"]["step"], 0);
    assert!(trial["from"]["notes"][0].as_str().unwrap().contains("is passed over: "), "{trial}");
    trying(&place, JOB, newest).exits(70);

    fs::remove_dir_all(place.volume().join(JOB).join("plugins")).unwrap();
    let alone = tried(&place, JOB, 0);
    assert!(alone["trials"][0]["not_compared"].as_str().unwrap().contains("the old plugin cannot be had"), "{alone}");
    fs::remove_file(first).unwrap();
    fs::remove_file(newest).unwrap();
    trying(&place, JOB, &place.volume()).exits(2).says("it has no checkpoint yet");
    trying(&place, JOB, place.path()).exits(2).says("is no volume, job, task or checkpoint");
}

#[test]
fn try_tells_a_release_that_migrates_from_one_that_does_not() {
    let place = Place::new();
    place.run("writes_version").config(STEPS).args("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    let migrates = trying(&place, "reads_version", &place.volume()).exits(0).stdout;
    assert!(migrates.contains("writes version 2, reads 1 and 2"), "{migrates}");
    assert!(migrates.starts_with("fits ") && migrates.contains("differs from the old plugin: state\n"), "{migrates}");
    let does_not = trying(&place, "refuses_version", &place.volume()).exits(1).stdout;
    assert!(does_not.contains("the saved state is of version 1; this plugin reads version 2"), "{does_not}");
}

#[test]
fn try_does_not_disturb_an_attempt_that_is_at_work() {
    let place = Place::new();
    let mut at_work = place.run(JOB).config(STEPS).args("--every 2steps").start();
    at_work.until(Phase::Step, 6);
    let trial = trying(&place, "swap_good_b", &place.volume());
    assert!(trial.exits(0).stdout.contains(" from step "));
    trying(&place, "swap_traps_in_step", &place.volume()).exits(1);
    let ended = at_work.end().expect_code(0);
    assert!(!ended.stderr.contains("newer attempt"), "{}", ended.stderr);
    place.finished(JOB).assert_equals(&crate::support::undisturbed(JOB, STEPS), "tried meanwhile");
}

#[test]
fn try_answers_for_each_task_in_one_line() {
    let place = Place::new();
    let task = |index: u32| {
        let run = place.run(JOB).config(STEPS).args("--every 1000steps --name many").on_cloud_run(JOB, "x", 0);
        run.env("CLOUD_RUN_TASK_INDEX", index.to_string()).env("CLOUD_RUN_TASK_COUNT", "2")
    };
    task(0).term_at(Phase::Step, 4).expect_code(143);
    task(1).term_at(Phase::Step, 6).expect_code(143);
    let both = trying(&place, "swap_good_b", &place.volume().join("many")).args("--steps 1").exits(0).stdout;
    insta::assert_snapshot!(both, @r"
    fits      many · task 0 of 2 · 1 step from step 4 · differs from the old plugin: outputs, metrics, state
    fits      many · task 1 of 2 · 1 step from step 6 · differs from the old plugin: outputs, metrics, state
    ");
}

#[test]
fn try_wants_the_input_that_the_job_has() {
    let place = Place::new();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("plugins/digits/data");
    let config = r#"{"epochs": 1, "hidden_units": 8}"#;
    let run = place.run("digits").config(config).args("--every 1000steps").arg("--input").arg(&input);
    run.term_at(Phase::Step, 4).expect_code(143);
    let trial = trying(&place, "digits", &place.volume());
    trial.exits(2).says("the job has an input of 2 files").says("hint: give its folder with --input");
    let fits = trial.clone().arg("--input").arg(&input).exits(0).stdout;
    assert!(fits.contains("as the old plugin, to the bit") && !fits.contains("note"), "{fits}");
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let misfit = trial.clone().arg("--input").arg(&empty).exits(1).stdout;
    assert!(misfit.contains("the input is not that of the checkpoint"), "{misfit}");
}
