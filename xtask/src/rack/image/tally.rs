//! What was checked, and the sum.

use anyhow::{Result, bail};

/// Lines of the summary, in the order in which they came.
#[derive(Default)]
pub(super) struct Tally {
    lines: Vec<String>,
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Does a check and notes how it went: what it answers is what was seen. Answers whether it passed.
    pub(super) fn check(&mut self, name: &str, check: impl FnOnce() -> Result<String>) -> bool {
        println!("\n── {name}");
        match check() {
            Ok(seen) => self.passed(name, &seen),
            Err(error) => self.failed(name, &format!("{error:#}")),
        }
    }

    /// Notes a figure, which neither passes nor fails unless it cannot be had.
    pub(super) fn figure(&mut self, name: &str, measured: Result<String>) {
        match measured {
            Ok(text) => self.note(format!("     {name:<44} {text}")),
            Err(error) => drop(self.failed(name, &format!("{error:#}"))),
        }
    }

    fn failed(&mut self, name: &str, why: &str) -> bool {
        self.failed += 1;
        self.note(format!("FAIL {name:<44} {why}"));
        false
    }

    fn passed(&mut self, name: &str, seen: &str) -> bool {
        self.passed += 1;
        self.note(format!("ok   {name:<44} {seen}"));
        true
    }

    fn note(&mut self, line: String) {
        println!("{line}");
        self.lines.push(line);
    }

    /// Prints the summary; fails if anything did.
    pub(super) fn end(self) -> Result<()> {
        println!("\n── summary");
        self.lines.iter().for_each(|line| println!("{line}"));
        println!("rack: {} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 {
            bail!("{} of {} checks of the image failed", self.failed, self.passed + self.failed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_all() {
        let mut tally = Tally::default();
        assert!(tally.check("a", || Ok("seen".to_owned())));
        tally.figure("b", Ok("3 ms".to_owned()));
        assert!(!tally.check("c", || bail!("not so")));
        assert!(tally.end().is_err_and(|error| error.to_string().starts_with("1 of 2 checks")));
    }
}
