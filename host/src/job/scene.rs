//! Who and where an attempt is, and what is refused before anything is written.

use std::path::PathBuf;
use std::sync::Arc;

use super::RunError;
use super::device::DevicePlan;
use super::memory::{MemoryPlan, Room};
use super::spec::{Changeable, InputDigest, JobSpec};
use crate::checkpoint::faults;
use crate::checkpoint::input::{self, Covers};
use crate::checkpoint::metadata::InputFacts;
use crate::checkpoint::names::TaskFolder;
use crate::checkpoint::store::{Begun, Choice, ClaimRequest, Store, StoreError, Survey, Wish};
use crate::checkpoint::volume::Disk;
use crate::platform::{self, Engine, Mounts, Placement, VolumePlace};
use crate::plugin::{JobInfo, Plugin};

/// Who and where an attempt is.
pub struct Scene {
    /// Who it is, by options and engine.
    pub placement: Placement,
    /// The volume.
    pub volume: VolumePlace,
    /// The task's checkpoints.
    pub store: Store,
    /// What the input is.
    pub input: Option<InputFacts>,
    /// How memory is divided.
    pub memory: MemoryPlan,
    /// What runs the kernels.
    pub device: DevicePlan,
    volume_is_there: bool,
}

impl Scene {
    /// Looks around. Nothing is written but the trace that an attempt leaves which its engine counts as the first.
    pub fn find(spec: &JobSpec, placement: Placement) -> Result<Self, RunError> {
        let volume = platform::check_volume(&placement, spec, &Mounts::of_process()?)?;
        let (store, volume_is_there) = open_store(spec, &placement, &volume)?;
        if placement.attempt == Some(0) && volume_is_there && !spec.dry_run {
            leave_trace(&store);
        }
        // Buckets are mounted by a program beside us, whose buffers count as ours.
        let volume_in_memory = volume.filesystem.starts_with("fuse");
        let room = Room::here(&spec.plugin, volume_in_memory);
        let device = DevicePlan::choose(spec, room.device)?;
        let memory = MemoryPlan::make(spec, Room { own_memory: device.own_memory(), ..room })?;
        let covers = match spec.input_digest {
            InputDigest::Names => Covers::Names,
            InputDigest::Contents => Covers::Contents,
        };
        let input = spec.input.as_deref().map(|folder| input::digest(folder, covers)).transpose()?;
        Ok(Self { placement, volume, store, input, memory, device, volume_is_there })
    }

    /// One look at the task's folder. A dry run on a plain machine may come before there is a volume.
    pub fn survey(&self, spec: &JobSpec) -> Result<Survey, RunError> {
        let nothing_yet = spec.dry_run && !self.volume_is_there;
        if nothing_yet { Ok(Survey::default()) } else { Ok(self.store.survey()?) }
    }

    /// Refuses to go on where the volume is not what it should be by now.
    pub fn refuse_wrong_volume(&self, spec: &JobSpec, survey: &Survey) -> Result<(), RunError> {
        let task = self.store.task();
        if let Some(attempt) = self.placement.attempt.filter(|attempt| *attempt > 0)
            && !survey.job_known
            && !spec.volume_is_ephemeral
        {
            let job = self.placement.job.folder.to_string();
            return Err(RunError::LostVolume { volume: self.volume.path.clone(), job, attempt });
        }
        // An accepted attempt that died before its first checkpoint has left a claim and no work.
        let no_work_yet = survey.checkpoints().next().is_none() && survey.set_aside.is_empty();
        let begun_so = survey.newest().is_none_or(|claim| claim.begun == Begun::First);
        match survey.other_counts.last() {
            Some(other) if no_work_yet && begun_so && !spec.accept_changed.contains(&Changeable::TaskCount) => {
                Err(RunError::OtherTaskCount { other: *other, now: task.count })
            }
            _ => Ok(()),
        }
    }

    /// What the attempt says when it claims its task.
    #[must_use]
    pub fn claim_request(&self, spec: &JobSpec, survey: &Survey) -> ClaimRequest {
        let accepted = spec.accept_changed.contains(&Changeable::TaskCount);
        ClaimRequest {
            wish: wish(spec),
            execution: self.placement.execution.clone(),
            engine: self.placement.engine.to_string(),
            machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            adopt: survey.other_counts.last().filter(|_| accepted).copied(),
            keep: spec.keep,
        }
    }

    /// The attempt's number: the engine's, else that of claims in the lineage before.
    #[must_use]
    pub fn attempt_number(&self, survey: &Survey, choice: &Choice) -> u32 {
        let before = match choice {
            Choice::GoOn(claim) => survey.attempts(claim.lineage),
            Choice::Begin => 0,
        };
        self.placement.attempt.unwrap_or(before)
    }

    /// Who the guest is told that it is.
    #[must_use]
    pub fn job_info(&self, spec: &JobSpec, attempt: u32) -> JobInfo {
        let name = self.placement.job.folder.to_string();
        let Placement { task_index, task_count, .. } = self.placement;
        let seed = spec.seed.unwrap_or_else(|| usual_seed(&name, task_index));
        JobInfo { name, task_index, task_count, attempt, seed }
    }

    /// What runs a plugin's kernels, as checkpoints and records say it.
    #[must_use]
    pub fn device_of(&self, plugin: &Plugin) -> &'static str {
        if plugin.uses_device() { self.device.name() } else { "none" }
    }

    /// Where scratch folders go.
    #[must_use]
    pub fn scratch(spec: &JobSpec) -> PathBuf {
        spec.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// The task's checkpoints, and whether there is a volume to have them on.
fn open_store(spec: &JobSpec, placement: &Placement, volume: &VolumePlace) -> Result<(Store, bool), RunError> {
    let mut disk = Disk::new(&volume.path);
    // On a plain machine the first run makes the folder, as the user expects; a platform's volume is mounted, not made.
    let plain = placement.engine == Engine::None || placement.rehearsal;
    if plain && !disk.is_there() && !spec.dry_run {
        let failed = |cause| StoreError { operation: "create", path: volume.path.clone(), cause };
        disk = Disk::make(&volume.path).map_err(failed)?;
    }
    let is_there = disk.is_there();
    let task = TaskFolder { index: placement.task_index, count: placement.task_count };
    Ok((Store::new(faults::from_env(Arc::new(disk))?, &placement.job.folder, task), is_there))
}

/// Before anything that may take long (a digest of the input, a download, a compilation) or be refused: the platform counts
/// what follows as a retry, and a retry refuses a volume that has never seen its job.
fn leave_trace(store: &Store) {
    if let Err(error) = store.leave_trace() {
        tracing::warn!("Cannot leave a trace of the job on the volume: {error}");
    }
}

/// What the command asks for.
#[must_use]
pub fn wish(spec: &JobSpec) -> Wish {
    match (spec.fresh, spec.from, spec.if_done) {
        (true, ..) => Wish::Fresh,
        (false, Some(step), _) => Wish::From(step),
        (false, None, super::spec::IfDone::Restart) => Wish::RestartIfDone,
        (false, None, _) => Wish::GoOn,
    }
}

fn usual_seed(name: &str, task_index: u32) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("steadfast 2026 the seed of a task");
    hasher.update(name.as_bytes()).update(&task_index.to_le_bytes());
    let mut seed = [0; 8];
    hasher.finalize_xof().fill(&mut seed);
    u64::from_le_bytes(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_seed_is_for_ever() {
        // A change here would change the results of every job that gives no seed.
        assert_eq!(usual_seed("digits", 0), 3_276_915_735_540_541_665);
        assert_ne!(usual_seed("digits", 0), usual_seed("digits", 1));
        assert_ne!(usual_seed("digits", 0), usual_seed("digit", 0));
    }
}
