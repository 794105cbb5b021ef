//! What a proof has checked so far, and the sum.

use std::time::Instant;

use anyhow::{Result, bail};

/// Lines of the summary, in the order in which they came.
#[derive(Default)]
pub(in crate::rack) struct Ledger {
    lines: Vec<String>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Ledger {
    /// Does a check and notes how it went: what it answers is what was seen. Answers whether it passed.
    pub(in crate::rack) fn check(&mut self, name: &str, check: impl FnOnce() -> Result<String>) -> bool {
        println!("\n── {name}");
        let began = Instant::now();
        let outcome = check();
        let seconds = format!("{:>6.1} s", began.elapsed().as_secs_f64());
        match outcome {
            Ok(seen) => self.passed(name, &format!("{seconds}  {seen}")),
            Err(error) => self.failed(name, &format!("{seconds}  {error:#}")),
        }
    }

    /// Notes a figure, which neither passes nor fails unless it cannot be had.
    pub(in crate::rack) fn figure(&mut self, name: &str, measured: Result<String>) {
        match measured {
            Ok(text) => self.note(format!("     {name:<54} {text}")),
            Err(error) => drop(self.failed(name, &format!("{error:#}"))),
        }
    }

    /// Notes what this machine cannot check, so that nobody takes it for checked.
    pub(in crate::rack) fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        self.note(format!("SKIP {name:<54} NOT checked: {why}"));
    }

    fn failed(&mut self, name: &str, why: &str) -> bool {
        self.failed += 1;
        self.note(format!("FAIL {name:<54} {why}"));
        false
    }

    fn passed(&mut self, name: &str, seen: &str) -> bool {
        self.passed += 1;
        self.note(format!("ok   {name:<54} {seen}"));
        true
    }

    fn note(&mut self, line: String) {
        println!("{line}");
        self.lines.push(line);
    }

    /// Prints the summary; fails if anything did.
    pub(in crate::rack) fn end(self) -> Result<()> {
        println!("\n── summary");
        self.lines.iter().for_each(|line| println!("{line}"));
        let skipped = if self.skipped > 0 { format!(", {} SKIPPED", self.skipped) } else { String::new() };
        println!("rack: {} passed, {} failed{skipped}", self.passed, self.failed);
        if self.failed > 0 {
            bail!("{} of {} checks failed", self.failed, self.passed + self.failed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_all() {
        let mut ledger = Ledger::default();
        assert!(ledger.check("a", || Ok("seen".to_owned())));
        ledger.figure("b", Ok("3 ms".to_owned()));
        ledger.skip("d", "there is no such thing here");
        assert!(!ledger.check("c", || bail!("not so")));
        assert!(ledger.end().is_err_and(|error| error.to_string().starts_with("1 of 2 checks")));
    }
}
