//! A rehearsal from beginning to end: two undisturbed runs, the disturbed ones, what they differ in.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

use super::compare::{Difference, Outcome};
use super::faults::{plans, plans_for, read_trace};
use super::report::{AttemptRow, FaultFigures, RehearsalReport, Spread, Undisturbed, Verdict};
use super::run::{Plan, Ran, Theatre, last_words, traced_operations};
use super::schedule::Schedule;
use super::spec::{Faults, Preempt, Progress, RehearsalError, RehearsalSpec};
use super::verdict::{disturbance, repeat_command, shrink};
use crate::job::spec::JobName;

/// Grace time of the platform that is played, where the job names none.
const CLOUD_RUN_GRACE: Duration = Duration::from_secs(10);
/// Runs under faults that go on at the same time, at most: each may be a job that fills a machine.
const MAX_PARALLEL: usize = 4;
/// After so many runs that differ, no more are tried.
const ENOUGH_DIFFERENT: u32 = 10;

/// Told how far a rehearsal is, from any thread.
pub type Observer<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Plays the platform against a job and compares what comes out with undisturbed runs.
pub fn rehearse(spec: &RehearsalSpec, progress: Observer<'_>) -> Result<RehearsalReport, RehearsalError> {
    let interruption = Interruption::listen()?;
    let work = temporary(spec)?;
    let sockets = tempfile::Builder::new().prefix("sf").tempdir().map_err(RehearsalError::Child)?;
    let program = match &spec.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(RehearsalError::Child)?,
    };
    let theatre = Theatre {
        spec,
        program,
        name: filed_under(spec),
        work: work.path().to_owned(),
        sockets: sockets.path().to_owned(),
        grace: spec.job.grace.unwrap_or(CLOUD_RUN_GRACE),
        interrupted: &interruption.flag,
    };
    let play = Play { theatre, progress, numbers: AtomicUsize::new(3) };
    let result = play.perform();
    match result {
        Ok(mut report) => {
            if !matches!(report.verdict, Verdict::Same) {
                report.kept = Some(work.keep());
            }
            Ok(report)
        }
        Err(error) => {
            // Its message names a log in there.
            if matches!(error, RehearsalError::Undisturbed { .. }) {
                let _ = work.keep();
            }
            Err(error)
        }
    }
}

/// The name under which the children will file their checkpoints: they are told it as the platform's job name.
fn filed_under(spec: &RehearsalSpec) -> String {
    let named = spec.job.run_id.as_ref().or(spec.job.name.as_ref()).map(JobName::to_string);
    let stem = || {
        let stem = spec.job.plugin.file_stem()?.to_str()?;
        JobName::new(stem).ok().map(|name| name.to_string())
    };
    named.or_else(stem).unwrap_or_else(|| "rehearsal".to_owned())
}

fn temporary(spec: &RehearsalSpec) -> Result<TempDir, RehearsalError> {
    let parent = spec.work.clone().unwrap_or_else(std::env::temp_dir);
    let made = tempfile::Builder::new().prefix("steadfast-rehearsal-").tempdir_in(&parent);
    made.map_err(|cause| RehearsalError::Files { operation: "create a folder in", path: parent, cause })
}

/// Notes that the rehearsal itself is told to stop, so that no attempt outlives it.
struct Interruption {
    flag: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Interruption {
    fn listen() -> Result<Self, RehearsalError> {
        let mut this = Self { flag: Arc::default(), registered: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let registered = signal_hook::flag::register(signal, Arc::clone(&this.flag));
            this.registered.push(registered.map_err(RehearsalError::Child)?);
        }
        Ok(this)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.registered.drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
    }
}

struct Play<'a> {
    theatre: Theatre<'a>,
    progress: Observer<'a>,
    /// The next run's number.
    numbers: AtomicUsize,
}

/// The undisturbed run that all others are measured by.
struct Calm {
    ran: Ran,
    outcome: Outcome,
}

/// One way to disturb a run.
#[derive(Clone, Debug)]
struct Scenario {
    preempt: Preempt,
    kill: bool,
    faults: Option<Faults>,
}

/// A run that came out otherwise.
struct Differing {
    scenario: Scenario,
    differences: Vec<Difference>,
    struck: Vec<u64>,
}

/// What the disturbed runs came to.
#[derive(Default)]
struct Tally {
    runs: u32,
    rows: Vec<AttemptRow>,
    sizes: Vec<u64>,
    saves: Vec<u64>,
    different: u32,
    first: Option<Differing>,
}

impl Play<'_> {
    fn spec(&self) -> &RehearsalSpec {
        self.theatre.spec
    }

    fn tell(&self, stage: &str, done: u64, total: Option<u64>) {
        (self.progress)(&Progress { stage: stage.to_owned(), done, total });
    }

    fn perform(&self) -> Result<RehearsalReport, RehearsalError> {
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
        if let Some(broken) = ran.faults_seen.first() {
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

    fn try_out(
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
        let mut differences = ran.faults_seen.clone();
        match (&ran.gave_up, Outcome::read(&ran.place)) {
            (Some(how), _) => differences.push(Difference::GaveUp { how: how.clone() }),
            (None, Err(what)) => differences.push(Difference::Unreadable { what }),
            (None, Ok(outcome)) => differences.extend(outcome.differences(&calm.outcome)),
        }
        Ok((ran, differences))
    }

    fn faulted(&self, calm: &Calm, faults: &Faults) -> Result<RehearsalReport, RehearsalError> {
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
                let spec = self.spec();
                let schedule = &mut Schedule::new(&scenario.preempt, spec.chaos_seed, &calm.ran.times);
                let result = self.try_out(calm, scenario, schedule, &|| {}).map(|(ran, differences)| {
                    let reached = was_reached(&ran, scenario);
                    if differences.is_empty() {
                        self.clear(&ran);
                    } else {
                        different.fetch_add(1, Ordering::SeqCst);
                    }
                    (ran, differences, reached)
                });
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

    /// The verdict, with the smallest command that repeats the first difference.
    fn judge(&self, calm: &Calm, tally: &Tally) -> Result<Verdict, RehearsalError> {
        let Some(first) = &tally.first else { return Ok(Verdict::Same) };
        let Scenario { preempt, kill, faults } = &first.scenario;
        let mut preempt = preempt.clone();
        if faults.is_none() && preempt != Preempt::Never {
            self.tell("looking for the smallest preemption that shows it", 0, None);
            let smallest = shrink(&first.struck, &mut |steps| {
                let scenario = Scenario { preempt: Preempt::At(steps.to_vec()), kill: *kill, faults: None };
                let schedule = &mut Schedule::new(&scenario.preempt, self.spec().chaos_seed, &calm.ran.times);
                let (ran, differences) = self.try_out(calm, &scenario, schedule, &|| {})?;
                self.clear(&ran);
                Ok(!differences.is_empty())
            })?;
            preempt = smallest.map_or(preempt, Preempt::At);
        }
        let repeat = repeat_command(self.spec(), &preempt, *kill, faults.as_ref());
        Ok(Verdict::Different { differences: first.differences.clone(), runs: tally.different, repeat })
    }

    /// A run that came out right is not needed any more. What cannot be deleted now goes with the whole folder.
    fn clear(&self, ran: &Ran) {
        let _ = std::fs::remove_dir_all(&ran.folder);
    }

    fn report(&self, calm: &Calm, tally: Tally, verdict: Verdict) -> RehearsalReport {
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
            kept: None::<PathBuf>,
        }
    }
}

/// Whether the faulted operation came at all.
fn was_reached(ran: &Ran, scenario: &Scenario) -> bool {
    let Some(Faults::Plan { plan, .. }) = &scenario.faults else { return true };
    let number = plan.split(':').next().and_then(|number| number.parse::<u64>().ok());
    number.is_some_and(|number| traced_operations(ran).is_ok_and(|traced| traced >= number))
}

impl Tally {
    fn take(&mut self, ran: Ran, differences: Vec<Difference>, scenario: &Scenario) {
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
