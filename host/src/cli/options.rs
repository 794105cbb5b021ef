//! The options of a run: one struct, read from the command line and from a job's file alike.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::job::spec::{
    Changeable, DeviceChoice, Every, IfDone, InputDigest, JobName, LogFormat, PluginFrom, PluginSource,
};

use super::config::ConfigSource;
use super::failure::Failure;
use super::values::{Digest, Place, Size, Source, Time, as_on_command_line, at_least_one, from_one, whole_number};

/// Options of `run`, all of which may stand in a job's file under the same names.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct RunOptions {
    /// The component; only in a job's file.
    #[arg(skip)]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) plugin: Option<Source>,

    /// Change to another plugin while the job runs, as soon as the file holds one: `run` looks at it from time to time. Without
    /// this it looks when it gets SIGHUP; on SIGHUP alone, a tag in a registry is looked up again
    #[arg(long, help_heading = "Plugin")]
    pub(super) watch: bool,

    /// Which plugin goes on when the job's is no longer the one in the file [default: the job's, from the volume, unless the file is
    /// new to the job and says that it reads the state; then the file's, on probation]. The same for references; one that the job
    /// has looked up before is looked up again only with `file`
    #[arg(long, value_name = "FROM", help_heading = "Plugin")]
    pub(super) plugin_from: Option<PluginFrom>,

    /// Run no other component than this: `sha256:` and 64 hexadecimal digits, as `steadfast plugin inspect` prints them. Of a
    /// reference it is the component's, too, and not the manifest's. In a job's file it may change while the job runs: SIGHUP has
    /// that read again
    #[arg(long, value_name = "DIGEST", help_heading = "Plugin")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) plugin_digest: Option<Digest>,

    /// Name of the job [default: the engine's name for it; on a plain machine the plugin's file name]
    #[arg(long, help_heading = "Identity")]
    pub(super) name: Option<JobName>,

    /// File checkpoints under this name instead of the job's, to run the same job anew beside an earlier run
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub(super) run_id: Option<JobName>,

    /// Configuration for the plugin: a JSON or TOML file, or inline JSON [default: {}]
    #[arg(long, value_name = "FILE|JSON", help_heading = "Work")]
    pub(super) config: Option<ConfigSource>,

    /// Folder that the plugin sees, read-only, as /input
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) input: Option<Place>,

    /// Put a copy of the finished outputs here, beside the one on the volume
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) output: Option<Place>,

    /// Space for the plugin's /output while it runs [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) scratch: Option<Place>,

    /// Seed of all random numbers [default: made from job name and task index]
    #[arg(long, value_name = "NUMBER", help_heading = "Work")]
    #[serde(deserialize_with = "whole_number")]
    pub(super) seed: Option<u64>,

    /// Give every NaN the same bits on every kind of processor; arithmetic with floats takes up to twice as long
    #[arg(long, help_heading = "Work")]
    pub(super) canonical_nans: bool,

    /// Where checkpoints go: a folder that outlives the attempt, such as a mounted bucket or disk. Also $STEADFAST_VOLUME
    /// [default: ./checkpoints, on a plain machine only]
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) volume: Option<Place>,

    /// Save this often: a time (30s, 5m) or a number of steps (5steps) [default: 30s]
    #[arg(long, value_name = "TIME|STEPS", help_heading = "Checkpoints")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) every: Option<Every>,

    /// Keep this many checkpoints [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, help_heading = "Checkpoints")]
    #[serde(deserialize_with = "from_one")]
    pub(super) keep: Option<NonZeroU32>,

    /// Begin at step 0 whatever is on the volume. Retries of the same execution go on from there
    #[arg(long, conflicts_with = "from", help_heading = "Checkpoints")]
    pub(super) fresh: bool,

    /// Begin from the checkpoint of this step instead of the newest
    #[arg(long, value_name = "STEP", help_heading = "Checkpoints")]
    #[serde(deserialize_with = "whole_number")]
    pub(super) from: Option<u64>,

    /// Go on although these changed since the checkpoint (`config` includes the seed)
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', help_heading = "Checkpoints")]
    pub(super) accept_changed: Vec<Changeable>,

    /// Notice changed input by its files' names and sizes, or by their contents [default: names]
    #[arg(long, value_name = "BY", help_heading = "Checkpoints")]
    pub(super) input_digest: Option<InputDigest>,

    /// What to do when the task is already done [default: skip]
    #[arg(long, value_name = "WHAT", help_heading = "Checkpoints")]
    pub(super) if_done: Option<IfDone>,

    /// The volume vanishes with the attempt, and that is meant
    #[arg(long, help_heading = "Checkpoints")]
    pub(super) volume_is_ephemeral: bool,

    /// Time between the stop signal and SIGKILL [default: what the engine usually grants; 10s on a plain machine]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) grace: Option<Time>,

    /// The most that the plugin's memories and tables may take together [default: 2GiB, or what fits beside the state's copy]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) memory_limit: Option<Size>,

    /// What runs the plugin's kernels: auto, cpu, cuda or cuda:NUMBER. What is named is never replaced by another [default: auto]
    #[arg(long, value_name = "DEVICE", help_heading = "Device")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) device: Option<DeviceChoice>,

    /// The most that the buffers of the device may take together [default: what fits beside the rest, 16GiB at most; of a GPU, most of what it has]
    #[arg(long, value_name = "SIZE", help_heading = "Device")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) device_memory: Option<Size>,

    /// Threads that run kernels on the CPU; results don't depend on it [default: one a core]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, help_heading = "Device")]
    #[serde(deserialize_with = "from_one")]
    pub(super) device_threads: Option<NonZeroU32>,

    /// At the end of the attempt, tell where the device's time went: for each kernel how it ran, launches, blocks, threads and time, and
    /// the same of products, random fills, copies and transfers. The figures are kept in the attempt's record on the volume, too.
    /// Each operation on a GPU is then waited for, so nothing overlaps there
    #[arg(long, help_heading = "Device")]
    pub(super) profile: bool,

    /// The most that the plugin's state, persistent buffers included, may take in a checkpoint; memory is set aside for a copy of
    /// it [default: as --memory-limit, and where the plugin uses a device as much again as --device-memory]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) state_limit: Option<Size>,

    /// End the attempt when a step, or another call of the plugin, takes longer [default: only warn of a stall]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) step_timeout: Option<Time>,

    /// Save and exit with 143 after this time; set it somewhat below the platform's own timeout for an attempt
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    #[serde(deserialize_with = "as_on_command_line")]
    pub(super) attempt_deadline: Option<Time>,

    /// Give the job up, with 65, after this many attempts in a row without progress [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, help_heading = "Limits")]
    #[serde(deserialize_with = "from_one")]
    pub(super) max_stalled: Option<NonZeroU32>,

    /// End the attempt, with 75, after this many failed saves in a row [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, help_heading = "Limits")]
    #[serde(deserialize_with = "from_one")]
    pub(super) max_save_failures: Option<NonZeroU32>,

    /// How log lines are written [default: auto, which is json under an engine]
    #[arg(long, value_name = "FORMAT")]
    pub(super) log: Option<LogFormat>,

    /// Print what would be done (identity, volume, checkpoint, limits), and stop
    #[arg(long)]
    #[serde(skip)]
    pub(super) dry_run: bool,
}

impl RunOptions {
    /// These options, and where they say nothing, `file`'s.
    pub(super) fn or(self, file: Self) -> Self {
        // A choice of where to begin is one choice, even if two options make it.
        let begins = self.fresh || self.from.is_some();
        Self {
            plugin: self.plugin.or(file.plugin),
            watch: self.watch || file.watch,
            plugin_from: self.plugin_from.or(file.plugin_from),
            plugin_digest: self.plugin_digest.or(file.plugin_digest),
            name: self.name.or(file.name),
            run_id: self.run_id.or(file.run_id),
            config: self.config.or(file.config),
            input: self.input.or(file.input),
            output: self.output.or(file.output),
            scratch: self.scratch.or(file.scratch),
            seed: self.seed.or(file.seed),
            canonical_nans: self.canonical_nans || file.canonical_nans,
            volume: self.volume.or(file.volume),
            every: self.every.or(file.every),
            keep: self.keep.or(file.keep),
            fresh: if begins { self.fresh } else { file.fresh },
            from: if begins { self.from } else { file.from },
            accept_changed: if self.accept_changed.is_empty() { file.accept_changed } else { self.accept_changed },
            input_digest: self.input_digest.or(file.input_digest),
            if_done: self.if_done.or(file.if_done),
            volume_is_ephemeral: self.volume_is_ephemeral || file.volume_is_ephemeral,
            grace: self.grace.or(file.grace),
            memory_limit: self.memory_limit.or(file.memory_limit),
            device: self.device.or(file.device),
            device_memory: self.device_memory.or(file.device_memory),
            device_threads: self.device_threads.or(file.device_threads),
            profile: self.profile || file.profile,
            state_limit: self.state_limit.or(file.state_limit),
            step_timeout: self.step_timeout.or(file.step_timeout),
            attempt_deadline: self.attempt_deadline.or(file.attempt_deadline),
            max_stalled: self.max_stalled.or(file.max_stalled),
            max_save_failures: self.max_save_failures.or(file.max_save_failures),
            log: self.log.or(file.log),
            dry_run: self.dry_run,
        }
    }

    /// Lets relative paths begin at the folder of the file that they stand in, and loads the configuration from there.
    pub(super) fn based_at(mut self, base: &Path) -> Result<Self, Failure> {
        let places = [&mut self.input, &mut self.output, &mut self.scratch, &mut self.volume];
        for place in places.into_iter().flatten() {
            place.0 = base.join(&place.0);
        }
        if let Some(Source(PluginSource::File(file))) = &mut self.plugin {
            *file = base.join(&file);
        }
        if let Some(config) = self.config.take() {
            self.config = Some(ConfigSource::Value(config.load(base)?));
        }
        Ok(self)
    }

    /// The names of the options that differ, but for the plugin's digest.
    pub(super) fn differing(&self, other: &Self) -> Vec<String> {
        let [these, those] = [self, other].map(Self::as_arguments);
        let in_one = these.iter().filter(|word| !those.contains(word));
        let in_other = those.iter().filter(|word| !these.contains(word));
        let name = |word: &OsString| {
            let word = word.to_string_lossy();
            word.trim_start_matches("--").split('=').next().unwrap_or_default().to_owned()
        };
        let names: BTreeSet<String> = in_one.chain(in_other).map(name).collect();
        names.into_iter().filter(|name| name != "plugin-digest").collect()
    }

    /// The options as they stand on a command line; what `based_at` loaded stands there as JSON.
    pub(super) fn as_arguments(&self) -> Vec<OsString> {
        fn text(value: Option<&impl ToString>) -> Option<OsString> {
            value.map(|value| value.to_string().into())
        }
        fn path(place: Option<&Place>) -> Option<OsString> {
            place.map(|place| PathBuf::clone(&place.0).into_os_string())
        }
        fn word(value: Option<&impl ValueEnum>) -> Option<OsString> {
            value.and_then(|value| value.to_possible_value()).map(|value| value.get_name().to_owned().into())
        }
        let config = self.config.as_ref().map(|config| match config {
            ConfigSource::Text(text) => text.clone(),
            ConfigSource::Value(value) => super::config::canonical(value),
        });
        let every = self.every.map(|every| every.to_string().replace(' ', ""));
        let changes: Vec<String> = self.accept_changed.iter().map(ToString::to_string).collect();
        let with_values = [
            ("--plugin-from", word(self.plugin_from.as_ref())),
            ("--plugin-digest", text(self.plugin_digest.as_ref())),
            ("--name", text(self.name.as_ref())),
            ("--run-id", text(self.run_id.as_ref())),
            ("--config", text(config.as_ref())),
            ("--input", path(self.input.as_ref())),
            ("--output", path(self.output.as_ref())),
            ("--scratch", path(self.scratch.as_ref())),
            ("--seed", text(self.seed.as_ref())),
            ("--volume", path(self.volume.as_ref())),
            ("--every", text(every.as_ref())),
            ("--keep", text(self.keep.as_ref())),
            ("--from", text(self.from.as_ref())),
            ("--accept-changed", (!changes.is_empty()).then(|| changes.join(",").into())),
            ("--input-digest", word(self.input_digest.as_ref())),
            ("--if-done", word(self.if_done.as_ref())),
            ("--grace", text(self.grace.map(|time| time.to_string().replace(' ', "")).as_ref())),
            ("--memory-limit", text(self.memory_limit.as_ref())),
            ("--device", text(self.device.as_ref())),
            ("--device-memory", text(self.device_memory.as_ref())),
            ("--device-threads", text(self.device_threads.as_ref())),
            ("--state-limit", text(self.state_limit.as_ref())),
            ("--step-timeout", text(self.step_timeout.map(|time| time.to_string().replace(' ', "")).as_ref())),
            ("--attempt-deadline", text(self.attempt_deadline.map(|time| time.to_string().replace(' ', "")).as_ref())),
            ("--max-stalled", text(self.max_stalled.as_ref())),
            ("--max-save-failures", text(self.max_save_failures.as_ref())),
            ("--log", word(self.log.as_ref())),
        ];
        let flags = [
            ("--watch", self.watch),
            ("--canonical-nans", self.canonical_nans),
            ("--profile", self.profile),
            ("--fresh", self.fresh),
            ("--volume-is-ephemeral", self.volume_is_ephemeral),
            ("--dry-run", self.dry_run),
        ];
        let values = with_values.into_iter().filter_map(|(name, value)| {
            // One word, so that a value may begin with a dash.
            let mut word = OsString::from(name);
            word.push("=");
            word.push(value?);
            Some(word)
        });
        values.chain(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.into())).collect()
    }
}
