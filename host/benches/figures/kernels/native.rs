//! The baseline: `native.c` beside this file, built by the machine's own C compiler.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::measured::N;
use crate::places;

/// What people who compare would say.
const FLAGS: [&str; 3] = ["-O3", "-msse4.2", "-o"];

/// Builds the program into a folder.
pub fn build(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("native");
    let source = places::repository().join("host/benches/figures/kernels/native.c");
    let mut compile = Command::new("cc");
    let status = compile.args(FLAGS).arg(&program).arg(source).arg("-lm").status().context("cannot start `cc`")?;
    if status.success() { Ok(program) } else { bail!("the baseline in C does not compile") }
}

/// One kernel in C, run on request.
pub struct Native {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Native {
    pub fn start(program: &Path, kernel: &str) -> Result<Self> {
        let mut command = Command::new(program);
        let mut child = command.arg(kernel).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, orders, answers })
    }

    /// The seconds that so many runs take.
    pub fn run(&mut self, times: u32) -> Result<f64> {
        writeln!(self.orders, "{times}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("the baseline said `{}`", line.trim()))
    }

    /// What its four arrays hold, one after the other.
    pub fn numbers(&mut self) -> Result<Vec<u8>> {
        writeln!(self.orders, "0")?;
        let mut all = vec![0; 16 * N as usize];
        self.answers.read_exact(&mut all)?;
        Ok(all)
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
