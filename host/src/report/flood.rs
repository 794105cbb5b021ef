//! Thins out a guest that prints without end. A token bucket that never waits: what doesn't pass is counted.

use std::time::{Duration, Instant};

/// Lines that pass at once after a quiet time.
pub(super) const BURST: u32 = 1000;
/// Lines a second that pass for ever.
pub(super) const RATE: u32 = 200;
/// Dropped lines are accounted for at most this often.
const NOTICE_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Flood {
    allowance: f64,
    seen: Instant,
    dropped: u64,
    noticed: Option<Instant>,
}

impl Flood {
    pub(super) fn new(now: Instant) -> Self {
        Self { allowance: f64::from(BURST), seen: now, dropped: 0, noticed: None }
    }

    /// Whether a line passes now.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.seen).as_secs_f64() * f64::from(RATE);
        self.allowance = (self.allowance + gained).min(f64::from(BURST));
        self.seen = now;
        if self.allowance >= 1.0 {
            self.allowance -= 1.0;
            return true;
        }
        self.dropped += 1;
        // The first notice comes a while after the first dropped line, not after the first line alone.
        self.noticed.get_or_insert(now);
        false
    }

    /// How many lines were dropped since this was last answered; none while the last answer is younger than a second, unless
    /// everything has to be said now.
    pub(super) fn dropped(&mut self, now: Instant, everything: bool) -> Option<u64> {
        let due = self.noticed.is_some_and(|before| now.saturating_duration_since(before) >= NOTICE_EVERY);
        if self.dropped == 0 || !(due || everything) {
            return None;
        }
        self.noticed = Some(now);
        Some(std::mem::take(&mut self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut flood = Flood::new(start);
        let passed = (0..5000).filter(|_| flood.admits(start)).count();
        assert_eq!(passed, 1000);
        assert_eq!(flood.dropped(start, false), None, "the notice would come for every line of a flood");
        let later = start + Duration::from_secs(1);
        assert_eq!(flood.dropped(later, false), Some(4000));
        assert_eq!((0..5000).filter(|_| flood.admits(later)).count(), 200);
        assert_eq!(flood.dropped(later, false), None);
        assert_eq!(flood.dropped(later, true), Some(4800));
        assert_eq!(flood.dropped(later, true), None);
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_is_no_allowance() {
        let start = Instant::now();
        let mut flood = Flood::new(start + Duration::from_secs(5));
        assert_eq!((0..2000).filter(|_| flood.admits(start)).count(), 1000);
    }
}
