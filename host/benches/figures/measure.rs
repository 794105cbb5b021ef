//! Rounds of baseline and subject in turn, and what is said of them.
//!
//! On a machine that others use, two times are only comparable if they were taken next to each other. So a ratio is taken in
//! every round, and what counts is the median of those ratios; the least and the greatest say how far to trust it.

use std::fs;
use std::time::{Duration, Instant};

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// A line of the table.
pub struct Row {
    pub figure: String,
    pub subject: String,
    pub baseline: String,
    /// One a round.
    pub ratios: Vec<f64>,
    /// The ratio that is promised; none for a figure that is only reported.
    pub target: Option<f64>,
}

/// What the rounds took, in seconds.
pub struct Rounds {
    pub subject: Vec<f64>,
    pub baseline: Vec<f64>,
}

/// Runs both in turn, after one round that warms up and is not counted. Which goes first changes from round to round, so that
/// neither always finds the caches, or the disk, as the other left them.
pub fn in_turn<S>(
    state: &mut S,
    rounds: usize,
    mut subject: impl FnMut(&mut S) -> anyhow::Result<f64>,
    mut baseline: impl FnMut(&mut S) -> anyhow::Result<f64>,
) -> anyhow::Result<Rounds> {
    let mut took = Rounds { subject: Vec::new(), baseline: Vec::new() };
    for round in 0..=rounds {
        let (of_subject, of_baseline) = if round.is_multiple_of(2) {
            let first = baseline(state)?;
            (subject(state)?, first)
        } else {
            let first = subject(state)?;
            (first, baseline(state)?)
        };
        if round > 0 {
            took.subject.push(of_subject);
            took.baseline.push(of_baseline);
        }
    }
    Ok(took)
}

/// What `work` takes, in seconds.
pub fn seconds(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

/// What `work` takes of this thread's processor time, in seconds: where no other thread and no disk is waited for, the time that
/// other programs take away does not count.
pub fn cpu_seconds(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    // The kernel brings its account up to date when a thread gives way.
    std::thread::yield_now();
    let before = cpu_of("thread-self")?;
    work()?;
    std::thread::yield_now();
    Ok(cpu_of("thread-self")? - before)
}

/// The processor time that a thread has used so far, in seconds; of a process, its first thread's. It is exact for one that
/// waits or has ended.
pub fn cpu_of(thread: &str) -> anyhow::Result<f64> {
    let account = fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
    let nanoseconds: u64 = account.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

impl Rounds {
    /// A row of the table, the times divided by how much was done in them.
    pub fn row(self, figure: &str, units: f64, target: Option<f64>) -> Row {
        Row {
            figure: figure.to_owned(),
            subject: time(median(&self.subject) / units),
            baseline: time(median(&self.baseline) / units),
            ratios: self.subject.iter().zip(&self.baseline).map(|(subject, baseline)| subject / baseline).collect(),
            target,
        }
    }
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn time(seconds: f64) -> String {
    if seconds < 1e-6 {
        return format!("{:.0} ns", seconds * 1e9);
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => format!("{time:.1?}"),
        Err(_) => "–".to_owned(),
    }
}

/// All rows, as Markdown.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(["figure", "subject", "baseline", "ratio", "min – max", "target", ""]);
    for row in rows {
        let ratio = median(&row.ratios);
        let least = row.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = row.ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let some = !row.ratios.is_empty();
        let verdict = match row.target {
            Some(target) if ratio <= target => "met",
            Some(_) => "MISSED",
            None => "",
        };
        table.add_row([
            row.figure.clone(),
            row.subject.clone(),
            row.baseline.clone(),
            if some { format!("{ratio:.2}") } else { String::new() },
            if row.ratios.len() > 1 { format!("{least:.2} – {greatest:.2}") } else { String::new() },
            row.target.map_or(String::new(), limit),
            verdict.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The least of so many times, in seconds: those on the wall have in them whatever else the machine does.
pub fn quickest(times: usize, mut measure: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    (0..times).try_fold(f64::INFINITY, |least, _| Ok(measure()?.min(least)))
}

/// A target with at most two digits behind the point.
fn limit(target: f64) -> String {
    format!("≤ {target:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
