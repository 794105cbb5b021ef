//! The plugin's configuration: from a file, a table or inline text to canonical JSON.
//!
//! Canonical means: no white space, keys in sorted order. So equal configurations are equal texts, and a checkpoint can be
//! compared with the configuration that it was made with.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::failure::Failure;

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConfigSource {
    /// A file's path, or JSON.
    Text(String),
    /// It is already there, from the table of a job's file.
    Value(Value),
}

impl FromStr for ConfigSource {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        match given.trim() {
            "" => Err("it is empty; a plugin that needs no configuration gets {} without this option"),
            "-" => Err("a file or JSON is needed; streams are not read"),
            _ => Ok(Self::Text(given.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for ConfigSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => text.parse().map_err(D::Error::custom),
            table @ toml::Value::Table(_) => from_toml(table).map(Self::Value).map_err(D::Error::custom),
            other => Err(D::Error::custom(format!(
                "a table or the path of a file is needed, but this is of type {}",
                other.type_str()
            ))),
        }
    }
}

impl ConfigSource {
    /// The configuration itself. Relative paths begin at `base`.
    pub(super) fn load(self, base: &Path) -> Result<Value, Failure> {
        let text = match self {
            Self::Value(value) => return Ok(value),
            Self::Text(text) => text,
        };
        let inline = text.trim_start();
        if inline.starts_with(['{', '[', '"']) {
            return json(&text, "--config");
        }
        let path = base.join(&text);
        if path.exists() {
            return from_file(&path);
        }
        // A number or `true` is a configuration too, if no file is called so.
        serde_json::from_str(&text).map_err(|_| {
            Failure::usage(format!(
                "cannot read the configuration: there is no file `{}`, and it is no JSON",
                path.display()
            ))
            .hint("give a JSON or TOML file, or JSON such as '{\"steps\": 1000}'")
        })
    }
}

/// The canonical text.
pub(super) fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        scalar => scalar.clone(),
    }
}

fn from_file(path: &Path) -> Result<Value, Failure> {
    let shown = path.display();
    let text = super::text::read(path)
        .map_err(|reason| Failure::usage(format!("cannot read the configuration `{shown}`: {reason}")))?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        let table: toml::Table = text.parse().map_err(|error| super::job_file::at(path, &text, &error))?;
        from_toml(toml::Value::Table(table)).map_err(|reason| Failure::usage(format!("`{shown}`: {reason}")))
    } else {
        json(&text, &format!("`{shown}`"))
    }
}

pub(super) fn json(text: &str, origin: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let failure = Failure::usage(format!("{origin} is no valid JSON: {error}"));
        match origin {
            // What the shell left of it is often less than was typed.
            "--config" => failure.hint("quote it for the shell, with double quotes inside: '{\"steps\": 1000}'"),
            _ => failure,
        }
    })
}

/// Dates become texts; what JSON has no form for is refused.
pub(super) fn from_toml(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("the configuration contains {number}, which JSON has no form for"))?,
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(from_toml).collect::<Result<_, _>>()?),
        toml::Value::Table(fields) => Value::Object(
            fields.into_iter().map(|(name, value)| Ok((name, from_toml(value)?))).collect::<Result<_, String>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn loaded(given: &str, base: &Path) -> Result<String, String> {
        let source: ConfigSource = given.parse().map_err(str::to_owned)?;
        source.load(base).map(|value| canonical(&value)).map_err(|failure| failure.message)
    }

    #[test]
    fn equal_configurations_are_equal_texts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        file("a.json", "\u{feff}{\"b\": {\"z\": 1, \"a\": [1.5, {\"y\": null, \"x\": 2}]}, \"a\": true}\n");
        file("a.toml", "a = true\n[b]\na = [1.5, {y = 3, x = 2}]\nz = 1\n");
        file("7", "8");
        let expected = r#"{"a":true,"b":{"a":[1.5,{"x":2,"y":null}],"z":1}}"#;
        assert_eq!(loaded("a.json", folder.path()).unwrap(), expected);
        assert_eq!(loaded("a.toml", folder.path()).unwrap(), expected.replace("null", "3"));
        assert_eq!(loaded(" {\"b\": 1,\n \"a\": 2}", folder.path()).unwrap(), r#"{"a":2,"b":1}"#);
        assert_eq!(loaded("7", folder.path()).unwrap(), "8", "a file wins");
        assert_eq!(loaded("9", folder.path()).unwrap(), "9");
        assert_eq!(loaded("null", folder.path()).unwrap(), "null");
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let nowhere = Path::new("nowhere");
        for given in ["7.777777777777778e+132", "3.333333333333333e+52", "5.555555555555555e+103", "0.1", "5e-324"] {
            assert_eq!(loaded(given, nowhere).unwrap(), given);
        }
        // What is written with more digits than a number has becomes canonical once and for all.
        let long = loaded(&"7".repeat(133), nowhere).unwrap();
        assert_eq!(long.parse::<f64>().unwrap(), "7".repeat(133).parse::<f64>().unwrap());
        assert_eq!(loaded(&long, nowhere).unwrap(), long);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
        file("bad.json", b"{\n  \"a\": 1,\n}");
        file("bad.toml", b"a = 1\nb = = 2\n");
        file("nan.toml", b"a = nan\n");
        file("bytes.json", b"\xff\xfe");
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let all =
            ["{\"steps\": }", "bad.json", "bad.toml", "nan.toml", "bytes.json", "folder", "nowhere.json", "-", ""]
                .map(|given| loaded(given, folder.path()).unwrap_err());
        let all = all.join("\n").replace(&folder.path().display().to_string(), "…");
        insta::assert_snapshot!(all, @r#"
        --config is no valid JSON: expected value at line 1 column 11
        hint: quote it for the shell, with double quotes inside: '{"steps": 1000}'
        `…/bad.json` is no valid JSON: trailing comma at line 3 column 1
        `…/bad.toml`, line 2: extra `=`, expected nothing
          2 | b = = 2
        `…/nan.toml`: the configuration contains NaN, which JSON has no form for
        cannot read the configuration `…/bytes.json`: it is not text (UTF-8)
        cannot read the configuration `…/folder`: it is not a file
        cannot read the configuration: there is no file `…/nowhere.json`, and it is no JSON
        hint: give a JSON or TOML file, or JSON such as '{"steps": 1000}'
        a file or JSON is needed; streams are not read
        it is empty; a plugin that needs no configuration gets {} without this option
        "#);
    }
}
