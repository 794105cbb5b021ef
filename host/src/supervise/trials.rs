//! Rehearsals under faults: every volume operation of an undisturbed run, and of an attempt that resumes, fails in turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::compare::Difference;
use super::faults::{plans, plans_for, read_trace};
use super::play::{Calm, Play, Scenario, Tally};
use super::report::{FaultFigures, RehearsalReport};
use super::run::{Plan, Ran, traced_operations};
use super::schedule::Schedule;
use super::spec::{Faults, Preempt, RehearsalError};

/// Runs under faults that go on at the same time, at most: each may be a job that fills a machine.
const MAX_PARALLEL: usize = 4;
/// How often a fault is tried whose operation does not come.
const FAULT_TRIES: u32 = 3;
/// After so many runs that differ, no more are tried.
const ENOUGH_DIFFERENT: u32 = 10;

impl Play<'_> {
    pub(super) fn faulted(&self, calm: &Calm, faults: &Faults) -> Result<RehearsalReport, RehearsalError> {
        let spec = self.spec();
        let mut figures = FaultFigures::default();
        let scenario =
            |preempt: &Preempt, kill, faults| Scenario { preempt: preempt.clone(), kill, faults: Some(faults) };
        let first_attempt = read_trace(&calm.ran.trace())?;
        figures.operations = first_attempt.last().map_or(0, |operation| operation.number);
        let mut scenarios = Vec::new();
        match faults {
            Faults::Plan { .. } => scenarios.push(scenario(&spec.preempt, spec.kill, faults.clone())),
            Faults::Nth(number) => {
                let plans = plans_for(&first_attempt, *number, 0);
                scenarios.extend(plans.into_iter().map(|plan| scenario(&spec.preempt, spec.kill, plan)));
            }
            Faults::EveryOperation => {
                let plans = plans(&first_attempt, 0);
                scenarios.extend(plans.into_iter().map(|plan| scenario(&spec.preempt, spec.kill, plan)));
                scenarios.extend(self.resume_scenarios(calm, &mut figures)?);
            }
        }
        let mut tally = self.try_all(calm, &scenarios, &mut figures)?;
        figures.runs = u64::from(tally.runs);
        tally.rows.sort_by_key(|row| (row.run, row.number));
        let verdict = self.judge(calm, &tally)?;
        let mut report = self.report(calm, tally, verdict);
        report.faults = Some(figures);
        Ok(report)
    }

    /// An attempt that resumes has operations of its own: it is traced after a preemption half-way, and each of them fails.
    fn resume_scenarios(&self, calm: &Calm, figures: &mut FaultFigures) -> Result<Vec<Scenario>, RehearsalError> {
        let spec = self.spec();
        let (preempt, kill) = match &spec.preempt {
            Preempt::Never => (Preempt::At(vec![calm.ran.reached / 2]), true),
            other => (other.clone(), spec.kill),
        };
        self.tell("tracing an attempt that resumes", 0, None);
        let number = self.numbers.fetch_add(1, Ordering::SeqCst) as u32;
        let plan = Plan { number, kill, trace: Some(1), ..Plan::default() };
        let ran = self.theatre.run(&plan, &mut Schedule::new(&preempt, spec.chaos_seed, &calm.ran.times), &|| {})?;
        let operations = read_trace(&ran.trace())?;
        figures.resume_operations = traced_operations(&ran)?;
        self.clear(&ran);
        let scenario = |faults| Scenario { preempt: preempt.clone(), kill, faults: Some(faults) };
        Ok(plans(&operations, 1).into_iter().map(scenario).collect())
    }

    /// Tries all scenarios, some at a time; the order of the report is that of the scenarios all the same.
    fn try_all(
        &self,
        calm: &Calm,
        scenarios: &[Scenario],
        figures: &mut FaultFigures,
    ) -> Result<Tally, RehearsalError> {
        let workers =
            std::thread::available_parallelism().map_or(1, usize::from).min(MAX_PARALLEL).min(scenarios.len());
        let (next, done, different) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let results = Mutex::new(Vec::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::SeqCst);
                let Some(scenario) = scenarios.get(index) else { return };
                if different.load(Ordering::SeqCst) >= u64::from(ENOUGH_DIFFERENT) {
                    return;
                }
                let result = self.try_fault(calm, scenario);
                if matches!(&result, Ok((_, differences, _)) if !differences.is_empty()) {
                    different.fetch_add(1, Ordering::SeqCst);
                }
                if result.is_err() {
                    next.store(scenarios.len(), Ordering::SeqCst);
                }
                results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                let done = done.fetch_add(1, Ordering::SeqCst) + 1;
                self.tell("failing volume operations", done, Some(scenarios.len() as u64));
            }
        };
        std::thread::scope(|scope| {
            (0..workers).for_each(|_| {
                scope.spawn(work);
            });
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(index, _)| *index);
        let mut tally = Tally::default();
        for (index, result) in results {
            let (ran, differences, reached) = result?;
            figures.not_reached += u64::from(!reached);
            tally.take(ran, differences, &scenarios[index]);
        }
        Ok(tally)
    }

    /// One run under a fault. Which operation has which number depends on the saver's pace; a run that ended before its
    /// operation came is tried again.
    fn try_fault(&self, calm: &Calm, scenario: &Scenario) -> Result<(Ran, Vec<Difference>, bool), RehearsalError> {
        for _ in 1..FAULT_TRIES {
            let tried = self.try_fault_once(calm, scenario)?;
            if tried.2 || !tried.1.is_empty() {
                return Ok(tried);
            }
        }
        self.try_fault_once(calm, scenario)
    }

    fn try_fault_once(&self, calm: &Calm, scenario: &Scenario) -> Result<(Ran, Vec<Difference>, bool), RehearsalError> {
        let schedule = &mut Schedule::new(&scenario.preempt, self.spec().chaos_seed, &calm.ran.times);
        let (ran, differences) = self.try_out(calm, scenario, schedule, &|| {})?;
        let reached = was_reached(&ran, scenario);
        if differences.is_empty() {
            self.clear(&ran);
        }
        Ok((ran, differences, reached))
    }
}

/// Whether the faulted operation came at all.
fn was_reached(ran: &Ran, scenario: &Scenario) -> bool {
    let Some(Faults::Plan { plan, .. }) = &scenario.faults else { return true };
    let number = plan.split(':').next().and_then(|number| number.parse::<u64>().ok());
    number.is_some_and(|number| traced_operations(ran).is_ok_and(|traced| traced >= number))
}
