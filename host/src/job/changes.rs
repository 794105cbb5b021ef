//! What changed since the checkpoint, and whether that is meant.

use std::collections::BTreeSet;

use serde_json::Value;

use super::spec::Changeable;
use crate::checkpoint::metadata::{InputFacts, Metadata};

/// What an attempt would run with.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The component's digest.
    pub plugin: &'a str,
    /// The configuration, as JSON.
    pub config: &'a str,
    /// What the input is.
    pub input: Option<&'a InputFacts>,
    /// Seed of every generator.
    pub seed: u64,
    /// How many tasks.
    pub task_count: u32,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What has to be accepted for it.
    pub kind: Changeable,
    /// What differs, for people.
    pub text: String,
}

/// All differences between a checkpoint and now.
#[must_use]
pub fn since(checkpoint: &Metadata, now: Now<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let add = |changes: &mut Vec<Change>, kind, text| changes.push(Change { kind, text });
    for text in config_changes(&checkpoint.config, now.config) {
        add(&mut changes, Changeable::Config, text);
    }
    // A part of the configuration, as far as results go.
    if checkpoint.seed != now.seed {
        add(&mut changes, Changeable::Config, format!("the seed was {}, now it is {}", checkpoint.seed, now.seed));
    }
    if let Some(text) = input_change(checkpoint.input.as_ref(), now.input) {
        add(&mut changes, Changeable::Input, text);
    }
    if checkpoint.plugin.digest != now.plugin {
        changes.push(of_plugin(&checkpoint.plugin.digest, now.plugin));
    }
    if checkpoint.task_count != now.task_count {
        add(
            &mut changes,
            Changeable::TaskCount,
            format!("there were {} tasks, now there are {}", checkpoint.task_count, now.task_count),
        );
    }
    changes
}

/// Another component.
#[must_use]
pub fn of_plugin(before: &str, now: &str) -> Change {
    Change { kind: Changeable::Plugin, text: format!("the plugin was {before}, now it is {now}") }
}

/// The changes that were not accepted.
#[must_use]
pub fn not_meant(changes: &[Change], accepted: &BTreeSet<Changeable>) -> Vec<Change> {
    changes.iter().filter(|change| !accepted.contains(&change.kind)).cloned().collect()
}

fn input_change(before: Option<&InputFacts>, now: Option<&InputFacts>) -> Option<String> {
    match (before, now) {
        (None, None) => None,
        (Some(_), None) => Some("there was an input, now there is none".into()),
        (None, Some(_)) => Some("there was no input, now there is one".into()),
        // Digests of different kinds cannot be compared: the sizes can.
        (Some(before), Some(now)) => {
            let same_kind = before.covers == now.covers;
            let same = if same_kind {
                before.digest == now.digest
            } else {
                (before.files, before.bytes) == (now.files, now.bytes)
            };
            let say = |facts: &InputFacts| format!("{} files of {} bytes", facts.files, facts.bytes);
            (!same).then(|| format!("the input was {}, now it is {}, and differs", say(before), say(now)))
        }
    }
}

fn config_changes(before: &str, now: &str) -> Vec<String> {
    if before == now {
        return Vec::new();
    }
    let mut found = Vec::new();
    match (serde_json::from_str(before), serde_json::from_str(now)) {
        (Ok(before), Ok(now)) => compare("config", &before, &now, &mut found),
        _ => found.push("the configuration differs".into()),
    }
    found
}

fn compare(path: &str, before: &Value, now: &Value, found: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (before.get(key), now.get(key)) {
                    (Some(before), Some(now)) => compare(&path, before, now, found),
                    (Some(before), None) => found.push(format!("{path} was {before}, now it is not given")),
                    (None, Some(now)) => found.push(format!("{path} was not given, now it is {now}")),
                    (None, None) => {}
                }
            }
        }
        _ if before == now => {}
        _ => found.push(format!("{path} was {before}, now it is {now}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_configuration_is_named_by_its_fields() {
        let before = r#"{"a":1,"b":{"c":[1,2],"d":true},"e":"x"}"#;
        let now = r#"{"a":1,"b":{"c":[1,3],"d":true},"f":null}"#;
        let found = config_changes(before, now);
        assert_eq!(
            found,
            [
                "config.b.c was [1,2], now it is [1,3]",
                "config.e was \"x\", now it is not given",
                "config.f was not given, now it is null"
            ]
        );
    }

    #[test]
    fn inputs_of_different_digest_kinds_compare_by_size() {
        let facts = |covers: &str, digest: &str, bytes| InputFacts {
            covers: covers.into(),
            digest: digest.into(),
            files: 1,
            bytes,
        };
        let (names, contents) = (facts("names", "a", 5), facts("contents", "b", 5));
        assert_eq!(input_change(Some(&names), Some(&contents)), None);
        assert!(input_change(Some(&names), Some(&facts("contents", "b", 6))).is_some());
        assert!(input_change(Some(&names), Some(&facts("names", "c", 5))).is_some());
        assert!(input_change(None, Some(&names)).is_some());
    }
}
