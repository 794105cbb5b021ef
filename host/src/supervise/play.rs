//! The runs of a rehearsal: two undisturbed ones, then one disturbed run after another, each compared with the first.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::compare::{Difference, Outcome};
use super::rehearse::Observer;
use super::report::{AttemptRow, RehearsalReport, Spread, Undisturbed, Verdict};
use super::run::{Plan, Ran, Theatre, last_words};
use super::schedule::Schedule;
use super::spec::{Faults, Preempt, Progress, RehearsalError, RehearsalSpec};
use super::verdict::{disturbance, repeat_command, shrink};

pub(super) struct Play<'a> {
    pub(super) theatre: Theatre<'a>,
    pub(super) progress: Observer<'a>,
    /// The next run's number.
    pub(super) numbers: AtomicUsize,
}

/// The undisturbed run that all others are measured by.
pub(super) struct Calm {
    pub(super) ran: Ran,
    pub(super) outcome: Outcome,
}

/// One way to disturb a run.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) preempt: Preempt,
    pub(super) kill: bool,
    pub(super) faults: Option<Faults>,
}

/// A run that came out otherwise.
pub(super) struct Differing {
    pub(super) scenario: Scenario,
    pub(super) differences: Vec<Difference>,
    pub(super) struck: Vec<u64>,
}

/// What the disturbed runs came to.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) runs: u32,
    pub(super) rows: Vec<AttemptRow>,
    pub(super) sizes: Vec<u64>,
    pub(super) saves: Vec<u64>,
    pub(super) different: u32,
    pub(super) first: Option<Differing>,
}

impl Play<'_> {
    pub(super) fn spec(&self) -> &RehearsalSpec {
        self.theatre.spec
    }

    pub(super) fn tell(&self, stage: &str, done: u64, total: Option<u64>) {
        (self.progress)(&Progress { stage: stage.to_owned(), done, total });
    }

    pub(super) fn perform(&self) -> Result<RehearsalReport, RehearsalError> {
        self.tell("first undisturbed run", 0, None);
        let calm = self.undisturbed(1)?;
        self.tell("second undisturbed run", 0, None);
        let again = self.undisturbed(2)?;
        let own = again.outcome.differences(&calm.outcome);
        if !own.is_empty() {
            return Ok(self.report(&calm, Tally::default(), Verdict::NotRepeatable { differences: own }));
        }
        self.clear(&again.ran);
        match &self.spec().faults {
            None => self.preempted(&calm),
            Some(faults) => self.faulted(&calm, faults),
        }
    }

    /// Runs the job without any disturbance, to the end.
    fn undisturbed(&self, number: u32) -> Result<Calm, RehearsalError> {
        let plan = Plan {
            number,
            // The first one shows how long compilation takes; the second one how a cached component fares.
            fresh_cache: number == 1 && matches!(self.spec().preempt, Preempt::Times(_)),
            trace: self.spec().faults.is_some().then_some(0),
            no_retries: true,
            ..Plan::default()
        };
        let never = &mut Schedule::new(&Preempt::Never, 0, &Default::default());
        let ran = self.theatre.run(&plan, never, &|| {})?;
        if let Some(how) = &ran.gave_up {
            let log = ran.last_log();
            let (how, last_words) = (how.clone(), last_words(&log, 12));
            return Err(RehearsalError::Undisturbed { how, last_words, log });
        }
        let outcome = Outcome::read(&ran.place).map_err(RehearsalError::Unreadable)?;
        if let Some(broken) = ran.violations.first() {
            return Err(RehearsalError::Unreadable(broken.to_string()));
        }
        Ok(Calm { ran, outcome })
    }

    /// Preempts the job by its schedule, in as many runs as the schedule wants.
    fn preempted(&self, calm: &Calm) -> Result<RehearsalReport, RehearsalError> {
        let spec = self.spec();
        let scenario = Scenario { preempt: spec.preempt.clone(), kill: spec.kill, faults: None };
        let mut schedule = Schedule::new(&spec.preempt, spec.chaos_seed, &calm.ran.times);
        let total = match &spec.preempt {
            Preempt::EveryStep => Some(calm.ran.reached),
            Preempt::Times(count) => Some(u64::from(*count)),
            Preempt::At(steps) => Some(steps.len() as u64),
            Preempt::Never | Preempt::Every(_) => None,
        };
        let strikes = AtomicU64::new(0);
        let struck = || self.tell("preempting", strikes.fetch_add(1, Ordering::SeqCst) + 1, total);
        let mut tally = Tally::default();
        loop {
            self.disturb(calm, &scenario, &mut schedule, &struck, &mut tally)?;
            if !schedule.wants_more() || tally.first.is_some() {
                break;
            }
        }
        let verdict = self.judge(calm, &tally)?;
        let mut report = self.report(calm, tally, verdict);
        report.hits = schedule.hits().cloned();
        Ok(report)
    }

    /// One disturbed run, compared and counted.
    fn disturb(
        &self,
        calm: &Calm,
        scenario: &Scenario,
        schedule: &mut Schedule,
        struck: &dyn Fn(),
        tally: &mut Tally,
    ) -> Result<(), RehearsalError> {
        let (ran, differences) = self.try_out(calm, scenario, schedule, struck)?;
        if differences.is_empty() {
            self.clear(&ran);
        }
        tally.take(ran, differences, scenario);
        Ok(())
    }

    pub(super) fn try_out(
        &self,
        calm: &Calm,
        scenario: &Scenario,
        schedule: &mut Schedule,
        struck: &dyn Fn(),
    ) -> Result<(Ran, Vec<Difference>), RehearsalError> {
        let traced = match &scenario.faults {
            Some(Faults::Plan { attempt, .. }) => Some(*attempt),
            _ => None,
        };
        let plan = Plan {
            number: self.numbers.fetch_add(1, Ordering::SeqCst) as u32,
            kill: scenario.kill,
            damage: self.spec().damage,
            faults: scenario.faults.clone(),
            trace: traced,
            ..Plan::default()
        };
        let ran = self.theatre.run(&plan, schedule, struck)?;
        let mut differences = ran.violations.clone();
        match (&ran.gave_up, Outcome::read(&ran.place)) {
            (Some(how), _) => differences.push(Difference::GaveUp { how: how.clone() }),
            (None, Err(what)) => differences.push(Difference::Unreadable { what }),
            (None, Ok(outcome)) => differences.extend(outcome.differences(&calm.outcome)),
        }
        Ok((ran, differences))
    }

    /// The verdict, with the smallest command that repeats the first difference.
    pub(super) fn judge(&self, calm: &Calm, tally: &Tally) -> Result<Verdict, RehearsalError> {
        let Some(first) = &tally.first else { return Ok(Verdict::Same) };
        let Scenario { preempt, kill, faults } = &first.scenario;
        let (mut preempt, mut differences) = (preempt.clone(), first.differences.clone());
        if faults.is_none() && preempt != Preempt::Never {
            self.tell("looking for the smallest preemption that shows it", 0, None);
            let mut seen = Vec::new();
            let smallest = shrink(&first.struck, &mut |steps| {
                let scenario = Scenario { preempt: Preempt::At(steps.to_vec()), kill: *kill, faults: None };
                let schedule = &mut Schedule::new(&scenario.preempt, self.spec().chaos_seed, &calm.ran.times);
                let (ran, differences) = self.try_out(calm, &scenario, schedule, &|| {})?;
                self.clear(&ran);
                let differs = !differences.is_empty();
                if differs {
                    seen = differences;
                }
                Ok(differs)
            })?;
            if let Some(steps) = smallest {
                (preempt, differences) = (Preempt::At(steps), seen);
            }
        }
        let repeat = repeat_command(self.spec(), &preempt, *kill, faults.as_ref());
        Ok(Verdict::Different { differences, runs: tally.different, repeat })
    }

    /// A run that came out right is not needed any more. What cannot be deleted now goes with the whole folder.
    pub(super) fn clear(&self, ran: &Ran) {
        let _ = std::fs::remove_dir_all(&ran.folder);
    }

    pub(super) fn report(&self, calm: &Calm, tally: Tally, verdict: Verdict) -> RehearsalReport {
        let spec = self.spec();
        RehearsalReport {
            job: self.theatre.name.clone(),
            disturbance: disturbance(&spec.preempt, spec.kill, spec.faults.as_ref(), spec.damage).join(" "),
            verdict,
            undisturbed: Undisturbed {
                steps: calm.ran.reached,
                millis: calm.ran.wall.as_millis() as u64,
                checkpoints: calm.ran.save_times.len() as u64,
            },
            runs: tally.runs,
            attempts: tally.rows,
            hits: None,
            faults: None,
            checkpoints: Spread::of(tally.sizes),
            save_micros: Spread::of(tally.saves),
            kept: None,
        }
    }
}

impl Tally {
    pub(super) fn take(&mut self, ran: Ran, differences: Vec<Difference>, scenario: &Scenario) {
        self.runs += 1;
        let run = self.runs;
        self.rows.extend(ran.rows.into_iter().map(|row| AttemptRow { run, ..row }));
        self.sizes.extend(ran.sizes);
        self.saves.extend(ran.save_times.iter().map(|time| time.as_micros() as u64));
        if !differences.is_empty() {
            self.different += 1;
            let differing = Differing { scenario: scenario.clone(), differences, struck: ran.struck };
            self.first.get_or_insert(differing);
        }
    }
}
