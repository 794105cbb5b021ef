//! A million random kernels: an oracle, the translation for one thread at a time and that for the lanes of vectors leave the same bytes in memory.
//!
//! The kernels and the comparison are a test of `steadfast-ptx`, which CI runs for a thousand of them and which uses all processors; here it gets one range
//! of seeds after another. Seeds begin at 0 unless the command line says otherwise, so that a finding can be repeated, and a part of the million too.

use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::step;

/// How many kernels where the command line does not say.
pub(super) const KERNELS: u64 = 1_000_000;
/// Between two lines of progress: a few minutes.
const RANGE: u64 = 10_000;
/// The test, by its name in the test program.
const TEST: &str = "kernels::random_kernels_leave_the_same_bytes";

/// What the test says that it has tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    kernels: u64,
    vectors: u64,
    grouped: u64,
    warps: u64,
}

/// What became of a range of seeds.
enum Outcome {
    Same(Tally),
    /// What the test says of the first kernel that goes wrong.
    Finding(String),
}

pub(super) fn run(first: u64, kernels: u64) -> Result<()> {
    let end = first.checked_add(kernels).context("there are no such seeds: they end at 2^64")?;
    step::run("tests of the translation", test().arg("--no-run"))?;
    let began = Instant::now();
    let (mut next, mut sum) = (first, Tally::default());
    while next < end {
        let seeds = next..end.min(next + RANGE);
        match compare(&seeds)? {
            Outcome::Same(tally) => sum.add(tally),
            Outcome::Finding(text) => {
                println!("{text}");
                bail!("of the seeds from {}: a translated kernel does something else than the oracle", seeds.start);
            }
        }
        next = seeds.end;
        println!("seeds {first} to {}: {} after {:.0} s", next - 1, sum.text(), began.elapsed().as_secs_f64());
    }
    println!(
        "rack: {} the same in oracle, scalar and vector translation, {:.0} s",
        sum.text(),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

impl Tally {
    /// From the line `tally: 1000 kernels, 400 with a vector form, 300 of these in groups of lanes, 200 in rows of warps`.
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.split("tally: ").nth(1))?;
        let mut numbers = line.split(", ").map(|part| part.split(' ').next()?.parse().ok());
        Some(Self {
            kernels: numbers.next()??,
            vectors: numbers.next()??,
            grouped: numbers.next()??,
            warps: numbers.next()??,
        })
    }

    fn add(&mut self, other: Self) {
        self.kernels += other.kernels;
        self.vectors += other.vectors;
        self.grouped += other.grouped;
        self.warps += other.warps;
    }

    fn text(&self) -> String {
        let Self { kernels, vectors, grouped, warps } = self;
        let share = 100.0 * *vectors as f64 / (*kernels).max(1) as f64;
        format!(
            "{kernels} kernels, {vectors} ({share:.0} %) with a vector form, {grouped} of these in groups of lanes, {warps} in rows of warps,"
        )
    }
}

/// The host and the crate together: their dependencies then have the features that they always have.
fn test() -> Command {
    step::cargo(["test", "--release", "-p", "steadfast", "-p", "steadfast-ptx", "--test", "it"])
}

fn compare(seeds: &Range<u64>) -> Result<Outcome> {
    let mut test = test();
    test.args(["--", "--exact", TEST, "--nocapture"])
        .env("STEADFAST_PTX_SEED", seeds.start.to_string())
        .env("STEADFAST_PTX_KERNELS", (seeds.end - seeds.start).to_string())
        .stdin(Stdio::null());
    let output = test.output().with_context(|| format!("cannot start {}", step::text(&test)))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Ok(Outcome::Finding(said + &String::from_utf8_lossy(&output.stderr)));
    }
    match Tally::read(&said) {
        Some(tally) if tally.kernels == seeds.end - seeds.start => Ok(Outcome::Same(tally)),
        _ => bail!("the test `{TEST}` does not say that it tried them all: the rack would prove nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_read_and_added() {
        let said = "running 1 test\ntally: 1000 kernels, 400 with a vector form, 300 of these in groups of lanes, 200 in rows of warps\ntest a ... ok\n";
        let tally = Tally::read(said);
        assert_eq!(tally, Some(Tally { kernels: 1000, vectors: 400, grouped: 300, warps: 200 }));
        // Without its own line: the test's name comes first if it is alone.
        assert_eq!(Tally::read(&said.replace("\ntally", "\ntest a ... tally")), tally);
        assert_eq!(Tally::read("running 0 tests\n"), None);
        assert_eq!(Tally::read("tally: some kernels"), None);
        let mut sum = Tally::default();
        tally.into_iter().chain(tally).for_each(|tally| sum.add(tally));
        assert_eq!(
            sum.text(),
            "2000 kernels, 800 (40 %) with a vector form, 600 of these in groups of lanes, 400 in rows of warps,"
        );
    }
}
