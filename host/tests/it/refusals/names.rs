//! Names of jobs that would be paths, or that some file system does not take: refused wherever they come from, and nothing is
//! made anywhere.

use std::fs;

use crate::support::{Place, component, stable};

const HOSTILE: [&str; 13] =
    ["../x", "a/b", "..", ".hidden", "-x", "", "a\nb", "größe", "con", "nul.txt", "COM1", "a\u{202e}b", "a\\b"];

fn hostile() -> impl Iterator<Item = String> {
    HOSTILE.into_iter().map(str::to_owned).chain(["x".repeat(300)])
}

/// The volume and what is beside it hold nothing but what the test itself made.
#[track_caller]
fn assert_untouched(place: &Place, own: &[&str]) {
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "on the volume");
    let beside = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let ours = |name: &String| name.starts_with("log-") || name == "volume" || own.contains(&name.as_str());
    let strange: Vec<_> = beside.filter(|name| !ours(name)).collect();
    assert!(strange.is_empty(), "beside it: {strange:?}");
}

#[test]
fn on_the_command_line() {
    let place = Place::new();
    let mut said = String::new();
    for name in hostile() {
        for option in ["--name", "--run-id"] {
            let ended = place.run("stochastic").arg(format!("{option}={name}")).exits(2);
            let first = ended.stderr.split("\n\nFor more information").next().unwrap();
            if option == "--name" {
                said += &(first.to_owned() + "\n");
            }
        }
    }
    assert_untouched(&place, &[]);
    let said = stable(&place, &said).replace(&"x".repeat(100), "[a hundred times x]");
    // The user's own words, on the user's own terminal.
    insta::assert_snapshot!(said.replace('\u{202e}', "[turned around]"), @r#"
    error: invalid value '../x' for '--name <NAME>': `../x` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value 'a/b' for '--name <NAME>': `a/b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value '..' for '--name <NAME>': `..` is no usable job name: it must begin with a letter or digit
    error: invalid value '.hidden' for '--name <NAME>': `.hidden` is no usable job name: it must begin with a letter or digit
    error: invalid value '-x' for '--name <NAME>': `-x` is no usable job name: it must begin with a letter or digit
    error: invalid value '' for '--name <NAME>': `` is no usable job name: it is empty
    error: invalid value 'a
    b' for '--name <NAME>': `a\nb` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value 'größe' for '--name <NAME>': `größe` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value 'con' for '--name <NAME>': `con` is no usable job name: some file systems reserve it
    error: invalid value 'nul.txt' for '--name <NAME>': `nul.txt` is no usable job name: some file systems reserve it
    error: invalid value 'COM1' for '--name <NAME>': `COM1` is no usable job name: some file systems reserve it
    error: invalid value 'a[turned around]b' for '--name <NAME>': `a\u{202e}b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value 'a\b' for '--name <NAME>': `a\\b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    error: invalid value '[a hundred times x][a hundred times x][a hundred times x]' for '--name <NAME>': `[a hundred times x]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is no usable job name: it is longer than 128 bytes
    "#);
}

#[test]
fn in_a_job_s_file() {
    let place = Place::new();
    let file = place.path().join("job.toml");
    let mut said = String::new();
    for name in ["../x", "a\nb", "con"] {
        let plugin = component("stochastic");
        fs::write(&file, format!("plugin = {plugin:?}\nvolume = \"volume\"\nname = {name:?}\n")).unwrap();
        said += &place.command(&["run"]).arg(&file).exits(2).refusal(&place);
    }
    assert_untouched(&place, &["job.toml"]);
    insta::assert_snapshot!(said, @r#"
    steadfast: `[place]/job.toml`, line 3: `../x` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
      3 | name = "../x"
    steadfast: `[place]/job.toml`, line 3: `a\nb` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
      3 | name = "a\nb"
    steadfast: `[place]/job.toml`, line 3: `con` is no usable job name: some file systems reserve it
      3 | name = "con"
    "#);
}

#[test]
fn in_an_engine_s_variables() {
    let place = Place::new();
    let mut said = String::new();
    for name in hostile() {
        let run = place.run("stochastic").args("--log human").on_cloud_run(&name, "x", 0);
        let ended = run.exits(2);
        said += &ended.refusal(&place);
    }
    assert_untouched(&place, &[]);
    insta::assert_snapshot!(said.replace(&"x".repeat(100), "[a hundred times x]"), @r#"
    steadfast: CLOUD_RUN_JOB: `../x` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `a/b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `..` is no usable job name: it must begin with a letter or digit
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `.hidden` is no usable job name: it must begin with a letter or digit
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `-x` is no usable job name: it must begin with a letter or digit
    hint: name the job with --name
    steadfast: Cloud Run is detected, but nothing says what the job is called
    hint: give --name or --run-id, or set the variable STEADFAST_JOB
    steadfast: CLOUD_RUN_JOB: `a\nb` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `größe` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `con` is no usable job name: some file systems reserve it
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `nul.txt` is no usable job name: some file systems reserve it
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `COM1` is no usable job name: some file systems reserve it
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `a\u{202e}b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `a\\b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: CLOUD_RUN_JOB: `[a hundred times x]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is no usable job name: it is longer than 128 bytes
    hint: name the job with --name
    "#);
}

#[test]
fn in_the_plugin_s_file_name() {
    let place = Place::new();
    let mut said = String::new();
    let names = ["größe.wasm", "con.wasm", "my plugin.wasm", "a\nb.wasm"];
    for name in names {
        let file = place.path().join(name);
        fs::copy(component("stochastic"), &file).unwrap();
        let run = place.command(&["run"]).arg(&file).arg("--volume").arg(place.volume());
        said += &run.exits(2).refusal(&place);
    }
    assert_untouched(&place, &names);
    insta::assert_snapshot!(said, @r#"
    steadfast: the plugin's file name: `größe` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: the plugin's file name: `con` is no usable job name: some file systems reserve it
    hint: name the job with --name
    steadfast: the plugin's file name: `my plugin` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    steadfast: the plugin's file name: `a\nb` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    "#);
}
