//! Right, and loud: prints, logs and reports far more than anybody reads, and things that are hard to print.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, log, metric, plugin};
use test_guests::counted;

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    /// Lines on stdout, on stderr and in the log, each, in each step.
    lines: u64,
    /// Characters in each line.
    width: usize,
    /// Metrics in each step, each of another name.
    metrics: u64,
    /// Names of further metrics, as they are; and one of so many bytes, if any.
    names: Vec<String>,
    long_name: usize,
    /// Once a step: bytes that are no text, control characters, a line without an end, values that are no numbers.
    strange: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, lines: 1000, width: 80, metrics: 100, names: Vec::new(), long_name: 0, strange: false }
    }
}

#[derive(Serialize, Deserialize)]
struct Flooding {
    step: u64,
    config: Config,
}

impl Plugin for Flooding {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        Ok(Self { step: 0, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        let text = "x".repeat(self.config.width);
        for line in 0..self.config.lines {
            println!("{line} {text}");
            eprintln!("{line} {text}");
            log::info(format!("{line} {text}"));
        }
        for number in 0..self.config.metrics {
            metric(&format!("metric-{number}"), self.step as f64);
        }
        self.config.names.iter().for_each(|name| metric(name, 1.0));
        if self.config.long_name > 0 {
            metric(&"n".repeat(self.config.long_name), 1.0);
        }
        if self.config.strange {
            strange()?;
        }
        self.step += 1;
        Ok(counted(self.step, self.config.steps))
    }
}

fn strange() -> Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(b"not text: \xff\xfe\x00\n")?;
    stdout.write_all(b"\x1b[31mred\x1b[2J\rover it\n\n\r\n")?;
    stdout.write_all("no end \u{2028} yet".as_bytes())?;
    stdout.flush()?;
    log::warn("two\nlines");
    log::error("");
    log::debug("fine");
    metric("", 1.0);
    metric("two\nlines", f64::NAN);
    metric("infinite", f64::INFINITY);
    metric("negative zero", -0.0);
    metric(&"long".repeat(10_000), f64::MIN_POSITIVE);
    metric("twice", 1.0);
    metric("twice", 2.0);
    Ok(())
}

plugin!(Flooding);
