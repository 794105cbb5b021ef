//! Target `job`: what people and platforms write. A job's file, a configuration, a command line, single values, an engine's
//! variables.
//!
//! An input's first byte says which of them the rest is. What must hold: no panic; an error that says something; and what is
//! accepted, written by the program itself, is accepted again and means the same. A rehearsal depends on that: its attempts
//! get their options on a command line that the host wrote.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::path::{Component, Path};
use std::str::FromStr;

use steadfast::checkpoint::faults::FaultPlan;
use steadfast::checkpoint::names::{FileName, TaskFolder, Tenure};
use steadfast::job::spec::{Every, JobName, JobSpec};
use steadfast::platform::detect;

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind {
        b'V' => variables(text),
        b'W' => values(text),
        #[cfg(any(fuzzing, clippy))]
        kind => private::run(*kind, text),
        #[cfg(not(any(fuzzing, clippy)))]
        _ => {}
    }
}

/// An engine's variables, as lines of `NAME=VALUE`.
fn variables(text: &str) {
    let given: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let environment = |name: &str| given.get(name).map(|value| (*value).to_owned());
    match detect(&environment, &JobSpec::new("plugins/some plugin.wasm")) {
        Ok(place) => {
            assert!(place.task_index < place.task_count);
            check_name(&place.job.name);
            check_name(&place.job.folder);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A text that is read as a value of every type.
fn values(text: &str) {
    reads_back::<Every>(text, |every| every.to_string());
    reads_back::<FaultPlan>(text, FaultPlan::to_string);
    reads_back::<Tenure>(text, Tenure::to_string);
    if let Some(name) = reads_back::<JobName>(text, JobName::to_string) {
        check_name(&name);
    }
    if let Some(name) = FileName::parse(text) {
        assert_eq!(name.to_string(), text, "one name, two ways to write it");
        assert!(!text.contains('/') || matches!(name, FileName::Stage(..)), "{text}");
    }
    if let Some(folder) = TaskFolder::parse(text) {
        assert_eq!(folder.to_string(), text);
    }
}

fn reads_back<T>(text: &str, written: impl Fn(&T) -> String) -> Option<T>
where
    T: FromStr<Err: Display> + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            let again = written(&value);
            match again.parse::<T>() {
                Ok(read) => assert_eq!(read, value, "`{again}` is another value"),
                Err(error) => panic!("`{again}`: {error}"),
            }
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// A name becomes a folder: one, and none of those with a meaning of their own.
fn check_name(name: &JobName) {
    let name = name.as_str();
    let mut parts = Path::new(name).components();
    assert!(matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)), "{name:?}");
    assert!(!name.contains(['/', '\\', '\0', '\n', ':']) && !name.starts_with(['.', '-']), "{name:?}");
}

/// What is private to the command line: reached in the instrumented build alone.
#[cfg(any(fuzzing, clippy))]
mod private {
    use std::ffi::OsString;

    use steadfast::cli::fuzzing;

    pub(super) fn run(kind: u8, text: &str) {
        match kind {
            b'J' => options(fuzzing::job_file(text)),
            b'O' => {
                let words = ["steadfast"].into_iter().chain(text.lines()).map(OsString::from);
                match fuzzing::command_line(words.collect()) {
                    Ok(Some(written)) => options(Ok(written)),
                    Ok(None) => {}
                    Err(error) => assert!(!error.is_empty()),
                }
            }
            b'C' => config(fuzzing::json_config(text)),
            b'T' => config(fuzzing::toml_config(text)),
            _ => {}
        }
    }

    /// Options that the host wrote are read as the same options.
    fn options(written: Result<Vec<OsString>, String>) {
        let written = match written {
            Ok(written) => written,
            Err(error) => return assert!(!error.is_empty()),
        };
        let line = ["steadfast", "run", "plugin.wasm"].map(OsString::from).into_iter().chain(written.iter().cloned());
        match fuzzing::command_line(line.collect()) {
            Ok(again) => assert_eq!(again, Some(written)),
            Err(error) => panic!("the host does not read what it wrote, {written:?}: {error}"),
        }
    }

    /// The canonical text is canonical.
    fn config(read: Result<String, String>) {
        match read {
            Ok(text) => assert_eq!(fuzzing::json_config(&text).as_ref(), Ok(&text)),
            Err(error) => assert!(!error.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_passes() {
        crate::each_seed("job", |_, bytes| run(bytes));
    }
}
