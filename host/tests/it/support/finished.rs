//! What a job came to, for comparisons.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use steadfast::checkpoint::browse;

use super::state_of;

/// Outputs, metrics and final state of a job that is done.
#[derive(PartialEq, Eq)]
pub(crate) struct Finished {
    /// Files and folders of the output, by path; a folder has no bytes.
    pub(crate) outputs: BTreeMap<String, Option<Vec<u8>>>,
    pub(crate) metrics: String,
    pub(crate) state: Vec<(String, Vec<u8>)>,
    pub(crate) steps: u64,
}

impl Finished {
    /// As the done record in a task's folder says.
    pub(crate) fn read(task: &Path) -> Self {
        let found = browse::tasks(task).unwrap().remove(0);
        let done = found.done.unwrap_or_else(|| panic!("`{}` is not done", task.display()));
        let mut outputs = BTreeMap::new();
        walk(&task.join(&done.folder), "", &mut outputs);
        let metrics = done.metrics.map(|file| fs::read_to_string(task.join(file.path)).unwrap()).unwrap_or_default();
        let state = state_of(&found.checkpoints.first().unwrap().path);
        Self { outputs, metrics, state, steps: done.steps }
    }

    /// A file of the output, as text.
    pub(crate) fn text(&self, file: &str) -> &str {
        let bytes = self.outputs.get(file).and_then(Option::as_deref);
        std::str::from_utf8(bytes.unwrap_or_else(|| panic!("there is no output `{file}`"))).unwrap()
    }

    /// Fails with the parts that differ, and not with all bytes of both.
    #[track_caller]
    pub(crate) fn assert_equals(&self, other: &Self, what: &str) {
        let mut differing = Vec::new();
        for path in self.outputs.keys().chain(other.outputs.keys()) {
            if self.outputs.get(path) != other.outputs.get(path) {
                differing.push(format!("output `{path}`"));
            }
        }
        let mut note = |differs: bool, part: &str| differing.extend(differs.then(|| part.to_owned()));
        note(self.metrics != other.metrics, "the metrics");
        note(self.state != other.state, "the final state");
        note(self.steps != other.steps, "the number of steps");
        assert!(differing.is_empty(), "{what}: {} differ", differing.join(", "));
    }
}

fn walk(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &format!("{path}/"), found);
            found.insert(path, None);
        } else {
            found.insert(path, Some(fs::read(entry.path()).unwrap()));
        }
    }
}
