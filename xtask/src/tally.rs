//! Sums what the test runner says about each of its binaries.

use std::fmt;

/// How many tests there were, over all test binaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests that were ignored, and checks whose tool is not installed.
    pub(crate) skipped: u64,
}

impl Tally {
    /// Takes a line of the runner's output into account: `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub(crate) fn see(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = result.split_once(". ") else { return };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "steadfast: {} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_binaries_and_ignores_other_lines() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test checkpoint::keeps ... ok",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.31s",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "a test result: ok. 9 passed; 9 failed",
            "test result: ok. none passed",
        ] {
            tally.see(line);
        }
        assert_eq!(tally, Tally { passed: 7, failed: 2, skipped: 1 });
        assert_eq!(tally.to_string(), "steadfast: 7 passed, 2 failed, 1 skipped");
    }
}
