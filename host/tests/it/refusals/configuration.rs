//! Configurations and job files with mistakes in them: where the mistake is, and what was probably meant.

use std::fs::{self, File};

use crate::support::{Phase, Place, Run, component};

const NO_CONFIGURATION: &str = "{}";

/// What is said of a mistake that only the plugin can see. Nothing of its work is begun.
#[track_caller]
fn invalid(place: &Place, run: &Run) -> String {
    let ended = run.exits(65);
    assert!(!ended.came_to(Phase::Step));
    ended.refusal(place)
}

#[test]
fn no_json() {
    let place = Place::new();
    let mut said = String::new();
    for text in [r#"{"steps": }"#, "{", "steps: 12", "", "{'steps': 1}"] {
        let ended = place.run("stochastic").config(text).exits(2);
        said += &(ended.stderr.split("\n\nFor more information").next().unwrap().trim_end().to_owned() + "\n");
    }
    let files: [(&str, &[u8]); 3] =
        [("list.json", b"{\n  \"steps\": 1,\n}"), ("bytes.json", b"\xff\xfe"), ("bad.toml", b"steps = = 2\n")];
    for (name, bytes) in files {
        fs::write(place.path().join(name), bytes).unwrap();
        said += &place.run("stochastic").config(name).exits(2).refusal(&place);
    }
    File::create(place.path().join("large.json")).unwrap().set_len(8 << 30).unwrap();
    for path in ["large.json", "/dev/zero", "volume"] {
        said += &place.run("stochastic").config(path).exits(2).refusal(&place);
    }
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0);
    insta::assert_snapshot!(said, @r#"
    steadfast: --config is no valid JSON: expected value at line 1 column 11
    hint: quote it for the shell, with double quotes inside: '{"steps": 1000}'
    steadfast: --config is no valid JSON: EOF while parsing an object at line 1 column 1
    hint: quote it for the shell, with double quotes inside: '{"steps": 1000}'
    steadfast: cannot read the configuration: there is no file `steps: 12`, and it is no JSON
    hint: give a JSON or TOML file, or JSON such as '{"steps": 1000}'
    error: invalid value '' for '--config <FILE|JSON>': it is empty; a plugin that needs no configuration gets {} without this option
    steadfast: --config is no valid JSON: key must be a string at line 1 column 2
    hint: quote it for the shell, with double quotes inside: '{"steps": 1000}'
    steadfast: `list.json` is no valid JSON: trailing comma at line 3 column 1
    steadfast: cannot read the configuration `bytes.json`: it is not text (UTF-8)
    steadfast: `bad.toml`, line 1: extra `=`, expected nothing
      1 | steps = = 2
    steadfast: cannot read the configuration `large.json`: it has 8.0 GiB, and the most is 64.0 MiB
    steadfast: cannot read the configuration `/dev/zero`: it is not a file
    steadfast: cannot read the configuration `volume`: it is not a file
    "#);
}

#[test]
fn fields_that_the_plugin_does_not_know_or_misses() {
    let place = Place::new();
    let mut said = String::new();
    for (plugin, config) in [
        ("stochastic", r#"{"stps": 12}"#),
        ("countdown", NO_CONFIGURATION),
        ("countdown", r#"{"steps": 3, "busy": "long"}"#),
        ("stochastic", r#"{"steps": -1}"#),
        ("stochastic", r#"{"steps": "many"}"#),
        ("strange_sections", r#"{"names": ["a", 7]}"#),
        ("countdown", "[]"),
        ("stochastic", "7"),
        ("escapes", r#"{"steps": 1}"#),
    ] {
        said += &invalid(&place, &place.run(plugin).config(config).arg("--fresh"));
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `stps`: unknown field `stps`, expected `steps`
    steadfast: the guest failed in `start` at step 0: invalid: configuration: missing field `steps`
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `busy`: invalid type: string "long", expected u64
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `steps`: invalid value: integer `-1`, expected u64
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `steps`: invalid type: string "many", expected u64
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `names[1]`: invalid type: integer `7`, expected a string
    steadfast: the guest failed in `start` at step 0: invalid: configuration: invalid length 0, expected struct Config with 2 elements
    steadfast: the guest failed in `start` at step 0: invalid: configuration: invalid type: integer `7`, expected struct Steps
    steadfast: the guest failed in `start` at step 0: invalid: configuration, at `steps`: unknown field `steps`, there are no fields
    "#);
}

#[test]
fn a_job_s_file_with_mistakes() {
    let place = Place::new();
    let file = place.path().join("job.toml");
    let plugin = format!("plugin = {:?}", component("stochastic"));
    let mut said = String::new();
    for text in [
        "evry = \"30s\"",
        "memory_limit = \"1GiB\"",
        "[configuration]\nsteps = 1",
        "quux = 1",
        "every = 30",
        "keep = \"two\"",
        "accept-changed = [\"confg\"]",
        "keep = 1\nkeep = 2",
        "config = \"nowhere.json\"",
        "name = \"a",
    ] {
        fs::write(&file, format!("{plugin}\n{text}\n")).unwrap();
        said += &place.command(&["run"]).arg(&file).exits(2).refusal(&place);
    }
    fs::write(&file, "name = \"no-plugin\"\n").unwrap();
    said += &place.command(&["run"]).arg(&file).exits(2).refusal(&place);
    fs::write(&file, b"\xff\xfe").unwrap();
    said += &place.command(&["run"]).arg(&file).exits(2).refusal(&place);
    for (name, path) in [("missing.toml", None), ("folder.toml", Some("volume")), ("zeros.toml", Some("/dev/zero"))] {
        let link = place.path().join(name);
        if let Some(path) = path {
            std::os::unix::fs::symlink(path, &link).unwrap();
        }
        said += &place.command(&["run"]).arg(&link).exits(2).refusal(&place);
    }
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0);
    insta::assert_snapshot!(said.replace(component("stochastic").to_str().unwrap(), "[plugin]"), @r#"
    steadfast: `[place]/job.toml`, line 2: `evry` is unknown
      2 | evry = "30s"
    hint: did you mean `every`?
    steadfast: `[place]/job.toml`, line 2: `memory_limit` is unknown
      2 | memory_limit = "1GiB"
    hint: did you mean `memory-limit`?
    steadfast: `[place]/job.toml`, line 2: `configuration` is unknown
      2 | [configuration]
    hint: did you mean `config`?
    steadfast: `[place]/job.toml`, line 2: `quux` is unknown
      2 | quux = 1
    hint: these are known: watch, plugin-from, plugin-digest, name, run-id, config, input, output, scratch, seed, canonical-nans, volume, every, keep, fresh, from, accept-changed, input-digest, if-done, volume-is-ephemeral, grace, memory-limit, device, device-memory, device-threads, profile, state-limit, step-timeout, attempt-deadline, max-stalled, max-save-failures, log, plugin
    steadfast: `[place]/job.toml`, line 2: it has no unit: say a time, such as 30s or 5m, or a number of steps, such as 5steps
      2 | every = 30
    steadfast: `[place]/job.toml`, line 2: it has to be a whole number from 1 on
      2 | keep = "two"
    steadfast: `[place]/job.toml`, line 2: unknown variant `confg`, expected one of `config`, `input`, `plugin`, `task-count`
      2 | accept-changed = ["confg"]
    steadfast: `[place]/job.toml`, line 3: duplicate key
      3 | keep = 2
    steadfast: cannot read the configuration: there is no file `[place]/nowhere.json`, and it is no JSON
    hint: give a JSON or TOML file, or JSON such as '{"steps": 1000}'
    steadfast: `[place]/job.toml`, line 2: invalid basic string, expected `"`
      2 | name = "a
    steadfast: `[place]/job.toml` names no plugin
    hint: add a line such as plugin = "my.wasm"
    steadfast: cannot read the job's file `[place]/job.toml`: it is not text (UTF-8)
    steadfast: cannot read the job's file `[place]/missing.toml`: No such file or directory (os error 2)
    steadfast: cannot read the job's file `[place]/folder.toml`: it is not a file
    steadfast: cannot read the job's file `[place]/zeros.toml`: it is not a file
    "#);
}

#[test]
fn a_field_of_a_job_s_file_that_the_plugin_does_not_know() {
    let place = Place::new();
    let file = place.path().join("job.toml");
    let text = format!("plugin = {:?}\nvolume = \"volume\"\n[config]\nsteps = 3\nspeed = 9\n", component("stochastic"));
    fs::write(&file, text).unwrap();
    insta::assert_snapshot!(invalid(&place, &place.command(&["run"]).arg(&file)), @"steadfast: the guest failed in `start` at step 0: invalid: configuration, at `speed`: unknown field `speed`, expected `steps`");
}
