//! `steadfast plugin try`: a new plugin on a job's checkpoints, before it is swapped in.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::super::config::{self, ConfigSource};
use super::super::failure::Failure;
use super::super::print;
use super::super::values::{Place, Size, Source, Time, at_least_one};
use crate::compiled::default_cache_folder;
use crate::job::spec::{JobSpec, LogFormat};
use crate::job::{DevicePlan, Limits, MemoryPlan, Room};
use crate::platform::process_environment;
use crate::plugin::{Nans, Plugin, Runtime, Step};
use crate::trial::{self, Comparison, Facts, Report, Trial, TrialError, TrialSpec, Verdict};

/// Try a new plugin on a job's checkpoints, before it is swapped in; writes nothing to the volume
#[derive(Args, Clone, Debug)]
#[command(after_help = ABOUT, after_long_help = ABOUT)]
pub(super) struct TryCommand {
    /// The new component, in a file or a registry
    #[arg(value_name = "NEW.wasm|oci://…")]
    plugin: Source,

    /// On what: a volume, a job's or a task's folder (the newest usable checkpoint of each task), or one checkpoint
    #[arg(long, value_name = "VOLUME/JOB[/TASK]|CHECKPOINT")]
    against: Place,

    /// How many steps to run from there
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, default_value = "3")]
    steps: NonZeroU32,

    /// Folder that the plugin sees, read-only, as /input
    #[arg(long, value_name = "DIR")]
    input: Option<Place>,

    /// Configuration for the new plugin: a JSON or TOML file, or inline JSON [default: that of the checkpoint]
    #[arg(long, value_name = "FILE|JSON")]
    config: Option<ConfigSource>,

    /// The most that the plugin's memories and tables may take together [default: 2GiB, or what fits beside the state's copy]
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Size>,

    /// The most that the buffers of the plugin's device may take together [default: as --memory-limit]
    #[arg(long, value_name = "SIZE")]
    device_memory: Option<Size>,

    /// The most that the plugin's state may take, buffers included [default: both together]
    #[arg(long, value_name = "SIZE")]
    state_limit: Option<Size>,

    /// Give every NaN the same bits on every kind of processor, as for the run
    #[arg(long)]
    canonical_nans: bool,

    /// End the trial when a step, or another call of the plugin, takes longer
    #[arg(long, value_name = "TIME", default_value = "5m")]
    step_timeout: Time,

    /// Space for the plugin's /output [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    scratch: Option<Place>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const ABOUT: &str = "\
Restores the checkpoint into the new plugin, with /output as it was then, runs some steps and takes a snapshot, all in a folder \
that vanishes. Where the volume still has the plugin that made the checkpoint, that one does the same, and the two are compared. \
Differences are only told: another result may be the purpose. The volume is only read, so the job may be at work meanwhile.

Examples:
  steadfast plugin try new.wasm --against checkpoints/digits --input data
      Every task of the job, one line each.

  steadfast plugin try new.wasm --against checkpoints/digits/task-00000-of-00001 --steps 100 --json
      One task, with more steps, for a script.

Exit codes:
    0  the new plugin goes on from every checkpoint that it was tried on
    1  it does not from one of them, or is no plugin at all; with what a run would say
    2  the command line is wrong, or there is no checkpoint to try it on
  70, 75  a checkpoint, the volume or this machine fails: see the message";

pub(super) fn execute(command: TryCommand) -> Result<u8, Failure> {
    let json = command.json;
    let nans = if command.canonical_nans { Nans::Canonical } else { Nans::AsComputed };
    let spec = command.resolve()?;
    let runtime =
        Runtime::with(nans, default_cache_folder(&process_environment)).map_err(crate::job::RunError::from)?;
    let reporter = crate::report::init(LogFormat::Human);
    let shown = reporter.progress();
    let outcome = trial::run(&spec, &runtime, &|done, all, what| shown.update(done, Some(all), what));
    shown.finish();
    let (plugin, trials) = outcome.map_err(failed)?;
    if json {
        print::json(&as_json(&plugin, &trials))?;
    } else {
        print::text(&for_people(&plugin, &trials))?;
    }
    Ok(u8::from(trials.iter().any(|trial| matches!(trial.verdict, Verdict::Misfit { .. }))))
}

impl TryCommand {
    fn resolve(self) -> Result<TrialSpec, Failure> {
        if let Some(Place(input)) = self.input.as_ref().filter(|input| !input.0.is_dir()) {
            return Err(Failure::usage(format!("the input `{}` is not a folder", input.display())));
        }
        let config = self.config.map(|config| config.load(Path::new(""))).transpose()?;
        let bytes = |size: Option<Size>| size.map(|size| size.0);
        let limits = Limits {
            guest: bytes(self.memory_limit),
            device: bytes(self.device_memory),
            state: bytes(self.state_limit),
        };
        // As in a run whose volume is a disk.
        let room = Room::here(&self.plugin.0, false);
        let canonical_nans = self.canonical_nans;
        let asked = JobSpec { canonical_nans, ..JobSpec::new("") };
        let device = DevicePlan::choose(&asked, room.device).map_err(Failure::from)?;
        let memory = MemoryPlan::divide(limits, Room { own_memory: device.own_memory(), ..room });
        Ok(TrialSpec {
            plugin: self.plugin.0,
            against: self.against.0,
            steps: self.steps.get(),
            input: self.input.map(|place| place.0),
            config: config.map(|value| config::canonical(&value)),
            scratch: self.scratch.map_or_else(std::env::temp_dir, |place| place.0),
            memory_limit: memory.guest,
            state_limit: memory.state,
            device,
            device_memory: memory.device,
            step_timeout: self.step_timeout.0,
        })
    }
}

fn failed(error: TrialError) -> Failure {
    match error {
        TrialError::Browse(error) => error.into(),
        // What is no plugin does not fit either.
        TrialError::Run(error) if trial::is_misfit(&error) => Failure { code: 1, ..error.into() },
        TrialError::Run(error) => error.into(),
        error @ TrialError::NoInput(_) => {
            Failure::usage(error.to_string()).hint("give its folder with --input, as for the run")
        }
        error @ TrialError::NoSubject(_) => Failure::usage(error.to_string()),
    }
}

fn for_people(plugin: &Plugin, trials: &[Trial]) -> String {
    let mut text: String = trials.iter().map(|trial| line(trial) + "\n").collect();
    if let [trial] = trials {
        text.push_str(&crate::report::render_block(&rows(plugin, trial)));
    }
    text
}

/// The verdict on one task, in one line.
fn line(trial: &Trial) -> String {
    let who = format!("{} · task {} of {}", trial.job, trial.task.index, trial.task.count);
    match &trial.verdict {
        Verdict::Nothing(why) => format!("skipped   {who} · {why}"),
        Verdict::Misfit { subject, why } => {
            let first = why.to_string();
            format!("misfit    {who} · from step {}: {}", subject.step, first.lines().next().unwrap_or_default())
        }
        Verdict::Fits(report) => {
            let steps = match report.new.steps.len() {
                1 => "1 step".to_owned(),
                more => format!("{more} steps"),
            };
            format!("fits      {who} · {steps} from step {} · {}", report.subject.step, summary(&report.compared))
        }
    }
}

fn summary(compared: &Result<Comparison, String>) -> String {
    match compared {
        Ok(comparison) => match &comparison.differing()[..] {
            [] => "as the old plugin, to the bit".to_owned(),
            differing => format!("differs from the old plugin: {}", differing.join(", ")),
        },
        Err(_) => "not compared".to_owned(),
    }
}

/// What there is to say about a single task.
fn rows(plugin: &Plugin, trial: &Trial) -> Vec<(&'static str, String)> {
    let versions = plugin.state_versions();
    let says = versions.map_or("does not say which state it reads".to_owned(), ToString::to_string);
    let mut rows = vec![("plugin", format!("{} · {says}", plugin.digest()))];
    let about = |facts: &Facts| {
        let state = format!("{} · state of version {}", facts.checkpoint.display(), facts.state_version);
        let notes = facts.notes.iter().map(|note| ("note", note.clone()));
        [("from", state)].into_iter().chain(notes).collect::<Vec<_>>()
    };
    match &trial.verdict {
        Verdict::Nothing(_) => {}
        Verdict::Misfit { subject, why } => {
            rows.extend(about(subject));
            rows.push(("why", why.to_string()));
            rows.extend(why.hint().map(|hint| ("hint", hint)));
        }
        Verdict::Fits(report) => {
            rows.extend(about(&report.subject));
            rows.extend(comparison_rows(report));
        }
    }
    rows
}

fn comparison_rows(report: &Report) -> Vec<(&'static str, String)> {
    let memory = ("memory", print::size(report.new.memory));
    match &report.compared {
        Err(why) => {
            let progress = report.new.steps.last().map_or(String::new(), |(_, step)| said(step));
            let state = format!("{} of version {}", print::size(report.new.state_bytes()), report.new.state.version);
            let time = in_milliseconds(report.new.usual_step());
            vec![("progress", progress), ("state", state), memory, ("steps", time), ("note", why.clone())]
        }
        Ok(comparison) => {
            let word = |equal: bool| if equal { "equal" } else { "differs" };
            let aspects = comparison.aspects.iter();
            let mut rows: Vec<_> =
                aspects.map(|aspect| (aspect.what, format!("{}: {}", word(aspect.equal), aspect.text))).collect();
            let (new, old) = comparison.step_times;
            let times = new.as_secs_f64() / old.as_secs_f64().max(1e-9);
            let both = format!("{}, the old one's {}", in_milliseconds(new), in_milliseconds(old));
            rows.extend([memory, ("steps", format!("{both}: {times:.2} times as long"))]);
            rows
        }
    }
}

fn said(step: &Step) -> String {
    match step {
        Step::More { done, total } => format!("{done}{}", total.map_or(String::new(), |total| format!(" of {total}"))),
        Step::Done(line) => format!("done, `{line}`"),
    }
}

fn in_milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn as_json(plugin: &Plugin, trials: &[Trial]) -> Value {
    let versions = plugin.state_versions();
    let versions = versions.map(|all| json!({"writes": all.writes, "reads": all.reads}));
    let trials: Vec<_> = trials.iter().map(trial_as_json).collect();
    json!({"plugin": plugin.digest(), "state_versions": versions, "trials": trials})
}

fn trial_as_json(trial: &Trial) -> Value {
    let subject = |facts: &Facts| {
        json!({
            "checkpoint": facts.checkpoint, "step": facts.step, "state_version": facts.state_version,
            "notes": facts.notes,
        })
    };
    let verdict = match &trial.verdict {
        Verdict::Nothing(why) => json!({"verdict": "skipped", "why": why}),
        Verdict::Misfit { subject: facts, why } => json!({
            "verdict": "misfit", "from": subject(facts), "why": why.to_string(), "hint": why.hint(),
            "exit_code_of_a_run": why.exit_code().code(),
        }),
        Verdict::Fits(report) => json!({
            "verdict": "fits", "from": subject(&report.subject), "steps": report.new.steps.len(),
            "state_bytes": report.new.state_bytes(), "state_version": report.new.state.version,
            "memory_bytes": report.new.memory, "compared": report.compared.as_ref().ok().map(comparison_as_json),
            "not_compared": report.compared.as_ref().err(),
        }),
    };
    let mut value = json!({"job": trial.job, "task_index": trial.task.index, "task_count": trial.task.count});
    if let (Some(all), Value::Object(verdict)) = (value.as_object_mut(), verdict) {
        all.extend(verdict);
    }
    value
}

fn comparison_as_json(comparison: &Comparison) -> Value {
    let (new, old) = comparison.step_times;
    let aspects = comparison.aspects.iter();
    let aspects: Vec<_> =
        aspects.map(|aspect| json!({"what": aspect.what, "equal": aspect.equal, "text": aspect.text})).collect();
    json!({"aspects": aspects, "step_seconds": new.as_secs_f64(), "old_step_seconds": old.as_secs_f64()})
}
