//! From the job's configuration, JSON text, to the plugin's own type.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// The configuration of a plugin that has none: `type Config = NoConfig`. Any field is refused by name.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Reads a configuration, or names the field that is wrong and what stands there instead.
pub(crate) fn parse<C: DeserializeOwned>(json: &str) -> Result<C> {
    // By way of a `Value`, so that an error in meaning names a field and not a column of text that nobody typed.
    let value: serde_json::Value = serde_json::from_str(json)
        .map_err(|error| Error::invalid(format!("the configuration is not JSON: {error}")))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let what = error.inner();
        // The path of a missing field is that of the object that lacks it, which is `.` at the top.
        Error::invalid(if path == "." {
            format!("configuration: {what}")
        } else {
            format!("configuration, at `{path}`: {what}")
        })
    })
}

/// Refuses a configuration whose values are of the right types and still make no sense. A rule is the field, whether it is kept, and what the field must be;
/// the first one that is broken is told.
///
/// ```
/// # use steadfast_guest::check_config;
/// let error = check_config(&[("steps", true, "at least 1"), ("rate", -0.5 > 0.0, "above 0")]);
/// assert_eq!(error.unwrap_err().to_string(), "configuration, at `rate`: must be above 0");
/// ```
pub fn check_config(rules: &[(&str, bool, &str)]) -> Result<()> {
    match rules.iter().find(|(_, kept, _)| !kept) {
        Some((field, _, must_be)) => Err(Error::invalid(format!("configuration, at `{field}`: must be {must_be}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only its parsing matters")]
        layers: Vec<Layer>,
    }

    #[derive(Debug, Deserialize)]
    struct Layer {
        #[expect(dead_code, reason = "only its parsing matters")]
        units: u32,
    }

    fn refusal(json: &str) -> String {
        match parse::<Outer>(json).unwrap_err() {
            Error::Invalid(message) => message,
            other => panic!("expected an invalid configuration, got {other:?}"),
        }
    }

    #[test]
    fn a_wrong_value_is_named_by_its_path_and_kind() {
        assert_eq!(
            refusal(r#"{"layers": [{"units": 3}, {"units": "ten"}]}"#),
            "configuration, at `layers[1].units`: invalid type: string \"ten\", expected u32"
        );
    }

    #[test]
    fn missing_and_unknown_fields_are_named() {
        assert_eq!(refusal("{}"), "configuration: missing field `layers`");
        assert_eq!(refusal(r#"{"layers": [{}]}"#), "configuration, at `layers[0]`: missing field `units`");
        assert_eq!(refusal(r#"{"layer": []}"#), "configuration, at `layer`: unknown field `layer`, expected `layers`");
    }

    #[test]
    fn text_that_is_not_json_says_where() {
        assert_eq!(refusal("{"), "the configuration is not JSON: EOF while parsing an object at line 1 column 1");
    }

    #[test]
    fn a_plugin_without_configuration_refuses_any() {
        parse::<NoConfig>("{}").unwrap();
        parse::<NoConfig>(r#"{"steps": 1}"#).unwrap_err();
    }
}
