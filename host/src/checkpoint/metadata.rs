//! What a checkpoint says about itself, beside the state: who made it, of what, and what it counts.
//!
//! The step counter and the state it counts are one record: this text and the sections lie in one file under one set of
//! hashes. Kept as JSON, so that people and other tools can read it.

use serde::{Deserialize, Serialize};

use super::names::Tenure;
use super::outputs::Manifest;

/// The metadata of one checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The version of the program that wrote it.
    pub host_version: String,
    /// When it was made (RFC 3339); for people, nothing is decided by it.
    pub made: String,
    /// The job's name, or its run id.
    pub job: String,
    /// Which task, from 0.
    pub task_index: u32,
    /// Of how many.
    pub task_count: u32,
    /// The first tenure of the sequence of attempts that this one goes on from.
    pub lineage: Tenure,
    /// The attempt that wrote it.
    pub tenure: Tenure,
    /// The next step to run.
    pub next_step: u64,
    /// The line that the guest said when it was done; none while steps remain.
    pub finished: Option<String>,
    /// How far the task is, in the plugin's own unit.
    pub progress: Progress,
    /// The component that wrote the state.
    pub plugin: PluginFacts,
    /// The plugin's configuration, as JSON with sorted keys.
    pub config: String,
    /// What the input was.
    pub input: Option<InputFacts>,
    /// Seed of every generator.
    pub seed: u64,
    /// Where the generator behind WASI's random bytes is; the plugin module knows what it means.
    pub random: serde_json::Value,
    /// What ran the kernels; `none` for a plugin without any.
    pub device: String,
    /// Milliseconds that all attempts of the lineage spent up to here.
    pub elapsed_ms: u64,
    /// The guest's output files and the host's record of metrics.
    pub outputs: Manifest,
}

/// How far the task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all, if known.
    pub total: Option<u64>,
}

/// The component that wrote the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFacts {
    /// The file's stem, or the last word of the repository.
    pub name: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The version of the state's layout.
    pub state_version: u32,
    /// Where a registry has it; none if it came from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactFacts>,
}

/// Where a registry has a component. A retry under the same reference goes on with what it came to, wherever a tag points by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactFacts {
    /// As the user gave it.
    pub reference: String,
    /// The digest of the manifest that this came to: `sha256:` and 64 hexadecimal digits.
    pub manifest: String,
}

/// What the input was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFacts {
    /// What the digest covers: `names` (and sizes) or `contents`.
    pub covers: String,
    /// BLAKE3, in hexadecimal.
    pub digest: String,
    /// How many files.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}
