//! When a save is due, what it is predicted to take, and what steps usually take.

use std::time::{Duration, Instant};

use super::spec::Every;

/// Assumed until a save was measured: a mounted bucket's pace.
const ASSUMED_BYTES_PER_SECOND: f64 = 100e6;
const ASSUMED_LEAST: Duration = Duration::from_millis(50);

/// So many step times are kept for the percentile.
const STEP_TIMES: usize = 256;

/// The pace of an attempt.
#[derive(Debug)]
pub struct Pace {
    every: Every,
    last_step: u64,
    last_time: Instant,
    state_bytes: u64,
    /// What the guest waited for its state, the last time.
    freezing: Duration,
    measured: Option<(u64, Duration)>,
    step_times: Vec<Duration>,
    steps: u64,
}

impl Pace {
    /// From now on, with `next_step` the next to run. `state_bytes` is the state's size, where a checkpoint told it.
    #[must_use]
    pub fn new(every: Every, next_step: u64, state_bytes: u64) -> Self {
        Self {
            every,
            last_step: next_step,
            last_time: Instant::now(),
            state_bytes,
            freezing: Duration::ZERO,
            measured: None,
            step_times: Vec::with_capacity(STEP_TIMES),
            steps: 0,
        }
    }

    /// Whether a save is due before `next_step`, now.
    #[must_use]
    pub fn is_due(&self, next_step: u64, now: Instant) -> bool {
        match self.every {
            Every::Steps(steps) => next_step.saturating_sub(self.last_step) >= steps,
            Every::Time(time) => next_step > self.last_step && now.saturating_duration_since(self.last_time) >= time,
        }
    }

    /// A save began, or was skipped: the next is due that much later.
    pub fn passed(&mut self, next_step: u64) {
        self.last_step = next_step;
        self.last_time = Instant::now();
    }

    /// The state was frozen, this large, in this time.
    pub fn froze(&mut self, state_bytes: u64, took: Duration) {
        self.state_bytes = state_bytes;
        self.freezing = took;
    }

    /// A save of `bytes` of state took this long.
    pub fn saved(&mut self, bytes: u64, took: Duration) {
        self.measured = Some((bytes, took));
    }

    /// A step took this long.
    pub fn stepped(&mut self, took: Duration) {
        let at = usize::try_from(self.steps % STEP_TIMES as u64).unwrap_or(0);
        match self.step_times.get_mut(at) {
            Some(slot) => *slot = took,
            None => self.step_times.push(took),
        }
        self.steps += 1;
    }

    /// The 95th percentile of recent step times; none before there are enough to say.
    #[must_use]
    pub fn usual_step(&self) -> Option<Duration> {
        if self.step_times.len() < 20 {
            return None;
        }
        let mut times = self.step_times.clone();
        let at = times.len() * 95 / 100;
        Some(*times.select_nth_unstable(at).1)
    }

    /// Whether the percentile is worth looking at again: rarely, since it costs a sort.
    #[must_use]
    pub fn is_time_to_look(&self) -> bool {
        self.steps.is_power_of_two() || self.steps.is_multiple_of(STEP_TIMES as u64)
    }

    /// What freezing and saving the state is predicted to take, with a fifth to spare.
    #[must_use]
    pub fn predicted_save(&self) -> Duration {
        let predicted = match self.measured {
            Some((bytes, took)) if bytes > 0 && self.state_bytes > bytes => {
                took.mul_f64(self.state_bytes as f64 / bytes as f64)
            }
            Some((_, took)) => took,
            None => ASSUMED_LEAST + Duration::from_secs_f64(self.state_bytes as f64 / ASSUMED_BYTES_PER_SECOND),
        };
        (self.freezing + predicted).mul_f64(1.2)
    }
}

/// How much state the time that is left can save, at the assumed pace.
#[must_use]
pub fn assumed_bytes_in(time: Duration) -> u64 {
    (time.saturating_sub(ASSUMED_LEAST).as_secs_f64() / 1.2 * ASSUMED_BYTES_PER_SECOND) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_from_the_last_save_or_the_last_skipped_one() {
        let mut pace = Pace::new(Every::Steps(5), 7, 0);
        let now = Instant::now();
        assert!(!pace.is_due(11, now));
        assert!(pace.is_due(12, now));
        pace.passed(12);
        assert!(!pace.is_due(16, now));
        assert!(pace.is_due(17, now));
    }

    #[test]
    fn no_save_is_due_where_nothing_is_new() {
        let pace = Pace::new(Every::Time(Duration::ZERO), 7, 0);
        let now = Instant::now();
        assert!(!pace.is_due(7, now));
        assert!(pace.is_due(8, now));
    }

    #[test]
    fn a_larger_state_is_predicted_to_take_longer() {
        let mut pace = Pace::new(Every::Steps(5), 0, 1_000);
        pace.saved(1_000, Duration::from_secs(1));
        let before = pace.predicted_save();
        pace.froze(4_000, Duration::ZERO);
        assert!(pace.predicted_save() > before * 3);
        pace.froze(10, Duration::ZERO);
        assert_eq!(pace.predicted_save(), before, "a smaller one is not trusted to be faster");
        pace.froze(10, Duration::from_secs(1));
        assert_eq!(pace.predicted_save(), before * 2, "the guest's own part counts");
    }

    #[test]
    fn the_usual_step_is_the_95th_percentile_of_recent_ones() {
        let mut pace = Pace::new(Every::Steps(5), 0, 0);
        assert_eq!(pace.usual_step(), None);
        for ms in 0..100 {
            pace.stepped(Duration::from_millis(ms));
        }
        assert_eq!(pace.usual_step(), Some(Duration::from_millis(95)));
        for _ in 0..STEP_TIMES {
            pace.stepped(Duration::from_millis(1));
        }
        assert_eq!(pace.usual_step(), Some(Duration::from_millis(1)));
    }
}
