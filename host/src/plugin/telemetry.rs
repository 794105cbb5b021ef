//! `steadfast:job/telemetry`: log lines and metrics, handed on to [`GuestEvents`](super::GuestEvents). Never fails.

use super::bindings::steadfast::job::telemetry::{Host, Level};
use super::engine::GuestState;
use super::{GuestLevel, stdio};

const LONGEST_NAME: usize = 255;
const LONGEST_MESSAGE: usize = 64 * 1024;

impl Host for GuestState {
    fn log(&mut self, level: Level, message: String) {
        let level = match level {
            Level::Debug => GuestLevel::Debug,
            Level::Info => GuestLevel::Info,
            Level::Warn => GuestLevel::Warn,
            Level::Error => GuestLevel::Error,
        };
        self.events.log(level, stdio::cut(&message, LONGEST_MESSAGE));
    }

    fn metric(&mut self, name: String, value: f64) {
        if is_metric_name(&name) {
            return self.events.metric(&name, value);
        }
        self.dropped_metrics += 1;
        if self.dropped_metrics == 1 {
            let shown = stdio::cut(&name, 64).escape_debug();
            let text = format!(
                "the metric name \"{shown}\" is not 1 to {LONGEST_NAME} bytes without control characters; values under such \
                 names are dropped"
            );
            self.events.log(GuestLevel::Warn, &text);
        }
    }
}

fn is_metric_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::is_metric_name;

    #[test]
    fn names_of_metrics() {
        assert!(is_metric_name("loss") && is_metric_name("loss/valid é") && is_metric_name(&"n".repeat(255)));
        assert!(!is_metric_name("") && !is_metric_name("a\nb") && !is_metric_name("\u{7f}"));
        assert!(!is_metric_name(&"n".repeat(256)));
    }
}
