//! `JOB.toml`: the options of a run under the same names, with `plugin` and a table `[config]`.

use std::ops::Range;
use std::path::Path;

use clap::Args;

use super::failure::Failure;
use super::options::RunOptions;

/// Reads a job's file. Relative paths in it are relative to its folder.
pub(super) fn read(path: &Path) -> Result<RunOptions, Failure> {
    let shown = path.display();
    let text = super::text::read(path)
        .map_err(|reason| Failure::usage(format!("cannot read the job's file `{shown}`: {reason}")))?;
    let options = parse(path, &text)?;
    if options.plugin.is_none() {
        return Err(
            Failure::usage(format!("`{shown}` names no plugin")).hint("add a line such as plugin = \"my.wasm\"")
        );
    }
    options.based_at(path.parent().unwrap_or(Path::new("")))
}

pub(super) fn parse(path: &Path, text: &str) -> Result<RunOptions, Failure> {
    let table = toml::de::DeTable::parse(text).map_err(|error| at(path, text, &error))?;
    let known = known_names();
    for key in table.get_ref().keys() {
        let name = key.get_ref();
        if !known.iter().any(|known| known == name) {
            let failure = at_span(path, text, Some(key.span()), &format!("`{name}` is unknown"));
            return Err(match nearest(name, &known) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("these are known: {}", known.join(", "))),
            });
        }
    }
    let options: RunOptions = toml::from_str(text).map_err(|error| at(path, text, &error))?;
    if options.fresh && options.from.is_some() {
        return Err(Failure::usage(format!("`{}`: `fresh` and `from` exclude each other", path.display())));
    }
    Ok(options)
}

/// What may stand in a job's file: the options of `run` that describe the job.
fn known_names() -> Vec<String> {
    let command = RunOptions::augment_args(clap::Command::new("run"));
    let options = command.get_arguments().filter_map(|option| option.get_long()).filter(|name| *name != "dry-run");
    options.chain(["plugin"]).map(str::to_owned).collect()
}

fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let name = name.replace('_', "-").to_lowercase();
    let likeness = |known: &&String| strsim::jaro_winkler(&name, known);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&nearest) > 0.75).then_some(nearest)
}

/// An error of the parser, with its place in the file.
pub(super) fn at(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    at_span(path, text, error.span(), error.message())
}

fn at_span(path: &Path, text: &str, span: Option<Range<usize>>, message: &str) -> Failure {
    let shown = path.display();
    let message = message.trim_end().replace('\n', ", ");
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return Failure::usage(format!("`{shown}`: {message}"));
    };
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim_end();
    Failure::usage(format!("`{shown}`, line {number}: {message}\n  {number} | {line}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn parsed(text: &str) -> Result<RunOptions, String> {
        parse(Path::new("job.toml"), text).map_err(|failure| failure.message)
    }

    const EVERYTHING: &str = r#"
plugin = "digits.wasm"
watch = true
plugin-from = "volume"
plugin-digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
name = "digits"
run-id = "weekly"
input = "data"
output = "out"
scratch = "tmp"
seed = 7
canonical-nans = true
volume = "/mnt/bucket"
every = "5steps"
keep = 3
from = 12
fresh = false
accept-changed = ["config", "task-count"]
input-digest = "contents"
if-done = "restart"
volume-is-ephemeral = true
grace = "15s"
memory-limit = "1GiB"
device = "cuda:1"
device-memory = "3GiB"
device-threads = 2
profile = true
state-limit = "100MiB"
step-timeout = "1m"
attempt-deadline = "2h"
max-stalled = 5
max-save-failures = 6
log = "json"

[config]
steps = 1000
"#;

    #[test]
    fn every_option_of_a_run_may_stand_in_a_file() {
        let options = parsed(EVERYTHING).unwrap();
        let table: toml::Table = EVERYTHING.parse().unwrap();
        let mut names: Vec<_> = table.keys().cloned().collect();
        let mut known = known_names();
        names.sort();
        known.sort();
        assert_eq!(names, known, "this test leaves an option out");
        let arguments: Vec<_> = options.as_arguments().into_iter().map(|word| word.into_string().unwrap()).collect();
        insta::assert_snapshot!(arguments.join("\n"), @r#"
        --plugin-from=volume
        --plugin-digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        --name=digits
        --run-id=weekly
        --config={"steps":1000}
        --input=data
        --output=out
        --scratch=tmp
        --seed=7
        --volume=/mnt/bucket
        --every=5steps
        --keep=3
        --from=12
        --accept-changed=config,task-count
        --input-digest=contents
        --if-done=restart
        --grace=15s
        --memory-limit=1073741824
        --device=cuda:1
        --device-memory=3221225472
        --device-threads=2
        --state-limit=104857600
        --step-timeout=1m
        --attempt-deadline=2h
        --max-stalled=5
        --max-save-failures=6
        --log=json
        --watch
        --canonical-nans
        --profile
        --volume-is-ephemeral
        "#);
    }

    #[test]
    fn mistakes_are_shown_with_their_line() {
        let all = [
            "plugin = \"a.wasm\"\nevry = \"30s\"",
            "plugin = \"a.wasm\"\n\nmemory_limit = \"1GiB\"",
            "[configuration]\nsteps = 1",
            "quux = 1",
            "dry-run = true",
            "every = 30",
            "every = true",
            "keep = 0",
            "keep = \"two\"",
            "seed = -1",
            "name = \"no name\"",
            "volume = \"-\"",
            "if-done = \"perhaps\"",
            "accept-changed = [\"confg\"]",
            "fresh = true\nfrom = 3",
            "config = 7",
            "plugin = \"a.wasm",
            "keep = 1\nkeep = 2",
        ];
        let all = all.map(|text| parsed(text).unwrap_err());
        insta::assert_snapshot!(all.join("\n"), @r#"
        `job.toml`, line 2: `evry` is unknown
          2 | evry = "30s"
        hint: did you mean `every`?
        `job.toml`, line 3: `memory_limit` is unknown
          3 | memory_limit = "1GiB"
        hint: did you mean `memory-limit`?
        `job.toml`, line 1: `configuration` is unknown
          1 | [configuration]
        hint: did you mean `config`?
        `job.toml`, line 1: `quux` is unknown
          1 | quux = 1
        hint: these are known: watch, plugin-from, plugin-digest, name, run-id, config, input, output, scratch, seed, canonical-nans, volume, every, keep, fresh, from, accept-changed, input-digest, if-done, volume-is-ephemeral, grace, memory-limit, device, device-memory, device-threads, profile, state-limit, step-timeout, attempt-deadline, max-stalled, max-save-failures, log, plugin
        `job.toml`, line 1: `dry-run` is unknown
          1 | dry-run = true
        hint: these are known: watch, plugin-from, plugin-digest, name, run-id, config, input, output, scratch, seed, canonical-nans, volume, every, keep, fresh, from, accept-changed, input-digest, if-done, volume-is-ephemeral, grace, memory-limit, device, device-memory, device-threads, profile, state-limit, step-timeout, attempt-deadline, max-stalled, max-save-failures, log, plugin
        `job.toml`, line 1: it has no unit: say a time, such as 30s or 5m, or a number of steps, such as 5steps
          1 | every = 30
        `job.toml`, line 1: invalid type: boolean `true`, expected a text
          1 | every = true
        `job.toml`, line 1: it has to be a whole number from 1 on
          1 | keep = 0
        `job.toml`, line 1: it has to be a whole number from 1 on
          1 | keep = "two"
        `job.toml`, line 1: it has to be a whole number from 0 on
          1 | seed = -1
        `job.toml`, line 1: `no name` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
          1 | name = "no name"
        `job.toml`, line 1: a file or folder is needed; streams are not read (for one that is called so, say ./-)
          1 | volume = "-"
        `job.toml`, line 1: unknown variant `perhaps`, expected one of `skip`, `fail`, `restart`
          1 | if-done = "perhaps"
        `job.toml`, line 1: unknown variant `confg`, expected one of `config`, `input`, `plugin`, `task-count`
          1 | accept-changed = ["confg"]
        `job.toml`: `fresh` and `from` exclude each other
        `job.toml`, line 1: a table or the path of a file is needed, but this is of type integer
          1 | config = 7
        `job.toml`, line 1: invalid basic string, expected `"`
          1 | plugin = "a.wasm
        `job.toml`, line 2: duplicate key
          2 | keep = 2
        "#);
    }

    #[test]
    fn paths_begin_at_the_files_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.toml");
        std::fs::write(folder.path().join("c.json"), "{\"b\":1, \"a\":2}").unwrap();
        std::fs::write(&file, "plugin = \"../a.wasm\"\ninput = \"data\"\nvolume = \"/mnt\"\nconfig = \"c.json\"")
            .unwrap();
        let options = read(&file).unwrap();
        assert_eq!(options.plugin.unwrap().0, folder.path().join("../a.wasm").into());
        assert_eq!(options.input.unwrap().0, folder.path().join("data"));
        assert_eq!(options.volume.unwrap().0, Path::new("/mnt"));
        assert_eq!(options.output, None);
        let config = options.config.unwrap().load(Path::new("elsewhere")).unwrap();
        assert_eq!(config, serde_json::json!({"a": 2, "b": 1}));
        std::fs::write(&file, "name = \"a\"").unwrap();
        assert!(read(&file).unwrap_err().message.contains("names no plugin"));
        assert!(read(folder.path()).unwrap_err().message.contains("cannot read"));
    }
}
