//! The profile of an attempt at its end: a table in the log, and figures in the attempt's record.

use std::sync::Arc;
use std::time::Duration;

use super::error::in_words;
use super::memory::in_bytes;
use crate::checkpoint::store::ProfileFigures;
use crate::device::profile::{Line, Profile};
use crate::plugin::OpenDevice;
use crate::report::{Cell, Table};

/// Opens the device that `open` opens, with the profile listening.
pub fn watched(profile: &Profile, open: OpenDevice) -> OpenDevice {
    let profile = profile.clone();
    Arc::new(move || Ok(profile.watch(open()?)))
}

/// The table. The attempt took so long altogether.
#[must_use]
pub fn table(profile: &Profile, took: Duration) -> Table {
    let lines = profile.lines();
    let whole: Duration = lines.iter().map(|line| line.figures.time).sum();
    Table {
        title: title(whole, took, profile.empty_launch()),
        columns: vec!["what", "calls", "blocks", "threads", "bytes", "took", "each", "share", "runs as"],
        rows: lines.iter().map(|line| row(line, whole)).collect(),
    }
}

fn title(whole: Duration, took: Duration, empty_launch: Option<Duration>) -> String {
    if whole.is_zero() {
        return "Profile: nothing was asked of a device".to_owned();
    }
    let mut title = format!("Profile: the device worked {} of the attempt's {}", short(whole), short(took));
    if let Some(empty) = empty_launch {
        title.push_str(&format!("; a launch that does nothing takes {}", short(empty)));
    }
    title
}

fn row(line: &Line, whole: Duration) -> Vec<Cell> {
    let figures = &line.figures;
    let count = |count: u64| Cell::number(count, if count == 0 { String::new() } else { count.to_string() });
    let time = |time: Duration| Cell::number(time.as_secs_f64(), short(time));
    let each = figures.time.checked_div(u32::try_from(figures.calls).unwrap_or(u32::MAX)).unwrap_or_default();
    let share = if whole.is_zero() { 0.0 } else { figures.time.as_secs_f64() / whole.as_secs_f64() };
    let bytes = if figures.bytes == 0 { String::new() } else { in_bytes(figures.bytes) };
    vec![
        Cell::text(&line.what),
        count(figures.calls),
        count(figures.blocks),
        count(figures.threads),
        Cell::number(figures.bytes, bytes),
        time(figures.time),
        time(each),
        Cell::number(share, format!("{:.1} %", share * 100.0)),
        Cell::text(line.path.map(|path| path.to_string()).unwrap_or_default()),
    ]
}

/// A time to two decimals.
fn short(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 100.0 => in_words(Duration::from_secs(time.as_secs())),
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{:.2} µs", seconds * 1e6),
    }
}

/// The same for the attempt's record.
#[must_use]
pub fn figures(profile: &Profile) -> Vec<ProfileFigures> {
    let figures = |line: Line| ProfileFigures {
        what: line.what,
        runs_as: line.path.map(|path| path.to_string()),
        calls: line.figures.calls,
        blocks: line.figures.blocks,
        threads: line.figures.threads,
        bytes: line.figures.bytes,
        nanoseconds: u64::try_from(line.figures.time.as_nanos()).unwrap_or(u64::MAX),
    };
    profile.lines().into_iter().map(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_suits_them() {
        let shown = [12, 1_234, 56_789, 1_234_567, 2_500_000_000, 99_900_000_000, 3_725_900_000_000];
        let shown = shown.map(|nanoseconds| short(Duration::from_nanos(nanoseconds)));
        assert_eq!(shown, ["0.01 µs", "1.23 µs", "56.79 µs", "1.23 ms", "2.50 s", "99.90 s", "1h 2m 5s"]);
    }

    #[test]
    fn nothing_done_is_no_share_of_anything() {
        let table = table(&Profile::default(), Duration::from_secs(2));
        assert_eq!(table.title, "Profile: nothing was asked of a device");
        assert!(table.rows.is_empty());
    }
}
