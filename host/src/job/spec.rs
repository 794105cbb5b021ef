//! What to run and how: the validated form of the command line and `job.toml`.
//!
//! The fields have the meaning of the options of the same name; `cli` fills them, `job.toml` is read into the same type.
//! Nothing here touches the filesystem or asks the environment.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::source::PluginSource;

/// A validated specification of one job.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The component.
    pub plugin: PluginSource,
    /// The job's file, if there is one: it may name another plugin while the job runs.
    pub job_file: Option<JobFile>,
    /// The job's name; the platform's or the plugin's file stem where none is given.
    pub name: Option<JobName>,
    /// Files checkpoints under this name instead of the job's.
    pub run_id: Option<JobName>,
    /// The plugin's configuration: JSON text with keys in sorted order, so that equal configurations are equal texts.
    pub config: String,
    /// Where checkpoints go.
    pub volume: Option<PathBuf>,
    /// What the guest sees read-only at `/input`.
    pub input: Option<PathBuf>,
    /// Where a copy of the finished outputs goes.
    pub output: Option<PathBuf>,
    /// Space for the guest's `/output` while it runs; the system's temporary folder where none is given.
    pub scratch: Option<PathBuf>,
    /// Seed of every generator; a hash of job name and task index where none is given.
    pub seed: Option<u64>,
    /// When to save.
    pub every: Every,
    /// How many checkpoints to keep.
    pub keep: NonZeroU32,
    /// Time between the stop signal and SIGKILL; the engine's where none is given.
    pub grace: Option<Duration>,
    /// Bytes that the guest's memories and tables may have together; 2 GiB, or what fits, where none is given.
    pub memory_limit: Option<u64>,
    /// Bytes that a snapshot of the guest's state may have; as many as its memory where none is given.
    pub state_limit: Option<u64>,
    /// What runs the kernels.
    pub device: DeviceChoice,
    /// Bytes that buffers of the device may have together; what fits where none is given.
    pub device_memory: Option<u64>,
    /// Threads that run kernels on the CPU; one a core where none is given.
    pub device_threads: Option<NonZeroU32>,
    /// The only component that may be run, by its digest.
    pub plugin_digest: Option<String>,
    /// Which plugin goes on, where the file and the checkpoint name different ones.
    pub plugin_from: Option<PluginFrom>,
    /// Look at the plugin's file from time to time, and change to what it then holds. Registries are not asked from time to time.
    pub watch: bool,
    /// Give every NaN the same bits on every kind of processor.
    pub canonical_nans: bool,
    /// Tell at the end where the device's time went.
    pub profile: bool,
    /// A step, or another call of the guest, that takes longer ends the attempt; without it a stall is only warned of.
    pub step_timeout: Option<Duration>,
    /// Checkpoint and exit 143 after this time, before the platform's own timeout.
    pub attempt_deadline: Option<Duration>,
    /// What to do when the task is already done.
    pub if_done: IfDone,
    /// Begin a new lineage at step 0.
    pub fresh: bool,
    /// Begin a new lineage from the checkpoint of this step.
    pub from: Option<u64>,
    /// Changes since the checkpoint that are meant.
    pub accept_changed: BTreeSet<Changeable>,
    /// The volume may vanish with the attempt, and that is meant.
    pub volume_is_ephemeral: bool,
    /// Attempts in a row without progress before the job is given up with 65.
    pub max_stalled: NonZeroU32,
    /// Failed saves in a row before the attempt ends with 75.
    pub max_save_failures: NonZeroU32,
    /// Digest the contents of the input files, not only their names and sizes.
    pub input_digest: InputDigest,
    /// How log lines are written.
    pub log: LogFormat,
    /// Print what would be done, and stop.
    pub dry_run: bool,
}

impl JobSpec {
    /// This plugin with every option as it is when nothing is said.
    #[must_use]
    pub fn new(plugin: impl Into<PluginSource>) -> Self {
        Self {
            plugin: plugin.into(),
            job_file: None,
            name: None,
            run_id: None,
            config: "{}".to_owned(),
            volume: None,
            input: None,
            output: None,
            scratch: None,
            seed: None,
            every: Every::Time(Duration::from_secs(30)),
            keep: NonZeroU32::MIN.saturating_add(1),
            grace: None,
            memory_limit: None,
            state_limit: None,
            device: DeviceChoice::default(),
            device_memory: None,
            device_threads: None,
            plugin_digest: None,
            plugin_from: None,
            watch: false,
            canonical_nans: false,
            profile: false,
            step_timeout: None,
            attempt_deadline: None,
            if_done: IfDone::default(),
            fresh: false,
            from: None,
            accept_changed: BTreeSet::new(),
            volume_is_ephemeral: false,
            max_stalled: NonZeroU32::MIN.saturating_add(2),
            max_save_failures: NonZeroU32::MIN.saturating_add(2),
            input_digest: InputDigest::default(),
            log: LogFormat::default(),
            dry_run: false,
        }
    }
}

impl JobSpec {
    /// The plugin's name: that of its file, without the ending, or of its repository.
    #[must_use]
    pub fn plugin_name(&self) -> String {
        self.plugin.name()
    }
}

/// What runs the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The best that is there.
    #[default]
    Auto,
    /// The machine's cores.
    Cpu,
    /// A GPU, by its number if given; never anything else.
    Cuda(Option<u32>),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(number)) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        match given {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            _ => given
                .strip_prefix("cuda:")
                // A sign would be read as part of the number.
                .filter(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|number| number.parse().ok())
                .map(|number| Self::Cuda(Some(number)))
                .ok_or("it is none of auto, cpu, cuda and cuda:NUMBER"),
        }
    }
}

/// A job's file, to be read again while the job runs. How that is done is the affair of whoever read it first.
#[derive(Clone)]
pub struct JobFile(Arc<Reread>);

type Reread = dyn Fn() -> Result<Named, String> + Send + Sync;

/// What a job's file says by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The component.
    pub plugin: PluginSource,
    /// The only component that may be run, by its digest.
    pub plugin_digest: Option<String>,
    /// The other options that it changed, which a running attempt cannot take.
    pub not_taken: Vec<String>,
}

impl JobFile {
    /// A file that `reread` reads; an error is a text for people.
    pub fn new(reread: impl Fn() -> Result<Named, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reread))
    }

    /// Reads it.
    pub fn read(&self) -> Result<Named, String> {
        (self.0)()
    }
}

impl fmt::Debug for JobFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobFile")
    }
}

/// When a checkpoint is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// This long after the last one began.
    Time(Duration),
    /// After this many steps.
    Steps(u64),
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{}", humantime::format_duration(*time)),
            Self::Steps(1) => f.write_str("1 step"),
            Self::Steps(steps) => write!(f, "{steps} steps"),
        }
    }
}

/// Why a text doesn't say when a checkpoint is due.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: say a time, such as 30s or 5m, or a number of steps, such as 5steps")]
pub struct BadEvery {
    reason: &'static str,
}

impl FromStr for Every {
    type Err = BadEvery;

    fn from_str(given: &str) -> Result<Self, BadEvery> {
        let given = given.trim();
        let count = given.strip_suffix("steps").or_else(|| given.strip_suffix("step")).map(str::trim_end);
        let every = match count {
            Some(count) => count.parse().map(Self::Steps).map_err(|_| "not a number of steps"),
            None if given.parse::<f64>().is_ok() => Err("it has no unit"),
            None => {
                humantime::parse_duration(given).map(Self::Time).map_err(|_| "neither a time nor a number of steps")
            }
        };
        match every {
            Ok(Self::Steps(0) | Self::Time(Duration::ZERO)) => {
                Err(BadEvery { reason: "it has to be more than nothing" })
            }
            Ok(every) => Ok(every),
            Err(reason) => Err(BadEvery { reason }),
        }
    }
}

/// What to do when the newest lineage of the task is already done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum IfDone {
    /// Exit 0, doing nothing.
    #[default]
    Skip,
    /// Exit 70.
    Fail,
    /// Begin a new lineage.
    Restart,
}

/// What may differ from the checkpoint, if it is allowed by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Changeable {
    /// The plugin's configuration.
    Config,
    /// The files of `/input`.
    Input,
    /// The component.
    Plugin,
    /// The number of tasks.
    TaskCount,
}

impl fmt::Display for Changeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "config",
            Self::Input => "input",
            Self::Plugin => "plugin",
            Self::TaskCount => "task-count",
        })
    }
}

/// Where the plugin comes from, if the job has gone on under another than the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PluginFrom {
    /// The file or reference that is named (a tag is looked up again), if the change is accepted or the plugin reads the state
    File,
    /// The volume, where every plugin that the job has run is kept
    Volume,
}

/// What the digest of the input covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum InputDigest {
    /// Names and sizes: free, and notices most changes.
    #[default]
    Names,
    /// Every byte.
    Contents,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// JSON where an engine is detected, else for people.
    #[default]
    Auto,
    /// For people.
    Human,
    /// One JSON object a line, as Cloud Logging reads them.
    Json,
}

impl LogFormat {
    /// The format that `Auto` stands for: JSON under an engine, which collects what is written; else for people.
    #[must_use]
    pub fn resolved(self, engine_detected: bool) -> Self {
        match self {
            Self::Auto if engine_detected => Self::Json,
            Self::Auto => Self::Human,
            given => given,
        }
    }
}

/// A job's name: safe as a folder's name on every file system and bucket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobName(String);

/// Why a text is no job name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no usable job name: {reason}", given.escape_debug())]
pub struct BadJobName {
    given: String,
    reason: &'static str,
}

impl JobName {
    /// The longest allowed name, in bytes: leaves room for the file names below it.
    pub const MAX_BYTES: usize = 128;

    /// Takes 1 to 128 letters, digits, `.`, `_` and `-` (ASCII), beginning with a letter or digit. Names that some file system
    /// reserves (`con`, `nul` …) are refused.
    pub fn new(given: impl Into<String>) -> Result<Self, BadJobName> {
        let given = given.into();
        match Self::fault(&given) {
            None => Ok(Self(given)),
            Some(reason) => Err(BadJobName { given: given.chars().take(160).collect(), reason }),
        }
    }

    fn fault(given: &str) -> Option<&'static str> {
        const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let stem = given.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let port = (stem.starts_with("com") || stem.starts_with("lpt"))
            && stem.len() == 4
            && stem.ends_with(|c: char| c.is_ascii_digit());
        if given.is_empty() {
            Some("it is empty")
        } else if given.len() > Self::MAX_BYTES {
            Some("it is longer than 128 bytes")
        } else if !given.bytes().all(allowed) {
            Some("only ASCII letters, digits, `.`, `_` and `-` are allowed")
        } else if !given.as_bytes()[0].is_ascii_alphanumeric() {
            Some("it must begin with a letter or digit")
        } else if RESERVED.contains(&stem.as_str()) || port {
            Some("some file systems reserve it")
        } else {
            None
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for JobName {
    type Error = BadJobName;
    fn try_from(given: String) -> Result<Self, BadJobName> {
        Self::new(given)
    }
}

impl FromStr for JobName {
    type Err = BadJobName;
    fn from_str(given: &str) -> Result<Self, BadJobName> {
        Self::new(given)
    }
}

impl From<JobName> for String {
    fn from(name: JobName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn when_to_save_is_a_time_or_a_number_of_steps() {
        for (given, shown) in [("30s", "30s"), ("5steps", "5 steps"), (" 1 step ", "1 step"), ("2h 5m", "2h 5m")] {
            let every: Every = given.parse().unwrap();
            assert_eq!(every.to_string(), shown);
            assert_eq!(shown.parse::<Every>().unwrap(), every);
        }
        for given in
            ["", "-", "0s", "0steps", "30", "-5steps", "1.5steps", "steps", "soon", "-30s", "99999999999999999999h"]
        {
            assert!(given.parse::<Every>().is_err(), "{given}");
        }
        insta::assert_snapshot!("30".parse::<Every>().unwrap_err(), @"it has no unit: say a time, such as 30s or 5m, or a number of steps, such as 5steps");
    }

    #[test]
    fn devices_are_named_as_they_are_shown() {
        for given in ["auto", "cpu", "cuda", "cuda:0", "cuda:7"] {
            assert_eq!(given.parse::<DeviceChoice>().unwrap().to_string(), given);
        }
        for given in ["", "gpu", "CUDA", "cuda:", "cuda:+1", "cuda:-1", "cuda:x", "cuda:4294967296", "cpu:0"] {
            assert!(given.parse::<DeviceChoice>().is_err(), "{given}");
        }
    }

    #[test]
    fn names_are_safe_as_folders() {
        for good in ["a", "digits", "0", "a.b_c-d", "com", "console", &"x".repeat(128)] {
            assert!(JobName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "_a", "a/b", "a b", "é", "CON", "nul.txt", "com1", "a\0", &"x".repeat(129)] {
            assert!(JobName::new(bad).is_err(), "{bad}");
        }
    }
}
