//! When to strike an attempt.
//!
//! A schedule lives for a whole rehearsal: it is asked at each mark of each attempt, and told where a strike truly hit.
//! All chance comes from the chaos seed, so the same seed makes the same choices; where in a phase a random instant ends
//! up depends on the machine all the same, and is recorded and not assumed.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use super::attempt::{Hit, Strike};
use super::marks::{Mark, Phase, STRUCK};
use super::spec::Preempt;

/// What an undisturbed run showed of one phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// How often the run came to it.
    pub count: u64,
    /// How long it took, in the middle.
    pub typical: Duration,
}

/// What an undisturbed run showed of each phase.
pub type PhaseTimes = BTreeMap<Phase, Seen>;

/// After so many attempts that were to be struck in one phase and were not, they are struck at its very beginning.
const MISSES_BEFORE_HOLDING: u32 = 3;
/// After so many, the phase is given up.
const MISSES_BEFORE_GIVING_UP: u32 = 9;

/// Decides when attempts are struck.
pub enum Schedule {
    /// Never.
    Never,
    /// At step boundaries.
    Boundaries(Boundaries),
    /// Some time after each attempt began.
    Timer(Duration),
    /// At random instants.
    Instants(Box<Instants>),
}

/// Strikes at step boundaries, ascending, each at most once in a run.
pub struct Boundaries {
    /// In descending order; none stands for every boundary.
    steps: Option<Vec<u64>>,
    next: u64,
}

/// Strikes at random instants, balanced over the phases of an attempt.
pub struct Instants {
    wanted: u32,
    times: PhaseTimes,
    hits: BTreeMap<Phase, u32>,
    misses: BTreeMap<Phase, u32>,
    random: ChaCha8Rng,
    aim: Option<Aim>,
}

#[derive(Clone, Copy, Debug)]
struct Aim {
    phase: Phase,
    /// Marks of this phase still to come, this one included.
    occurrence: u64,
    /// Where in the phase, in millionths of its typical time.
    millionths: u64,
}

impl Schedule {
    /// The schedule of one rehearsal.
    #[must_use]
    pub fn new(preempt: &Preempt, chaos_seed: u64, times: &PhaseTimes) -> Self {
        match preempt {
            Preempt::Never => Self::Never,
            Preempt::EveryStep => Self::Boundaries(Boundaries { steps: None, next: 0 }),
            Preempt::At(steps) => {
                Self::Boundaries(Boundaries { steps: Some(steps.iter().rev().copied().collect()), next: 0 })
            }
            Preempt::Every(time) => Self::Timer(*time),
            Preempt::Times(wanted) => Self::Instants(Box::new(Instants::new(*wanted, chaos_seed, times))),
        }
    }

    /// A new attempt begins; `restores` says whether there is a checkpoint for it to go on from.
    pub fn begin_attempt(&mut self, restores: bool) {
        if let Self::Instants(instants) = self {
            instants.begin_attempt(restores);
        }
    }

    /// Whether the attempt is to be struck while it compiles, and so must not find the component compiled.
    #[must_use]
    pub fn wants_compilation(&self) -> bool {
        match self {
            Self::Instants(instants) => instants.aim.is_some_and(|aim| aim.phase == Phase::Compilation),
            _ => false,
        }
    }

    /// How long after its beginning the attempt is struck, whatever its marks.
    #[must_use]
    pub fn timer(&self) -> Option<Duration> {
        match self {
            Self::Timer(time) => Some(*time),
            _ => None,
        }
    }

    /// The attempt is at this mark.
    pub fn at_mark(&mut self, mark: &Mark) -> Strike {
        match self {
            Self::Never | Self::Timer(_) => Strike::Not,
            Self::Boundaries(boundaries) => boundaries.at_mark(mark),
            Self::Instants(instants) => instants.at_mark(mark),
        }
    }

    /// The attempt ended; it was struck there, or not at all.
    pub fn ended(&mut self, hit: Option<&Hit>) {
        if let Self::Instants(instants) = self {
            instants.ended(hit);
        }
    }

    /// Whether the schedule wants another run of the job once one has come to its end.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        matches!(self, Self::Instants(instants) if instants.wants_more())
    }

    /// Hits by phase, where the schedule counts them.
    #[must_use]
    pub fn hits(&self) -> Option<&BTreeMap<Phase, u32>> {
        match self {
            Self::Instants(instants) => Some(&instants.hits),
            _ => None,
        }
    }
}

impl Boundaries {
    fn at_mark(&mut self, mark: &Mark) -> Strike {
        if mark.phase != Phase::Step {
            return Strike::Not;
        }
        match &mut self.steps {
            None if mark.step >= self.next => {
                self.next = mark.step + 1;
                Strike::Now
            }
            None => Strike::Not,
            Some(steps) => {
                let mut strike = Strike::Not;
                while let Some(step) = steps.pop_if(|step| *step <= mark.step) {
                    if step == mark.step {
                        strike = Strike::Now;
                    }
                }
                strike
            }
        }
    }
}

impl Instants {
    fn new(wanted: u32, chaos_seed: u64, times: &PhaseTimes) -> Self {
        Self {
            wanted,
            times: times.clone(),
            hits: STRUCK.iter().map(|phase| (*phase, 0)).collect(),
            misses: BTreeMap::new(),
            random: ChaCha8Rng::seed_from_u64(chaos_seed),
            aim: None,
        }
    }

    fn misses(&self, phase: Phase) -> u32 {
        self.misses.get(&phase).copied().unwrap_or(0)
    }

    /// Whether an attempt can be struck there: undisturbed runs came to it, and it was not missed too often.
    fn possible(&self, phase: Phase, restores: bool) -> bool {
        let seen =
            if phase == Phase::Restore { restores } else { self.times.get(&phase).is_some_and(|it| it.count > 0) };
        seen && self.misses(phase) < MISSES_BEFORE_GIVING_UP
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound.max(1)
    }

    /// Aims at the phase with the fewest hits that can still be hit.
    fn begin_attempt(&mut self, restores: bool) {
        self.aim = None;
        if self.hits.values().sum::<u32>() >= self.wanted {
            return;
        }
        let possible = STRUCK.into_iter().filter(|phase| self.possible(*phase, restores));
        let fewest = possible.min_by_key(|phase| self.hits.get(phase).copied());
        let Some(phase) = fewest else { return };
        let seen = self.times.get(&phase).copied().unwrap_or_default();
        // Not always the first occurrence; but a far one may not come any more in an attempt that begins late.
        let occurrence = 1 + self.below(seen.count.min(if phase == Phase::Step { 8 } else { 2 }));
        let millionths = if self.misses(phase) >= MISSES_BEFORE_HOLDING { 0 } else { self.below(1_000_000) };
        self.aim = Some(Aim { phase, occurrence, millionths });
    }

    fn at_mark(&mut self, mark: &Mark) -> Strike {
        let typical = self.times.get(&mark.phase).map_or(Duration::from_millis(1), |seen| seen.typical);
        let Some(aim) = self.aim.as_mut().filter(|aim| aim.phase == mark.phase) else { return Strike::Not };
        aim.occurrence = aim.occurrence.saturating_sub(1);
        match (aim.occurrence, aim.millionths) {
            (0, 0) => Strike::Now,
            (0, millionths) => Strike::After(typical.mul_f64(millionths as f64 / 1e6)),
            _ => Strike::Not,
        }
    }

    /// Counts a hit where it truly was. An instant that came after the attempt's end hit nothing.
    fn ended(&mut self, hit: Option<&Hit>) {
        let Some(aim) = self.aim.take() else { return };
        let truth = hit.map(|hit| match hit.saver {
            Some(saver) if saver == aim.phase => saver,
            Some(saver) if !STRUCK.contains(&hit.phase) => saver,
            _ => hit.phase,
        });
        if let Some(count) = truth.and_then(|phase| self.hits.get_mut(&phase)) {
            *count += 1;
        }
        let misses = self.misses.entry(aim.phase).or_default();
        *misses = if truth == Some(aim.phase) { 0 } else { *misses + 1 };
    }

    fn wants_more(&self) -> bool {
        self.hits.values().sum::<u32>() < self.wanted && STRUCK.into_iter().any(|phase| self.possible(phase, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn mark(phase: Phase, step: u64) -> Mark {
        Mark { phase, step, at: Instant::now() }
    }

    fn hit(phase: Phase, saver: Option<Phase>) -> Hit {
        Hit { phase, saver, step: 0, outlived_grace: false }
    }

    fn times() -> PhaseTimes {
        let seen = Seen { count: 10, typical: Duration::from_millis(8) };
        STRUCK.iter().filter(|phase| **phase != Phase::Restore).map(|phase| (*phase, seen)).collect()
    }

    #[test]
    fn every_boundary_is_struck_once_though_steps_are_run_again() {
        let mut schedule = Schedule::new(&Preempt::EveryStep, 0, &times());
        let mut struck = Vec::new();
        // Each attempt goes back to the even step before, as after SIGKILL with a checkpoint every second step.
        let mut from = 0;
        while from < 6 {
            for step in from..=6 {
                if schedule.at_mark(&mark(Phase::Step, step)) == Strike::Now {
                    struck.push(step);
                    from = step / 2 * 2;
                    break;
                }
            }
        }
        assert_eq!(struck, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn chosen_steps_are_struck_at_their_boundary_and_missed_ones_are_dropped() {
        let mut schedule = Schedule::new(&Preempt::At(vec![2, 5, 6]), 0, &times());
        let struck = |schedule: &mut Schedule, phase, step| schedule.at_mark(&mark(phase, step)) == Strike::Now;
        assert!(!struck(&mut schedule, Phase::Save, 2));
        assert!(!struck(&mut schedule, Phase::Step, 3));
        assert!(!struck(&mut schedule, Phase::Step, 2), "dropped at step 3");
        assert!(struck(&mut schedule, Phase::Step, 5));
        assert!(!struck(&mut schedule, Phase::Step, 5));
        assert!(struck(&mut schedule, Phase::Step, 6));
        assert!(!schedule.wants_more());
    }

    /// Plays attempts in which every aim is hit, and returns what was aimed at.
    fn aims(seed: u64, wanted: u32) -> Vec<(Phase, Strike)> {
        let mut schedule = Schedule::new(&Preempt::Times(wanted), seed, &times());
        let mut aims = Vec::new();
        while schedule.wants_more() {
            schedule.begin_attempt(!aims.is_empty());
            let aim = STRUCK.into_iter().find_map(|phase| {
                let strikes = (0..20).map(|step| schedule.at_mark(&mark(phase, step)));
                strikes.into_iter().find(|strike| *strike != Strike::Not).map(|strike| (phase, strike))
            });
            let Some(aim) = aim else { panic!("no aim at all") };
            aims.push(aim);
            schedule.ended(Some(&hit(aim.0, None)));
        }
        aims
    }

    #[test]
    fn random_instants_are_balanced_over_the_phases() {
        let aims = aims(7, 70);
        assert_eq!(aims.len(), 70);
        for phase in STRUCK {
            assert_eq!(aims.iter().filter(|(aim, _)| *aim == phase).count(), 10, "{phase}");
        }
        assert_ne!(aims[0].0, Phase::Restore, "the first attempt has nothing to restore");
    }

    #[test]
    fn the_same_seed_makes_the_same_schedule() {
        assert_eq!(aims(7, 30), aims(7, 30));
        assert_ne!(aims(7, 30), aims(8, 30));
    }

    #[test]
    fn a_hit_counts_where_it_truly_was() {
        let mut schedule = Schedule::new(&Preempt::Times(5), 0, &times());
        let play = |schedule: &mut Schedule, hit: Option<Hit>| {
            schedule.begin_attempt(false);
            schedule.ended(hit.as_ref());
        };
        play(&mut schedule, Some(hit(Phase::Step, Some(Phase::Save))));
        play(&mut schedule, None);
        play(&mut schedule, Some(hit(Phase::Start, Some(Phase::Save))));
        let hits = schedule.hits().cloned().unwrap_or_default();
        assert_eq!((hits[&Phase::Step], hits[&Phase::Save], hits[&Phase::StartUp]), (1, 1, 0));
    }

    #[test]
    fn a_phase_that_is_always_missed_is_struck_at_its_mark_and_then_given_up() {
        let only: PhaseTimes =
            [(Phase::Prune, Seen { count: 1, typical: Duration::from_micros(5) })].into_iter().collect();
        let mut schedule = Schedule::new(&Preempt::Times(3), 1, &only);
        let mut strikes = Vec::new();
        for _ in 0..20 {
            schedule.begin_attempt(false);
            strikes.push(schedule.at_mark(&mark(Phase::Prune, 1)));
            schedule.ended(None);
        }
        assert!(matches!(strikes[0], Strike::After(_)));
        assert_eq!(strikes[MISSES_BEFORE_HOLDING as usize], Strike::Now);
        assert_eq!(strikes[MISSES_BEFORE_GIVING_UP as usize], Strike::Not);
    }
}
