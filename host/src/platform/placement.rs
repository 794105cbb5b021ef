//! Who this attempt is: job, task, attempt and execution, and where each is known from.
//!
//! The identity of a lineage of checkpoints is the job's name (or `--run-id`) and the task index, bound to the task count.
//! Never the execution or the attempt number: both change when a job is run again.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::job::spec::{JobName, JobSpec, PluginSource};

use super::engine::{Engine, StopSignal};
use super::{Environment, PlatformError, REHEARSAL_VARIABLE};

/// Where this attempt runs and who it is.
#[derive(Clone, Debug)]
pub struct Placement {
    /// What started it.
    pub engine: Engine,
    /// The job.
    pub job: JobIdentity,
    /// Index of the task, below the count.
    pub task_index: u32,
    /// Number of tasks, at least one.
    pub task_count: u32,
    /// Number of the attempt, from 0, where the engine tells it.
    pub attempt: Option<u32>,
    /// The engine's name for this run of the job, where it tells it: the same in each of its retries.
    pub execution: Option<String>,
    /// Time between the stop signal and SIGKILL.
    pub grace: Grace,
    /// What asks to stop.
    pub stop_signals: Vec<StopSignal>,
    /// The machine's folder for temporary files, `$TMPDIR`, which a volume must not lie in.
    pub temporary_folder: Option<PathBuf>,
    /// An engine is being played on a plain machine.
    pub rehearsal: bool,
}

/// The job's name, and the folder that its checkpoints are filed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobIdentity {
    /// What the job is called. Everybody is told `folder`, which tells runs of one job apart.
    pub name: JobName,
    /// Where the name comes from.
    pub source: NameSource,
    /// `--run-id`, else the name.
    pub folder: JobName,
}

/// Where a job's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// `--name`, or `name` in the job's file.
    Option,
    /// `--run-id`, since nothing else names the job.
    RunId,
    /// This variable.
    Variable(&'static str),
    /// The plugin's file name.
    PluginFile,
    /// The plugin's repository in a registry.
    Repository,
}

impl fmt::Display for NameSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => f.write_str("--name"),
            Self::RunId => f.write_str("--run-id"),
            Self::Variable(name) => f.write_str(name),
            Self::PluginFile => f.write_str("the plugin's file name"),
            Self::Repository => f.write_str("the plugin's repository"),
        }
    }
}

/// The grace time and where it is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// How long it is.
    pub time: Duration,
    /// Where it is known from.
    pub source: GraceSource,
}

/// Where a grace time is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraceSource {
    /// `--grace`.
    Option,
    /// What this engine grants unless it is told otherwise.
    Usual(Engine),
}

impl fmt::Display for GraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => f.write_str("--grace"),
            Self::Usual(Engine::None) => f.write_str("default"),
            Self::Usual(engine) => write!(f, "what {engine} usually grants"),
        }
    }
}

/// Finds out who this attempt is. What the specification says wins over the engine's variables, and those over defaults.
pub fn detect(environment: Environment<'_>, spec: &JobSpec) -> Result<Placement, PlatformError> {
    let engine = Engine::detect(environment);
    let variables = Variables { environment };
    let (task_index, task_count) = variables.task(engine)?;
    Ok(Placement {
        engine,
        job: variables.job(engine, spec)?,
        task_index,
        task_count,
        attempt: variables.attempt(engine)?,
        execution: variables.execution(engine),
        grace: match spec.grace {
            Some(time) => Grace { time, source: GraceSource::Option },
            None => Grace { time: engine.usual_grace(), source: GraceSource::Usual(engine) },
        },
        stop_signals: engine.stop_signals(),
        temporary_folder: variables.text("TMPDIR").map(PathBuf::from),
        rehearsal: variables.text(REHEARSAL_VARIABLE).is_some_and(|value| value != "0"),
    })
}

/// The number of tasks, for engines that don't tell it.
const COUNT: &str = "STEADFAST_TASK_COUNT";
/// The job's name, for engines that don't tell it.
const JOB: &str = "STEADFAST_JOB";

const KUBERNETES_COUNT_HINT: &str =
    "Kubernetes doesn't tell an Indexed Job's pods how many they are: set STEADFAST_TASK_COUNT to its completions";
const SPARSE_ARRAY_HINT: &str =
    "for an array with gaps, number its tasks from 0 and set STEADFAST_TASK_COUNT to how many there are in all";

struct Variables<'a> {
    environment: Environment<'a>,
}

impl Variables<'_> {
    /// The variable's value; one that is set to nothing counts as unset.
    fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &'static str) -> Result<Option<u32>, PlatformError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(PlatformError::NotANumber { name, value }),
        }
    }

    fn job(&self, engine: Engine, spec: &JobSpec) -> Result<JobIdentity, PlatformError> {
        let (name, source) = self.name(engine, spec)?;
        let folder = spec.run_id.clone().unwrap_or_else(|| name.clone());
        Ok(JobIdentity { name, source, folder })
    }

    fn name(&self, engine: Engine, spec: &JobSpec) -> Result<(JobName, NameSource), PlatformError> {
        if let Some(name) = &spec.name {
            return Ok((name.clone(), NameSource::Option));
        }
        let engines_own: &[&'static str] = match engine {
            Engine::CloudRun => &["CLOUD_RUN_JOB"],
            Engine::Kubernetes => &["JOB_NAME"],
            Engine::Slurm => &["SLURM_JOB_NAME"],
            Engine::Nomad => &["NOMAD_JOB_NAME"],
            Engine::AwsBatch | Engine::None => &[],
        };
        let named = |name: &&'static str| self.text(name).map(|value| (value, NameSource::Variable(name)));
        let found = [JOB].iter().chain(engines_own).find_map(named).filter(|(value, source)| {
            // Slurm's own stand-ins for a name are shared by unrelated jobs.
            *source != NameSource::Variable("SLURM_JOB_NAME")
                || !["wrap", "bash", "sh", "sbatch", "interactive"].contains(&value.as_str())
        });
        match (found, &spec.run_id) {
            (Some((value, origin)), _) => match JobName::new(value) {
                Ok(name) => Ok((name, origin)),
                Err(cause) => Err(PlatformError::BadName { origin, cause }),
            },
            (None, Some(run_id)) => Ok((run_id.clone(), NameSource::RunId)),
            (None, None) if engine == Engine::None => plugins_name(spec),
            (None, None) => Err(PlatformError::Nameless { engine, hint: name_hint(engine) }),
        }
    }

    fn task(&self, engine: Engine) -> Result<(u32, u32), PlatformError> {
        match engine {
            Engine::None => Ok((0, 1)),
            Engine::CloudRun => self.indexed("CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"),
            Engine::AwsBatch => self.indexed("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
            Engine::Nomad => self.indexed("NOMAD_ALLOC_INDEX", COUNT),
            Engine::Kubernetes => match (self.number("JOB_COMPLETION_INDEX")?, self.number(COUNT)?) {
                (Some(_), None) => Err(PlatformError::Missing { engine, name: COUNT, hint: KUBERNETES_COUNT_HINT }),
                _ => self.indexed("JOB_COMPLETION_INDEX", COUNT),
            },
            Engine::Slurm => self.slurm_task(),
        }
    }

    /// An index that counts from 0. Without variables it is the only task.
    fn indexed(&self, index_name: &'static str, count_name: &'static str) -> Result<(u32, u32), PlatformError> {
        let hint = (count_name == COUNT).then_some("set STEADFAST_TASK_COUNT to the number of tasks");
        match (self.number(index_name)?, self.number(count_name)?) {
            (None, Some(count)) if count > 1 => Err(PlatformError::Missing {
                engine: Engine::detect(self.environment),
                name: index_name,
                hint: "without it, this task can't be told from the others",
            }),
            (index, count) => in_range(index.unwrap_or(0), index_name, count, count_name, hint),
        }
    }

    /// Slurm's arrays may begin at any number and have steps; tasks here count from 0.
    fn slurm_task(&self) -> Result<(u32, u32), PlatformError> {
        const ID: &str = "SLURM_ARRAY_TASK_ID";
        if self.text(COUNT).is_some() {
            return self.indexed(ID, COUNT);
        }
        let Some(id) = self.number(ID)? else { return Ok((0, 1)) };
        let first = self.number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
        let step = self.number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
        let count_name = "SLURM_ARRAY_TASK_COUNT";
        let count = self.number(count_name)?.ok_or(PlatformError::Missing {
            engine: Engine::Slurm,
            name: count_name,
            hint: "set STEADFAST_TASK_COUNT to the number of tasks",
        })?;
        let index = id.saturating_sub(first) / step;
        let lies_between = id < first || !(id - first).is_multiple_of(step);
        let index = if lies_between { id.max(count) } else { index };
        in_range(index, ID, Some(count), count_name, Some(SPARSE_ARRAY_HINT))
    }

    fn attempt(&self, engine: Engine) -> Result<Option<u32>, PlatformError> {
        match engine {
            Engine::CloudRun => self.number("CLOUD_RUN_TASK_ATTEMPT"),
            // AWS counts from 1.
            Engine::AwsBatch => Ok(self.number("AWS_BATCH_JOB_ATTEMPT")?.map(|attempt| attempt.saturating_sub(1))),
            // Slurm sets its count only after a restart.
            Engine::Slurm => Ok(Some(self.number("SLURM_RESTART_COUNT")?.unwrap_or(0))),
            Engine::None | Engine::Kubernetes | Engine::Nomad => Ok(None),
        }
    }

    fn execution(&self, engine: Engine) -> Option<String> {
        match engine {
            Engine::CloudRun => self.text("CLOUD_RUN_EXECUTION"),
            Engine::Slurm => self.text("SLURM_ARRAY_JOB_ID").or_else(|| self.text("SLURM_JOB_ID")),
            // A child of an array job has its index behind a colon.
            Engine::AwsBatch => {
                self.text("AWS_BATCH_JOB_ID").map(|id| id.split(':').next().unwrap_or_default().to_owned())
            }
            Engine::Kubernetes => self.text("STEADFAST_EXECUTION"),
            Engine::None | Engine::Nomad => None,
        }
    }
}

fn in_range(
    index: u32,
    index_name: &'static str,
    count: Option<u32>,
    count_name: &str,
    hint: Option<&'static str>,
) -> Result<(u32, u32), PlatformError> {
    let said = count.map_or_else(|| format!("{count_name} is not set"), |count| format!("{count_name} is {count}"));
    let count = count.unwrap_or(1);
    if index < count {
        Ok((index, count))
    } else {
        Err(PlatformError::TaskOutOfRange { index, index_name, count, count_name: said, hint })
    }
}

/// On a plain machine a job is called like its plugin.
fn plugins_name(spec: &JobSpec) -> Result<(JobName, NameSource), PlatformError> {
    let origin = match spec.plugin {
        PluginSource::File(_) => NameSource::PluginFile,
        PluginSource::Registry(_) => NameSource::Repository,
    };
    match JobName::new(spec.plugin_name()) {
        Ok(name) => Ok((name, origin)),
        Err(cause) => Err(PlatformError::BadName { origin, cause }),
    }
}

fn name_hint(engine: Engine) -> &'static str {
    match engine {
        Engine::Kubernetes => {
            "give --name or --run-id, or set STEADFAST_JOB or JOB_NAME through the downward API: metadata.labels['batch.kubernetes.io/job-name']"
        }
        Engine::Slurm => "give --name or --run-id, or submit with --job-name",
        _ => "give --name or --run-id, or set the variable STEADFAST_JOB",
    }
}

#[cfg(test)]
mod tests;
