//! What a rehearsal found: a table for people, JSON for machines.
//!
//! The table shows every attempt of a short rehearsal and the first and last of a long one, with counts for the rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use serde::Serialize;

use super::attempt::{Ending, Hit};
use super::compare::Difference;
use super::marks::Phase;

/// Rows shown at either end of a long rehearsal.
const ENDS: usize = 6;

/// What a rehearsal found.
#[derive(Clone, Debug, Serialize)]
pub struct RehearsalReport {
    /// The name under which the job files its checkpoints.
    pub job: String,
    /// What was done to it, as it is written on the command line.
    pub disturbance: String,
    /// What came of it.
    pub verdict: Verdict,
    /// The run that nothing disturbed.
    pub undisturbed: Undisturbed,
    /// Runs of the job under disturbance.
    pub runs: u32,
    /// Their attempts, in order.
    pub attempts: Vec<AttemptRow>,
    /// Random instants by the phase that they truly hit.
    pub hits: Option<BTreeMap<Phase, u32>>,
    /// Volume operations under faults.
    pub faults: Option<FaultFigures>,
    /// Checkpoint files that were published.
    pub checkpoints: Spread,
    /// Times that saves took, in microseconds.
    pub save_micros: Spread,
    /// Where volumes and logs of what went wrong are kept.
    pub kept: Option<PathBuf>,
}

/// Whether the job came through.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Verdict {
    /// Outputs and final state are bit for bit those of the undisturbed run.
    Same,
    /// Two undisturbed runs differ: the plugin is not repeatable in itself, and nothing can be said of its state.
    NotRepeatable {
        /// How the second differs from the first.
        differences: Vec<Difference>,
    },
    /// A disturbed run came out otherwise.
    Different {
        /// How the first such run differs.
        differences: Vec<Difference>,
        /// How many runs came out otherwise.
        runs: u32,
        /// The command that repeats the first.
        repeat: String,
    },
}

/// What the undisturbed run showed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Undisturbed {
    /// Steps in all.
    pub steps: u64,
    /// How long it took.
    pub millis: u64,
    /// Checkpoints saved.
    pub checkpoints: u64,
}

/// What was tried on the volume's operations.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FaultFigures {
    /// Operations of the first attempt of an undisturbed run.
    pub operations: u64,
    /// Operations of an attempt that resumes.
    pub resume_operations: u64,
    /// Runs with one fault each.
    pub runs: u64,
    /// Runs that ended before their operation came.
    pub not_reached: u64,
}

/// Smallest, middle and largest of some figures.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// How many figures.
    pub count: u64,
    /// The smallest.
    pub least: u64,
    /// The one in the middle.
    pub median: u64,
    /// The largest.
    pub most: u64,
}

impl Spread {
    /// Of these figures.
    #[must_use]
    pub fn of(mut figures: Vec<u64>) -> Self {
        figures.sort_unstable();
        let (Some(least), Some(most)) = (figures.first(), figures.last()) else { return Self::default() };
        Self { count: figures.len() as u64, least: *least, median: figures[figures.len() / 2], most: *most }
    }
}

/// One attempt.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptRow {
    /// The run it belongs to.
    pub run: u32,
    /// Its number in the run, from 0.
    pub number: u32,
    /// How it ended.
    pub ending: Ending,
    /// Where it was struck.
    pub hit: Option<Hit>,
    /// What went wrong on its volume.
    pub fault: Option<String>,
    /// The checkpoint that was damaged before it began.
    pub damaged: Option<String>,
    /// The first step that it ran.
    pub first_step: Option<u64>,
    /// How many steps it ran.
    pub steps_run: u64,
    /// How many of them are lost: run again by the next attempt, or not safe where there is none.
    pub steps_lost: u64,
    /// The step of the newest usable checkpoint after it.
    pub saved_step: Option<u64>,
}

impl Default for AttemptRow {
    fn default() -> Self {
        Self {
            run: 0,
            number: 0,
            ending: Ending::Exit(0),
            hit: None,
            fault: None,
            damaged: None,
            first_step: None,
            steps_run: 0,
            steps_lost: 0,
            saved_step: None,
        }
    }
}

impl AttemptRow {
    /// What was done to it, for people.
    fn disturbance(&self) -> String {
        let mut parts = Vec::new();
        if let Some(hit) = &self.hit {
            let saver = hit.saver.map(|saver| format!(" + {saver}")).unwrap_or_default();
            parts.push(format!("{}{saver}, step {}", hit.phase, hit.step));
        }
        parts.extend(self.fault.iter().map(|fault| format!("operation {fault}")));
        parts.extend(self.damaged.iter().map(|_| "newest damaged".to_owned()));
        parts.join("; ")
    }

    fn cells(&self) -> Vec<Cell> {
        let outlived = self.hit.is_some_and(|hit| hit.outlived_grace);
        let step = |step: Option<u64>| step.map_or_else(|| "–".to_owned(), |step| step.to_string());
        let figure = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        vec![
            figure(if self.run > 1 { format!("{}.{}", self.run, self.number) } else { self.number.to_string() }),
            Cell::new(self.disturbance()),
            Cell::new(if outlived { format!("{} (outlived its grace)", self.ending) } else { self.ending.to_string() }),
            figure(step(self.first_step)),
            figure(self.steps_run.to_string()),
            figure(self.steps_lost.to_string()),
            figure(step(self.saved_step)),
        ]
    }
}

impl RehearsalReport {
    /// What `steadfast rehearse` exits with: 0, or 1 on a difference.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(!matches!(self.verdict, Verdict::Same))
    }

    /// For machines.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.attempts.is_empty() {
            let _ = writeln!(text, "{}\n", self.table());
        }
        for (word, figures) in self.figures() {
            let _ = writeln!(text, "  {word:<12} {figures}");
        }
        let _ = writeln!(text, "\n{}", self.judgement());
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        let line = LineStyle::none().fill('─').junction('─');
        table.load_style(TableStyle::new().header_separator(line));
        table.set_header(["attempt", "disturbed at", "ended", "first step", "steps run", "lost", "safe step"]);
        let rows = &self.attempts;
        let (head, tail) = if rows.len() > 2 * ENDS + 1 { (ENDS, rows.len() - ENDS) } else { (rows.len(), rows.len()) };
        table.add_rows(rows[..head].iter().map(AttemptRow::cells));
        if head < tail {
            let hidden = &rows[head..tail];
            let run: u64 = hidden.iter().map(|row| row.steps_run).sum();
            let lost: u64 = hidden.iter().map(|row| row.steps_lost).sum();
            let what = format!("{} more attempts", hidden.len());
            table.add_row(["⋮".to_owned(), what, endings(hidden), String::new(), run.to_string(), lost.to_string()]);
        }
        table.add_rows(rows[tail..].iter().map(AttemptRow::cells));
        table
    }

    fn figures(&self) -> Vec<(&'static str, String)> {
        let mut figures = vec![("job", format!("{} · {}", self.job, self.disturbance))];
        let calm = &self.undisturbed;
        let took = humantime::format_duration(Duration::from_millis(calm.millis));
        figures.push(("undisturbed", format!("{} steps in {took}, {} checkpoints", calm.steps, calm.checkpoints)));
        if !self.attempts.is_empty() {
            let run: u64 = self.attempts.iter().map(|row| row.steps_run).sum();
            let lost: u64 = self.attempts.iter().map(|row| row.steps_lost).sum();
            let attempts = self.attempts.len();
            figures.push((
                "disturbed",
                format!(
                    "{} runs, {attempts} attempts ({}), {run} steps run, {lost} lost",
                    self.runs,
                    endings(&self.attempts)
                ),
            ));
        }
        if let Some(hits) = &self.hits {
            let hits: Vec<String> = hits.iter().map(|(phase, count)| format!("{phase} {count}")).collect();
            figures.push(("instants", hits.join(", ")));
        }
        if let Some(faults) = &self.faults {
            let FaultFigures { operations, resume_operations, runs, not_reached } = faults;
            figures.push((
                "faults",
                format!("{runs} on {operations} operations of a first attempt and {resume_operations} of a resuming one, {not_reached} not reached"),
            ));
        }
        if self.checkpoints.count > 0 {
            let Spread { least, median, most, count } = self.checkpoints;
            let sizes = [least, median, most].map(|bytes| ByteSize(bytes).to_string()).join(" / ");
            figures.push(("checkpoints", format!("{count}: {sizes} (smallest, middle, largest)")));
        }
        if self.save_micros.count > 0 {
            let Spread { least, median, most, .. } = self.save_micros;
            let times = [least, median, most].map(|micros| format!("{:.1} ms", micros as f64 / 1e3)).join(" / ");
            figures.push(("saves", times));
        }
        figures
    }

    fn judgement(&self) -> String {
        let list = |differences: &[Difference]| {
            differences.iter().map(|difference| format!("  {difference}\n")).collect::<String>()
        };
        let mut text = match &self.verdict {
            Verdict::Same => "same: outputs and final state are bit for bit those of the undisturbed run\n".to_owned(),
            Verdict::NotRepeatable { differences } => format!(
                "not repeatable: two undisturbed runs of the same job differ, so nothing can be said of its state\n{}hint: \
                 seed every generator from the job's seed, and let no result depend on the time of day or the attempt's number\n",
                list(differences)
            ),
            Verdict::Different { differences, runs, repeat } => format!(
                "different: {runs} of {} disturbed runs came out unlike the undisturbed one; the first:\n{}to repeat it:\n  {repeat}\n",
                self.runs,
                list(differences)
            ),
        };
        if let Some(kept) = &self.kept {
            let _ = writeln!(text, "volumes and logs are kept in `{}`", kept.display());
        }
        text
    }
}

/// How many attempts ended in which way.
fn endings(rows: &[AttemptRow]) -> String {
    let mut counts: BTreeMap<Ending, u32> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.ending).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(ending, count)| format!("{count} × {ending}")).collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(attempts: u32, verdict: Verdict) -> RehearsalReport {
        let row = |number| AttemptRow {
            run: 1,
            number,
            ending: if number + 1 == attempts { Ending::Exit(0) } else { Ending::Exit(143) },
            hit: (number + 1 < attempts).then_some(Hit {
                phase: Phase::Step,
                saver: None,
                step: u64::from(number),
                outlived_grace: false,
            }),
            first_step: Some(u64::from(number)),
            steps_run: 1,
            saved_step: Some(u64::from(number) + 1),
            ..AttemptRow::default()
        };
        RehearsalReport {
            job: "countdown".into(),
            disturbance: "--preempt every-step".into(),
            verdict,
            undisturbed: Undisturbed { steps: 20, millis: 1500, checkpoints: 4 },
            runs: 1,
            attempts: (0..attempts).map(row).collect(),
            hits: None,
            faults: None,
            checkpoints: Spread::of(vec![1000, 3000, 2000]),
            save_micros: Spread::of(vec![1500, 800]),
            kept: None,
        }
    }

    #[test]
    fn a_short_rehearsal_is_shown_whole() {
        insta::assert_snapshot!(report(3, Verdict::Same).to_text());
    }

    #[test]
    fn a_long_rehearsal_shows_its_ends() {
        let text = report(500, Verdict::Same).to_text();
        assert!(text.contains("488 more attempts") && text.contains("488 × exit 143"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
    }

    #[test]
    fn a_difference_names_its_place_and_the_command_that_repeats_it() {
        let difference = Difference::File { path: "metrics.csv".into(), offset: 17, here: 40, undisturbed: 42 };
        let verdict = Verdict::Different {
            differences: vec![difference],
            runs: 1,
            repeat: "steadfast rehearse job.toml --preempt at:7".into(),
        };
        let report = report(2, verdict);
        insta::assert_snapshot!(report.judgement());
        assert_eq!(report.exit_code(), 1);
    }

    #[test]
    fn machines_read_the_same_figures() -> serde_json::Result<()> {
        let json: serde_json::Value = serde_json::from_str(&report(3, Verdict::Same).to_json()?)?;
        assert_eq!(json["verdict"]["outcome"], "same");
        assert_eq!(json["attempts"][0]["ending"]["exit"], 143);
        assert_eq!(json["attempts"][1]["hit"]["phase"], "step");
        assert_eq!(json["checkpoints"]["median"], 2000);
        Ok(())
    }
}
