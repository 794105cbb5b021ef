//! The block that every run begins with, and `--dry-run` prints: who, where, from what, within which limits.

use super::error::in_words;
use super::memory::in_bytes;
use super::pace::assumed_bytes_in;
use super::scene::Scene;
use super::spec::{Every, JobSpec};
use super::watch::margin;
use crate::checkpoint::store::Loaded;
use crate::plugin::{Plugin, short};

/// Rows about the job, the volume, the plugin and the limits.
#[must_use]
pub fn rows(spec: &JobSpec, scene: &Scene, plugin: &Plugin, attempt: u32, seed: u64) -> Vec<(&'static str, String)> {
    let who = &scene.placement;
    let job = format!(
        "{} · task {} of {} · attempt {attempt}   ({}; named by {})",
        who.job.folder, who.task_index, who.task_count, who.engine, who.job.source
    );
    let every = match spec.every {
        Every::Time(time) => format!("every {}", in_words(time)),
        Every::Steps(1) => "every step".into(),
        Every::Steps(steps) => format!("every {steps} steps"),
    };
    let cached = if plugin.from_cache() { "compiled before" } else { "compiled now" };
    let mut limits = vec![scene.memory.limits()];
    limits
        .push(spec.step_timeout.map_or("no step timeout".into(), |limit| format!("step timeout {}", in_words(limit))));
    limits.extend(spec.attempt_deadline.map(|limit| format!("attempt deadline {}", in_words(limit))));
    let device = plugin.uses_device().then(|| ("device", scene.device.to_string()));
    let grace = who.grace.time;
    let fits = assumed_bytes_in(grace.saturating_sub(margin(grace)));
    let mut rows = vec![
        ("job", job),
        ("volume", format!("{} · {every}, keep {}", scene.volume.description, spec.keep)),
        (
            "plugin",
            format!(
                "{}{} · {} · {} · {cached}",
                spec.plugin,
                manifest(plugin),
                in_bytes(plugin.bytes().len() as u64),
                plugin.short()
            ),
        ),
        ("seed", seed.to_string()),
        ("limits", limits.join(" · ")),
        (
            "grace",
            format!(
                "{} ({}); saves about {} of state until measured",
                in_words(grace),
                who.grace.source,
                in_bytes(fits)
            ),
        ),
    ];
    rows.splice(3..3, device);
    rows
}

/// What a reference came to, unless it says so itself.
fn manifest(plugin: &Plugin) -> String {
    let artifact = plugin.artifact().filter(|artifact| !artifact.reference.ends_with(&artifact.manifest));
    artifact.map(|artifact| format!(" · manifest {}", short(&artifact.manifest))).unwrap_or_default()
}

/// The row about where it starts.
#[must_use]
pub fn start(loaded: Option<&Loaded>) -> String {
    match loaded {
        None => "no checkpoint found, starting at step 0".into(),
        Some(loaded) => {
            let metadata = &loaded.metadata;
            let what = if metadata.finished.is_some() { "all steps are done, outputs are left" } else { "going on" };
            format!("checkpoint {} · {what} at step {}", loaded.origin.name, metadata.next_step)
        }
    }
}
