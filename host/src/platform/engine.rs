//! The engines that start attempts, and how each is recognised and stops us.

use std::fmt;
use std::time::Duration;

use super::Environment;

/// What started this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A person or a script on a plain machine.
    None,
    /// A Cloud Run job.
    CloudRun,
    /// A pod of a Kubernetes Job, Indexed or not.
    Kubernetes,
    /// A Slurm batch job.
    Slurm,
    /// An AWS Batch job.
    AwsBatch,
    /// A Nomad batch job.
    Nomad,
}

/// A signal that asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM, which every engine uses.
    Terminate,
    /// SIGINT, which Nomad uses.
    Interrupt,
}

impl StopSignal {
    /// Its name, as people grep for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }
}

impl Engine {
    /// Recognises the engine. The most specific comes first: AWS Batch and Slurm can run inside Kubernetes, whose variables
    /// are then there too.
    #[must_use]
    pub fn detect(environment: Environment<'_>) -> Self {
        const MARKS: [(&str, Engine); 8] = [
            ("CLOUD_RUN_JOB", Engine::CloudRun),
            ("CLOUD_RUN_EXECUTION", Engine::CloudRun),
            ("AWS_BATCH_JOB_ID", Engine::AwsBatch),
            ("NOMAD_ALLOC_ID", Engine::Nomad),
            ("NOMAD_JOB_NAME", Engine::Nomad),
            ("SLURM_JOB_ID", Engine::Slurm),
            ("JOB_COMPLETION_INDEX", Engine::Kubernetes),
            ("KUBERNETES_SERVICE_HOST", Engine::Kubernetes),
        ];
        let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
        MARKS.iter().find(|(name, _)| is_set(name)).map_or(Self::None, |(_, engine)| *engine)
    }

    /// Time between the stop signal and SIGKILL where nothing else is said. A plain machine is treated like the hastiest of
    /// the engines that are in wide use.
    pub(super) fn usual_grace(self) -> Duration {
        Duration::from_secs(match self {
            Self::None | Self::CloudRun => 10,
            Self::Kubernetes | Self::Slurm | Self::AwsBatch => 30,
            Self::Nomad => 5,
        })
    }

    /// The signals by which it asks an attempt to stop.
    #[must_use]
    pub fn stop_signals(self) -> Vec<StopSignal> {
        match self {
            Self::Nomad => vec![StopSignal::Terminate, StopSignal::Interrupt],
            _ => vec![StopSignal::Terminate],
        }
    }

    /// Whether an attempt runs in a container, whose own disk vanishes with it.
    pub(super) fn runs_containers(self) -> bool {
        matches!(self, Self::CloudRun | Self::Kubernetes | Self::AwsBatch | Self::Nomad)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no engine detected",
            Self::CloudRun => "Cloud Run",
            Self::Kubernetes => "Kubernetes",
            Self::Slurm => "Slurm",
            Self::AwsBatch => "AWS Batch",
            Self::Nomad => "Nomad",
        })
    }
}
