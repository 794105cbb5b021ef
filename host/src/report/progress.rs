//! How far the job is: a bar on a terminal, else a log line now and then.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::line::{Line, Severity};
use super::outlet::{Outlet, lock};

/// The bar is redrawn at most this often.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Without a terminal, a line at most this often.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// The rate is measured over about this long, so that it follows changes without jumping.
const RATE_OVER: Duration = Duration::from_secs(5);

/// The progress of the job. Cheap to update after every step: most updates only look at the clock.
#[derive(Debug)]
pub struct Progress {
    outlet: Arc<Outlet>,
    bar: Option<ProgressBar>,
    pace: Mutex<Pace>,
}

impl Progress {
    pub(super) fn new(outlet: Arc<Outlet>) -> Self {
        let bar = outlet.is_terminal().then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        Self { outlet, bar, pace: Mutex::new(Pace::new(Instant::now())) }
    }

    /// Says how far the job is, in the units of the guest; `note` is appended as it is.
    pub fn update(&self, done: u64, total: Option<u64>, note: &str) {
        self.outlet.account_for_dropped(false);
        let shown_every = if self.bar.is_some() { DRAW_EVERY } else { LINE_EVERY };
        let Some(rate) = lock(&self.pace).is_due(Instant::now(), done, shown_every) else { return };
        match &self.bar {
            Some(bar) => self.draw(bar, done, total, &describe(done, total, rate, note)),
            None => self.outlet.write(&line(done, total, rate, note)),
        }
    }

    fn draw(&self, bar: &ProgressBar, done: u64, total: Option<u64>, text: &str) {
        let template = if total.is_some() { "  ▕{bar:20}▏ {msg}" } else { "  {spinner} {msg}" };
        if bar.length() != total || bar.position() == 0 {
            // The templates are constant and well formed; should one ever not be, the default style is still a bar.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            self.outlet.set_bar(Some(bar.clone()));
        }
        bar.set_position(done);
        bar.set_message(text.to_owned());
        bar.tick();
    }

    /// Takes the bar away; the last call.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            self.outlet.set_bar(None);
            bar.finish_and_clear();
        }
        self.outlet.account_for_dropped(true);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn line(done: u64, total: Option<u64>, rate: Option<f64>, note: &str) -> Line {
    let line = Line::new(Severity::Info, format!("Progress: {}", describe(done, total, rate, note))).with("done", done);
    let line = total.into_iter().fold(line, |line, total| line.with("total", total));
    rate.into_iter().fold(line, |line, rate| line.with("per_second", rate))
}

fn describe(done: u64, total: Option<u64>, rate: Option<f64>, note: &str) -> String {
    let mut text = match total {
        Some(total) => format!("{done}/{total}"),
        None => done.to_string(),
    };
    if let Some(rate) = rate {
        text.push_str(&format!(" · {}", per_time(rate)));
    }
    if !note.is_empty() {
        text.push_str(" · ");
        text.push_str(note);
    }
    text
}

fn per_time(rate: f64) -> String {
    match rate {
        rate if rate >= 10.0 => format!("{rate:.0}/s"),
        rate if rate >= 0.5 => format!("{rate:.1}/s"),
        rate if rate * 60.0 >= 0.5 => format!("{:.1}/min", rate * 60.0),
        rate => format!("{:.1}/h", rate * 3600.0),
    }
}

/// When to show, and how fast it goes.
#[derive(Debug)]
struct Pace {
    shown: Instant,
    measured: Option<(Instant, u64)>,
    rate: Option<f64>,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { shown: now, measured: None, rate: None }
    }

    /// The rate, if it is time to show something.
    #[expect(clippy::option_option, reason = "outer: is it due; inner: is a rate known yet")]
    fn is_due(&mut self, now: Instant, done: u64, every: Duration) -> Option<Option<f64>> {
        // The first update only marks where this attempt began: what earlier attempts did is no speed.
        let (since, from) = *self.measured.get_or_insert((now, done));
        let elapsed = now.saturating_duration_since(since);
        if elapsed >= RATE_OVER || (self.rate.is_none() && elapsed >= DRAW_EVERY) {
            #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
            let gained = done.saturating_sub(from) as f64;
            self.rate = Some(gained / elapsed.as_secs_f64());
            if elapsed >= RATE_OVER {
                self.measured = Some((now, done));
            }
        }
        if now.saturating_duration_since(self.shown) < every {
            return None;
        }
        self.shown = now;
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_job_is_not_credited_with_the_steps_of_earlier_attempts() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.is_due(start, 5000, LINE_EVERY), None);
        assert_eq!(pace.is_due(start + LINE_EVERY, 5300, LINE_EVERY), Some(Some(10.0)));
        assert_eq!(pace.is_due(start + LINE_EVERY, 5300, LINE_EVERY), None);
    }

    #[test]
    fn the_rate_follows_a_change_of_pace() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.is_due(start, 0, DRAW_EVERY);
        assert_eq!(pace.is_due(start + Duration::from_secs(5), 100, DRAW_EVERY), Some(Some(20.0)));
        assert_eq!(pace.is_due(start + Duration::from_secs(10), 1100, DRAW_EVERY), Some(Some(200.0)));
    }

    #[test]
    fn words_of_progress() {
        let text = |done, total, rate, note| describe(done, total, rate, note);
        insta::assert_snapshot!(
            [
                text(412, Some(1000), Some(96.2), "last verified checkpoint 12 s ago"),
                text(7, None, None, ""),
                text(7, None, Some(2.25), ""),
                text(7, Some(9), Some(0.25), ""),
                text(7, Some(9), Some(0.001), "slow"),
            ]
            .join("\n"),
            @r"
        412/1000 · 96/s · last verified checkpoint 12 s ago
        7
        7 · 2.2/s
        7/9 · 15.0/min
        7/9 · 3.6/h · slow
        "
        );
        insta::assert_snapshot!(line(412, Some(1000), Some(96.0), "").human(), @"Progress: 412/1000 · 96/s");
    }
}
