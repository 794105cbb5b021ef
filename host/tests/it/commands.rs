//! The commands that only look at files, and what a run prints.

use std::fs;

use serde_json::Value;

use crate::support::{Phase, Place, component, metadata_of, stable};

const STEPS: &str = r#"{"steps": 12}"#;

fn stopped() -> Place {
    let place = Place::new();
    place.run("stochastic").config(STEPS).args("--every 1000steps").term_at(Phase::Step, 4).expect_code(143);
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn checkpoint_list_tells_what_is_there() {
    let place = stopped();
    let listed = place.command(&["checkpoint", "list", "--json"]).arg(place.volume()).exits(0);
    let listed = json(&listed.stdout);
    let steps: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["next_step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [4, 0], "newest first");
    assert_eq!(listed[0]["job"], "stochastic");
    assert_eq!(listed[0]["error"], Value::Null);
    let people = place.command(&["checkpoint", "list"]).arg(place.task("stochastic")).exits(0).stdout;
    let heads: Vec<_> = people.lines().next().unwrap().split_whitespace().collect();
    insta::assert_snapshot!(heads.join(" "), @"job task next step attempt plugin size made note");

    fs::write(place.newest("stochastic"), "no checkpoint").unwrap();
    let people = place.command(&["checkpoint", "list"]).arg(place.volume()).exits(0).stdout;
    assert!(people.contains("13 bytes are too few for a checkpoint"), "{people}");
}

#[test]
fn checkpoint_show_tells_what_a_checkpoint_says_of_itself() {
    let place = stopped();
    let shown = place.command(&["checkpoint", "show", "--json"]).arg(place.newest("stochastic")).exits(0);
    let shown = json(&shown.stdout);
    assert_eq!(shown[0]["metadata"]["next_step"], 4);
    assert_eq!(shown[0]["metadata"]["config"], r#"{"steps":12}"#);
    assert_eq!(shown[0]["sections"][0]["kind"], "state");
    let people = place.command(&["checkpoint", "show"]).arg(place.volume()).exits(0).stdout;
    let words: Vec<_> = people.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    insta::assert_snapshot!(words.join(" "), @"file job step made lineage plugin config seed state outputs");
    assert!(people.contains("4 is the next to run · progress 4 of 12"), "{people}");
}

#[test]
fn checkpoint_verify_finds_damage_and_other_commands_say_what_is_not_theirs() {
    let place = stopped();
    let verify = place.command(&["checkpoint", "verify"]).arg(place.volume());
    assert_eq!(verify.exits(0).stdout.lines().filter(|line| line.starts_with("ok ")).count(), 2);
    let newest = place.newest("stochastic");
    assert_eq!(metadata_of(&newest).next_step, 4);
    let mut bytes = fs::read(&newest).unwrap();
    bytes[40] ^= 1;
    fs::write(&newest, bytes).unwrap();
    let ended = verify.exits(1);
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("damaged ")).count(), 1, "{}", ended.stdout);

    let empty = Place::new();
    let nothing = empty.command(&["checkpoint", "list"]).arg(empty.volume()).exits(2);
    insta::assert_snapshot!(stable(&empty, &nothing.stderr), @"steadfast: `[place]/volume` is no volume, job, task or checkpoint of Steadfast");
    let nothing = empty.command(&["checkpoint", "show", "no/such"]).exits(2);
    insta::assert_snapshot!(stable(&empty, &nothing.stderr), @"steadfast: cannot read `no/such`: No such file or directory (os error 2)");
}

#[test]
fn output_list_and_cat_show_outputs_at_any_time() {
    let place = stopped();
    let list = place.command(&["output", "list", "--json"]).arg(place.volume());
    let listed = json(&list.exits(0).stdout);
    assert_eq!((&listed[0]["file"], &listed[0]["as_of_step"]), (&"walk.csv".into(), &4.into()));
    assert_eq!(listed[0]["finished"], false);
    let cat = place.command(&["output", "cat"]).arg(place.volume());
    assert_eq!(cat.exits(0).stdout.lines().count(), 4);

    place.run("stochastic").config(STEPS).done();
    assert_eq!(json(&list.exits(0).stdout)[0]["finished"], true);
    let printed = cat.clone().arg("walk.csv").exits(0).stdout;
    assert_eq!(printed, place.finished("stochastic").text("walk.csv"));
    let missing = cat.arg("no such").exits(2);
    insta::assert_snapshot!(stable(&place, &missing.stderr), @"steadfast: there is no output `no such`; there are: walk.csv");
}

#[test]
fn plugin_inspect_says_what_a_file_is_and_what_it_lacks() {
    let place = Place::new();
    let inspect = |file: &str| place.command(&["plugin", "inspect"]).arg(component(file));
    let ended = inspect("stochastic").exits(0);
    assert!(ended.stdout.contains("a plugin") && ended.stdout.contains("steadfast:job"), "{}", ended.stdout);
    let found = json(&inspect("stochastic").arg("--json").exits(0).stdout);
    assert_eq!(found["is_plugin"], true);
    for (file, said) in [("command", "not a plugin"), ("wants_more", "acme:weather/forecast")] {
        let ended = inspect(file).exits(1);
        assert!(ended.stdout.contains(said) && ended.stdout.contains("hint: "), "{}", ended.stdout);
    }
    // What is said of files that are no components at all stands in `refusals::plugin_files`.
}

#[test]
fn plugin_compile_leaves_nothing_to_compile_for_a_run() {
    let place = Place::new();
    let cache = place.path().join("cache");
    let compile = || place.command(&["plugin", "compile"]).env("STEADFAST_CACHE", &cache);
    let both = || compile().arg(component("stochastic")).arg(component("idles"));
    for how in ["compiled ", "found "] {
        let ended = both().exits(0);
        let lines: Vec<_> = ended.stdout.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ended.stdout);
        assert!(lines.iter().all(|line| line.starts_with(how) && line.contains(" ms  sha256:")), "{}", ended.stdout);
        assert!(lines[0].ends_with("stochastic.wasm"), "{}", ended.stdout);
    }
    let run = place.run("stochastic").config(STEPS).env("STEADFAST_CACHE", &cache);
    run.exits(0).says("compiled before");
}

#[test]
fn plugin_compile_fails_where_nothing_would_be_kept() {
    let place = Place::new();
    let compile = |cache: &str| place.command(&["plugin", "compile"]).env("STEADFAST_CACHE", cache);
    let nowhere = compile("").arg(component("idles")).exits(2);
    insta::assert_snapshot!(nowhere.stderr, @r"
    steadfast: there is no cache to compile into
    hint: set STEADFAST_CACHE to a folder, or HOME if the usual place will do
    ");
    let unwritable = compile("/proc/cache").arg(component("idles")).exits(75);
    insta::assert_snapshot!(unwritable.stderr, @r"
    steadfast: compiled plugins cannot be kept in `/proc/cache`
    hint: it has to be writable, with room, by its owner alone, and that has to be this user or root
    ");
    let cache = place.path().join("cache");
    let cache = cache.to_str().unwrap();
    compile(cache).arg(component("command")).exits(65).says("hint");
    compile(cache).arg("no-such.wasm").exits(2);
    compile(cache).exits(2);
}

#[test]
fn json_log_lines_are_json_as_collectors_read_them() {
    let place = Place::new();
    let run = place.run("stochastic").config(STEPS).on_cloud_run("stochastic", "x", 0);
    let ended = run.args("--every 5steps").term_at(Phase::Step, 7).expect_code(143);
    let failed = place.run("stochastic").config(r#"{"steps": 1}"#).on_cloud_run("stochastic", "x", 1).exits(70);
    assert_eq!(ended.stdout, "", "everything goes one way");
    let mut messages = Vec::new();
    for line in ended.stderr.lines().chain(failed.stderr.lines()) {
        let line = json(line);
        let severity = line["severity"].as_str().unwrap();
        assert!(["DEBUG", "INFO", "WARNING", "ERROR"].contains(&severity), "{line}");
        let time = line["time"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time.ends_with('Z'), "{line}");
        messages.push((severity.to_owned(), line["message"].as_str().unwrap().to_owned()));
    }
    for wanted in
        ["No checkpoint found", "Saving checkpoint at step 7", "Received SIGTERM", "Stopped: 7 steps are safe"]
    {
        assert!(messages.iter().any(|(_, message)| message.starts_with(wanted)), "no `{wanted}` in {messages:#?}");
    }
    let (severity, message) = messages.last().unwrap();
    assert_eq!(severity, "ERROR");
    assert!(message.contains("config.steps was 12, now it is 1"), "{message}");
}

#[test]
fn people_read_a_block_and_lines() {
    let place = Place::new();
    let ended = place.run("stochastic").config(STEPS).args("--seed 5").done();
    let words: Vec<_> = ended.stderr.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    insta::assert_snapshot!(words.join(" "), @"job volume plugin seed limits grace start");
    let rest: Vec<_> = ended.stderr.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(
        (rest.first(), rest.last()),
        (Some(&"No checkpoint found, starting at step 0"), Some(&"Done: 12 steps"))
    );
}
