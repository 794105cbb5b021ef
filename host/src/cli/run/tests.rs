//! What a command line, a file and the environment make of a job together.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use clap::Parser;
use proptest::prelude::*;

use crate::job::spec::Every;

use super::super::config::ConfigSource;
use super::super::values::{Size, Time};
use super::*;

#[derive(Parser, Debug)]
struct Line {
    #[command(flatten)]
    command: RunCommand,
}

fn resolved_with(words: &[&str], set: &[(&str, &str)]) -> Result<JobSpec, String> {
    let environment = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let line = Line::try_parse_from([&["run"], words].concat()).map_err(|error| error.to_string())?;
    line.command.resolve(&environment).map_err(|failure| failure.message)
}

fn resolved(words: &[&str]) -> JobSpec {
    resolved_with(words, &[]).unwrap()
}

#[test]
fn a_plugin_alone_is_a_job() {
    let spec = resolved(&["countdown.wasm"]);
    assert_eq!(format!("{spec:?}"), format!("{:?}", JobSpec::new("countdown.wasm")));
}

#[test]
fn options_win_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.TOML");
    std::fs::write(
        &file,
        "plugin = \"a.wasm\"\nvolume = \"v\"\nkeep = 5\nevery = \"9steps\"\nfrom = 3\naccept-changed = [\"input\"]\n[config]\na = 1",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let spec = resolved(&[file]);
    assert_eq!(spec.plugin, folder.path().join("a.wasm").into());
    assert_eq!(spec.volume.unwrap(), folder.path().join("v"));
    assert_eq!((spec.every, spec.from, spec.config.as_str()), (Every::Steps(9), Some(3), "{\"a\":1}"));
    let set = [("STEADFAST_VOLUME", "env")];
    let spec = resolved_with(&[file, "--keep", "1", "--fresh", "--config", "{\"a\":2}"], &set).unwrap();
    assert_eq!((spec.keep.get(), spec.fresh, spec.from, spec.config.as_str()), (1, true, None, "{\"a\":2}"));
    assert_eq!(spec.volume.unwrap(), PathBuf::from("env"));
    assert_eq!(spec.accept_changed.len(), 1);
    let spec = resolved_with(&[file, "--volume", "flag"], &set).unwrap();
    assert_eq!(spec.volume.unwrap(), PathBuf::from("flag"));
    let spec = resolved_with(&["a.wasm"], &[("STEADFAST_VOLUME", "")]).unwrap();
    assert_eq!(spec.volume, None, "a variable set to nothing is unset");
}

#[test]
fn nonsense_is_refused() {
    let all: [&[&str]; 16] = [
        &["-"],
        &[],
        &["a.wasm", "--volume", "-"],
        &["a.wasm", "--config", "-"],
        &["a.wasm", "--config", "{\"a\":"],
        &["a.wasm", "--every", "30"],
        &["a.wasm", "--keep", "0"],
        &["a.wasm", "--memory-limit", "2"],
        &["a.wasm", "--grace", "-5s"],
        &["a.wasm", "--name", "a/b"],
        &["a.wasm", "--if-done", "maybe"],
        &["a.wasm", "--accept-changed", "config,everything"],
        &["a.wasm", "--fresh", "--from", "3"],
        &["a.wasm", "--input", "/nowhere at all"],
        &["a.wasm", "--evry", "30s"],
        &["nowhere.toml"],
    ];
    let all = all.map(|words| {
        let error = resolved_with(words, &[]).unwrap_err();
        error.lines().filter(|line| !line.is_empty() && !line.starts_with("Usage")).collect::<Vec<_>>().join("\n")
    });
    insta::assert_snapshot!(all.join("\n--\n"), @r#"
    error: invalid value '-' for '<PLUGIN.wasm|oci://…|JOB.toml>': a file or folder is needed; streams are not read (for one that is called so, say ./-)
    For more information, try '--help'.
    --
    error: the following required arguments were not provided:
      <PLUGIN.wasm|oci://…|JOB.toml>
    For more information, try '--help'.
    --
    error: invalid value '-' for '--volume <DIR>': a file or folder is needed; streams are not read (for one that is called so, say ./-)
    For more information, try '--help'.
    --
    error: invalid value '-' for '--config <FILE|JSON>': a file or JSON is needed; streams are not read
    For more information, try '--help'.
    --
    --config is no valid JSON: EOF while parsing a value at line 1 column 5
    hint: quote it for the shell, with double quotes inside: '{"steps": 1000}'
    --
    error: invalid value '30' for '--every <TIME|STEPS>': it has no unit: say a time, such as 30s or 5m, or a number of steps, such as 5steps
    For more information, try '--help'.
    --
    error: invalid value '0' for '--keep <COUNT>': it has to be a whole number from 1 on
    For more information, try '--help'.
    --
    error: invalid value '2' for '--memory-limit <SIZE>': it is less than the 64KiB of one page of memory
    For more information, try '--help'.
    --
    error: unexpected argument '-5' found
      tip: to pass '-5' as a value, use '-- -5'
    For more information, try '--help'.
    --
    error: invalid value 'a/b' for '--name <NAME>': `a/b` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    For more information, try '--help'.
    --
    error: invalid value 'maybe' for '--if-done <WHAT>'
      [possible values: skip, fail, restart]
    For more information, try '--help'.
    --
    error: invalid value 'everything' for '--accept-changed <WHAT,…>'
      [possible values: config, input, plugin, task-count]
    For more information, try '--help'.
    --
    error: the argument '--fresh' cannot be used with '--from <STEP>'
    For more information, try '--help'.
    --
    the input `/nowhere at all` does not exist
    --
    error: unexpected argument '--evry' found
      tip: a similar argument exists: '--every'
    For more information, try '--help'.
    --
    cannot read the job's file `nowhere.toml`: No such file or directory (os error 2)
    "#);
}

fn some_options() -> impl Strategy<Value = RunOptions> {
    let place = || proptest::option::of("[a-z./ -]{2,9}".prop_map(|path| Place(path.into())));
    let time = || proptest::option::of((1_u64..10_000_000).prop_map(|ms| Time(std::time::Duration::from_millis(ms))));
    let config =
        proptest::option::of("[a-z0-9{}\": -]{2,9}".prop_filter("no stream", |text| !["-", ""].contains(&text.trim())));
    let every = proptest::option::of(prop_oneof![
        (1_u64..1000).prop_map(Every::Steps),
        (1_u64..10_000_000).prop_map(|ms| Every::Time(std::time::Duration::from_millis(ms))),
    ]);
    let numbers = (
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        proptest::option::of(1_u32..9),
        proptest::option::of((64_u64 << 10)..(9 << 30)),
    );
    (place(), place(), time(), time(), config, every, numbers, any::<bool>()).prop_map(
        |(input, output, grace, deadline, config, every, (seed, from, count, memory), flag)| RunOptions {
            input,
            output,
            grace,
            attempt_deadline: deadline,
            config: config.map(ConfigSource::Text),
            every,
            seed,
            from: from.filter(|_| !flag),
            fresh: flag,
            volume_is_ephemeral: flag,
            keep: count.and_then(std::num::NonZeroU32::new),
            max_stalled: count.and_then(std::num::NonZeroU32::new),
            memory_limit: memory.map(Size),
            state_limit: memory.map(Size),
            device: count.map(|number| crate::job::spec::DeviceChoice::Cuda(Some(number))),
            device_memory: memory.map(Size),
            device_threads: count.and_then(std::num::NonZeroU32::new),
            canonical_nans: flag,
            profile: flag,
            watch: flag,
            plugin_from: flag.then_some(crate::job::spec::PluginFrom::Volume),
            plugin_digest: flag.then(|| format!("sha256:{}", "0f".repeat(32)).parse().unwrap()),
            log: flag.then_some(crate::job::spec::LogFormat::Json),
            if_done: flag.then_some(crate::job::spec::IfDone::Restart),
            ..RunOptions::default()
        },
    )
}

proptest! {
    #[test]
    fn options_come_back_from_the_command_line_that_they_make(options in some_options()) {
        let mut words = vec!["run".into(), "a.wasm".into()];
        words.extend(options.as_arguments());
        let line = Line::try_parse_from(words).unwrap();
        prop_assert_eq!(line.command.options, options);
    }
}
