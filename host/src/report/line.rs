//! One line of the log, and its two forms: text for people and JSON for collectors.

use std::fmt::Write as _;

use serde_json::Value;

/// How serious a line is, in Cloud Logging's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For whoever looks for a fault.
    Debug,
    /// What happens in a good run.
    Info,
    /// Something went wrong that doesn't stop the job.
    Warning,
    /// The reason why the attempt ends.
    Error,
}

impl Severity {
    fn json(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Debug => "debug: ",
            Self::Info => "",
            Self::Warning => "warning: ",
            Self::Error => "error: ",
        }
    }
}

impl From<&tracing::Level> for Severity {
    fn from(level: &tracing::Level) -> Self {
        match *level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN => Self::Warning,
            tracing::Level::INFO => Self::Info,
            _ => Self::Debug,
        }
    }
}

/// The form in which lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Human,
    Json,
}

/// One line of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) severity: Severity,
    pub(super) message: String,
    pub(super) fields: Vec<(String, Value)>,
}

impl Line {
    pub(super) fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), fields: Vec::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// The line for people, with its line end.
    pub(super) fn human(&self) -> String {
        let mut text = format!("{}{}", self.severity.prefix(), self.sentence());
        if let Some(hint) = self.field("hint") {
            let _ = write!(text, "\n  hint: {hint}");
        }
        text.push('\n');
        text
    }

    /// The message with its cause, if there is one.
    fn sentence(&self) -> String {
        match self.field("error") {
            Some(error) => format!("{}: {error}", self.message),
            None => self.message.clone(),
        }
    }

    fn field(&self, name: &str) -> Option<String> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The line for collectors, with its line end. Where a field occurs twice (in an event and in the span around it), the
    /// last one counts; a field that has the name of one of ours gets an underscore.
    pub(super) fn json(&self, time: jiff::Timestamp) -> String {
        let mut text = format!(
            "{{\"severity\":\"{}\",\"message\":{},\"time\":\"{time:.6}\"",
            self.severity.json(),
            Value::from(self.sentence()),
        );
        for (index, (name, value)) in self.fields.iter().enumerate() {
            if self.fields[index + 1..].iter().any(|(later, _)| later == name) {
                continue;
            }
            let reserved = ["severity", "message", "time"].contains(&name.as_str());
            let name = if reserved { format!("{name}_") } else { name.clone() };
            let _ = write!(text, ",{}:{value}", Value::from(name));
        }
        text.push_str("}\n");
        text
    }
}
