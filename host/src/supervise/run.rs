//! One run of the job on one fresh volume: attempt after attempt, until it is done or given up, as Cloud Run would.
//!
//! Attempts that the schedule struck, or that ran under a fault, use up no retries; those that fail by themselves do. An
//! exit code that says "no retry can help" ends the run, but for an attempt under a fault: there a person would start the
//! job again once the volume works, and so does the rehearsal, as a new execution.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;

use super::attempt::{Attempt, Attempted, Ending};
use super::compare::Difference;
use super::faults::{FAULTS_VARIABLE, TRACE_VARIABLE, read_trace};
use super::marks::{Phase, STRUCK, Track};
use super::place::{Look, Place, Watch};
use super::report::AttemptRow;
use super::schedule::{PhaseTimes, Schedule, Seen};
use super::spec::{Faults, RehearsalError, RehearsalSpec};

/// Attempts in a row that get no further before a schedule by time is said to let the job get nowhere.
const MAX_STUCK: u32 = 25;

/// What all runs of a rehearsal share.
pub(super) struct Theatre<'a> {
    pub(super) spec: &'a RehearsalSpec,
    pub(super) program: PathBuf,
    /// The name under which the job's checkpoints are filed.
    pub(super) name: String,
    /// Where runs have their folders.
    pub(super) work: PathBuf,
    /// A folder with a short path: sockets allow no long ones.
    pub(super) sockets: PathBuf,
    pub(super) grace: Duration,
    pub(super) interrupted: &'a AtomicBool,
}

/// What distinguishes one run from another.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Its number, and its folder's name.
    pub(super) number: u32,
    pub(super) kill: bool,
    pub(super) damage: bool,
    pub(super) faults: Option<Faults>,
    /// Compile the component in every attempt of the first execution.
    pub(super) fresh_cache: bool,
    /// Write down the volume operations of this attempt.
    pub(super) trace: Option<u32>,
    /// A first failure ends the run.
    pub(super) no_retries: bool,
}

/// How a run went.
pub(super) struct Ran {
    pub(super) folder: PathBuf,
    pub(super) place: Place,
    pub(super) rows: Vec<AttemptRow>,
    /// What its attempts did wrong, whatever came out in the end.
    pub(super) violations: Vec<Difference>,
    /// Why it was given up, if it was.
    pub(super) gave_up: Option<String>,
    pub(super) times: PhaseTimes,
    pub(super) save_times: Vec<Duration>,
    pub(super) sizes: Vec<u64>,
    /// The steps before which attempts were struck.
    pub(super) struck: Vec<u64>,
    pub(super) wall: Duration,
    pub(super) reached: u64,
}

impl Ran {
    /// What the last attempt logged.
    pub(super) fn last_log(&self) -> PathBuf {
        log_path(&self.folder, self.rows.len().saturating_sub(1))
    }

    /// The trace of volume operations, where one was asked for.
    pub(super) fn trace(&self) -> PathBuf {
        self.folder.join("trace")
    }
}

fn log_path(folder: &Path, attempt: usize) -> PathBuf {
    folder.join(format!("attempt-{attempt:04}.stderr"))
}

/// The state of a run between its attempts.
struct Stage<'a> {
    theatre: &'a Theatre<'a>,
    plan: &'a Plan,
    watch: Watch,
    random: ChaCha8Rng,
    ran: Ran,
    execution: u32,
    attempt: u32,
    retries: u32,
    stuck: u32,
}

impl Theatre<'_> {
    /// Runs the job to its end under `schedule`. `struck` is called after each attempt that was struck.
    pub(super) fn run(&self, plan: &Plan, schedule: &mut Schedule, struck: &dyn Fn()) -> Result<Ran, RehearsalError> {
        let begun = Instant::now();
        let folder = self.work.join(format!("run-{:04}", plan.number));
        for part in ["volume", "scratch"] {
            make_dir(&folder.join(part))?;
        }
        let mut stage = Stage::new(self, plan, folder);
        loop {
            let number = stage.ran.rows.len() as u32;
            let attempted = stage.attempt(schedule)?;
            schedule.ended(attempted.hit.as_ref());
            if attempted.hit.is_some() {
                struck();
            }
            stage.take_in(number, &attempted)?;
            if stage.is_over(number, &attempted)? {
                break;
            }
        }
        stage.ran.wall = begun.elapsed();
        Ok(stage.ran)
    }
}

impl<'a> Stage<'a> {
    fn new(theatre: &'a Theatre<'a>, plan: &'a Plan, folder: PathBuf) -> Self {
        let place = Place::new(&folder.join("volume"), &theatre.name);
        let random = ChaCha8Rng::seed_from_u64(theatre.spec.chaos_seed ^ u64::from(plan.number));
        let ran = Ran {
            folder,
            place,
            rows: Vec::new(),
            violations: Vec::new(),
            gave_up: None,
            times: PhaseTimes::new(),
            save_times: Vec::new(),
            sizes: Vec::new(),
            struck: Vec::new(),
            wall: Duration::ZERO,
            reached: 0,
        };
        Self { theatre, plan, watch: Watch::default(), random, ran, execution: 1, attempt: 0, retries: 0, stuck: 0 }
    }

    /// Damages what is to be damaged, then runs one attempt.
    fn attempt(&mut self, schedule: &mut Schedule) -> Result<Attempted, RehearsalError> {
        let number = self.ran.rows.len();
        let resumes = self.ran.place.checkpoints().map_err(self.unreadable())?.len();
        let damaged = if self.plan.damage && number > 0 {
            self.watch.damage_newest(&self.ran.place, &mut self.random).map_err(self.unreadable())?
        } else {
            None
        };
        // A platform that counts this as a retry, on a volume without a trace of the job, would rightly be refused: an
        // attempt that was struck before it saw its volume is followed by a new execution, as a person would start one.
        if number > 0 && !self.ran.place.job.exists() {
            self.begin_execution();
        }
        schedule.begin_attempt(resumes > 0);
        let fresh_cache = self.plan.fresh_cache || schedule.wants_compilation();
        let attempt = self.prepare(number, schedule.timer(), fresh_cache)?;
        let attempted = attempt.run(self.theatre.interrupted, &mut |mark| schedule.at_mark(mark))?;
        self.ran.rows.push(AttemptRow {
            run: self.plan.number,
            number: number as u32,
            ending: attempted.ending,
            hit: attempted.hit,
            fault: self.fault_of(number).map(str::to_owned),
            damaged,
            ..AttemptRow::default()
        });
        Ok(attempted)
    }

    fn prepare(
        &self,
        number: usize,
        timer: Option<Duration>,
        fresh_cache: bool,
    ) -> Result<Attempt<'a>, RehearsalError> {
        let (theatre, folder) = (self.theatre, &self.ran.folder);
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("CLOUD_RUN_JOB", theatre.name.clone().into()),
            ("CLOUD_RUN_EXECUTION", format!("{}-{}-{}", theatre.name, self.plan.number, self.execution).into()),
            ("CLOUD_RUN_TASK_INDEX", "0".into()),
            ("CLOUD_RUN_TASK_COUNT", "1".into()),
            ("CLOUD_RUN_TASK_ATTEMPT", self.attempt.to_string().into()),
            ("STEADFAST_REHEARSAL", "1".into()),
        ];
        if fresh_cache {
            let cache = folder.join("cache");
            let _ = std::fs::remove_dir_all(&cache);
            variables.push(("STEADFAST_CACHE", cache.into()));
        }
        if let Some(plan) = self.fault_of(number) {
            variables.push((FAULTS_VARIABLE, plan.into()));
        }
        if self.plan.trace == Some(number as u32) {
            variables.push((TRACE_VARIABLE, folder.join("trace").into()));
        }
        Ok(Attempt {
            program: &theatre.program,
            arguments: self.arguments(number),
            variables,
            socket: theatre.sockets.join(format!("{}-{number}", self.plan.number)),
            stdout: log_path(folder, number).with_extension("stdout"),
            stderr: log_path(folder, number),
            kill: self.plan.kill,
            grace: theatre.grace,
            timer,
        })
    }

    fn arguments(&self, number: usize) -> Vec<OsString> {
        let (spec, folder) = (self.theatre.spec, &self.ran.folder);
        let mut arguments = vec![OsString::from("run")];
        arguments.extend(spec.run_args.iter().cloned());
        arguments.extend(["--volume".into(), folder.join("volume").into()]);
        arguments.extend(["--scratch".into(), folder.join("scratch").into()]);
        if spec.job.output.is_some() {
            arguments.extend(["--output".into(), folder.join("output").into()]);
        }
        let given = |option: &str| spec.run_args.iter().any(|argument| argument.to_string_lossy().starts_with(option));
        if !given("--log") {
            // An attempt sees an engine, and would log for its collector; here people read it.
            arguments.extend(["--log".into(), "human".into()]);
        }
        if let Some(threads) = spec.device_threads.iter().cycle().nth(number) {
            arguments.extend(["--device-threads".into(), threads.to_string().into()]);
        }
        if let Some(device) = spec.devices.iter().cycle().nth(number) {
            arguments.extend(["--device".into(), device.to_string().into()]);
        }
        let disturbed = self.plan.kill || self.plan.damage || self.plan.faults.is_some();
        if disturbed && !given("--max-stalled") {
            // An attempt killed before its first save made no progress, through no fault of the job's.
            arguments.extend(["--max-stalled".into(), "1000000".into()]);
        }
        arguments
    }

    /// What goes wrong in this attempt.
    fn fault_of(&self, number: usize) -> Option<&'a str> {
        match &self.plan.faults {
            Some(Faults::Plan { attempt, plan }) if *attempt as usize == number => Some(plan),
            _ => None,
        }
    }

    /// Looks at what the attempt left behind, and completes its row.
    fn take_in(&mut self, number: u32, attempted: &Attempted) -> Result<(), RehearsalError> {
        let fault = self.fault_of(number as usize);
        // Bits that were stored wrong without a word are found when they are read back, not before.
        let excuse = fault.is_some_and(|plan| plan.contains("corrupt"));
        let look = self.watch.look(&self.ran.place, excuse).map_err(self.unreadable())?;
        let broken = look.broken.iter().map(|(file, what)| Difference::BrokenCheckpoint {
            attempt: number,
            file: file.clone(),
            what: what.clone(),
        });
        self.ran.violations.extend(broken);
        if fault.is_none() && ended_wrongly(self.plan.kill, attempted) {
            let how = attempted.ending.to_string();
            self.ran.violations.push(Difference::WrongEnding { attempt: number, how });
        }
        self.measure(attempted);
        self.ran.sizes.extend(&look.new_sizes);
        self.ran.struck.extend(attempted.hit.map(|hit| hit.step));
        if let Some(row) = self.ran.rows.last_mut() {
            complete(row, &attempted.track, &look);
        }
        lose_what_is_run_again(&mut self.ran.rows);
        // What a killed attempt left on scratch space would fill it over hundreds of attempts.
        let scratch = self.ran.folder.join("scratch");
        let _ = std::fs::remove_dir_all(&scratch);
        make_dir(&scratch)
    }

    fn measure(&mut self, attempted: &Attempted) {
        for phase in STRUCK {
            let mut durations = attempted.track.durations(phase, attempted.end);
            durations.sort_unstable();
            let typical = durations.get(durations.len() / 2).copied().unwrap_or_default();
            let seen = Seen { count: durations.len() as u64, typical };
            if self.ran.rows.len() == 1 {
                self.ran.times.insert(phase, seen);
            }
            if phase == Phase::Save {
                self.ran.save_times.append(&mut durations);
            }
        }
    }

    /// Decides what a platform would do now: `true` ends the run.
    fn is_over(&mut self, number: u32, attempted: &Attempted) -> Result<bool, RehearsalError> {
        let reached = attempted.track.reached().unwrap_or(0);
        self.stuck = if reached > self.ran.reached { 0 } else { self.stuck + 1 };
        self.ran.reached = self.ran.reached.max(reached);
        if self.stuck >= MAX_STUCK && attempted.hit.is_some() && self.theatre.spec.preempt.is_by_time() {
            return Err(RehearsalError::NoProgress { attempts: self.stuck, step: reached });
        }
        let faulted = self.fault_of(number as usize).is_some();
        match attempted.ending {
            Ending::Exit(0) => return Ok(true),
            Ending::Exit(2 | 70 | 76) if faulted => self.begin_execution(),
            Ending::Exit(2 | 65 | 70 | 76) => return Ok(self.give_up(attempted.ending)),
            _ if attempted.hit.is_some() || faulted => self.attempt += 1,
            _ if self.plan.no_retries || self.retries >= self.theatre.spec.max_retries => {
                return Ok(self.give_up(attempted.ending));
            }
            _ => {
                self.retries += 1;
                self.attempt += 1;
            }
        }
        Ok(false)
    }

    fn give_up(&mut self, ending: Ending) -> bool {
        let last = self.ran.rows.len().saturating_sub(1);
        let said = last_words(&self.ran.last_log(), 12);
        let said = said.lines().rfind(|line| !line.starts_with("hint:")).unwrap_or_default();
        self.ran.gave_up = Some(format!("attempt {last} ended with {ending}: {said}"));
        true
    }

    fn begin_execution(&mut self) {
        self.execution += 1;
        self.attempt = 0;
    }

    fn unreadable(&self) -> impl Fn(std::io::Error) -> RehearsalError + use<> {
        let path = self.ran.place.task.clone();
        move |cause| RehearsalError::Files { operation: "read", path: path.clone(), cause }
    }
}

/// Whether an attempt that was told to stop ended as none should. Before its handler stands, the signal itself may end it.
fn ended_wrongly(kill: bool, attempted: &Attempted) -> bool {
    let Some(hit) = attempted.hit.filter(|hit| !kill && !hit.outlived_grace) else { return false };
    match attempted.ending {
        Ending::Exit(0 | 143) => false,
        Ending::Signal(15) => hit.phase != Phase::StartUp,
        _ => true,
    }
}

/// What the attempt before ran beyond the newest one's first step is lost, even if it was safe then: its checkpoint may have
/// been damaged since.
fn lose_what_is_run_again(rows: &mut [AttemptRow]) {
    let Some((row, before)) = rows.split_last_mut() else { return };
    let Some(first) = row.first_step else { return };
    if let Some((previous, begun)) = before.iter_mut().rev().find_map(|row| row.first_step.map(|begun| (row, begun))) {
        previous.steps_lost = (begun + previous.steps_run).saturating_sub(first);
    }
}

fn complete(row: &mut AttemptRow, track: &Track, look: &Look) {
    row.first_step = track.first_step();
    row.saved_step = look.saved;
    let Some(first) = row.first_step else { return };
    let saved = look.saved.unwrap_or(0);
    let reached = track.reached().unwrap_or(first);
    row.steps_run = reached.max(saved).saturating_sub(first);
    if row.ending != Ending::Exit(0) {
        row.steps_lost = reached.saturating_sub(saved);
    }
}

/// How many operations of the traced attempt there were.
pub(super) fn traced_operations(ran: &Ran) -> Result<u64, RehearsalError> {
    Ok(read_trace(&ran.trace())?.last().map_or(0, |operation| operation.number))
}

/// The last lines of a log, for people.
pub(super) fn last_words(log: &Path, lines: usize) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

pub(super) fn make_dir(path: &Path) -> Result<(), RehearsalError> {
    std::fs::create_dir_all(path).map_err(|cause| RehearsalError::Files {
        operation: "create",
        path: path.to_owned(),
        cause,
    })
}
